//! A manager built with controller-runtime: `e2e/programs/manager`.

use serde_json::json;

use super::stage::{Stage, create, delete, end, get, patch};
use crate::Error;
use crate::binaries::Programs;

const NAMESPACE: &str = "controller-runtime";

pub(crate) async fn run(stage: &Stage, programs: &Programs) -> Result<String, Error> {
    stage.namespace(NAMESPACE).await?;
    stage.define(&definition()).await?;
    let mut program = stage.start("manager", &programs.manager, &["-namespace", NAMESPACE])?;

    let leases = stage.within(NAMESPACE, "coordination.k8s.io/v1", "Lease", "leases");
    let leads = async || {
        let held =
            |holder: &serde_json::Value| holder["spec"]["holderIdentity"].as_str().is_some_and(|id| !id.is_empty());
        Ok(get(&leases, "sites").await?.filter(held))
    };
    stage.eventually("it leads", Some(&mut program), leads).await?;

    let sites = stage.within(NAMESPACE, "programs.example.com/v1", "Site", "sites");
    let maps = stage.within(NAMESPACE, "v1", "ConfigMap", "configmaps");
    let site = json!({"apiVersion": "programs.example.com/v1", "kind": "Site", "metadata": {"name": "a"}, "spec": {"page": "one"}});
    let site = create(&sites, site).await?;
    let page = |text: &'static str| {
        let maps = maps.clone();
        async move || Ok(get(&maps, "a").await?.filter(|map| map["data"]["page"] == text))
    };
    let made = stage.eventually("a page is made", Some(&mut program), page("one")).await?;
    let owner = &made["metadata"]["ownerReferences"][0];
    if owner["uid"] != site["metadata"]["uid"] || owner["controller"] != true {
        return Err(format!("the page has another owner: {owner}").into());
    }
    let observed = |generation: u32| {
        let sites = sites.clone();
        async move || {
            let status = json!({"pages": 1, "observedGeneration": generation});
            Ok(get(&sites, "a").await?.filter(|site| site["status"] == status))
        }
    };
    stage.eventually("the status is updated", Some(&mut program), observed(1)).await?;

    patch(&sites, "a", &json!({"spec": {"page": "two"}})).await?;
    stage.eventually("the page follows", Some(&mut program), page("two")).await?;
    stage.eventually("the status follows", Some(&mut program), observed(2)).await?;

    delete(&maps, "a").await?;
    let again = async || Ok(get(&maps, "a").await?.filter(|map| map["metadata"]["uid"] != made["metadata"]["uid"]));
    stage.eventually("a deleted page is made again", Some(&mut program), again).await?;

    let events = stage.within(NAMESPACE, "events.k8s.io/v1", "Event", "events");
    let recorded = async || {
        let events = events.list(&Default::default()).await?.items;
        Ok(events.into_iter().find(|event| {
            event.data["reason"] == "Published" && event.data["regarding"]["uid"] == site["metadata"]["uid"]
        }))
    };
    stage.eventually("an event is recorded", Some(&mut program), recorded).await?;

    let secrets = stage.within(NAMESPACE, "v1", "Secret", "secrets");
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "labels": {"counted": "yes"}},
        "stringData": {"one": "1", "two": "2"},
    });
    create(&secrets, secret).await?;
    let counted =
        async || Ok(get(&secrets, "s").await?.filter(|secret| secret["metadata"]["annotations"]["entries"] == "2"));
    stage.eventually("a secret is counted", Some(&mut program), counted).await?;
    let applied = async || {
        let names = json!({"one": "present", "two": "present"});
        Ok(get(&maps, "s-names").await?.filter(|map| map["data"] == names))
    };
    let names = stage.eventually("its names are applied", Some(&mut program), applied).await?;
    let entry = &names["metadata"]["managedFields"][0];
    if entry["manager"] != "secrets" || entry["operation"] != "Apply" {
        return Err(format!("what was applied has another author: {entry}").into());
    }
    patch(&secrets, "s", &json!({"data": {"two": null}})).await?;
    let withdrawn = async || Ok(get(&maps, "s-names").await?.filter(|map| map["data"] == json!({"one": "present"})));
    stage.eventually("what is no longer applied goes", Some(&mut program), withdrawn).await?;

    end(program).await?;
    let released = get(&leases, "sites").await?.is_some_and(|lease| lease["spec"]["holderIdentity"] == "");
    if !released {
        return Err("the lease was not released".into());
    }
    Ok("lease held and released, pages and status kept, names applied, events written".to_owned())
}

fn definition() -> serde_json::Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "sites.programs.example.com"},
        "spec": {
            "group": "programs.example.com", "scope": "Namespaced", "names": {"plural": "sites", "kind": "Site"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "required": ["spec"],
                    "properties": {
                        "spec": {"type": "object", "required": ["page"], "properties": {"page": {"type": "string"}}},
                        "status": {"type": "object", "properties": {
                            "pages": {"type": "integer"}, "observedGeneration": {"type": "integer", "format": "int64"},
                        }},
                    },
                }},
            }],
        },
    })
}
