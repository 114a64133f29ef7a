//! Namespaces: their lifecycle, and their effect on the objects in them.

use std::time::Duration;

use crate::support::{Client, server, types};
use kube_embedded::Server;
use serde_json::json;

const NAMESPACES: &str = "/api/v1/namespaces";

#[tokio::test(start_paused = true)]
async fn a_new_server_has_four_namespaces_from_before_its_history() {
    let server = server().await;
    let client = Client::of(&server);
    let list = client.get(NAMESPACES).await.expect(200);
    assert_eq!(list.names(), ["default", "kube-node-lease", "kube-public", "kube-system"]);
    let events = client.events(NAMESPACES, 1).await;
    assert_eq!(events[0]["object"]["reason"], "Expired");
    assert!(client.events("/api/v1/configmaps", list.version()).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_terminates_until_it_is_finalized() {
    let server = server().await;
    let client = Client::of(&server);
    let start = client.post(NAMESPACES, &json!({"metadata": {"name": "web"}})).await.expect(201).version();
    let inside = "/api/v1/namespaces/web/configmaps";
    client.post(inside, &json!({"metadata": {"name": "a"}})).await.expect(201);
    let path = format!("{NAMESPACES}/web");
    let marked = client.delete(&path).await.expect(200);
    assert_eq!(marked.json()["status"]["phase"], "Terminating");
    let refused = client.post(inside, &json!({"metadata": {"name": "b"}})).await.expect(403);
    assert_eq!(
        refused.message(),
        "configmaps \"b\" is forbidden: unable to create new content in namespace web because it is being terminated"
    );
    client.merge(&format!("{inside}/a"), &json!({"data": {"x": "y"}})).await.expect(200);
    client.delete(&format!("{inside}/a")).await.expect(200);
    let mut finalized = marked.json();
    finalized["spec"] = json!({});
    client.put(&path, &finalized).await.expect(200);
    client.get(&path).await.expect(200);
    client.put(&format!("{path}/finalize"), &finalized).await.expect(200);
    client.get(&path).await.expect(404);
    assert_eq!(types(&client.events(NAMESPACES, start).await), ["MODIFIED", "DELETED"]);
}

#[tokio::test(start_paused = true)]
async fn the_default_namespace_stays() {
    let server = server().await;
    let client = Client::of(&server);
    let refused = client.delete(&format!("{NAMESPACES}/default")).await.expect(403);
    assert_eq!(refused.message(), "namespaces \"default\" is forbidden: this namespace may not be deleted");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_deletes_namespaces_empties_them_first() {
    let server = Server::builder().in_process().namespace_deletion().start().await.unwrap();
    let client = Client::of(&server);
    let start = client.post(NAMESPACES, &json!({"metadata": {"name": "web"}})).await.expect(201).version();
    let inside = "/api/v1/namespaces/web/configmaps";
    for name in 0..300 {
        client.post(inside, &json!({"metadata": {"name": format!("c{name}")}})).await.expect(201);
    }
    client.post(inside, &json!({"metadata": {"name": "held", "finalizers": ["example.com/hold"]}})).await.expect(201);
    let leases = "/apis/coordination.k8s.io/v1/namespaces/web/leases";
    client.post(leases, &json!({"metadata": {"name": "a"}})).await.expect(201);
    client.delete(&format!("{NAMESPACES}/web")).await.expect(200);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(client.get(inside).await.names(), ["held"]);
    assert!(client.get(leases).await.names().is_empty());
    client.get(&format!("{NAMESPACES}/web")).await.expect(200);
    client.merge(&format!("{inside}/held"), &json!({"metadata": {"finalizers": null}})).await.expect(200);
    tokio::time::sleep(Duration::from_secs(1)).await;
    client.get(&format!("{NAMESPACES}/web")).await.expect(404);
    assert_eq!(types(&client.events(NAMESPACES, start).await), ["MODIFIED", "DELETED"]);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_cannot_be_made_to_terminate_by_its_status() {
    let server = server().await;
    let client = Client::of(&server);
    let path = format!("{NAMESPACES}/kube-node-lease/status");
    let refused = client.merge(&path, &json!({"status": {"phase": "Terminating"}})).await.expect(422);
    assert!(
        refused.message().ends_with("may only be 'Active' if `deletionTimestamp` is empty"),
        "{}",
        refused.message()
    );
}
