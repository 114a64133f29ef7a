//! Watches over time, on a paused clock: bookmarks, timeouts, slow watchers, compacted history.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::Duration;

use crate::support::{Client, version};
use kube_embedded::Server;
use serde_json::{Value, json};
use tokio::time::Instant;

fn map(name: &str, content: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": content}})
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_every_minute_but_only_after_changes() {
    let server = Server::builder().in_process().start().await.unwrap();
    let made = version(&server.create(&map("a", "1")).unwrap());
    let path = format!("/api/v1/configmaps?watch=1&allowWatchBookmarks=1&resourceVersion={made}&timeoutSeconds=600");
    let mut watch = Client::of(&server).watch(&path).await;
    let began = Instant::now();
    let idle = tokio::time::timeout(Duration::from_secs(300), watch.next()).await;
    assert!(idle.is_err(), "an idle kind sends no bookmarks");

    let second = version(&server.create(&map("b", "1")).unwrap());
    assert_eq!(watch.step().await.unwrap(), ("ADDED".into(), "b".into(), second));
    let (kind, name, reached) = watch.step().await.unwrap();
    assert_eq!((&*kind, &*name, reached), ("BOOKMARK", "", second));
    assert_eq!(began.elapsed(), Duration::from_secs(360), "at the next full minute");
    assert_eq!(watch.step().await.unwrap().0, "BOOKMARK");
    assert_eq!(began.elapsed(), Duration::from_secs(420));
}

#[tokio::test(start_paused = true)]
async fn the_last_bookmark_comes_two_seconds_before_the_end() {
    let server = Server::builder().in_process().start().await.unwrap();
    let made = version(&server.create(&map("a", "1")).unwrap());
    server.create(&map("b", "1")).unwrap();
    let path = format!("/api/v1/configmaps?watch=1&allowWatchBookmarks=1&resourceVersion={made}&timeoutSeconds=30");
    let began = Instant::now();
    let mut watch = Client::of(&server).watch(&path).await;
    assert_eq!(watch.step().await.unwrap().0, "ADDED");
    assert_eq!(watch.step().await.unwrap().0, "BOOKMARK");
    assert_eq!(began.elapsed(), Duration::from_secs(28));
    while watch.next().await.is_some() {}
    assert_eq!(began.elapsed(), Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn a_watch_without_a_timeout_lives_between_one_and_two_of_the_least() {
    let server = Server::builder().in_process().min_watch_timeout(Duration::from_secs(60)).start().await.unwrap();
    for _ in 0..20 {
        let began = Instant::now();
        let mut watch = Client::of(&server).watch("/api/v1/configmaps?watch=1").await;
        assert_eq!(watch.next().await, None);
        let life = began.elapsed();
        assert!((60..120).contains(&life.as_secs()), "{life:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_takes_any_timeout() {
    let server = Server::builder().in_process().start().await.unwrap();
    let began = Instant::now();
    for at_once in [-1, i64::MAX] {
        let from = server.revision();
        let path = format!("/api/v1/configmaps?watch=1&timeoutSeconds={at_once}&resourceVersion={from}");
        let mut watch = Client::of(&server).watch(&path).await;
        assert_eq!(watch.next().await, None, "{at_once}");
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
    let most = i64::MAX / 1_000_000_000;
    let bookmarks = format!("/api/v1/configmaps?watch=1&allowWatchBookmarks=true&timeoutSeconds={most}");
    let mut watch = Client::of(&server).watch(&bookmarks).await;
    server.create(&map("a", "1")).unwrap();
    assert_eq!(watch.next().await.unwrap()["type"], "BOOKMARK");
    assert_eq!(watch.next().await.unwrap()["type"], "ADDED");
}

#[tokio::test]
async fn a_watch_that_lags_too_far_is_closed_without_a_word() {
    let server = Server::builder().in_process().watch_backlog(500).start().await.unwrap();
    let mut watch = Client::of(&server).watch("/api/v1/configmaps?watch=1&resourceVersion=0").await;
    for i in 0..2_000 {
        server.create(&map(&format!("c{i}"), "1")).unwrap();
    }
    assert_eq!(watch.next().await, None, "a clean end, and no ERROR");
    // A watcher that keeps up receives everything.
    let mut watch =
        Client::of(&server).watch(&format!("/api/v1/configmaps?watch=1&resourceVersion={}", server.revision())).await;
    for i in 0..400 {
        server.create(&map(&format!("d{i}"), "1")).unwrap();
    }
    for i in 0..400 {
        assert_eq!(watch.step().await.unwrap().1, format!("d{i}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_beyond_the_history_is_gone() {
    let server = Server::builder().in_process().history(10).start().await.unwrap();
    let first = version(&server.create(&map("a", "0")).unwrap());
    let path = format!("/api/v1/configmaps?watch=1&resourceVersion={first}");
    for i in 1..=10 {
        server.update(&map("a", &i.to_string())).unwrap();
    }
    assert_eq!(Client::of(&server).watch(&path).await.step().await.unwrap().0, "MODIFIED", "ten changes are kept");
    server.update(&map("a", "11")).unwrap();
    let gone = Client::of(&server).watch(&path).await.next().await.unwrap();
    assert_eq!(gone["type"], "ERROR");
    assert_eq!(gone["object"]["message"], format!("too old resource version: {first} ({})", first + 1));
}

#[tokio::test(start_paused = true)]
async fn a_version_older_than_the_history_is_gone() {
    let server = Server::builder().in_process().history_age(Duration::from_secs(100)).start().await.unwrap();
    let first = version(&server.create(&map("a", "0")).unwrap());
    server.update(&map("a", "1")).unwrap();
    let exact = format!("/api/v1/configmaps?resourceVersion={first}&resourceVersionMatch=Exact");
    Client::of(&server).get(&exact).await.expect(200);
    tokio::time::sleep(Duration::from_secs(120)).await;
    Client::of(&server).get(&exact).await.expect(410);
    let gone = Client::of(&server).watch(&format!("/api/v1/configmaps?watch=1&resourceVersion={first}")).await;
    let mut gone = gone;
    assert_eq!(gone.next().await.unwrap()["object"]["code"], 410);
}

#[tokio::test(start_paused = true)]
async fn after_a_restored_backup_an_old_watcher_waits_in_silence() {
    let server = Server::builder().in_process().start().await.unwrap();
    server.create(&map("a", "0")).unwrap();
    let backup = server.backup();
    let late = version(&server.create(&map("b", "0")).unwrap());
    server.create(&map("c", "0")).unwrap();
    server.restore(&backup);
    assert_eq!(server.revision(), backup.revision());
    let path = format!("/api/v1/configmaps?watch=1&resourceVersion={late}&timeoutSeconds=60");
    let mut watch = Client::of(&server).watch(&path).await;
    // The next write gets a revision that the watcher has already seen.
    assert_eq!(version(&server.create(&map("d", "0")).unwrap()), late);
    assert_eq!(watch.next().await, None, "no error, no event");
}

#[tokio::test(start_paused = true)]
async fn a_list_of_the_future_waits_for_it() {
    let server = Server::builder().in_process().start().await.unwrap();
    let future = server.revision() + 2;
    let client = Client::of(&server);
    let path = format!("/api/v1/configmaps?resourceVersion={future}");
    let waiting = tokio::spawn({
        let (client, path) = (client.clone(), path.clone());
        async move { client.get(&path).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.create(&map("a", "0")).unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    server.create(&map("b", "0")).unwrap();
    assert_eq!(waiting.await.unwrap().expect(200).names(), ["a", "b"]);

    let began = Instant::now();
    let late = client.get(&format!("/api/v1/configmaps?resourceVersion={}", future + 1)).await.expect(504);
    assert_eq!((began.elapsed(), late.header("retry-after")), (Duration::from_secs(3), Some("1")));
}

#[tokio::test]
async fn an_event_is_sent_to_every_watch_in_the_requested_format() {
    let server = Server::builder().in_process().start().await.unwrap();
    let client = Client::of(&server);
    let path = format!("/api/v1/configmaps?watch=1&resourceVersion={}", server.revision());
    let mut plain = client.watch(&path).await;
    let metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let mut partial = client.watch_as(&path, &[("accept", metadata)]).await;
    server.create(&map("a", "0")).unwrap();
    assert_eq!(plain.next().await.unwrap()["object"]["data"]["k"], "0");
    let object = partial.next().await.unwrap()["object"].clone();
    assert_eq!((&object["kind"], object.get("data")), (&json!("PartialObjectMetadata"), None));
}
