//! The stream of a watch: frames, bookmarks and its end.

use crate::harness::{Api, Case, Namespace, case, failure};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

pub(crate) const CASES: &[Case] = &[
    case!(the_head_comes_before_any_event, "the head of the answer comes at once, chunked, even if nothing happens"),
    case!(frames_are_single_lines, "a frame is {\"type\":…,\"object\":…} and one line break, key by key like a get"),
    case!(events_of_an_object_come_in_order, "create, update, delete: ADDED, MODIFIED, DELETED, versions rising"),
    case!(
        a_deletion_carries_the_last_state_and_a_new_version,
        "DELETED: the last stored state with the version of the deletion"
    ),
    case!(
        initial_events_come_in_key_order,
        "without a version: ADDED for everything in order of namespace/name, no end mark"
    ),
    case!(
        the_end_of_initial_events_is_marked,
        "streaming list: the bookmark that ends the initial events carries the annotation"
    ),
    case!(
        a_plain_watch_with_bookmarks_is_a_streaming_list,
        "watch from \"\" or \"0\" with bookmarks allowed ends its initial events likewise"
    ),
    case!(
        initial_events_without_bookmarks_have_no_end_mark,
        "sendInitialEvents without allowWatchBookmarks: no end mark"
    ),
    case!(bookmarks_show_required_fields_of_typed_kinds, "a bookmark is the zero value of its kind with a version"),
    case!(an_uncached_kind_marks_its_end_too, "events: initial events end with the annotated bookmark"),
    case!(Slow a_bookmark_comes_before_the_deadline, "from 2 s before the deadline a bookmark with a version newer than the start"),
    case!(Slow an_idle_kind_sends_no_bookmark, "a bookmark is sent only if its version is newer than the watch's start"),
    case!(Minute a_bookmark_comes_every_minute, "about every 60 s a bookmark, if the version moved"),
    case!(
        a_write_that_changes_nothing_makes_no_event,
        "no-op PUT, merge patch and JSON patch: 200, same version, no event"
    ),
    case!(
        leaving_a_label_selector_is_a_deletion,
        "into a selector ADDED, inside MODIFIED, out of it DELETED with the previous content and the new version"
    ),
    case!(leaving_a_field_selector_is_a_deletion, "the same for field selectors: a pod's phase"),
    case!(changes_outside_the_selector_make_no_event, "objects that never matched make no events"),
    case!(a_timeout_ends_the_stream_in_good_order, "timeoutSeconds: a clean end at that time, without an event"),
    case!(a_negative_timeout_ends_at_once, "timeoutSeconds=-1 ends at once"),
    case!(an_unparsable_timeout_is_refused, "timeoutSeconds=abc is a 400"),
    case!(the_request_timeout_is_ignored, "timeout= is ignored on watches, even unparsable"),
    case!(
        nearly_every_value_of_watch_is_true,
        "watch= any value but false, False, FALSE and 0 is a watch; the first value wins"
    ),
    case!(watch_of_one_object_is_a_get, "GET of an object with watch=true is a plain get"),
    case!(one_object_is_watched_by_its_name, "fieldSelector=metadata.name=x watches one object"),
    case!(the_old_watch_paths_work, "/api/v1/watch/… watches a collection or one object"),
    case!(
        the_old_watch_path_refuses_another_name,
        "on the old path of one object a fieldSelector for another name is a 400"
    ),
    case!(
        a_watch_from_before_the_history_expires_in_the_stream,
        "a version older than the kind's history: 200 and a 410 ERROR event, then the end"
    ),
    case!(Slow an_uncached_watch_from_a_forgotten_version_says_so, "events: a watch from a compacted version says so in other words"),
    case!(
        an_expired_watch_of_metadata_ends_with_a_status,
        "the ERROR object is a v1 Status under PartialObjectMetadata too"
    ),
    case!(metadata_alone_can_be_watched, "PartialObjectMetadata: events and bookmarks carry metadata only"),
    case!(a_watch_is_never_pretty, "pretty=true does not change a watch"),
    case!(a_kind_that_cannot_be_watched_says_405, "componentstatuses: watch is a 405"),
    case!(the_connection_of_a_finished_watch_is_reusable, "after its end the connection serves the next request"),
];

const STREAMING_LIST: &str =
    "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";

async fn the_head_comes_before_any_event(api: Api) {
    let ns = api.namespace().await;
    let watch = api.watch(&ns.path("configmaps?watch=true")).await;
    assert_eq!(watch.headers["content-type"], "application/json");
    assert_eq!(watch.headers["transfer-encoding"], "chunked");
    assert_eq!(watch.headers["cache-control"], "no-cache, private");
}

async fn frames_are_single_lines(api: Api) {
    let ns = api.namespace().await;
    let mut watch = api.watch(&ns.path("configmaps?watch=true")).await;
    let made = ns.configmap("a").await;
    watch.next().await.says(&format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", made.text().trim_end()));
}

async fn events_of_an_object_come_in_order(api: Api) {
    let ns = api.namespace().await;
    let start = ns.version().await;
    let made = ns.configmap("a").await.version();
    let changed = ns.change("a", "1").await.version();
    api.delete(&ns.path("configmaps/a")).await.is(200);
    ns.configmap("a").await;
    let mut watch = api.watch(&ns.path(&format!("configmaps?watch=true&resourceVersion={start}"))).await;
    assert_eq!(watch.expect("ADDED", "a").await.version(), made);
    assert_eq!(watch.expect("MODIFIED", "a").await.version(), changed);
    let deleted = watch.expect("DELETED", "a").await.version();
    assert!(deleted > changed);
    assert!(watch.expect("ADDED", "a").await.version() > deleted);
}

async fn a_deletion_carries_the_last_state_and_a_new_version(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let last = ns.change("a", "last").await;
    let mut watch = api.watch(&ns.path(&format!("configmaps?watch=true&resourceVersion={}", last.version()))).await;
    api.delete(&ns.path("configmaps/a")).await.is(200);
    let event = watch.expect("DELETED", "a").await;
    assert!(event.version() > last.version());
    assert_eq!(without_version(event.object()), without_version(&last.json()));
}

async fn initial_events_come_in_key_order(api: Api) {
    let kind = api.definition(|_| {}).await;
    // '-' sorts before '/', so the longer name comes first.
    let (short, long) = (api.namespace_called("ord").await, api.namespace_called("ord-x").await);
    for (ns, name) in [(&short, "b"), (&short, "a"), (&long, "c"), (&short, "a-b"), (&short, "a.b")] {
        kind.create(&kind.things(ns), name, Value::Null).await;
    }
    let names = ["c", "a", "a-b", "a.b", "b"];
    assert_eq!(api.get(&kind.all()).await.names(), names);
    for query in ["watch=true", "watch=true&resourceVersion=0"] {
        let mut watch = api.watch(&format!("{}?{query}", kind.all())).await;
        for name in names {
            watch.expect("ADDED", name).await;
        }
    }
}

async fn the_end_of_initial_events_is_marked(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("b").await;
    let last = ns.configmap("a").await.version();
    let mut watch = api.watch(&ns.path(&format!("configmaps?{STREAMING_LIST}"))).await;
    watch.expect("ADDED", "a").await;
    watch.expect("ADDED", "b").await;
    let mark = watch.next().await;
    mark.says("{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"<n>\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n");
    assert!(mark.version() >= last);
    ns.configmap("c").await;
    watch.expect_change("ADDED", "c").await;
}

async fn a_plain_watch_with_bookmarks_is_a_streaming_list(api: Api) {
    let ns = api.namespace().await;
    let made = ns.configmap("a").await.version();
    api.get(&ns.path(&format!("configmaps?resourceVersion={made}"))).await.is(200);
    for version in ["", "0"] {
        let path = ns.path(&format!("configmaps?watch=true&allowWatchBookmarks=true&resourceVersion={version}"));
        let mut watch = api.watch(&path).await;
        watch.expect("ADDED", "a").await;
        let mark = watch.next().await;
        assert!(mark.ends_initial_events(), "{}", mark.text);
    }
    let mut watch =
        api.watch(&ns.path(&format!("configmaps?watch=true&allowWatchBookmarks=true&resourceVersion={made}"))).await;
    ns.configmap("b").await;
    watch.expect_change("ADDED", "b").await;
}

async fn initial_events_without_bookmarks_have_no_end_mark(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let path = ns.path("configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    let mut watch = api.watch(&path).await;
    watch.expect("ADDED", "a").await;
    ns.configmap("b").await;
    watch.expect("ADDED", "b").await;
}

async fn bookmarks_show_required_fields_of_typed_kinds(api: Api) {
    let ns = api.namespace().await;
    let mark = |kind: &str, rest: &str| {
        format!(
            "{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"{kind}\",\"apiVersion\":\"{}\",\"metadata\":{{\"resourceVersion\":\"<n>\",\"annotations\":{{\"k8s.io/initial-events-end\":\"true\"}}}}{rest}}}}}\n",
            if kind == "Deployment" { "apps/v1" } else { "v1" }
        )
    };
    for (path, template) in [
        (ns.path("pods"), mark("Pod", r#","spec":{"containers":null},"status":{}"#)),
        (ns.path("services"), mark("Service", r#","spec":{},"status":{"loadBalancer":{}}"#)),
        (ns.path("secrets"), mark("Secret", "")),
        (
            ns.group_path("apps/v1", "deployments"),
            mark(
                "Deployment",
                r#","spec":{"replicas":0,"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"strategy":{}},"status":{}"#,
            ),
        ),
    ] {
        api.watch(&format!("{path}?{STREAMING_LIST}")).await.next().await.says(&template);
    }
    let kind = api.definition(|_| {}).await;
    api.watch(&format!("{}?{STREAMING_LIST}", kind.things(&ns))).await.next().await.says(&format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{\"apiVersion\":\"{}/v1\",\"kind\":\"Thing\",\"metadata\":{{\"annotations\":{{\"k8s.io/initial-events-end\":\"true\"}},\"resourceVersion\":\"<n>\"}}}}}}\n",
        kind.group
    ));
}

async fn an_uncached_kind_marks_its_end_too(api: Api) {
    let ns = api.namespace().await;
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": ns.name}});
    api.post(&ns.path("events"), event).await.is(201);
    let mut watch = api.watch(&ns.path(&format!("events?{STREAMING_LIST}"))).await;
    watch.expect("ADDED", "e").await;
    let mark = watch.next().await;
    assert!(mark.ends_initial_events(), "{}", mark.text);
}

async fn a_bookmark_comes_before_the_deadline(api: Api) {
    let ns = api.namespace().await;
    let start = ns.version().await;
    let path =
        ns.path(&format!("configmaps?watch=true&allowWatchBookmarks=true&resourceVersion={start}&timeoutSeconds=5"));
    let mut watch = api.watch(&path).await;
    let made = ns.configmap("a").await.version();
    watch.expect("ADDED", "a").await;
    let mark = watch.next().await;
    mark.says("{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"<n>\"}}}\n");
    assert!(mark.version() >= made);
    assert!(watch.rest().await.iter().all(|event| event.kind() == "BOOKMARK"));
}

async fn an_idle_kind_sends_no_bookmark(api: Api) {
    let kind = api.definition(|_| {}).await;
    let ns = api.namespace().await;
    let start = kind.create(&kind.things(&ns), "a", Value::Null).await.version();
    let path =
        format!("{}?watch=true&allowWatchBookmarks=true&resourceVersion={start}&timeoutSeconds=4", kind.things(&ns));
    api.watch(&path).await.end().await;
}

async fn a_bookmark_comes_every_minute(api: Api) {
    let ns = api.namespace().await;
    let start = ns.version().await;
    let path =
        ns.path(&format!("configmaps?watch=true&allowWatchBookmarks=true&resourceVersion={start}&timeoutSeconds=600"));
    let mut watch = api.watch(&path).await;
    let began = Instant::now();
    ns.configmap("a").await;
    watch.expect("ADDED", "a").await;
    let mark = watch.next_within(Duration::from_secs(300)).await;
    assert_eq!(mark.kind(), "BOOKMARK");
    let waited = began.elapsed().as_secs_f32();
    assert!(waited >= 55.0, "waited {waited} s");
}

async fn a_write_that_changes_nothing_makes_no_event(api: Api) {
    let ns = api.namespace().await;
    let made = ns.create(json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await;
    let path = ns.path("configmaps/a");
    let mut watch = api.watch(&ns.path(&format!("configmaps?watch=true&resourceVersion={}", made.version()))).await;
    for answer in [
        api.put(&path, made.json()).await,
        api.put(&path, json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await,
        api.patch(&path, "merge-patch", json!({"data": {"k": "v"}})).await,
        api.patch(&path, "merge-patch", json!({})).await,
        api.patch(&path, "json-patch", json!([])).await,
        api.patch(&path, "json-patch", json!([{"op": "replace", "path": "/data/k", "value": "v"}])).await,
    ] {
        assert_eq!(answer.is(200).version(), made.version(), "{}", answer.asked);
    }
    ns.change("a", "new").await;
    watch.expect("MODIFIED", "a").await;
}

async fn leaving_a_label_selector_is_a_deletion(api: Api) {
    let ns = api.namespace().await;
    let made = ns.create(json!({"metadata": {"name": "a", "labels": {"app": "x"}}, "data": {"k": "1"}})).await;
    let path = ns.path(&format!("configmaps?watch=true&labelSelector=app%3Dx&resourceVersion={}", made.version()));
    let mut watch = api.watch(&path).await;
    let object = ns.path("configmaps/a");
    let inside = api.patch(&object, "merge-patch", json!({"data": {"k": "2"}})).await;
    let out =
        api.patch(&object, "merge-patch", json!({"metadata": {"labels": {"app": "y"}}, "data": {"k": "3"}})).await;
    let outside = api.patch(&object, "merge-patch", json!({"data": {"k": "4"}})).await;
    let back = api.patch(&object, "merge-patch", json!({"metadata": {"labels": {"app": "x"}}})).await;
    outside.is(200);
    assert_eq!(watch.expect("MODIFIED", "a").await.object(), &inside.json());
    let left = watch.expect("DELETED", "a").await;
    assert_eq!(left.version(), out.version());
    assert_eq!(without_version(left.object()), without_version(&inside.json()));
    assert_eq!(watch.expect("ADDED", "a").await.object(), &back.json());
    api.delete(&object).await.is(200);
    assert!(watch.expect("DELETED", "a").await.version() > back.version());
}

async fn leaving_a_field_selector_is_a_deletion(api: Api) {
    let ns = api.namespace().await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let made = api.post(&ns.path("pods"), pod).await;
    assert_eq!(made.is(201).json()["status"]["phase"], "Pending");
    let watch = async |selector: &str| {
        api.watch(&ns.path(&format!("pods?watch=true&resourceVersion={}&fieldSelector={selector}", made.version())))
            .await
    };
    let mut pending = watch("status.phase%3DPending").await;
    let mut others = watch("status.phase!%3DPending").await;
    let running = api.patch(&ns.path("pods/p/status"), "merge-patch", json!({"status": {"phase": "Running"}})).await;
    let left = pending.expect("DELETED", "p").await;
    assert_eq!(left.version(), running.is(200).version());
    assert_eq!(left.object()["status"]["phase"], "Pending");
    assert_eq!(others.expect("ADDED", "p").await.object()["status"]["phase"], "Running");
}

async fn changes_outside_the_selector_make_no_event(api: Api) {
    let ns = api.namespace().await;
    let start = ns.version().await;
    let path = ns.path(&format!("configmaps?watch=true&labelSelector=app%3Dx&resourceVersion={start}"));
    let mut watch = api.watch(&path).await;
    ns.configmap("a").await;
    ns.change("a", "1").await;
    api.delete(&ns.path("configmaps/a")).await.is(200);
    ns.create(json!({"metadata": {"name": "b", "labels": {"app": "x"}}})).await;
    watch.expect("ADDED", "b").await;
}

async fn a_timeout_ends_the_stream_in_good_order(api: Api) {
    let ns = api.namespace().await;
    let began = Instant::now();
    api.watch(&ns.path("configmaps?watch=true&timeoutSeconds=1")).await.end().await;
    let waited = began.elapsed().as_secs_f32();
    assert!(waited >= 0.9, "waited {waited} s");
}

async fn a_negative_timeout_ends_at_once(api: Api) {
    let ns = api.namespace().await;
    api.watch(&ns.path("configmaps?watch=true&resourceVersion=0&timeoutSeconds=-1")).await.end().await;
}

async fn an_unparsable_timeout_is_refused(api: Api) {
    let ns = api.namespace().await;
    let refusal =
        failure(r#""message":"strconv.ParseInt: parsing \"abc\": invalid syntax","reason":"BadRequest","code":400"#);
    api.get(&ns.path("configmaps?watch=true&timeoutSeconds=abc")).await.says(400, &refusal);
    api.get(&ns.path("configmaps?timeoutSeconds=abc")).await.says(400, &refusal);
}

async fn the_request_timeout_is_ignored(api: Api) {
    let ns = api.namespace().await;
    for timeout in ["1ms", "abc"] {
        let mut watch =
            api.watch(&ns.path(&format!("configmaps?watch=true&resourceVersion=0&timeout={timeout}"))).await;
        let name = format!("after-{timeout}");
        ns.configmap(&name).await;
        while watch.next().await.name() != name {}
    }
}

async fn nearly_every_value_of_watch_is_true(api: Api) {
    let ns = api.namespace().await;
    for query in ["watch", "watch=", "watch=1", "watch=no", "watch=abc", "watch=TRUE", "watch=true&watch=false"] {
        api.watch(&ns.path(&format!("configmaps?{query}&timeoutSeconds=-1&resourceVersion=0"))).await.end().await;
    }
    for query in ["watch=false", "watch=False", "watch=FALSE", "watch=0", "watch=false&watch=true"] {
        let answer = api.get(&ns.path(&format!("configmaps?{query}&timeoutSeconds=-1"))).await;
        assert_eq!(answer.is(200).json()["kind"], "ConfigMapList", "{query}");
    }
}

async fn watch_of_one_object_is_a_get(api: Api) {
    let ns = api.namespace().await;
    let made = ns.configmap("a").await;
    let got = api.get(&ns.path("configmaps/a?watch=true&labelSelector=%3D%3D&fieldSelector=bogus")).await;
    got.says(200, &made.text());
    api.get(&ns.path("configmaps/b?watch=true")).await.says(404, &Namespace::no_configmap("b"));
}

async fn one_object_is_watched_by_its_name(api: Api) {
    let ns = api.namespace().await;
    ns.configmaps(&["a", "b"]).await;
    let mut watch = api.watch(&ns.path("configmaps?watch=true&fieldSelector=metadata.name%3Db")).await;
    watch.expect("ADDED", "b").await;
    ns.change("a", "1").await;
    ns.change("b", "1").await;
    watch.expect("MODIFIED", "b").await;
}

async fn the_old_watch_paths_work(api: Api) {
    let ns = api.namespace().await;
    ns.configmaps(&["a", "b"]).await;
    let mut all = api.watch(&format!("/api/v1/watch/namespaces/{}/configmaps", ns.name)).await;
    all.expect("ADDED", "a").await;
    all.expect("ADDED", "b").await;
    let mut one = api.watch(&format!("/api/v1/watch/namespaces/{}/configmaps/b", ns.name)).await;
    one.expect("ADDED", "b").await;
    ns.change("a", "1").await;
    api.delete(&ns.path("configmaps/b")).await.is(200);
    one.expect("DELETED", "b").await;
}

async fn the_old_watch_path_refuses_another_name(api: Api) {
    let ns = api.namespace().await;
    api.get(&format!("/api/v1/watch/namespaces/{}/configmaps/b?fieldSelector=metadata.name%3Da", ns.name)).await.says(
        400,
        &failure(
            r#""message":"fieldSelector metadata.name doesn't match requested name","reason":"BadRequest","code":400"#,
        ),
    );
}

async fn a_watch_from_before_the_history_expires_in_the_stream(api: Api) {
    let kind = api.definition(|_| {}).await;
    let mut watch = api.watch(&format!("{}?watch=true&resourceVersion=1", kind.all())).await;
    watch.next().await.says(&format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", expired().trim_end()));
    watch.end().await;
}

async fn an_uncached_watch_from_a_forgotten_version_says_so(api: Api) {
    let ns = api.namespace().await;
    api.once_forgotten(&ns.path("events?resourceVersion=1&resourceVersionMatch=Exact")).await;
    let mut watch = api.watch(&ns.path("events?watch=true&resourceVersion=1")).await;
    let expired =
        failure(r#""message":"The resourceVersion for the provided watch is too old.","reason":"Expired","code":410"#);
    watch.next().await.says(&format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", expired.trim_end()));
    watch.end().await;
}

async fn an_expired_watch_of_metadata_ends_with_a_status(api: Api) {
    let kind = api.definition(|_| {}).await;
    let mut watch = api
        .request("GET", &format!("{}?watch=true&resourceVersion=1", kind.all()))
        .header("accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
        .watch()
        .await;
    watch.next().await.says(&format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", expired().trim_end()));
    watch.end().await;
}

async fn metadata_alone_can_be_watched(api: Api) {
    let ns = api.namespace().await;
    ns.create(json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await;
    let mut watch = api
        .request("GET", &ns.path(&format!("configmaps?{STREAMING_LIST}")))
        .header("accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
        .watch()
        .await;
    watch.next().await.says(&format!(
        "{{\"type\":\"ADDED\",\"object\":{{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{{\"name\":\"a\",\"namespace\":\"{}\",\"uid\":\"<uid>\",\"resourceVersion\":\"<n>\",\"creationTimestamp\":\"<time>\"}}}}}}\n",
        ns.name
    ));
    watch.next().await.says("{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{\"resourceVersion\":\"<n>\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n");
}

async fn a_watch_is_never_pretty(api: Api) {
    let ns = api.namespace().await;
    let made = ns.configmap("a").await;
    let mut watch = api.watch(&ns.path("configmaps?watch=true&pretty=true")).await;
    watch.next().await.says(&format!("{{\"type\":\"ADDED\",\"object\":{}}}\n", made.text().trim_end()));
}

async fn a_kind_that_cannot_be_watched_says_405(api: Api) {
    api.get("/api/v1/componentstatuses?watch=true").await.says(
        405,
        &failure(
            r#""message":"watch is not supported on resources of kind \"componentstatuses\"","reason":"MethodNotAllowed","details":{"kind":"componentstatuses"},"code":405"#,
        ),
    );
}

async fn the_connection_of_a_finished_watch_is_reusable(api: Api) {
    let ns = api.namespace().await;
    // After the response is read completely, the connection returns to the pool and serves the next
    // request.
    let answer = api.get(&ns.path("configmaps?watch=true&timeoutSeconds=1")).await;
    assert_eq!(answer.is(200).header("connection"), None);
    api.get(&ns.path("configmaps")).await.is(200);
}

fn expired() -> String {
    failure(r#""message":"too old resource version: 1 (<n>)","reason":"Expired","code":410"#)
}

fn without_version(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    object
}
