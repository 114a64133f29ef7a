//! Shards: their caches together are everything, on servers that obey their selectors and on those
//! that ignore them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::support::{EventRecorder, client, key, on_each_runtime, put, remove};
use k8s_openapi::api::core::v1::ConfigMap;
use kube_embedded::Server;
use kube_informer::client::{Body, ListQuery, ListWatch, ServerError, WatchQuery};
use kube_informer::informer::ShardError;
use kube_informer::pipeline::{Figures, InformerName, Metrics};
use kube_informer::reflector::{ReflectorSettings, Streaming};
use kube_informer::shard::{HashRange, HashRanges, Shard, ShardKey, ShardSupport};
use kube_informer::{Informer, Kind as _, MetadataOnly, Object, Uid, Version, Wire};
use serde_json::Value;

/// A server that obeys shard selectors, or ignores them.
async fn server(obeys: bool) -> Server {
    let builder = Server::builder().in_process().seed(1);
    let builder = if obeys { builder.sharded_list_and_watch() } else { builder };
    builder.start().await.unwrap()
}

fn thirds(key: ShardKey) -> Vec<Shard> {
    HashRanges::parts(3).into_iter().map(|part| Shard::new(key, part)).collect()
}

/// Key and version of each config map on the server that belongs to the shard.
fn truth(server: &Server, shard: &Shard) -> BTreeMap<String, String> {
    let all = server.objects("v1", "ConfigMap").unwrap().list();
    let text = |map: &Value, field: &str| map["metadata"][field].as_str().unwrap().to_owned();
    let belongs = |map: &&Value| match shard.key {
        ShardKey::Uid => shard.contains_uid(&Uid::new(text(map, "uid"))),
        ShardKey::Namespace => shard.contains_namespace(&text(map, "namespace")),
    };
    let entry =
        |map: &Value| (format!("{}/{}", text(map, "namespace"), text(map, "name")), text(map, "resourceVersion"));
    all.iter().filter(belongs).map(entry).collect()
}

fn cached<K: Object>(maps: &Informer<K>) -> BTreeMap<String, String> {
    let all = maps.lister().list();
    all.iter().map(|map| (map.key().to_string(), map.version().to_string())).collect()
}

/// Waits until it is known whether the server obeys.
async fn support<K: Object>(maps: &Informer<K>) -> ShardSupport {
    let mut health = maps.watch_health();
    let known = |support: Option<ShardSupport>| support.filter(|support| *support != ShardSupport::Unknown);
    known(health.wait_for(|health| known(health.shard).is_some()).await.unwrap().shard).unwrap()
}

/// Runs an informer of each shard through changes, and checks that each holds its objects only.
async fn divide<K: Object>(server: &Server, obeys: bool, shards: Vec<Shard>, build: impl Fn(Shard) -> Informer<K>) {
    for namespace in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        for nth in 0..5 {
            put(server, namespace, &format!("m{nth}"), "1");
        }
    }
    let members: Vec<_> = shards.iter().cloned().map(build).collect();
    let recorders: Vec<_> = members
        .iter()
        .map(|maps| {
            let recorder = EventRecorder::default();
            maps.on_event(recorder.handler()).detach();
            maps.start();
            recorder
        })
        .collect();
    for (maps, shard) in members.iter().zip(&shards) {
        maps.synced().await.unwrap();
        assert_eq!(cached(maps), truth(server, shard));
        let expected = if obeys { ShardSupport::Honoured } else { ShardSupport::Ignored };
        assert_eq!(support(maps).await, expected);
    }
    for namespace in ["default", "kube-public"] {
        put(server, namespace, "m1", "2");
        remove(server, namespace, "m2");
        put(server, namespace, "m2", "another-uid");
        put(server, namespace, "m9", "1");
        remove(server, namespace, "m3");
    }
    for ((maps, shard), recorder) in members.iter().zip(&shards).zip(&recorders) {
        while cached(maps) != truth(server, shard) || recorder.objects() != truth(server, shard) {
            tokio::task::yield_now().await;
        }
    }
    let held: usize = members.iter().map(|maps| maps.lister().len()).sum();
    assert_eq!(held, server.objects("v1", "ConfigMap").unwrap().list().len(), "each object is in one shard");
    for maps in members {
        maps.shutdown().await;
    }
}

#[test]
fn shards_together_hold_exactly_everything_in_every_format() {
    on_each_runtime(async || {
        for obeys in [true, false] {
            for shards in [ShardKey::Uid, ShardKey::Namespace].map(thirds) {
                for (streaming, page_size) in
                    [(Streaming::Preferred, None), (Streaming::Never, None), (Streaming::Never, Some(2))]
                {
                    for wire in [Wire::Json, Wire::Protobuf] {
                        let settings = ReflectorSettings { streaming, page_size, ..ReflectorSettings::default() };
                        let at = server(obeys).await;
                        divide(&at, obeys, shards.clone(), |shard| {
                            let maps = Informer::<ConfigMap>::builder(client(&at)).shard(shard).wire(wire);
                            maps.drop_managed_fields().reflector(settings).build()
                        })
                        .await;
                        let at = server(obeys).await;
                        divide(&at, obeys, shards.clone(), |shard| {
                            let maps = Informer::<MetadataOnly>::builder_for(client(&at), ConfigMap::resource());
                            maps.shard(shard).wire(wire).reflector(settings).build()
                        })
                        .await;
                    }
                }
            }
        }
    });
}

#[tokio::test(start_paused = true)]
async fn every_request_carries_the_selector_and_a_typed_list_needs_no_other_one() {
    for obeys in [true, false] {
        let server = server(obeys).await;
        put(&server, "default", "a", "1");
        let shard = Shard::new(ShardKey::Uid, HashRange::new(0, 1 << 63).unwrap());
        let settings = ReflectorSettings { streaming: Streaming::Never, ..ReflectorSettings::default() };
        let maps = Informer::<ConfigMap>::builder(client(&server)).shard(shard).reflector(settings).start();
        support(&maps).await;
        let watching = |server: &Server| server.requests().iter().any(|request| request.query.contains("watch=true"));
        while !watching(&server) {
            tokio::task::yield_now().await;
        }
        let requests: Vec<_> = server.requests().into_iter().map(|request| request.query).collect();
        let selector = "shardSelector=shardRange%28object.metadata.uid%2C+%270x0000000000000000%27%2C+\
                        %270x8000000000000000%27%29";
        assert!(requests.iter().all(|query| query.contains(selector)), "{requests:?}");
        let lists = requests.iter().filter(|query| !query.contains("watch=true")).count();
        // The list shows that the selector was obeyed, or an object outside that it was not; only
        // without either the server is asked.
        let is_inside = maps.lister().len() == 1;
        assert_eq!(lists, if obeys || !is_inside { 1 } else { 2 }, "{requests:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn of_custom_kinds_it_is_known_whether_the_server_obeys_too() {
    use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
    for obeys in [true, false] {
        for streaming in [Streaming::Preferred, Streaming::Never] {
            let server = server(obeys).await;
            let schema = serde_json::json!({"openAPIV3Schema": {"type": "object"}});
            let version = serde_json::json!({"name": "v1", "served": true, "storage": true, "schema": schema});
            server
                .create(&serde_json::json!({
                    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                    "metadata": {"name": "things.example.com"},
                    "spec": {
                        "group": "example.com", "scope": "Namespaced", "versions": [version],
                        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
                    },
                }))
                .unwrap();
            let things =
                ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1", "Thing"), "things");
            let settings = ReflectorSettings { streaming, ..ReflectorSettings::default() };
            let shard = Shard::new(ShardKey::Uid, HashRanges::all());
            let things = Informer::<DynamicObject>::builder_for(client(&server), things);
            let things = things.shard(shard).reflector(settings).start();
            things.synced().await.unwrap();
            let expected = if obeys { ShardSupport::Honoured } else { ShardSupport::Ignored };
            assert_eq!(support(&things).await, expected);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_shard_without_ranges_holds_nothing() {
    let server = server(false).await;
    for nth in 0..10 {
        put(&server, "default", &format!("m{nth}"), "1");
    }
    let shard = Shard::new(ShardKey::Uid, HashRanges::NONE);
    let maps = Informer::<MetadataOnly>::builder_for(client(&server), ConfigMap::resource());
    let maps = maps.shard(shard).start();
    maps.synced().await.unwrap();
    assert_eq!(support(&maps).await, ShardSupport::Ignored);
    assert!(maps.lister().is_empty());
}

/// A source that has never heard of shards.
struct Unsharded(kube_informer::client::ApiListWatch);

impl ListWatch for Unsharded {
    async fn list(&self, mut query: ListQuery) -> Result<Body, ServerError> {
        query.shard = None;
        self.0.list(query).await
    }

    async fn watch(&self, mut query: WatchQuery) -> Result<Body, ServerError> {
        query.shard = None;
        self.0.watch(query).await
    }
}

#[tokio::test(start_paused = true)]
async fn objects_of_custom_sources_are_filtered_as_well() {
    let server = server(true).await;
    for nth in 0..20 {
        put(&server, "default", &format!("m{nth}"), "1");
    }
    let mut held = 0;
    for shard in thirds(ShardKey::Uid) {
        let source = Unsharded(kube_informer::client::ApiListWatch::of::<ConfigMap>(client(&server)));
        let maps = Informer::<ConfigMap>::builder_from(source, ConfigMap::resource()).shard(shard.clone()).start();
        maps.synced().await.unwrap();
        assert_eq!(cached(&maps), truth(&server, &shard));
        held += maps.lister().len();
        assert_eq!(support(&maps).await, ShardSupport::Ignored);
    }
    assert_eq!(held, 20);
}

#[tokio::test(start_paused = true)]
async fn a_move_lists_only_what_enters() {
    for obeys in [true, false] {
        let server = server(obeys).await;
        for nth in 0..40 {
            put(&server, "default", &format!("m{nth}"), "1");
        }
        let quarters = HashRanges::parts(4);
        let shard = |ranges: &HashRanges| Shard::new(ShardKey::Uid, ranges.clone());
        let first = shard(&quarters[0].union(&quarters[1]));
        let second = shard(&quarters[1].union(&quarters[2]));
        let maps = Informer::<ConfigMap>::builder(client(&server)).shard(first.clone()).start();
        let recorder = EventRecorder::default();
        recorder.objects_may_return();
        maps.on_event(recorder.handler()).detach();
        maps.synced().await.unwrap();
        support(&maps).await;
        while recorder.objects().len() < maps.lister().len() {
            tokio::task::yield_now().await;
        }
        recorder.take();
        server.forget_requests();

        maps.set_shard(second.clone()).await.unwrap();
        assert_eq!(cached(&maps), truth(&server, &second));
        while recorder.objects() != truth(&server, &second) {
            tokio::task::yield_now().await;
        }
        let (left, entered) = (truth(&server, &shard(&quarters[0])), truth(&server, &shard(&quarters[2])));
        let lines = recorder.take();
        let of =
            |begin: &str, end: &str| lines.iter().filter(|line| line.starts_with(begin) && line.ends_with(end)).count();
        assert_eq!((of("- ", "Filtered"), of("+ ", "(Relist)")), (left.len(), entered.len()), "{lines:?}");
        assert_eq!(lines.len(), left.len() + entered.len(), "what stays is not reported: {lines:?}");

        while server.watches().is_empty() {
            tokio::task::yield_now().await;
        }
        let requests: Vec<_> = server.requests().into_iter().map(|request| request.query).collect();
        let [list, watch] = requests.as_slice() else { panic!("{requests:?}") };
        assert!(
            list.contains("%270x8000000000000000%27%2C+%270xc000000000000000%27%29") && !list.contains("watch=true")
        );
        assert!(watch.contains("watch=true") && !watch.contains("sendInitialEvents"), "{watch}");
        maps.shutdown().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_a_shard_ends_when_another_one_is_set_or_the_informer_stops() {
    let server = server(true).await;
    let shard = |part: usize| Shard::new(ShardKey::Uid, HashRanges::parts(4).swap_remove(part));
    let maps = Informer::<ConfigMap>::builder(client(&server)).shard(shard(0)).build();
    let (first, second) = (maps.set_shard(shard(1)), maps.set_shard(shard(2)));
    assert_eq!(first.await, Err(ShardError::Superseded));
    maps.start();
    assert_eq!(second.await, Ok(()));
    assert_eq!(maps.set_shard(shard(2)).await, Ok(()), "it is held already");
    let last = maps.set_shard(shard(3));
    maps.shutdown().await;
    assert_eq!(last.await, Err(ShardError::Stopped));
}

#[tokio::test(start_paused = true)]
async fn a_move_before_the_first_list_is_one_list_of_the_new_shard() {
    let server = server(true).await;
    for nth in 0..20 {
        put(&server, "default", &format!("m{nth}"), "1");
    }
    let [first, second, _] = thirds(ShardKey::Uid).try_into().unwrap();
    let maps = Informer::<ConfigMap>::builder(client(&server)).shard(first).start();
    maps.set_shard(second.clone()).await.unwrap();
    assert_eq!(cached(&maps), truth(&server, &second));
    let by_namespace = Shard::new(ShardKey::Namespace, HashRanges::all());
    maps.set_shard(by_namespace.clone()).await.unwrap();
    assert_eq!(cached(&maps), truth(&server, &by_namespace), "by another key the whole shard is listed");
}

mod moves {
    use super::*;
    use kube_embedded::faults::{Fault, Rule};
    use rand::{RngExt as _, SeedableRng as _};
    use rand_pcg::Pcg64Mcg;

    /// Any union of eighths.
    fn any_shard(rng: &mut Pcg64Mcg) -> Shard {
        let chosen: u8 = rng.random();
        let eighths = HashRanges::parts(8).into_iter().enumerate();
        let ranges =
            eighths.filter(|(at, _)| chosen >> at & 1 == 1).flat_map(|(_, eighth)| eighth.iter().collect::<Vec<_>>());
        Shard::new(ShardKey::Uid, ranges.collect::<HashRanges>())
    }

    fn write(server: &Server, rng: &mut Pcg64Mcg) {
        let (namespace, name) =
            (["default", "kube-system"][rng.random_range(0..2)], format!("m{}", rng.random_range(0..12)));
        let exists = server.objects("v1", "ConfigMap").unwrap().namespace(namespace).get(&name).is_ok();
        if exists && rng.random_range(0..3) == 0 {
            remove(server, namespace, &name);
        } else {
            put(server, namespace, &name, &rng.random_range(0..1_000).to_string());
        }
    }

    fn disturb(server: &Server, rng: &mut Pcg64Mcg) {
        match rng.random_range(0..5) {
            0 => server.cut(),
            1 => server.compact_now(),
            2 => drop(server.faults().inject(Rule::new(Fault::status(500)).times(rng.random_range(1..3)))),
            3 => drop(server.faults().inject(Rule::new(Fault::status(410)).once())),
            _ => drop(server.faults().inject(Rule::new(Fault::Disconnect).times(rng.random_range(1..3)))),
        }
    }

    async fn pause(rng: &mut Pcg64Mcg) {
        match rng.random_range(0..4) {
            0 => tokio::time::sleep(std::time::Duration::from_secs(rng.random_range(0..60))).await,
            _ => {
                for _ in 0..rng.random_range(0..30) {
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    async fn run(seed: u64) {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let server = server(rng.random()).await;
        let streaming = if rng.random() { Streaming::Preferred } else { Streaming::Never };
        let page_size = [None, Some(2)][rng.random_range(0..2)];
        let settings = ReflectorSettings { streaming, page_size, ..ReflectorSettings::default() };
        for _ in 0..rng.random_range(0..30) {
            write(&server, &mut rng);
        }
        let maps = Informer::<ConfigMap>::builder(client(&server)).seed(seed).reflector(settings);
        let maps = match rng.random_range(0..3) {
            0 => maps.namespaces(["default", "kube-system"]),
            _ => maps,
        };
        let mut shard = any_shard(&mut rng);
        // Whether the informer has noticed the last move.
        let mut is_settled = true;
        let maps = maps.shard(shard.clone()).start();
        let recorder = EventRecorder::default();
        recorder.objects_may_return();
        maps.on_event(recorder.handler()).detach();
        for _ in 0..rng.random_range(5..40) {
            match rng.random_range(0..8) {
                0 => {
                    shard = any_shard(&mut rng);
                    drop(maps.set_shard(shard.clone()));
                    is_settled = false;
                }
                1 => {
                    let next = any_shard(&mut rng);
                    let entering = next.ranges.difference(&shard.ranges);
                    shard = next;
                    maps.set_shard(shard.clone()).await.unwrap();
                    let entered = truth(&server, &Shard::new(ShardKey::Uid, entering));
                    let held = cached(&maps);
                    let is_held = |(key, version)| held.get(key) == Some(version);
                    assert!(!is_settled || entered.iter().all(is_held), "{entered:?}, {held:?}");
                    is_settled = true;
                }
                2 => disturb(&server, &mut rng),
                3 => pause(&mut rng).await,
                _ => write(&server, &mut rng),
            }
        }
        server.faults().clear();
        let mut waits = 0;
        while recorder.objects() != truth(&server, &shard) || cached(&maps) != truth(&server, &shard) {
            waits += 1;
            assert!(waits < 10_000, "never: {:?} is not {:?}", recorder.objects(), truth(&server, &shard));
            tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        }
        maps.shutdown().await;
        assert_eq!(server.watches().len(), 0, "no connection is left");
    }

    #[test]
    fn whatever_moves_the_cache_and_every_handler_end_at_the_truth() {
        let seeds = match std::env::var("SHARD_MOVES") {
            Ok(count) => count.parse().unwrap(),
            Err(_) => 150,
        };
        for seed in 0..seeds {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
            let ran = std::panic::catch_unwind(|| runtime.block_on(run(seed)));
            if let Err(panic) = ran {
                eprintln!("seed {seed}");
                std::panic::resume_unwind(panic);
            }
        }
    }
}

#[test]
fn a_key_whose_new_object_belongs_to_another_shard_is_deleted() {
    on_each_runtime(async || {
        for obeys in [true, false] {
            let server = server(obeys).await;
            let halves = HashRanges::parts(2).into_iter().map(|half| Shard::new(ShardKey::Uid, half));
            let members: Vec<_> = halves
                .map(|half| (Informer::<ConfigMap>::builder(client(&server)).shard(half.clone()).start(), half))
                .collect();
            let mut last = Version::new("");
            for nth in 0..20 {
                if nth > 0 {
                    remove(&server, "default", "again");
                }
                last = put(&server, "default", "again", &nth.to_string());
            }
            for (maps, half) in &members {
                while cached(maps) != truth(&server, half) {
                    tokio::task::yield_now().await;
                }
            }
            let holders = members.iter().filter_map(|(maps, _)| maps.lister().get(&key("default", "again")));
            assert_eq!(holders.map(|map| map.version().clone()).collect::<Vec<_>>(), [last]);
        }
    });
}

/// The figures that were reported last.
#[derive(Clone, Default)]
struct LastFigures(Arc<Mutex<Figures>>);

impl Metrics for LastFigures {
    fn report(&self, _: &InformerName, figures: &Figures) {
        *self.0.lock().unwrap() = figures.clone();
    }

    fn handler_ended(&self, _: &InformerName, _: usize) {}

    fn ended(&self, _: &InformerName) {}
}

#[tokio::test(start_paused = true)]
async fn figures_say_what_an_ignored_selector_costs() {
    for obeys in [true, false] {
        let server = server(obeys).await;
        for nth in 0..30 {
            put(&server, "default", &format!("m{nth}"), "1");
        }
        let shard = thirds(ShardKey::Uid).remove(0);
        let figures = LastFigures::default();
        let maps =
            Informer::<ConfigMap>::builder(client(&server)).shard(shard.clone()).metrics(figures.clone()).start();
        maps.synced().await.unwrap();
        support(&maps).await;
        for nth in 0..30 {
            put(&server, "default", &format!("m{nth}"), "2");
        }
        tokio::time::sleep(std::time::Duration::from_secs(60)).await;
        let figures = figures.0.lock().unwrap().clone();
        let ours = truth(&server, &shard).len() as u64;
        assert_eq!((figures.reflector.listed, figures.reflector.changes), (ours, ours), "only what belongs is counted");
        let (outside, support) =
            if obeys { (0, ShardSupport::Honoured) } else { (2 * (30 - ours), ShardSupport::Ignored) };
        assert_eq!((figures.reflector.outside, figures.shard), (outside, Some(support)));
    }
}
