//! Settings, namespaces, health, freshness, figures.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{EventRecorder, cached, client, config_map, drained, key, put, remove, server, truth};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded::faults::{Fault, Rule};
use kube_embedded::{Server, Verb};
use kube_informer::client::{Body, Frame, ListQuery, ListWatch, ServerError, WatchQuery};
use kube_informer::informer::WhenRefused;
use kube_informer::pipeline::{Backlog, Discipline, Figures, InformerName, Metrics};
use kube_informer::reflector::{ReflectorSettings, Streaming};
use kube_informer::store::Verdict;
use kube_informer::{
    Condition, Factory, Health, Informer, Keep, Kind, MetadataOnly, Obj, Origin, SyncError, Version, WaitError,
};
use serde_json::{Value, json};

fn namespace(server: &Server, name: &str) {
    server.create(&json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).unwrap();
}

fn keys(maps: &Informer<ConfigMap>) -> Vec<String> {
    maps.lister().sorted().iter().map(|map| map.key().to_string()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_set_of_namespaces_is_one_cache_and_can_change_while_it_runs() {
    let server = server().await;
    for name in ["one", "two", "three"] {
        namespace(&server, name);
        put(&server, name, "a", "1");
    }
    let maps = Informer::<ConfigMap>::builder(client(&server)).namespaces(["one", "two", "one"]).build();
    let recorder = EventRecorder::default();
    let handler = maps.on_event(recorder.handler());
    maps.start();
    handler.synced().await.unwrap();
    assert_eq!(keys(&maps), ["one/a", "two/a"]);
    assert_eq!(server.watches().len(), 2);
    recorder.take();
    maps.set_namespaces(["two", "three"]).unwrap();
    assert!(!maps.is_synced(), "there is something to wait for");
    maps.synced().await.unwrap();
    assert_eq!(keys(&maps), ["three/a", "two/a"]);
    drained(&handler).await;
    assert_eq!(recorder.take(), ["- one/a Filtered", "+ three/a (Initial)"]);
    put(&server, "one", "b", "1");
    put(&server, "three", "b", "1");
    maps.wait_until(key("three", "b"), |map| map.is_some()).await.unwrap();
    assert_eq!(keys(&maps), ["three/a", "three/b", "two/a"]);
    assert_eq!(server.watches().len(), 2);
    maps.set_namespaces([] as [&str; 0]).unwrap();
    maps.synced().await.unwrap();
    drained(&handler).await;
    assert_eq!((maps.lister().len(), server.watches().len()), (0, 0));
    recorder.objects();
}

#[tokio::test(start_paused = true)]
async fn a_relist_of_one_namespace_leaves_the_others_alone() {
    let server = server().await;
    for name in ["one", "two"] {
        namespace(&server, name);
        put(&server, name, "a", "1");
    }
    let maps = Informer::<ConfigMap>::builder(client(&server)).namespaces(["one", "two"]).build();
    let recorder = EventRecorder::default();
    let handler = maps.on_event(recorder.handler());
    maps.start();
    handler.synced().await.unwrap();
    recorder.take();
    // The watch of one namespace expires; its relist reveals a deletion.
    server.faults().inject(Rule::new(Fault::Disconnect).namespace("one").times(3));
    server.cut();
    remove(&server, "one", "a");
    server.compact_now();
    maps.wait_until(key("one", "a"), |map| map.is_none()).await.unwrap();
    put(&server, "two", "b", "1");
    maps.wait_until(key("two", "b"), |map| map.is_some()).await.unwrap();
    drained(&handler).await;
    assert_eq!(cached(&maps), truth(&server));
    assert_eq!(recorder.objects(), truth(&server));
    assert!(!recorder.take().iter().any(|line| line.starts_with("- two/")));
}

#[tokio::test(start_paused = true)]
async fn everything_may_become_a_few_namespaces() {
    let server = server().await;
    namespace(&server, "one");
    put(&server, "one", "a", "1");
    put(&server, "default", "a", "1");
    let maps = Informer::<ConfigMap>::builder(client(&server)).start();
    maps.synced().await.unwrap();
    assert_eq!(maps.lister().len(), 2);
    maps.set_namespaces(["one"]).unwrap();
    maps.synced().await.unwrap();
    assert_eq!(keys(&maps), ["one/a"]);
}

#[tokio::test(start_paused = true)]
async fn the_server_selects_by_label_and_by_field() {
    let server = server().await;
    for (name, value) in [("a", "in"), ("b", "out"), ("c", "in")] {
        put(&server, "default", name, value);
    }
    let maps = Informer::<ConfigMap>::builder(client(&server)).labels("value=in").fields("metadata.name!=c").build();
    let recorder = EventRecorder::default();
    let handler = maps.on_event(recorder.handler());
    maps.start();
    handler.synced().await.unwrap();
    assert_eq!(keys(&maps), ["default/a"]);
    put(&server, "default", "a", "out");
    maps.wait_until(key("default", "a"), |map| map.is_none()).await.unwrap();
    drained(&handler).await;
    assert_eq!(recorder.take().last().unwrap(), "- default/a Known", "the watch calls it a deletion");
}

#[tokio::test(start_paused = true)]
async fn objects_are_transformed_once_before_they_are_visible_and_may_be_left_out() {
    let server = server().await;
    for name in ["a", "b", "dropped"] {
        put(&server, "default", name, "secret");
    }
    let runs = Arc::new(Mutex::new(BTreeMap::<String, usize>::new()));
    let counted = Arc::clone(&runs);
    let maps = Informer::<ConfigMap>::builder(client(&server))
        .resync(Duration::from_secs(1))
        .transform(move |map: &mut Value| {
            let name = map["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let verdict = if name == "dropped" { Verdict::Drop } else { Verdict::Keep };
            *counted.lock().unwrap().entry(name).or_default() += 1;
            map["data"]["value"] = json!("hidden");
            verdict
        })
        .build();
    let handler = maps.on_event(|event| {
        assert_eq!(event.object().get().unwrap().data.as_ref().unwrap()["value"], "hidden");
    });
    maps.start();
    handler.synced().await.unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    drained(&handler).await;
    assert_eq!(handler.panics(), 0);
    assert_eq!(keys(&maps), ["default/a", "default/b"]);
    let runs = runs.lock().unwrap().clone();
    assert!(runs.values().all(|runs| *runs == 1), "{runs:?}");
}

#[tokio::test(start_paused = true)]
async fn what_no_longer_is_to_be_kept_leaves_the_cache_as_filtered() {
    let server = server().await;
    put(&server, "default", "a", "in");
    put(&server, "default", "b", "out");
    let maps = Informer::<ConfigMap>::builder(client(&server)).keep_if(|map| map.label("value") == Some("in")).build();
    let recorder = EventRecorder::default();
    let handler = maps.on_event(recorder.handler());
    maps.start();
    handler.synced().await.unwrap();
    assert_eq!(keys(&maps), ["default/a"]);
    put(&server, "default", "a", "out");
    maps.wait_until(key("default", "a"), |map| map.is_none()).await.unwrap();
    drained(&handler).await;
    assert_eq!(recorder.take(), ["+ default/a (Initial)", "- default/a Filtered"]);
}

#[tokio::test(start_paused = true)]
async fn fields_that_are_dropped_are_gone_and_however_kept_bodies_read_the_same() {
    let server = server().await;
    let mut map = config_map("default", "a", "1");
    map["metadata"]["annotations"] = json!({"kept": "yes"});
    server.create(&map).unwrap();
    for keep in [Keep::Compact, Keep::Plain, Keep::Decoded] {
        let maps = Informer::<ConfigMap>::builder(client(&server))
            .keep(keep)
            .drop_managed_fields()
            .drop_fields(["data.value"])
            .start();
        maps.synced().await.unwrap();
        let map = maps.lister().get(&key("default", "a")).unwrap();
        let body = map.get().unwrap();
        assert!(body.metadata.managed_fields.is_none(), "{keep:?}");
        assert!(body.data.as_ref().is_none_or(BTreeMap::is_empty), "{keep:?}");
        assert_eq!(map.annotation("kept").as_deref(), Some("yes"), "{keep:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_kept_decoded_are_decoded_on_arrival_once_as_the_type_of_the_informer() {
    static DECODED: AtomicUsize = AtomicUsize::new(0);
    struct Counted;
    impl<'de> serde::Deserialize<'de> for Counted {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            DECODED.fetch_add(1, Ordering::Relaxed);
            serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
        }
    }
    impl Kind for Counted {
        fn resource() -> kube::core::ApiResource {
            ConfigMap::resource()
        }
    }
    let decoded = async |count| {
        while DECODED.load(Ordering::Relaxed) < count {
            tokio::task::yield_now().await;
        }
    };
    let server = server().await;
    server.load((0..300).map(|nth| config_map("default", &format!("m{nth}"), "1"))).unwrap();
    let factory = Factory::builder(client(&server)).defaults(|all| all.keep(Keep::Decoded)).build().unwrap();
    factory.start();
    let of_builder = || Informer::<Counted>::builder(client(&server)).keep(Keep::Decoded).start();
    for is_shared in [false, true] {
        let maps = if is_shared { factory.informer::<Counted>() } else { of_builder() };
        let mut events = maps.subscribe();
        maps.synced().await.unwrap();
        // More than may be decoded at a time, without a read.
        decoded(300).await;
        server.objects("v1", "ConfigMap").unwrap().patch("m7", &json!({"data": {"value": "2"}})).unwrap();
        decoded(301).await;
        for map in maps.lister().list() {
            assert!(map.get().is_ok());
        }
        for _ in 0..301 {
            assert!(events.next().await.unwrap().object().get().is_ok());
        }
        maps.shutdown().await;
        // The state before the change is not in the cache any more, but the same object in the
        // events.
        assert_eq!(DECODED.swap(0, Ordering::Relaxed), 301);
        server.objects("v1", "ConfigMap").unwrap().patch("m7", &json!({"data": {"value": "1"}})).unwrap();
    }
}

/// A thousand objects, so that dictionaries are trained and bodies compressed on a blocking thread.
#[tokio::test(start_paused = true)]
async fn packed_bodies_read_as_they_came_before_and_after_they_went_cold() {
    let server = server().await;
    server.load((0..1_000).map(|nth| config_map("default", &format!("m{nth}"), &nth.to_string()))).unwrap();
    let maps = Informer::<ConfigMap>::builder(client(&server)).start();
    maps.synced().await.unwrap();
    for nth in 0..100 {
        put(&server, "default", &format!("m{nth}"), &format!("{nth}-again"));
    }
    let check = || {
        for map in maps.lister().list() {
            let nth: usize = map.name()[1..].parse().unwrap();
            let value = if nth < 100 { format!("{nth}-again") } else { nth.to_string() };
            assert_eq!(map.get().unwrap().data.as_ref().unwrap()["value"], value);
        }
    };
    maps.wait_for(put(&server, "default", "m99", "99-again")).await.unwrap();
    check();
    tokio::time::sleep(Duration::from_secs(60)).await;
    check();
    maps.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_is_asked_for_where_the_type_says_so() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let maps = Informer::<MetadataOnly<ConfigMap>>::builder(client(&server)).start();
    maps.synced().await.unwrap();
    let map = maps.lister().get(&key("default", "a")).unwrap();
    assert_eq!(map.label("value"), Some("1"));
    assert!(!String::from_utf8_lossy(&map.json()).contains("\"data\""));
    let same = Informer::<MetadataOnly<ConfigMap>>::builder_for(client(&server), ConfigMap::resource()).start();
    same.synced().await.unwrap();
    assert_eq!(same.lister().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn every_failure_is_reported_also_on_an_established_stream() {
    let server = server().await;
    server.faults().inject(Rule::new(Fault::status(500)).query("sendInitialEvents", "true").once());
    let errors = Arc::new(Mutex::new(Vec::<ServerError>::new()));
    let recorded = Arc::clone(&errors);
    let maps = Informer::<ConfigMap>::builder(client(&server))
        .on_watch_error(move |error| recorded.lock().unwrap().push(error.clone()))
        .start();
    maps.synced().await.unwrap();
    let before = errors.lock().unwrap().len();
    assert!(before >= 1);
    server.cut();
    maps.wait_for(put(&server, "default", "a", "1")).await.unwrap();
    assert!(errors.lock().unwrap().len() > before);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_may_be_waited_out() {
    let server = server().await;
    let refusal = server.faults().inject(Rule::new(Fault::status(403)).resource("", "configmaps"));
    let patient = Informer::<ConfigMap>::builder(client(&server)).when_refused(WhenRefused::Wait).start();
    let hasty = Informer::<ConfigMap>::builder(client(&server)).start();
    let Err(SyncError::Refused(cause)) = hasty.synced().await else { panic!("it is forbidden") };
    assert!(cause.is_forbidden());
    let handler = hasty.on_event(|_| {});
    assert!(matches!(handler.synced().await, Err(SyncError::Refused(_))));
    let waits = tokio::spawn(patient.synced());
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(!waits.is_finished());
    refusal.remove();
    waits.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn both_disciplines_of_the_queue_end_at_the_truth() {
    for discipline in [Discipline::Ordered, Discipline::Keyed] {
        let server = server().await;
        let maps = Informer::<ConfigMap>::builder(client(&server)).queue(discipline).build();
        let recorder = EventRecorder::default();
        let handler = maps.on_event(recorder.handler());
        maps.start();
        for nth in 0..100 {
            put(&server, "default", &format!("m{}", nth % 9), &nth.to_string());
            if nth % 5 == 4 {
                remove(&server, "default", &format!("m{}", nth % 9));
            }
        }
        maps.wait_for(put(&server, "default", "last", "1")).await.unwrap();
        drained(&handler).await;
        assert_eq!(recorder.objects(), truth(&server), "{discipline:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_index_made_while_nothing_happens_is_built_and_complete() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let maps = Informer::<ConfigMap>::builder(client(&server)).start();
    maps.synced().await.unwrap();
    let by_value = maps.index(|map| map.get().ok().and_then(|map| map.data.clone()?.remove("value")));
    assert_eq!(by_value.keys("1"), [key("default", "a")]);
    tokio::task::yield_now().await;
    assert_eq!(by_value.keys("1"), [key("default", "a")]);
    maps.wait_for(put(&server, "default", "a", "2")).await.unwrap();
    assert_eq!((by_value.count("1"), by_value.count("2")), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn wait_until_sees_the_object_come_and_go_and_never_an_empty_cache() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let maps = Informer::<ConfigMap>::builder(client(&server)).build();
    let gone = tokio::spawn(maps.wait_until(key("default", "a"), |map| map.is_none()));
    let two = tokio::spawn(
        maps.wait_until(key("default", "a"), |map| map.is_some_and(|map| map.label("value") == Some("2"))),
    );
    maps.start();
    maps.synced().await.unwrap();
    tokio::task::yield_now().await;
    assert!(!gone.is_finished() && !two.is_finished());
    put(&server, "default", "a", "2");
    assert_eq!(two.await.unwrap().unwrap().unwrap().label("value"), Some("2"));
    remove(&server, "default", "a");
    assert!(gone.await.unwrap().unwrap().is_none());
}

/// The last reported figures of each informer.
#[derive(Clone, Default)]
struct Board(Arc<Mutex<BTreeMap<String, Figures>>>);

impl Metrics for Board {
    fn report(&self, informer: &InformerName, figures: &Figures) {
        self.0.lock().unwrap().insert(informer.resource().to_owned(), figures.clone());
    }

    fn ended(&self, informer: &InformerName) {
        self.0.lock().unwrap().remove(informer.resource());
    }
}

#[tokio::test(start_paused = true)]
async fn figures_are_reported_while_the_informer_runs_and_taken_back_when_it_ends() {
    let server = server().await;
    for name in ["a", "b"] {
        put(&server, "default", name, "1");
    }
    let board = Board::default();
    let maps = Informer::<ConfigMap>::builder(client(&server)).metrics(board.clone()).build();
    let panics = maps.on_event(|_| panic!("as it was meant to"));
    maps.start();
    panics.synced().await.unwrap();
    server.cut();
    remove(&server, "default", "a");
    server.compact_now();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let figures = board.0.lock().unwrap()["configmaps"].clone();
    assert_eq!((figures.objects, figures.events, figures.handlers.len()), (1, 3, 1));
    assert_eq!((figures.handlers[0].panics, figures.handlers[0].backlog), (3, 0));
    assert!(figures.bytes > 100 && figures.deltas >= 4, "{figures:?}");
    assert!(figures.reflector.errors >= 1 && figures.reflector.relists.total() >= 1, "{figures:?}");
    assert!(figures.last_contact_age.unwrap() < Duration::from_secs(120));
    maps.shutdown().await;
    assert!(board.0.lock().unwrap().is_empty());
}

/// The required verbs are the documented ones and no others.
#[tokio::test(start_paused = true)]
async fn list_and_watch_are_all_that_is_asked_of_the_server() {
    let server = server().await;
    let maps = Informer::<ConfigMap>::builder(client(&server)).start();
    maps.synced().await.unwrap();
    tokio::time::sleep(Duration::from_secs(1_000)).await;
    assert!(server.requests().iter().all(|seen| matches!(seen.verb, Some(Verb::List | Verb::Watch))));
}

/// A restored server reuses versions for other content.
#[tokio::test(start_paused = true)]
async fn after_the_server_went_back_an_object_of_the_same_version_may_be_another() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let backup = server.backup();
    let known = put(&server, "default", "a", "before");
    let maps = Informer::<ConfigMap>::builder(client(&server)).start();
    for nth in 0..20 {
        put(&server, "default", "b", &nth.to_string());
    }
    maps.wait_for(put(&server, "default", "b", "last")).await.unwrap();
    server.refuse().await;
    server.restore(&backup);
    assert_eq!(put(&server, "default", "a", "after"), known);
    server.accept().await;
    let is_new = |map: Option<&Obj<ConfigMap>>| map.is_some_and(|map| map.label("value") == Some("after"));
    let seen = maps.wait_until(key("default", "a"), is_new);
    tokio::time::timeout(Duration::from_secs(600), seen).await.expect("it is never seen").unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_was_left_begins_anew_whatever_the_server_did_meanwhile() {
    let server = server().await;
    namespace(&server, "one");
    put(&server, "one", "a", "1");
    let backup = server.backup();
    let maps = Informer::<ConfigMap>::builder(client(&server)).namespaces(["one"]).start();
    maps.synced().await.unwrap();
    remove(&server, "one", "a");
    maps.wait_until(key("one", "a"), |map| map.is_none()).await.unwrap();
    maps.set_namespaces([] as [&str; 0]).unwrap();
    maps.synced().await.unwrap();
    server.restore(&backup);
    maps.set_namespaces(["one"]).unwrap();
    maps.synced().await.unwrap();
    assert_eq!(keys(&maps), ["one/a"]);
}

/// Also its progress.
#[tokio::test(start_paused = true)]
async fn a_list_that_is_under_way_shows_how_far_it_is() {
    let server = server().await;
    for nth in 0..5 {
        put(&server, "default", &format!("m{nth}"), "1");
    }
    let settings =
        ReflectorSettings { streaming: Streaming::Never, page_size: Some(2), ..ReflectorSettings::default() };
    let maps = Informer::<ConfigMap>::builder(client(&server)).reflector(settings).start();
    maps.synced().await.unwrap();
    // The first list is served whole from the server's watch cache; the one after a 410 is paged.
    server.faults().inject(Rule::new(Fault::Delay(Duration::from_secs(20))).query_given("continue").once());
    put(&server, "default", "m5", "1");
    server.restart();
    let mut health = maps.watch_health();
    let under_way = |health: &Health| matches!(health.condition, Condition::Listing { objects: 2, remaining: Some(4) });
    drop(tokio::time::timeout(Duration::from_secs(10), health.wait_for(under_way)).await.expect("progress is shown"));
    assert!(maps.is_synced(), "what was there can be read meanwhile");
}

/// A value of an index whose references are counted.
#[derive(Clone)]
struct Counted {
    value: String,
    _counter: Arc<()>,
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Eq for Counted {}

impl std::hash::Hash for Counted {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.value.hash(state);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_reader_has_let_go_of_is_freed_though_nothing_more_happens() {
    let server = server().await;
    put(&server, "default", "a", "1");
    let counter = Arc::new(());
    let maps = Informer::<ConfigMap>::builder(client(&server)).build();
    let count = Arc::clone(&counter);
    let index = maps.index(move |map| [Counted { value: map.version().to_string(), _counter: Arc::clone(&count) }]);
    maps.start();
    maps.synced().await.unwrap();
    let held = || Arc::strong_count(&counter);
    let before = held();
    let snapshot = maps.lister().snapshot();
    let version = put(&server, "default", "a", "2");
    maps.wait_for(version).await.unwrap();
    assert!(held() > before, "the snapshot has the old value");
    drop(snapshot);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(held(), before);
    drop(index);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_cannot_be_compared_is_not_waited_for() {
    let server = server().await;
    let maps = Informer::<ConfigMap>::builder(client(&server)).start();
    assert_eq!(maps.wait_for(Version::new("abc")).await, Err(WaitError::NotComparable));
}

/// A source whose watch never runs out of changes of one object.
struct Busy;

impl Busy {
    fn thing(name: &str, version: u64) -> Bytes {
        format!(r#"{{"metadata":{{"name":"{name}","resourceVersion":"{version}"}}}}"#).into()
    }
}

impl ListWatch for Busy {
    async fn list(&self, _: ListQuery) -> Result<Body, ServerError> {
        Ok(Body::from_list(&Version::from(2), [Self::thing("busy", 1), Self::thing("calm", 2)]))
    }

    async fn watch(&self, _: WatchQuery) -> Result<Body, ServerError> {
        Ok(Body::from_frames(stream::iter(3..).map(|version| Frame::Modified(Self::thing("busy", version)))))
    }
}

/// Counts the reports.
struct Reports(Arc<AtomicUsize>);

impl Metrics for Reports {
    fn report(&self, _: &InformerName, _: &Figures) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn ended(&self, _: &InformerName) {}
}

#[tokio::test(start_paused = true)]
async fn resyncs_and_metrics_do_not_wait_until_the_changes_stop() {
    let reports = Arc::new(AtomicUsize::new(0));
    let paged = ReflectorSettings { streaming: Streaming::Never, ..ReflectorSettings::default() };
    let things = Informer::<Value>::builder_from(Busy, ConfigMap::resource())
        .reflector(paged)
        .resync(Duration::from_secs(60))
        .metrics(Reports(Arc::clone(&reports)))
        .build();
    let mut events = things.handler().backlog(Backlog::Latest).subscribe();
    things.start();
    // Time passes only by this task, because the others are never idle.
    let clock = tokio::spawn(async {
        loop {
            tokio::time::advance(Duration::from_millis(100)).await;
        }
    });
    let mut resyncs = 0;
    for _ in 0..100_000 {
        let event = events.next().await.unwrap();
        resyncs += usize::from(event.key().name() == "calm" && event.origin() == Origin::Resync);
        if resyncs >= 3 && reports.load(Ordering::Relaxed) >= 3 {
            break;
        }
    }
    clock.abort();
    assert!(resyncs >= 3 && reports.load(Ordering::Relaxed) >= 3, "{resyncs} resyncs, {reports:?} reports");
}
