//! client-go's sample controller, which creates a deployment for each Foo.

use serde_json::json;
use tokio::fs;

use super::stage::{Stage, create, delete, end, get, patch, patch_status};
use crate::Error;
use crate::binaries::Programs;

const NAMESPACE: &str = "sample-controller";

pub(crate) async fn run(stage: &Stage, programs: &Programs) -> Result<String, Error> {
    stage.namespace(NAMESPACE).await?;
    let definition = fs::read_to_string(programs.samples.join("crd-status-subresource.yaml")).await?;
    stage.post_yaml("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await?;
    stage.served("foos.samplecontroller.k8s.io").await?;
    let mut program = stage.start("sample-controller", &programs.sample_controller, &["-v", "8"])?;
    let example = fs::read_to_string(programs.samples.join("example-foo.yaml")).await?;
    let path = format!("/apis/samplecontroller.k8s.io/v1alpha1/namespaces/{NAMESPACE}/foos");
    stage.post_yaml(&path, example).await?;

    let foos = stage.within(NAMESPACE, "samplecontroller.k8s.io/v1alpha1", "Foo", "foos");
    let deployments = stage.within(NAMESPACE, "apps/v1", "Deployment", "deployments");
    let first = get(&foos, "example-foo").await?.ok_or("the Foo is gone")?;
    let by = Some(&mut program);
    let made = stage.eventually("a deployment is made", by, async || get(&deployments, "example-foo").await).await?;
    let owner = json!([{
        "apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo", "name": "example-foo",
        "uid": first["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
    }]);
    if made["metadata"]["ownerReferences"] != owner || made["spec"]["replicas"] != 1 {
        return Err(format!("the deployment is another than was asked for: {made}").into());
    }
    if made["metadata"]["managedFields"][0]["manager"] != "sample-controller" {
        return Err(format!("the deployment has another author: {}", made["metadata"]["managedFields"]).into());
    }

    patch(&foos, "example-foo", &json!({"spec": {"replicas": 3}})).await?;
    let scaled = async || Ok(get(&deployments, "example-foo").await?.filter(|made| made["spec"]["replicas"] == 3));
    stage.eventually("the deployment is scaled", Some(&mut program), scaled).await?;

    let status = json!({"status": {"replicas": 3, "readyReplicas": 2, "availableReplicas": 2}});
    patch_status(&deployments, "example-foo", &status).await?;
    let updated = async || Ok(get(&foos, "example-foo").await?.filter(|seen| seen["status"]["availableReplicas"] == 2));
    stage.eventually("the status is updated", Some(&mut program), updated).await?;

    let events = stage.within(NAMESPACE, "v1", "Event", "events");
    let recorded = async || {
        let events = events.list(&Default::default()).await?.items;
        Ok(events.into_iter().find(|event| {
            let data = &event.data;
            data["reason"] == "Synced"
                && data["involvedObject"]["uid"] == first["metadata"]["uid"]
                && data["source"]["component"] == "sample-controller"
        }))
    };
    stage.eventually("an event is recorded", Some(&mut program), recorded).await?;

    delete(&deployments, "example-foo").await?;
    let again = async || {
        Ok(get(&deployments, "example-foo").await?.filter(|new| new["metadata"]["uid"] != made["metadata"]["uid"]))
    };
    stage.eventually("a deleted deployment is made again", Some(&mut program), again).await?;

    let taken = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "taken"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    });
    create(&deployments, taken).await?;
    let second = json!({
        "apiVersion": "samplecontroller.k8s.io/v1alpha1", "kind": "Foo", "metadata": {"name": "second"},
        "spec": {"deploymentName": "taken", "replicas": 1},
    });
    create(&foos, second).await?;
    let warned = async || {
        let events = events.list(&Default::default()).await?.items;
        Ok(events
            .into_iter()
            .find(|event| event.data["reason"] == "ErrResourceExists" && event.data["type"] == "Warning"))
    };
    stage.eventually("a deployment of others is left alone", Some(&mut program), warned).await?;
    let (sent, received) = in_protobuf(&program.said().await);
    if sent == 0 || received == 0 {
        return Err(format!("it sent {sent} bodies in protobuf and received {received} answers").into());
    }
    end(program).await?;
    let how = format!("{sent} bodies and {received} answers in protobuf");
    Ok(format!("deployment created, scaled, recreated; status and events written; {how}"))
}

/// Number of requests and responses with protobuf bodies, according to the headers that client-go
/// logs.
fn in_protobuf(log: &str) -> (usize, usize) {
    let count = |what: &str| {
        let requests = log.split("round_trippers.go").filter(|request| request.contains(what));
        requests.filter(|request| request.contains("\tContent-Type: application/vnd.kubernetes.protobuf")).count()
    };
    (count("] \"Request\""), count("] \"Response\""))
}
