//! Deleting single objects and collections.

use crate::support::{Client, server, types, version};
use serde_json::{Value, json};

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";
const PODS: &str = "/api/v1/namespaces/default/pods";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

fn held(name: &str) -> Value {
    json!({"metadata": {"name": name, "finalizers": ["example.com/hold"]}, "data": {"a": "1"}})
}

fn pod(name: &str, node: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}})
}

#[tokio::test(start_paused = true)]
async fn most_kinds_answer_with_a_status_and_some_with_the_object() {
    let server = server().await;
    let client = Client::of(&server);
    let made = client.post(CONFIGMAPS, &json!({"metadata": {"name": "x"}})).await.expect(201).json();
    let gone = client.delete(&format!("{CONFIGMAPS}/x")).await.expect(200);
    let uid = made["metadata"]["uid"].as_str().unwrap();
    assert_eq!(
        gone.text(),
        format!(
            "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"status\":\"Success\",\"details\":{{\"name\":\"x\",\
             \"kind\":\"configmaps\",\"uid\":\"{uid}\"}}}}\n"
        )
    );
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    client.post(accounts, &json!({"metadata": {"name": "x"}})).await.expect(201);
    assert_eq!(client.delete(&format!("{accounts}/x")).await.expect(200).json()["kind"], "ServiceAccount");
    client.delete(&format!("{CONFIGMAPS}/x")).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn an_object_goes_with_its_last_finalizer() {
    let server = server().await;
    let client = Client::of(&server);
    let path = format!("{CONFIGMAPS}/x");
    let start = client.post(CONFIGMAPS, &held("x")).await.expect(201).version();
    let marked = client.delete(&path).await.expect(200);
    assert_eq!(marked.json()["metadata"]["deletionGracePeriodSeconds"], 0);
    assert_eq!(client.delete(&path).await.expect(200).body, marked.body);
    let late =
        client.merge(&path, &json!({"metadata": {"finalizers": ["example.com/hold", "new/one"]}})).await.expect(422);
    assert!(late.message().ends_with(r#"found new finalizers []string{"new/one"}"#), "{}", late.message());
    client.merge(&path, &json!({"metadata": {"deletionTimestamp": null}})).await.expect(200);
    let last = client.merge(&path, &json!({"metadata": {"finalizers": []}})).await.expect(200);
    assert_eq!(last.version(), marked.version());
    assert!(last.json()["metadata"].get("finalizers").is_none());
    client.get(&path).await.expect(404);
    let events = client.events(CONFIGMAPS, start).await;
    assert_eq!(types(&events), ["MODIFIED", "DELETED"]);
    assert_eq!(events[1]["object"]["metadata"]["finalizers"], json!(["example.com/hold"]));
    assert!(version(&events[1]["object"]) > marked.version());
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_a_node_is_given_time_that_can_only_be_shortened() {
    let server = server().await;
    let client = Client::of(&server);
    let path = format!("{PODS}/x");
    let start = client.post(PODS, &pod("x", "node")).await.expect(201).version();
    let marked = client.delete(&path).await.expect(200).json();
    assert_eq!(marked["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(marked["metadata"]["generation"], 2);
    let end =
        |object: &Value| object["metadata"]["deletionTimestamp"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let created: jiff::Timestamp = marked["metadata"]["creationTimestamp"].as_str().unwrap().parse().unwrap();
    assert_eq!(end(&marked).as_second() - created.as_second(), 30);
    assert_eq!(client.delete(&format!("{path}?gracePeriodSeconds=60")).await.expect(200).json(), marked);
    let sooner = client.delete(&format!("{path}?gracePeriodSeconds=5")).await.expect(200).json();
    assert_eq!(end(&sooner).as_second() - created.as_second(), 5);
    client.delete(&format!("{path}?gracePeriodSeconds=0")).await.expect(200);
    client.get(&path).await.expect(404);
    assert_eq!(types(&client.events(PODS, start).await), ["MODIFIED", "MODIFIED", "MODIFIED", "DELETED"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_a_node_goes_at_once() {
    let server = server().await;
    let client = Client::of(&server);
    client.post(PODS, &pod("x", "")).await.expect(201);
    let gone = client.delete(&format!("{PODS}/x")).await.expect(200).json();
    assert_eq!((&gone["kind"], &gone["metadata"]["deletionGracePeriodSeconds"]), (&json!("Pod"), &json!(0)));
    client.get(&format!("{PODS}/x")).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn policies_become_finalizers_and_jobs_orphan_their_pods() {
    let server = server().await;
    let client = Client::of(&server);
    let job = json!({"metadata": {"name": "x"}, "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}});
    client.post(JOBS, &job).await.expect(201);
    let path = format!("{JOBS}/x");
    let orphaning = client.delete(&path).await.expect(200);
    assert_eq!(orphaning.json()["metadata"]["finalizers"], json!(["orphan"]));
    assert!(orphaning.warnings()[0].contains("child pods are preserved by default"));
    let foreground = client.delete_with(&path, &json!({"propagationPolicy": "Foreground"})).await.expect(200);
    assert_eq!(foreground.json()["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert!(foreground.warnings().is_empty());
    client.delete_with(&path, &json!({"orphanDependents": false})).await.expect(200);
    client.get(&path).await.expect(404);
    client.post(CONFIGMAPS, &held("x")).await.expect(201);
    client.delete_with(&format!("{CONFIGMAPS}/x"), &json!({"orphanDependents": false})).await.expect(202);
}

#[tokio::test(start_paused = true)]
async fn preconditions_must_hold() {
    let server = server().await;
    let client = Client::of(&server);
    let made = client.post(CONFIGMAPS, &json!({"metadata": {"name": "x"}})).await.expect(201);
    let path = format!("{CONFIGMAPS}/x");
    let refused = client.delete_with(&path, &json!({"preconditions": {"resourceVersion": "1"}})).await.expect(409);
    assert_eq!(
        refused.message(),
        format!(
            "Operation cannot be fulfilled on ConfigMap \"x\": the ResourceVersion in the precondition (1) does not match the \
             ResourceVersion in record ({}). The object might have been modified",
            made.version()
        )
    );
    client.delete_with(&path, &json!({"preconditions": {"uid": "other"}})).await.expect(409);
    let uid = made.json()["metadata"]["uid"].clone();
    client.delete_with(&path, &json!({"preconditions": {"uid": uid}})).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn a_collection_is_deleted_as_it_is_selected() {
    let server = server().await;
    let client = Client::of(&server);
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "x")] {
        client.post(CONFIGMAPS, &json!({"metadata": {"name": name, "labels": {"l": label}}})).await.expect(201);
    }
    client.post(CONFIGMAPS, &held("d")).await.expect(201);
    let tried = client.delete(&format!("{CONFIGMAPS}?dryRun=All")).await.expect(200);
    assert_eq!(tried.names(), ["a", "b", "c", "d"]);
    assert_eq!(client.delete(&format!("{CONFIGMAPS}?labelSelector=l%3Dx")).await.expect(200).names(), ["a", "c"]);
    assert_eq!(client.delete(CONFIGMAPS).await.expect(200).names(), ["b", "d"]);
    let left = client.get(CONFIGMAPS).await.expect(200);
    assert_eq!(left.names(), ["d"]);
    assert!(left.json()["items"][0]["metadata"]["deletionTimestamp"].is_string());
    client.delete("/api/v1/namespaces").await.expect(405);
}
