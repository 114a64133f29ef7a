//! Webhooks in the process.

use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use kube_embedded::{Body, FirstAccess, Server};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::support::Client;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn configuration(service: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": service},
        "webhooks": [{
            "name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"service": {"namespace": "system", "name": service, "path": "/check"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
        }],
    })
}

/// Answers that an object is allowed unless its name is `bad`.
async fn check(request: Request<Body>) -> Result<Response<Full<bytes::Bytes>>, std::io::Error> {
    assert_eq!(request.uri().path(), "/check");
    let review: Value = serde_json::from_slice(&request.into_body().collect().await?.to_bytes())?;
    let request = &review["request"];
    let response = json!({"uid": request["uid"], "allowed": request["name"] != "bad"});
    let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    Ok(Response::new(Full::from(answer.to_string())))
}

/// Answers that an object is allowed, with a warning.
async fn check_with_warning(request: Request<Body>) -> Result<Response<Full<bytes::Bytes>>, std::io::Error> {
    let review: Value = serde_json::from_slice(&request.into_body().collect().await?.to_bytes())?;
    let request = &review["request"];
    let warning = format!("{} was checked", request["name"].as_str().unwrap_or_default());
    let response = json!({"uid": request["uid"], "allowed": true, "warnings": [warning]});
    let answer = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    Ok(Response::new(Full::from(answer.to_string())))
}

#[tokio::test(start_paused = true)]
async fn a_service_in_the_process_is_called_without_a_socket() {
    let server = Server::builder().in_process().start().await.unwrap();
    let client = Client::of(&server);
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    server.serve_webhooks(
        "system",
        "hooks",
        tower::service_fn(move |request| {
            counted.fetch_add(1, Ordering::Relaxed);
            check(request)
        }),
    );
    client.post(MAPS, &json!({"metadata": {"name": "bad"}})).await.expect(201);
    assert_eq!(calls.load(Ordering::Relaxed), 0, "there is no configuration yet");
    server.create(&configuration("hooks")).unwrap();
    client.post(MAPS, &json!({"metadata": {"name": "good"}})).await.expect(201);
    client.delete(&format!("{MAPS}/bad")).await.expect(400);
    // Of a collection each object is asked about, and the first refusal ends it.
    client.delete(MAPS).await.expect(400);
    client.delete(&format!("{MAPS}/good")).await.expect(200);
    // The Rust API asks nobody.
    server.objects("v1", "ConfigMap").unwrap().delete("bad").unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 4);
}

#[tokio::test(start_paused = true)]
async fn a_collection_of_any_size_is_deleted_with_a_webhook() {
    const OBJECTS: usize = 150;
    let server = Server::builder().in_process().start().await.unwrap();
    for number in 0..OBJECTS {
        server
            .create(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("m{number}")}}))
            .unwrap();
    }
    server.serve_webhooks("system", "hooks", tower::service_fn(check_with_warning));
    server.create(&configuration("hooks")).unwrap();
    let answer = Client::of(&server).delete(MAPS).await.expect(200);
    assert_eq!(answer.json()["items"].as_array().unwrap().len(), OBJECTS);
    assert!(server.objects("v1", "ConfigMap").unwrap().namespace("default").is_empty());
    assert!(answer.warnings().iter().any(|warning| warning.contains("m0 was checked")), "{:?}", answer.warnings());
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_hangs_is_given_up_after_its_timeout() {
    let server = Server::builder().in_process().start().await.unwrap();
    let client = Client::of(&server);
    server.serve_webhooks(
        "system",
        "hooks",
        tower::service_fn(async |_: Request<Body>| {
            std::future::pending::<()>().await;
            Ok::<_, std::io::Error>(Response::new(Full::<bytes::Bytes>::default()))
        }),
    );
    server.create(&configuration("hooks")).unwrap();
    let began = tokio::time::Instant::now();
    let refused = client.post(MAPS, &json!({"metadata": {"name": "a"}})).await.expect(500).json();
    assert_eq!(began.elapsed().as_secs(), Duration::from_secs(10).as_secs());
    assert!(refused["message"].as_str().unwrap().ends_with("context deadline exceeded"), "{refused}");
}

#[tokio::test]
async fn a_service_without_a_handler_is_a_failure() {
    let server = Server::builder().in_process().start().await.unwrap();
    server.create(&configuration("nowhere")).unwrap();
    let refused = Client::of(&server).post(MAPS, &json!({"metadata": {"name": "a"}})).await.expect(500).json();
    let message = "Internal error occurred: failed calling webhook \"a.example.com\": failed to call webhook: \
                   Post \"https://nowhere.system.svc:443/check?timeout=10s\": service \"nowhere\" not found";
    assert_eq!(refused["message"], message);
}

/// Answers with the objects under another version, and their size doubled.
async fn convert(request: Request<Body>) -> Result<Response<Full<bytes::Bytes>>, std::io::Error> {
    let review: Value = serde_json::from_slice(&request.into_body().collect().await?.to_bytes())?;
    let request = &review["request"];
    let mut objects = request["objects"].as_array().cloned().unwrap_or_default();
    for object in &mut objects {
        object["apiVersion"] = request["desiredAPIVersion"].clone();
        object["spec"]["size"] = json!(object["spec"]["size"].as_i64().unwrap_or(0) * 2);
    }
    let response = json!({"uid": request["uid"], "convertedObjects": objects, "result": {"status": "Success"}});
    let answer = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response});
    Ok(Response::new(Full::from(answer.to_string())))
}

#[tokio::test(start_paused = true)]
async fn a_service_in_the_process_converts_objects() {
    let server = Server::builder().in_process().first_access(FirstAccess::Served).start().await.unwrap();
    server.serve_webhooks("system", "hooks", tower::service_fn(convert));
    let version = |name: &str, stored: bool| {
        let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        json!({"name": name, "served": true, "storage": stored, "schema": schema})
    };
    let client = json!({"service": {"namespace": "system", "name": "hooks"}});
    let webhook = json!({"clientConfig": client, "conversionReviewVersions": ["v1"]});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"plural": "things", "kind": "Thing"},
            "versions": [version("v1", true), version("v2", false)],
            "conversion": {"strategy": "Webhook", "webhook": webhook},
        },
    });
    server.create(&definition).unwrap();
    let thing =
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {"size": 2}});
    server.create(&thing).unwrap();
    let client = Client::of(&server);
    let path = "/apis/example.com/v2/things";
    assert_eq!(client.get(&format!("{path}/a")).await.expect(200).json()["spec"]["size"], 4);
    assert_eq!(client.get(path).await.expect(200).json()["items"][0]["spec"]["size"], 4);
    let second =
        json!({"apiVersion": "example.com/v2", "kind": "Thing", "metadata": {"name": "b"}, "spec": {"size": 3}});
    client.post(path, &second).await.expect(201);
    // The Rust API has the storage version, and calls nobody.
    assert_eq!(server.objects("example.com/v1", "Thing").unwrap().get("b").unwrap()["spec"]["size"], 6);
    let refused = server.objects("example.com/v2", "Thing").unwrap_err();
    assert!(refused.message().starts_with("the Rust API calls no conversion webhook"), "{refused}");
}
