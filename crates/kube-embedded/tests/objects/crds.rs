//! Creating and deleting custom resource definitions.

use crate::support::{Client, server, types};
use http::Method;
use kube_embedded::{FirstAccess, Server};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const FOOS: &str = "/apis/ex.io/v1/namespaces/default/foos";

fn definition() -> Value {
    json!({
        "metadata": {"name": "foos.ex.io"},
        "spec": {
            "group": "ex.io", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
            }]
        }
    })
}

fn foo(name: &str) -> Value {
    json!({"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": name}, "spec": {"x": 1}})
}

#[tokio::test(start_paused = true)]
async fn a_definition_serves_its_kind_and_says_so_step_by_step() {
    let server = server().await;
    let client = Client::of(&server);
    assert_eq!(client.get(FOOS).await.expect(404).text(), "404 page not found\n");
    let made = client.post(DEFINITIONS, &definition()).await.expect(201);
    assert_eq!(made.json()["spec"]["names"]["listKind"], "FooList");
    assert_eq!(made.json()["metadata"]["generation"], 1);
    let events = client.events(DEFINITIONS, made.version()).await;
    let conditions: Vec<Vec<String>> = events
        .iter()
        .map(|event| {
            let conditions = event["object"]["status"]["conditions"].as_array().unwrap();
            conditions
                .iter()
                .map(|c| format!("{}={}", c["type"].as_str().unwrap(), c["status"].as_str().unwrap()))
                .collect()
        })
        .collect();
    assert_eq!(conditions, [["NamesAccepted=True", "Established=False"], ["NamesAccepted=True", "Established=True"]]);
    client.post(FOOS, &foo("a")).await.expect(201);
    assert_eq!(client.get(FOOS).await.expect(200).names(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn an_applied_status_of_a_custom_object_has_an_owner() {
    let server = server().await;
    let client = Client::of(&server);
    client.post(DEFINITIONS, &definition()).await.expect(201);
    client.post(FOOS, &foo("a")).await.expect(201);
    let status = json!({"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": "a"}, "status": {"y": 1}});
    let path = format!("{FOOS}/a/status?fieldManager=me");
    let apply = [("content-type", "application/apply-patch+yaml")];
    let applied = client.send(Method::PATCH, &path, &apply, status.to_string()).await.expect(200).json();
    assert_eq!(applied["status"], json!({"y": 1}));
    let managers = applied["metadata"]["managedFields"].as_array().unwrap();
    let own = managers.iter().find(|entry| entry["manager"] == "me").unwrap();
    assert_eq!(own["subresource"], "status");
    assert_eq!(own["fieldsV1"], json!({"f:status": {"f:y": {}}}));
    assert_eq!(managers.len(), 2, "the creator keeps its entry");
}

#[tokio::test(start_paused = true)]
async fn custom_objects_are_written_as_their_kind_says() {
    let server = server().await;
    let client = Client::of(&server);
    client.post(DEFINITIONS, &definition()).await.expect(201);
    let kindless = client.post(FOOS, &json!({"metadata": {"name": "a"}})).await.expect(400);
    assert!(
        kindless
            .message()
            .starts_with("the object provided is unrecognized (must be of type Foo): Object 'Kind' is missing in '")
    );
    let mut wrong = foo("a");
    wrong["kind"] = json!("Bar");
    assert_eq!(
        client.post(FOOS, &wrong).await.expect(422).message(),
        "Bar.ex.io \"a\" is invalid: kind: Invalid value: \"Bar\": must be Foo"
    );
    wrong["apiVersion"] = json!("ex.io/v2");
    assert_eq!(
        client.post(FOOS, &wrong).await.expect(400).message(),
        "the API version in the data (ex.io/v2) does not match the expected API version (ex.io/v1)"
    );
    let mut sent = foo("a");
    sent["status"] = json!({"ready": true});
    let made = client.post(FOOS, &sent).await.expect(201).json();
    assert!(made.get("status").is_none());
    let path = format!("{FOOS}/a");
    let patch = json!({"metadata": {"labels": {"l": "1"}}, "spec": {"x": 2}, "status": {"ready": true}});
    let status = client.merge(&format!("{path}/status"), &patch).await.expect(200).json();
    assert_eq!((&status["spec"]["x"], &status["status"]["ready"]), (&json!(1), &json!(true)));
    assert!(status["metadata"].get("labels").is_none());
    let main = client.merge(&path, &json!({"spec": {"x": 3}, "status": {"ready": false}})).await.expect(200).json();
    assert_eq!((&main["metadata"]["generation"], &main["status"]["ready"]), (&json!(2), &json!(true)));
    let mut put = main.clone();
    put["metadata"]["resourceVersion"] = json!("");
    assert!(client.put(&path, &put).await.expect(422).message().contains("must be specified for an update"));
    let unsupported = client
        .send(Method::PATCH, &path, &[("content-type", "application/strategic-merge-patch+json")], "{}")
        .await
        .expect(415);
    assert!(unsupported.message().ends_with("application/apply-patch+yaml"));
}

#[tokio::test(start_paused = true)]
async fn the_first_reader_of_a_new_kind_must_come_again() {
    let server = Server::builder().in_process().first_access(FirstAccess::Refused).start().await.unwrap();
    let client = Client::of(&server);
    client.post(DEFINITIONS, &definition()).await.expect(201);
    client.post(FOOS, &foo("a")).await.expect(201);
    client.get(&format!("{FOOS}?limit=1")).await.expect(200);
    client.get(&format!("{FOOS}/a")).await.expect(200);
    let refused = client.get(FOOS).await.expect(429);
    assert_eq!((refused.message().as_str(), refused.header("retry-after")), ("storage is (re)initializing", Some("1")));
    client.get(FOOS).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_definition_takes_its_objects_and_watches_with_it() {
    let server = server().await;
    let client = Client::of(&server);
    let start = client.post(DEFINITIONS, &definition()).await.expect(201).version();
    for name in ["a", "b"] {
        client.post(FOOS, &foo(name)).await.expect(201);
    }
    let from = client.get(FOOS).await.expect(200).version();
    let mut watch = client.watch(&format!("{FOOS}?watch=1&resourceVersion={from}")).await;
    let marked = client.delete(&format!("{DEFINITIONS}/foos.ex.io")).await.expect(200).json();
    assert_eq!(marked["metadata"]["finalizers"], json!(["customresourcecleanup.apiextensions.k8s.io"]));
    assert_eq!(watch.next().await.unwrap()["type"], "DELETED");
    assert_eq!(watch.next().await.unwrap()["type"], "DELETED");
    let before = Instant::now();
    assert_eq!(watch.next().await, None);
    assert_eq!(before.elapsed().as_secs(), 1);
    assert_eq!(client.get(FOOS).await.expect(404).text(), "404 page not found\n");
    let events = client.events(DEFINITIONS, start).await;
    assert_eq!(types(&events).last(), Some(&"DELETED"));
    let reasons: Vec<&str> = events
        .iter()
        .filter_map(|event| event["object"]["status"]["conditions"].as_array()?.get(2)?["reason"].as_str())
        .collect();
    assert_eq!(
        reasons,
        [
            "InstanceDeletionPending",
            "InstanceDeletionInProgress",
            "InstanceDeletionCompleted",
            "InstanceDeletionCompleted"
        ]
    );
    client.post(DEFINITIONS, &definition()).await.expect(201);
    assert!(client.get(FOOS).await.expect(200).names().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_of_an_object_holds_its_definition() {
    let server = server().await;
    let client = Client::of(&server);
    client.post(DEFINITIONS, &definition()).await.expect(201);
    let mut held = foo("a");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    client.post(FOOS, &held).await.expect(201);
    let path = format!("{DEFINITIONS}/foos.ex.io");
    client.delete(&path).await.expect(200);
    client.get(&path).await.expect(200);
    let refused = client.post(FOOS, &foo("b")).await.expect(403);
    assert_eq!(
        refused.message(),
        "foos.ex.io \"b\" is forbidden: create not allowed while custom resource definition is terminating"
    );
    client.merge(&format!("{FOOS}/a"), &json!({"metadata": {"finalizers": null}})).await.expect(200);
    client.get(&path).await.expect(404);
    client.get(FOOS).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn a_changed_definition_changes_what_is_served() {
    let server = server().await;
    let client = Client::of(&server);
    client.post(DEFINITIONS, &definition()).await.expect(201);
    client.post(FOOS, &foo("a")).await.expect(201);
    let mut changed = client.get(&format!("{DEFINITIONS}/foos.ex.io")).await.json();
    let mut second = changed["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["storage"] = json!(false);
    changed["spec"]["versions"].as_array_mut().unwrap().push(second);
    client.get("/apis/ex.io/v2/namespaces/default/foos/a").await.expect(404);
    let put = client.put(&format!("{DEFINITIONS}/foos.ex.io"), &changed).await.expect(200).json();
    assert_eq!(put["metadata"]["generation"], 2);
    let other = client.get("/apis/ex.io/v2/namespaces/default/foos/a").await.expect(200).json();
    assert_eq!(other["apiVersion"], "ex.io/v2");
}

#[tokio::test(start_paused = true)]
async fn a_definition_that_makes_no_sense_is_refused() {
    let server = server().await;
    let client = Client::of(&server);
    let mut misnamed = definition();
    misnamed["metadata"]["name"] = json!("bars.ex.io");
    let refused = client.post(DEFINITIONS, &misnamed).await.expect(422);
    assert_eq!(
        refused.message(),
        "CustomResourceDefinition.apiextensions.k8s.io \"bars.ex.io\" is invalid: metadata.name: Invalid value: \"bars.ex.io\": \
         must be spec.names.plural+\".\"+spec.group"
    );
    client.post(DEFINITIONS, &json!({"metadata": {"name": "x"}})).await.expect(422);
}

#[tokio::test(start_paused = true)]
async fn a_restored_backup_serves_the_kinds_of_its_time() {
    let server = server().await;
    let client = Client::of(&server);
    let before = server.backup();
    client.post(DEFINITIONS, &definition()).await.expect(201);
    client.post(FOOS, &foo("a")).await.expect(201);
    let after = server.backup();
    server.restore(&before);
    client.get(FOOS).await.expect(404);
    server.restore(&after);
    assert_eq!(client.get(FOOS).await.expect(200).names(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn names_that_become_free_are_taken() {
    let server = server().await;
    let client = Client::of(&server);
    client.post(DEFINITIONS, &definition()).await.expect(201);
    let mut rival = definition();
    rival["metadata"]["name"] = json!("bars.ex.io");
    rival["spec"]["names"] = json!({"plural": "bars", "kind": "Foo"});
    client.post(DEFINITIONS, &rival).await.expect(201);
    let bars = "/apis/ex.io/v1/namespaces/default/bars";
    client.get(bars).await.expect(404);
    client.delete(&format!("{DEFINITIONS}/foos.ex.io")).await.expect(200);
    client.get(bars).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn objects_stored_in_one_version_are_shown_in_the_other() {
    let server = server().await;
    let client = Client::of(&server);
    client.post(DEFINITIONS, &definition()).await.expect(201);
    client.post(FOOS, &foo("a")).await.expect(201);
    let mut changed = client.get(&format!("{DEFINITIONS}/foos.ex.io")).await.json();
    let mut second = changed["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    second["selectableFields"] = json!([{"jsonPath": ".spec.x"}]);
    changed["spec"]["versions"][0]["storage"] = json!(false);
    changed["spec"]["versions"].as_array_mut().unwrap().push(second);
    let put = client.put(&format!("{DEFINITIONS}/foos.ex.io"), &changed).await.expect(200).json();
    assert_eq!(put["status"]["storedVersions"], json!(["v1", "v2"]));
    let foos = "/apis/ex.io/v2/namespaces/default/foos";
    assert_eq!(client.get(&format!("{foos}/a")).await.expect(200).json()["apiVersion"], "ex.io/v2");
    let list = client.get(&format!("{foos}?fieldSelector=spec.x%3D1")).await.expect(200);
    assert_eq!(list.names(), ["a"]);
    assert_eq!(list.json()["items"][0]["apiVersion"], "ex.io/v2");
    assert_eq!(client.get(&format!("{FOOS}/a")).await.expect(200).json()["apiVersion"], "ex.io/v1");
    assert_eq!(client.merge(&format!("{foos}/a"), &json!({"spec": {"x": 2}})).await.expect(200).json()["spec"]["x"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_schema_prunes_fills_in_and_refuses() {
    let server = server().await;
    let client = Client::of(&server);
    let mut strict = definition();
    strict["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"x": {"type": "integer", "maximum": 5}, "y": {"type": "string", "default": "d"}}},
            "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}
        }
    });
    client.post(DEFINITIONS, &strict).await.expect(201);
    let mut sent = foo("a");
    sent["spec"]["z"] = json!(1);
    let made = client.post(FOOS, &sent).await.expect(201);
    assert_eq!(made.json()["spec"], json!({"x": 1, "y": "d"}));
    assert_eq!(made.warnings(), [r#"299 - "unknown field \"spec.z\"""#]);
    let refused = client.merge(&format!("{FOOS}/a"), &json!({"spec": {"x": 6}})).await.expect(422);
    assert_eq!(
        refused.message(),
        "Foo.ex.io \"a\" is invalid: spec.x: Invalid value: 6: spec.x in body should be less than or equal to 5"
    );
    client.merge(&format!("{FOOS}/a/status"), &json!({"status": {"free": 1}})).await.expect(200);
    sent["metadata"]["name"] = json!("b");
    client.post(&format!("{FOOS}?fieldValidation=Strict"), &sent).await.expect(400);
}

#[tokio::test(start_paused = true)]
async fn a_changed_spec_of_a_definition_ends_the_watches_of_its_kind() {
    let server = Server::builder().in_process().first_access(FirstAccess::Refused).start().await.unwrap();
    let client = Client::of(&server);
    client.post(DEFINITIONS, &definition()).await.expect(201);
    client.get(FOOS).await.expect(429);
    let from = client.get(FOOS).await.expect(200).version();
    let path = format!("{FOOS}?watch=1&resourceVersion={from}");
    let mut watch = client.watch(&path).await;
    let one = format!("{DEFINITIONS}/foos.ex.io");
    client.merge(&one, &json!({"metadata": {"labels": {"a": "b"}}})).await.expect(200);
    tokio::time::sleep(Duration::from_secs(5)).await;
    client.post(FOOS, &foo("a")).await.expect(201);
    assert_eq!(watch.next().await.unwrap()["object"]["metadata"]["name"], "a", "labels change nothing");
    let changed = Instant::now();
    client.merge(&one, &json!({"spec": {"names": {"shortNames": ["f"]}}})).await.expect(200);
    let last = client.post(FOOS, &foo("b")).await.expect(201).version();
    assert_eq!(watch.next().await.unwrap()["object"]["metadata"]["name"], "b");
    assert_eq!(watch.next().await, None);
    assert_eq!(changed.elapsed().as_secs(), 1);
    // The cache of the kind is made again: first refused, then without its history.
    client.get(FOOS).await.expect(429);
    let mut again = client.watch(&path).await;
    assert_eq!(again.next().await.unwrap()["object"]["reason"], "Expired");
    let mut after = client.watch(&format!("{FOOS}?watch=1&resourceVersion={last}")).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    client.post(FOOS, &foo("c")).await.expect(201);
    assert_eq!(after.next().await.unwrap()["object"]["metadata"]["name"], "c");
}
