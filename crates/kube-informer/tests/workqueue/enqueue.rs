//! Handlers that enqueue: what an informer's handler adds to a queue.

use std::time::Duration;

use crate::server_support::{client, key, put, remove, server};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube_informer::workqueue::{Priority, RateLimit};
use kube_informer::{Event, FinalState, Informer, Obj, ObjectKey, Origin, Untyped, WorkQueue};

fn object(name: &str, owner: Option<&str>) -> Obj<Untyped> {
    let owners: Vec<_> = owner
        .map(|name| serde_json::json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": true}))
        .into_iter()
        .collect();
    let object = serde_json::json!({"metadata": {"namespace": "default", "name": name, "ownerReferences": owners}});
    Obj::from_json(object.to_string()).expect("it is an object")
}

async fn all<T: std::hash::Hash + Eq + Clone + Send + 'static>(queue: &WorkQueue<T>) -> Vec<(T, Priority)> {
    let mut all = Vec::new();
    while !queue.is_empty() {
        let item = queue.next().await.expect("one is ready");
        all.push((item.clone(), item.priority()));
        item.forget();
    }
    all
}

#[tokio::test]
async fn adds_updates_and_deletions_add_the_key_a_missed_deletion_too() {
    let queue = WorkQueue::new(RateLimit::default());
    let mut handler = queue.enqueue::<Untyped>();
    handler(Event::added(object("added", None), Origin::Live));
    handler(Event::updated(object("updated", None), object("updated", None), Origin::Live));
    handler(Event::deleted(object("deleted", None), FinalState::Known, Origin::Live));
    handler(Event::deleted(object("missed", None), FinalState::Missed, Origin::Live));
    handler(Event::deleted(object("filtered", None), FinalState::Filtered, Origin::Live));
    let names = ["added", "updated", "deleted", "missed", "filtered"];
    assert_eq!(all(&queue).await, names.map(|name| (key("default", name), Priority::High)));
}

#[tokio::test]
async fn the_priority_is_that_of_the_events_origin() {
    let queue = WorkQueue::new(RateLimit::default());
    let mut handler = queue.enqueue::<Untyped>();
    for (name, origin) in [("a", Origin::Initial), ("b", Origin::Resync), ("c", Origin::Relist), ("d", Origin::Live)] {
        handler(Event::added(object(name, None), origin));
    }
    let order = [("d", Priority::High), ("c", Priority::Normal), ("a", Priority::Low), ("b", Priority::Low)];
    assert_eq!(all(&queue).await, order.map(|(name, priority)| (key("default", name), priority)));
}

#[tokio::test]
async fn a_mapping_may_add_the_owners_before_and_after() {
    let queue = WorkQueue::<String>::new(RateLimit::default());
    let owner = |object: &Obj<Untyped>| object.controller().map(|owner| owner.name().to_owned());
    let mut handler = queue.enqueue_with(move |event: &Event<Untyped>| {
        let (old, new) = event.states();
        old.into_iter().chain(new).filter_map(owner).collect::<Vec<_>>()
    });
    handler(Event::updated(object("pod", Some("old")), object("pod", Some("new")), Origin::Live));
    handler(Event::added(object("orphan", None), Origin::Live));
    handler(Event::deleted(object("pod", Some("new")), FinalState::Missed, Origin::Relist));
    assert_eq!(all(&queue).await, ["old", "new"].map(|owner| (owner.to_owned(), Priority::High)));
}

#[tokio::test]
async fn the_owners_of_a_kind_are_added_before_and_after_an_update_and_others_are_not() {
    let queue = WorkQueue::<ObjectKey>::new(RateLimit::default());
    let mut sets = queue.enqueue_owner::<ReplicaSet, Untyped>();
    sets(Event::updated(object("pod", Some("old")), object("pod", Some("new")), Origin::Live));
    sets(Event::added(object("orphan", None), Origin::Live));
    sets(Event::deleted(object("pod", Some("new")), FinalState::Missed, Origin::Relist));
    let mut maps = queue.enqueue_owner::<ConfigMap, Untyped>();
    maps(Event::added(object("pod", Some("set")), Origin::Live));
    assert_eq!(all(&queue).await, ["old", "new"].map(|owner| (key("default", owner), Priority::High)));
}

#[tokio::test]
async fn a_cluster_scoped_owner_is_added_without_a_namespace() {
    let queue = WorkQueue::<ObjectKey>::new(RateLimit::default());
    let owners = serde_json::json!([{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "u"}]);
    let lease =
        serde_json::json!({"metadata": {"namespace": "kube-node-lease", "name": "n1", "ownerReferences": owners}});
    queue.enqueue_owner::<Node, Untyped>()(Event::added(Obj::from_json(lease.to_string()).unwrap(), Origin::Live));
    assert_eq!(all(&queue).await, [(ObjectKey::cluster("n1"), Priority::High)]);
}

#[tokio::test(start_paused = true)]
async fn a_controller_receives_every_change_and_retries_what_fails() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let maps = Informer::<ConfigMap>::builder(client(&server)).build();
    let queue = WorkQueue::<ObjectKey>::new(RateLimit::exponential(Duration::from_secs(1), Duration::from_secs(60)));
    let feed = maps.on_event(queue.enqueue());
    maps.start();
    feed.synced().await.unwrap();

    let item = queue.next().await.unwrap();
    assert_eq!((&*item, item.priority()), (&key("default", "a"), Priority::Low));
    item.retry();
    assert_eq!((queue.len(), queue.delayed()), (0, 1));

    put(&server, "default", "a", "2");
    let item = queue.next().await.unwrap();
    assert_eq!((&*item, item.attempts(), item.priority()), (&key("default", "a"), 1, Priority::High));
    item.forget();

    remove(&server, "default", "a");
    let item = queue.next().await.unwrap();
    assert!(maps.lister().get(&item).is_none());
    item.forget();
    maps.shutdown().await;
}
