//! The history of all writes, and what a seed and a start time make reproducible.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::{Duration, SystemTime};

use kube_embedded::{Change, ChangeKind, Server};
use serde_json::{Value, json};

async fn server() -> Server {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    Server::builder().in_process().seed(3).start_time(time).garbage_collection().start().await.unwrap()
}

fn map(name: &str, owner: Option<&Value>) -> Value {
    let owners = owner.map(|owner| {
        let uid = &owner["metadata"]["uid"];
        json!([{"apiVersion": "v1", "kind": "Secret", "name": owner["metadata"]["name"], "uid": uid}])
    });
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": owners}})
}

/// Writes of three kinds, and what the garbage collector does then.
async fn writes() -> Vec<Change> {
    let server = server().await;
    let before = server.revision();
    let secret =
        server.create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"generateName": "s-"}})).unwrap();
    server.create(&map("owned", Some(&secret))).unwrap();
    server.objects("v1", "ConfigMap").unwrap().patch("owned", &json!({"data": {"a": "b"}})).unwrap();
    server.objects("v1", "Secret").unwrap().delete(secret["metadata"]["name"].as_str().unwrap()).unwrap();
    server.until(|server| server.objects("v1", "ConfigMap").unwrap().is_empty()).await;
    server.changes_after(before).unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_history_has_every_write_of_every_kind_in_order() {
    let changes = writes().await;
    let seen: Vec<_> = changes.iter().map(|change| (change.kind, change.object["kind"].as_str().unwrap())).collect();
    assert_eq!(
        seen,
        [
            (ChangeKind::Created, "Secret"),
            (ChangeKind::Created, "ConfigMap"),
            (ChangeKind::Updated, "ConfigMap"),
            (ChangeKind::Deleted, "Secret"),
            (ChangeKind::Deleted, "ConfigMap"),
        ]
    );
    let revisions: Vec<u64> = changes.iter().map(|change| change.revision).collect();
    let consecutive: Vec<u64> = (revisions[0]..).take(revisions.len()).collect();
    assert_eq!(revisions, consecutive);
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_and_start_time_give_the_same_history() {
    let (one, other) = (writes().await, writes().await);
    assert_eq!(one, other);
    assert_eq!(one[0].object["metadata"]["creationTimestamp"], "2001-09-09T01:46:40Z");
}

#[tokio::test(start_paused = true)]
async fn a_compacted_history_is_reported_as_expired() {
    let server = server().await;
    let before = server.revision();
    server.create(&map("a", None)).unwrap();
    server.compact_now();
    assert_eq!(server.changes_after(before).unwrap_err().code(), 410);
    assert_eq!(server.changes_after(server.revision()).unwrap(), []);
}
