//! Creating, replacing and patching objects.

use crate::support::{Client, server, types};
use http::Method;
use serde_json::{Value, json};

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

fn configmap(name: &str) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}, "data": {"a": "1"}})
}

fn deployment(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"replicas": 1, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
}

#[tokio::test(start_paused = true)]
async fn a_created_object_has_what_the_server_sets() {
    let server = server().await;
    let client = Client::of(&server);
    let mut sent = configmap("x");
    sent["metadata"]["uid"] = json!("mine");
    sent["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    sent["metadata"]["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
    let made = client.post(CONFIGMAPS, &sent).await.expect(201);
    let metadata = &made.json()["metadata"];
    assert_eq!(metadata["namespace"], "default");
    assert_eq!(metadata["uid"].as_str().unwrap().len(), 36);
    assert_ne!(metadata["creationTimestamp"], "2001-01-01T00:00:00Z");
    assert!(metadata.get("deletionTimestamp").is_none());
    assert!(metadata.get("generation").is_none());
    assert_eq!(client.get(&format!("{CONFIGMAPS}/x")).await.expect(200).body, made.body);
}

#[tokio::test(start_paused = true)]
async fn a_name_can_be_taken_once() {
    let server = server().await;
    let client = Client::of(&server);
    client.post(CONFIGMAPS, &configmap("x")).await.expect(201);
    assert_eq!(
        client.post(CONFIGMAPS, &configmap("x")).await.expect(409).text(),
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Failure\",\"message\":\"configmaps \\\"x\\\" already \
         exists\",\"reason\":\"AlreadyExists\",\"details\":{\"name\":\"x\",\"kind\":\"configmaps\"},\"code\":409}\n"
    );
}

#[tokio::test(start_paused = true)]
async fn an_object_needs_a_name_and_a_namespace_that_exists() {
    let server = server().await;
    let client = Client::of(&server);
    let nameless = client.post(CONFIGMAPS, &json!({})).await.expect(422);
    assert_eq!(
        nameless.message(),
        "ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required"
    );
    let homeless = client.post("/api/v1/namespaces/nope/configmaps", &configmap("x")).await.expect(404);
    assert_eq!(homeless.message(), "namespaces \"nope\" not found");
    let mut elsewhere = configmap("x");
    elsewhere["metadata"]["namespace"] = json!("other");
    let elsewhere = client.post(CONFIGMAPS, &elsewhere).await.expect(400);
    assert_eq!(
        elsewhere.message(),
        "the namespace of the provided object does not match the namespace sent on the request"
    );
    let misnamed = client.post(CONFIGMAPS, &configmap("A")).await.expect(422);
    assert!(
        misnamed
            .message()
            .starts_with("ConfigMap \"A\" is invalid: metadata.name: Invalid value: \"A\": a lowercase RFC 1123")
    );
}

#[tokio::test(start_paused = true)]
async fn a_generated_name_is_the_base_and_five_letters() {
    let server = server().await;
    let client = Client::of(&server);
    let made = client.post(CONFIGMAPS, &json!({"metadata": {"generateName": "web-"}})).await.expect(201).json();
    let name = made["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("web-") && name.len() == 9, "{name}");
    assert_eq!(made["metadata"]["generateName"], "web-");
}

#[tokio::test(start_paused = true)]
async fn a_new_object_has_no_version() {
    let server = server().await;
    let client = Client::of(&server);
    for fine in ["", "0"] {
        let body = json!({"metadata": {"generateName": "x-", "resourceVersion": fine}});
        client.post(CONFIGMAPS, &body).await.expect(201);
    }
    let body = json!({"metadata": {"name": "x", "resourceVersion": "5"}});
    assert_eq!(
        client.post(CONFIGMAPS, &body).await.expect(500).message(),
        "resourceVersion should not be set on objects to be created"
    );
}

#[tokio::test(start_paused = true)]
async fn an_update_of_an_old_version_conflicts_and_one_without_a_version_does_not() {
    let server = server().await;
    let client = Client::of(&server);
    let path = format!("{CONFIGMAPS}/x");
    let mut object = client.post(CONFIGMAPS, &configmap("x")).await.json();
    object["data"]["a"] = json!("2");
    client.put(&path, &object).await.expect(200);
    object["data"]["a"] = json!("3");
    assert_eq!(
        client.put(&path, &object).await.expect(409).message(),
        "Operation cannot be fulfilled on configmaps \"x\": the object has been modified; please apply your changes to the latest \
         version and try again"
    );
    object["metadata"]["resourceVersion"] = json!("");
    client.put(&path, &object).await.expect(200);
    object["metadata"]["resourceVersion"] = json!("abc");
    client.put(&path, &object).await.expect(500);
    object["metadata"]["resourceVersion"] = json!("");
    object["metadata"]["uid"] = json!("other");
    let other = client.put(&path, &object).await.expect(409);
    assert!(other.message().contains("StorageError: invalid object, Code: 4, Key: /registry/configmaps/default/x"));
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_is_no_event() {
    let server = server().await;
    let client = Client::of(&server);
    let path = format!("{CONFIGMAPS}/x");
    let made = client.post(CONFIGMAPS, &configmap("x")).await.expect(201);
    let same = [
        client.put(&path, &made.json()).await,
        client.merge(&path, &json!({"data": {"a": "1"}})).await,
        client.json_patch(&path, &json!([])).await,
    ];
    for answer in same {
        assert_eq!(answer.expect(200).body, made.body);
    }
    assert!(client.events(CONFIGMAPS, made.version()).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn some_kinds_need_a_version_and_some_are_created_by_a_put() {
    let server = server().await;
    let client = Client::of(&server);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let lease = json!({"metadata": {"name": "l1"}, "spec": {"holderIdentity": "me"}});
    client.put(&format!("{leases}/l1"), &lease).await.expect(201);
    assert_eq!(
        client.put(&format!("{leases}/l1"), &lease).await.expect(422).message(),
        "leases.coordination.k8s.io \"l1\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    );
    assert_eq!(
        client.put(&format!("{CONFIGMAPS}/x"), &configmap("x")).await.expect(404).message(),
        "configmaps \"x\" not found"
    );
}

#[tokio::test(start_paused = true)]
async fn a_put_is_for_the_object_of_its_path() {
    let server = server().await;
    let client = Client::of(&server);
    let answer = client.put(&format!("{CONFIGMAPS}/a"), &configmap("b")).await.expect(400);
    assert_eq!(answer.message(), "the name of the object (b) does not match the name on the URL (a)");
    let answer = client.put(&format!("{CONFIGMAPS}/a"), &json!({})).await.expect(400);
    assert_eq!(answer.message(), "the name of the object (a based on URL) was undeterminable: name must be provided");
}

#[tokio::test(start_paused = true)]
async fn a_generation_counts_the_changes_of_the_spec() {
    let server = server().await;
    let client = Client::of(&server);
    let path = format!("{DEPLOYMENTS}/d");
    let mut sent = deployment("d");
    sent["metadata"]["generation"] = json!(77);
    sent["status"] = json!({"replicas": 5});
    let made = client.post(DEPLOYMENTS, &sent).await.expect(201).json();
    assert_eq!(made["metadata"]["generation"], 1);
    assert_eq!(made["status"], json!({}));
    let generation =
        async |patch: Value| client.merge(&path, &patch).await.expect(200).json()["metadata"]["generation"].clone();
    assert_eq!(generation(json!({"spec": {"replicas": 2}})).await, 2);
    assert_eq!(generation(json!({"metadata": {"labels": {"x": "y"}}})).await, 2);
    assert_eq!(generation(json!({"metadata": {"annotations": {"x": "y"}}})).await, 3);
    assert_eq!(generation(json!({"metadata": {"generation": 9, "creationTimestamp": null}})).await, 3);
    let kept = client.post(CONFIGMAPS, &json!({"metadata": {"name": "g", "generation": 77}})).await.expect(201).json();
    assert_eq!(kept["metadata"]["generation"], 77);
}

#[tokio::test(start_paused = true)]
async fn the_status_is_written_apart() {
    let server = server().await;
    let client = Client::of(&server);
    let path = format!("{DEPLOYMENTS}/d");
    client.post(DEPLOYMENTS, &deployment("d")).await.expect(201);
    let main = client.merge(&path, &json!({"status": {"replicas": 3}})).await.expect(200).json();
    assert_eq!(main["status"], json!({}));
    let patch = json!({"metadata": {"labels": {"l": "1"}, "annotations": {"a": "1"}}, "spec": {"replicas": 9}, "status": {"replicas": 3}});
    let status = client.merge(&format!("{path}/status"), &patch).await.expect(200).json();
    assert_eq!(status["status"]["replicas"], 3);
    assert_eq!(status["spec"]["replicas"], 1);
    assert_eq!(status["metadata"]["annotations"]["a"], "1");
    assert!(status["metadata"].get("labels").is_none());
    assert_eq!(status["metadata"]["generation"], 1);
    assert_eq!(client.get(&format!("{path}/status")).await.expect(200).json(), status);
}

#[tokio::test(start_paused = true)]
async fn a_node_keeps_the_status_it_is_created_with() {
    let server = server().await;
    let client = Client::of(&server);
    let node = json!({"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "4"}}});
    assert_eq!(client.post("/api/v1/nodes", &node).await.expect(201).json()["status"]["capacity"]["cpu"], "4");
}

#[tokio::test(start_paused = true)]
async fn patches_that_do_not_fit_are_refused() {
    let server = server().await;
    let client = Client::of(&server);
    let path = format!("{CONFIGMAPS}/x");
    client.post(CONFIGMAPS, &configmap("x")).await.expect(201);
    let misfits = [
        json!([{"op": "test", "path": "/data/a", "value": "9"}]),
        json!([{"op": "remove", "path": "/data/zz"}]),
        json!([{"op": "dance", "path": "/data"}]),
    ];
    for patch in misfits {
        let answer = client.json_patch(&path, &patch).await.expect(422);
        assert!(answer.text().contains(
            r#""message":"the server rejected our request due to an error in our request","reason":"Invalid","details":{},"code":422}"#
        ));
    }
    assert!(client.json_patch(&path, &json!({})).await.expect(400).message().starts_with("error decoding patch: "));
    let many: Vec<Value> = vec![json!({"op": "test", "path": "/kind", "value": "ConfigMap"}); 10_001];
    assert_eq!(
        client.json_patch(&path, &json!(many)).await.expect(413).message(),
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    );
    let unknown =
        client.send(Method::PATCH, &path, &[("content-type", "application/apply-patch+cbor")], "{}").await.expect(415);
    assert_eq!(unknown.message(), "415: Unsupported Media Type");
    client.merge(&format!("{CONFIGMAPS}/nope"), &json!({})).await.expect(404);
    let typed = client.merge(&path, &json!({"data": {"a": 1}})).await.expect(422);
    assert!(typed.message().starts_with(" \"\" is invalid: patch: Invalid value: "), "{}", typed.message());
}

#[tokio::test(start_paused = true)]
async fn a_version_in_a_patch_is_a_condition() {
    let server = server().await;
    let client = Client::of(&server);
    let path = format!("{CONFIGMAPS}/x");
    let version = client.post(CONFIGMAPS, &configmap("x")).await.expect(201).version();
    client.merge(&path, &json!({"metadata": {"resourceVersion": "1"}, "data": {"b": "2"}})).await.expect(409);
    client
        .merge(&path, &json!({"metadata": {"resourceVersion": version.to_string()}, "data": {"b": "2"}}))
        .await
        .expect(200);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_answers_and_stores_nothing() {
    let server = server().await;
    let client = Client::of(&server);
    let tried = client.post(&format!("{CONFIGMAPS}?dryRun=All"), &configmap("x")).await.expect(201).json();
    assert!(tried["metadata"].get("resourceVersion").is_none());
    assert!(tried["metadata"]["uid"].is_string());
    client.get(&format!("{CONFIGMAPS}/x")).await.expect(404);
    let made = client.post(CONFIGMAPS, &configmap("x")).await.expect(201);
    client.post(&format!("{CONFIGMAPS}?dryRun=All"), &configmap("x")).await.expect(409);
    let tried = client.merge(&format!("{CONFIGMAPS}/x?dryRun=All"), &json!({"data": {"a": "9"}})).await.expect(200);
    assert_eq!(tried.json()["data"]["a"], "9");
    assert_eq!(tried.version(), made.version());
    client.delete(&format!("{CONFIGMAPS}/x?dryRun=All")).await.expect(200);
    assert_eq!(client.get(&format!("{CONFIGMAPS}/x")).await.expect(200).body, made.body);
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_are_warned_of() {
    let server = server().await;
    let client = Client::of(&server);
    let mut sent = configmap("x");
    sent["bogus"] = json!(1);
    let made = client.post(CONFIGMAPS, &sent).await.expect(201);
    assert_eq!(made.warnings(), [r#"299 - "unknown field \"bogus\"""#]);
    assert!(made.json().get("bogus").is_none());
    sent["metadata"]["name"] = json!("y");
    let strict = client.post(&format!("{CONFIGMAPS}?fieldValidation=Strict"), &sent).await.expect(400);
    assert_eq!(
        strict.message(),
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"bogus\""
    );
    client.post(&format!("{CONFIGMAPS}?fieldValidation=Bogus"), &sent).await.expect(422);
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_no_objects_are_refused() {
    let server = server().await;
    let client = Client::of(&server);
    client.send(Method::POST, CONFIGMAPS, &[("content-type", "text/plain")], "a: b").await.expect(415);
    client.send(Method::POST, CONFIGMAPS, &[("content-type", "application/yaml")], "a: b: c").await.expect(400);
    client.send(Method::POST, CONFIGMAPS, &[], "").await.expect(400);
    let wrong = client.post(CONFIGMAPS, &json!({"metadata": {"name": 1}})).await.expect(400);
    assert_eq!(
        wrong.message(),
        "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field \
         ObjectMeta.metadata.name of type string"
    );
}

#[tokio::test(start_paused = true)]
async fn watchers_receive_each_write_once() {
    let server = server().await;
    let client = Client::of(&server);
    let start = client.get(CONFIGMAPS).await.version();
    client.post(CONFIGMAPS, &configmap("x")).await.expect(201);
    client.merge(&format!("{CONFIGMAPS}/x"), &json!({"data": {"a": "2"}})).await.expect(200);
    client.delete(&format!("{CONFIGMAPS}/x")).await.expect(200);
    assert_eq!(types(&client.events(CONFIGMAPS, start).await), ["ADDED", "MODIFIED", "DELETED"]);
}

#[tokio::test(start_paused = true)]
async fn copies_of_copies_come_to_an_end() {
    let server = server().await;
    let client = Client::of(&server);
    let revisions = "/apis/apps/v1/namespaces/default/controllerrevisions";
    let body = json!({"metadata": {"name": "x"}, "revision": 1, "data": {"a": "x".repeat(1000)}});
    client.post(revisions, &body).await.expect(201);
    let copies: Vec<Value> =
        (0..1000).map(|i| json!({"op": "copy", "from": "/data", "path": format!("/data/{i}")})).collect();
    let answer = client.json_patch(&format!("{revisions}/x"), &json!(copies)).await.expect(413);
    assert!(answer.message().contains("Unable to complete the copy"), "{}", answer.message());
}

#[tokio::test(start_paused = true)]
async fn objects_cannot_grow_deeper_than_they_can_be_read() {
    let server = server().await;
    let client = Client::of(&server);
    let revisions = "/apis/apps/v1/namespaces/default/controllerrevisions";
    client.post(revisions, &json!({"metadata": {"name": "x"}, "revision": 1, "data": {}})).await.expect(201);
    let deep = (0..60).fold(json!({}), |inner, _| json!({"d": inner}));
    let path = format!("{revisions}/x");
    client.merge(&path, &json!({"data": deep})).await.expect(200);
    let below = "/d".repeat(60);
    let patch = json!([{"op": "add", "path": format!("/data{below}/d"), "value": deep}]);
    client.json_patch(&path, &patch).await.expect(422);
    client.get(&path).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn the_largest_numbers_are_counted_no_further() {
    let server = server().await;
    let client = Client::of(&server);
    // Of this kind the server keeps the generation that a client sends, and a deletion counts it.
    let generation = json!({"metadata": {"name": "x", "generation": i64::MAX, "finalizers": ["a/b"]}});
    client.post(CONFIGMAPS, &generation).await.expect(201);
    let deleted = client.delete(&format!("{CONFIGMAPS}/x")).await.expect(200).json();
    assert_eq!(deleted["metadata"]["generation"], i64::MAX);

    let daemons = "/apis/apps/v1/namespaces/default/daemonsets";
    let mut daemon = json!({
        "metadata": {"name": "x", "annotations": {"deprecated.daemonset.template.generation": i64::MAX.to_string()}},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
            "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
        }},
    });
    client.post(daemons, &daemon).await.expect(201);
    daemon["spec"]["template"]["spec"]["containers"][0]["image"] = json!("j");
    client.put(&format!("{daemons}/x"), &daemon).await.expect(200);

    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    client.post(deployments, &daemon).await.expect(201);
    let scale = json!({"metadata": {"name": "x"}, "spec": {"replicas": 1_i64 << 31}});
    let refused = client.put(&format!("{deployments}/x/scale"), &scale).await.expect(400);
    assert!(
        refused.message().contains("cannot unmarshal number 2147483648 into Go struct field"),
        "{}",
        refused.message()
    );
}

#[tokio::test(start_paused = true)]
async fn a_scale_does_not_make_an_object_that_is_too_deep() {
    let server = server().await;
    let client = Client::of(&server);
    let scale =
        json!({"specReplicasPath": format!(".spec{}", ".a".repeat(100_000)), "statusReplicasPath": ".status.replicas"});
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let version =
        json!({"name": "v1", "served": true, "storage": true, "schema": schema, "subresources": {"scale": scale}});
    let names = json!({"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"});
    let spec = json!({"group": "ex.io", "scope": "Namespaced", "names": names, "versions": [version]});
    let definition = json!({"metadata": {"name": "foos.ex.io"}, "spec": spec});
    client.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await.expect(201);
    let foo = json!({"apiVersion": "ex.io/v1", "kind": "Foo", "metadata": {"name": "x"}, "spec": {}});
    client.post("/apis/ex.io/v1/namespaces/default/foos", &foo).await.expect(201);
    let replicas = json!({"metadata": {"name": "x"}, "spec": {"replicas": 3}});
    client.put("/apis/ex.io/v1/namespaces/default/foos/x/scale", &replicas).await.expect(500);
}

#[tokio::test(start_paused = true)]
async fn a_body_with_any_number_of_unknown_fields_gets_a_few_warnings() {
    let server = server().await;
    let mut body = configmap("x");
    for nth in 0..50_000 {
        body[format!("unknown-{nth}")] = json!(1);
    }
    let warned = Client::of(&server).post(CONFIGMAPS, &body).await.expect(201);
    assert!((100..300).contains(&warned.warnings().len()), "{}", warned.warnings().len());
}

#[tokio::test(start_paused = true)]
async fn a_service_gets_an_address_and_keeps_it() {
    let server = server().await;
    let client = Client::of(&server);
    let services = "/api/v1/namespaces/default/services";
    let sent = json!({"metadata": {"name": "x"}, "spec": {"ports": [{"port": 80}]}});
    let made = client.post(services, &sent).await.expect(201).json();
    let address = made["spec"]["clusterIP"].as_str().unwrap();
    assert!(address.starts_with("10.96."), "{address}");
    assert_eq!(made["spec"]["clusterIPs"], json!([address]));
    let put = client.put(&format!("{services}/x"), &sent).await.expect(200).json();
    assert_eq!(put, made);
    let headless = json!({"metadata": {"name": "y"}, "spec": {"clusterIP": "None"}});
    let headless = client.post(services, &headless).await.expect(201).json();
    assert_eq!(headless["spec"]["clusterIPs"], json!(["None"]));
}

#[tokio::test(start_paused = true)]
async fn what_is_declared_immutable_stays() {
    let server = server().await;
    let client = Client::of(&server);
    let mut frozen = configmap("x");
    frozen["immutable"] = json!(true);
    client.post(CONFIGMAPS, &frozen).await.expect(201);
    let refused = client.merge(&format!("{CONFIGMAPS}/x"), &json!({"data": {"a": "2"}})).await.expect(422);
    assert_eq!(
        refused.message(),
        "ConfigMap \"x\" is invalid: data: Forbidden: field is immutable when `immutable` is set"
    );
    client.merge(&format!("{CONFIGMAPS}/x"), &json!({"metadata": {"labels": {"l": "1"}}})).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn a_kind_on_its_way_out_says_so() {
    let server = server().await;
    let client = Client::of(&server);
    let endpoints = "/api/v1/namespaces/default/endpoints";
    let warned =
        |answer: crate::support::Answer| answer.warnings().iter().any(|w| w.contains("v1 Endpoints is deprecated"));
    assert!(warned(client.post(endpoints, &json!({"metadata": {"name": "x"}})).await.expect(201)));
    assert!(warned(client.get(endpoints).await.expect(200)));
    assert!(warned(client.delete(&format!("{endpoints}/x")).await.expect(200)));
}
