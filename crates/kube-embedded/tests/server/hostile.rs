//! The server responds to any input, and rejects only with a Status.

use crate::support::{Client, server};
use http::Method;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

const PATHS: [&str; 6] = [
    "/api/v1/namespaces/default/configmaps",
    "/api/v1/namespaces/default/pods",
    "/api/v1/namespaces",
    "/apis/apps/v1/namespaces/default/deployments",
    "/apis/batch/v1/namespaces/default/jobs",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
];

/// Words with a meaning to the server, and some without.
fn word() -> impl Strategy<Value = String> {
    let known = [
        "metadata",
        "name",
        "generateName",
        "namespace",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
        "uid",
        "resourceVersion",
        "generation",
        "spec",
        "status",
        "data",
        "template",
        "containers",
        "deletionTimestamp",
        "kind",
        "apiVersion",
        "v1",
        "x",
        "",
        "default",
        "versions",
        "names",
        "group",
        "2026-01-01T00:00:00Z",
        "0",
        "orphan",
        "preconditions",
        "propagationPolicy",
        "gracePeriodSeconds",
        "dryRun",
        "manualSelector",
        "volumes",
        "strategy",
    ];
    prop_oneof![4 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => ".{0,6}"]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-3_i64..40).prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 40, 5, |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => prop::collection::vec((word(), inner), 0..5)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// An object that often passes the first checks.
fn object() -> impl Strategy<Value = Value> {
    (value(), value(), value()).prop_map(|(metadata, spec, rest)| {
        let mut object = if rest.is_object() { rest } else { json!({}) };
        let mut metadata = if metadata.is_object() { metadata } else { json!({}) };
        metadata["name"] = json!("a");
        object["metadata"] = metadata;
        if spec.is_object() {
            object["spec"] = spec;
        }
        object
    })
}

fn patch() -> impl Strategy<Value = Value> {
    let operation = (
        prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test", "bogus"]),
        prop::collection::vec(word(), 0..4),
        prop::collection::vec(word(), 0..4),
        value(),
    );
    let operation = operation.prop_map(|(op, path, from, value)| {
        let pointer = |parts: Vec<String>| parts.iter().map(|part| format!("/{part}")).collect::<String>();
        json!({"op": op, "path": pointer(path), "from": pointer(from), "value": value})
    });
    prop_oneof![3 => prop::collection::vec(operation, 0..4).prop_map(Value::from), 1 => value()]
}

/// Asserts that a response is a success, or a Status that contains its own code.
fn check(answer: &crate::support::Answer) {
    if answer.code >= 400 && answer.text().starts_with('{') {
        let status = answer.json();
        assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(answer.code)), "{status}");
    }
}

/// Asserts that sending an object back changes nothing, in JSON or in protobuf.
async fn same_either_way(client: &Client, path: &str) {
    let mut answers = Vec::new();
    for media in ["application/json", PROTOBUF] {
        let got = client.send(Method::GET, path, &[("accept", media)], Vec::new()).await;
        if got.code == 404 {
            return;
        }
        let headers = [("content-type", media), ("accept", "application/json")];
        let put = client.send(Method::PUT, path, &headers, got.body.to_vec()).await;
        answers.push((put.code, put.text().to_owned()));
    }
    assert_eq!(answers[0], answers[1]);
}

fn run<F: Future<Output = ()>>(test: F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(test);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_object_is_answered(path in prop::sample::select(PATHS.to_vec()), object in object(), other in object(), options in value()) {
        run(async {
            let server = server().await;
            let client = Client::of(&server);
            check(&client.post(path, &object).await);
            let named = format!("{path}/a");
            same_either_way(&client, &named).await;
            for path in [&named, &format!("{named}/status"), &format!("{named}/finalize")] {
                check(&client.put(path, &other).await);
                check(&client.merge(path, &other).await);
            }
            check(&client.delete_with(&named, &options).await);
            check(&client.delete_with(path, &options).await);
            check(&client.get(path).await.expect(200));
            client.send(Method::GET, path, &[("accept", PROTOBUF)], Vec::new()).await.expect(200);
        });
    }

    #[test]
    fn any_patch_is_answered(path in prop::sample::select(PATHS.to_vec()), object in object(), patch in patch()) {
        run(async {
            let server = server().await;
            let client = Client::of(&server);
            check(&client.post(path, &object).await);
            let named = format!("{path}/a");
            check(&client.json_patch(&named, &patch).await);
            check(&client.merge(&named, &patch).await);
            check(&client.json_patch("/api/v1/namespaces/kube-system", &patch).await);
        });
    }

    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200), text in "[\\[\\]{}\":,a-z0-9. \n-]{0,80}", query in ".{0,40}") {
        run(async {
            let server = server().await;
            let client = Client::of(&server);
            let query: String = form_urlencoded::byte_serialize(query.as_bytes()).collect();
            let enclosed = [b"k8s\0".as_slice(), &bytes].concat();
            for body in [bytes, enclosed, text.into_bytes()] {
                for (method, media) in [
                    (Method::POST, "application/json"),
                    (Method::POST, PROTOBUF),
                    (Method::DELETE, "application/json"),
                    (Method::DELETE, PROTOBUF),
                    (Method::PATCH, "application/json-patch+json"),
                    (Method::PATCH, "application/merge-patch+json"),
                ] {
                    let path = match method {
                        Method::POST => "/api/v1/namespaces/default/configmaps".to_owned(),
                        _ => "/api/v1/namespaces/kube-node-lease".to_owned(),
                    };
                    let path = format!("{path}?dryRun=All&propagationPolicy={query}&gracePeriodSeconds=1");
                    check(&client.send(method, &path, &[("content-type", media)], body.clone()).await);
                }
            }
        });
    }
}
