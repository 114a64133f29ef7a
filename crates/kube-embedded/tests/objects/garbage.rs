//! Garbage collection by owner references.

use crate::support::{Client, Frames};
use kube_embedded::Server;
use serde_json::{Value, json};

const CONFIGMAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn collected() -> Server {
    Server::builder()
        .in_process()
        .seed(1)
        .garbage_collection()
        .start()
        .await
        .expect("nothing can go wrong without a socket")
}

/// Whether a dependent blocks the deletion of its owner.
#[derive(Clone, Copy)]
enum Hold {
    Blocks,
    Free,
}

async fn owner(client: &Client, name: &str) -> Value {
    client.post(CONFIGMAPS, &json!({"metadata": {"name": name}})).await.expect(201).json()
}

async fn dependent(client: &Client, name: &str, owners: &[(&Value, Hold)]) -> Value {
    let references: Vec<Value> = owners
        .iter()
        .map(|(owner, hold)| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
                "blockOwnerDeletion": matches!(hold, Hold::Blocks)
            })
        })
        .collect();
    client
        .post(CONFIGMAPS, &json!({"metadata": {"name": name, "ownerReferences": references}}))
        .await
        .expect(201)
        .json()
}

async fn watch(client: &Client) -> Frames {
    let from = client.get(CONFIGMAPS).await.version();
    client.watch(&format!("{CONFIGMAPS}?watch=1&resourceVersion={from}")).await
}

/// The names of the next deleted objects.
async fn deleted(watch: &mut Frames, count: usize) -> Vec<String> {
    let mut names = Vec::new();
    while names.len() < count {
        let (kind, name, _) = watch.step().await.expect("the watch goes on");
        if kind == "DELETED" {
            names.push(name);
        }
    }
    names
}

#[tokio::test(start_paused = true)]
async fn dependents_follow_their_last_owner() {
    let server = collected().await;
    let client = Client::of(&server);
    let (one, two) = (owner(&client, "one").await, owner(&client, "two").await);
    let child = dependent(&client, "child", &[(&one, Hold::Free), (&two, Hold::Free)]).await;
    dependent(&client, "grandchild", &[(&child, Hold::Free)]).await;
    let mut watch = watch(&client).await;
    client.delete(&format!("{CONFIGMAPS}/one")).await.expect(200);
    assert_eq!(deleted(&mut watch, 1).await, ["one"]);
    let (kind, name, _) = watch.step().await.unwrap();
    assert_eq!((kind.as_str(), name.as_str()), ("MODIFIED", "child"), "it lets go of the owner that is gone");
    client.delete(&format!("{CONFIGMAPS}/two")).await.expect(200);
    assert_eq!(deleted(&mut watch, 3).await, ["two", "child", "grandchild"]);
}

#[tokio::test(start_paused = true)]
async fn a_foreground_deletion_waits_for_the_dependents_that_hold() {
    let server = collected().await;
    let client = Client::of(&server);
    let parent = owner(&client, "parent").await;
    dependent(&client, "child", &[(&parent, Hold::Blocks)]).await;
    let held = json!({"metadata": {"finalizers": ["example.com/hold"]}});
    client.merge(&format!("{CONFIGMAPS}/child"), &held).await.expect(200);
    let mut watch = watch(&client).await;
    client.delete(&format!("{CONFIGMAPS}/parent?propagationPolicy=Foreground")).await.expect(200);
    assert_eq!(watch.step().await.unwrap().1, "parent");
    let (kind, name, _) = watch.step().await.unwrap();
    assert_eq!((kind.as_str(), name.as_str()), ("MODIFIED", "child"));
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    client.get(&format!("{CONFIGMAPS}/parent")).await.expect(200);
    client.merge(&format!("{CONFIGMAPS}/child"), &json!({"metadata": {"finalizers": null}})).await.expect(200);
    assert_eq!(deleted(&mut watch, 2).await, ["child", "parent"]);
}

#[tokio::test(start_paused = true)]
async fn orphans_stay() {
    let server = collected().await;
    let client = Client::of(&server);
    let parent = owner(&client, "parent").await;
    dependent(&client, "child", &[(&parent, Hold::Blocks)]).await;
    let mut watch = watch(&client).await;
    client.delete(&format!("{CONFIGMAPS}/parent?propagationPolicy=Orphan")).await.expect(200);
    assert_eq!(deleted(&mut watch, 1).await, ["parent"]);
    let child = client.get(&format!("{CONFIGMAPS}/child")).await.expect(200).json();
    assert!(child["metadata"].get("ownerReferences").is_none());
}

#[tokio::test(start_paused = true)]
async fn an_object_born_without_its_owner_goes() {
    let server = collected().await;
    let client = Client::of(&server);
    let ghost = json!({"metadata": {"name": "ghost", "uid": "no-such-uid"}});
    let mut watch = watch(&client).await;
    dependent(&client, "child", &[(&ghost, Hold::Free)]).await;
    assert_eq!(deleted(&mut watch, 1).await, ["child"]);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_collected_unless_asked_for() {
    let server = crate::support::server().await;
    let client = Client::of(&server);
    let parent = owner(&client, "parent").await;
    dependent(&client, "child", &[(&parent, Hold::Blocks)]).await;
    client.delete(&format!("{CONFIGMAPS}/parent")).await.expect(200);
    tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
    client.get(&format!("{CONFIGMAPS}/child")).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn a_lost_history_loses_no_garbage() {
    let server = collected().await;
    let client = Client::of(&server);
    let parent = owner(&client, "parent").await;
    dependent(&client, "child", &[(&parent, Hold::Free)]).await;
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    server.objects("v1", "ConfigMap").unwrap().delete("parent").unwrap();
    server.compact_now();
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    client.get(&format!("{CONFIGMAPS}/child")).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn a_circle_of_owners_does_not_wait_for_ever() {
    let server = collected().await;
    let client = Client::of(&server);
    let one = owner(&client, "one").await;
    let two = dependent(&client, "two", &[(&one, Hold::Blocks)]).await;
    let reference = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "two", "uid": two["metadata"]["uid"], "blockOwnerDeletion": true
    }]);
    client.merge(&format!("{CONFIGMAPS}/one"), &json!({"metadata": {"ownerReferences": reference}})).await.expect(200);
    let mut watch = watch(&client).await;
    client.delete(&format!("{CONFIGMAPS}/one?propagationPolicy=Foreground")).await.expect(200);
    let mut gone = deleted(&mut watch, 2).await;
    gone.sort();
    assert_eq!(gone, ["one", "two"]);
}
