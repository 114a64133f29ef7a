//! The store: the events that deltas produce, and what readers see meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::logs::Logs;
use crate::objects::{
    begun, changed, deleted, described, ended, labelled, list, listed, namespace, object, object_of, store_of,
    went_back,
};
use kube_informer::body::{BodyEncoder, BodyEncoderSettings};
use kube_informer::pipeline::{DeltaFifo, DeltaFifoBounds, Discipline};
use kube_informer::store::{Delta, History, Ingest, Relist, Store, Verdict};
use kube_informer::{ObjectKey, Version};
use serde_json::json;
use tracing::Level;

fn versions(store: &Store) -> Vec<String> {
    let lister = kube_informer::Lister::<kube_informer::Untyped>::new(store.reader());
    lister.sorted().iter().map(|object| format!("{} v{}", object.key(), object.version())).collect()
}

#[test]
fn added_or_updated_is_decided_by_the_store() {
    let mut store = Store::default();
    assert_eq!(described(store.apply([changed("a", 1)])), ["+ a v1 Live"]);
    assert_eq!(described(store.apply([changed("a", 2)])), ["~ a v1 v2 Live"]);
    assert_eq!(described(store.apply([deleted("a", 3)])), ["- a v3 Known Live"]);
    assert_eq!(described(store.apply([Delta::Changed(object_of("a", "new", 4))])), ["+ a v4 Live"]);
}

#[test]
fn a_first_list_is_delivered_when_it_is_complete_and_in_its_order() {
    let mut store = Store::default();
    let reader = store.reader();
    assert!(described(store.apply([begun(), listed("b", 1), listed("a", 2)])).is_empty());
    assert!(reader.get(&ObjectKey::cluster("a")).is_some(), "readers need not wait");
    assert_eq!(reader.version(), None);
    assert_eq!(described(store.apply([ended(7)])), ["+ b v1 Initial", "+ a v2 Initial"]);
    assert_eq!(reader.version(), Some(Version::from(7)));
}

#[test]
fn an_empty_first_list_completes_the_store() {
    let mut store = Store::default();
    let everything = kube_informer::store::WatchScope::Everything;
    drop(store.apply([begun()]));
    assert!(!store.is_complete(&everything));
    assert!(described(store.apply([ended(1)])).is_empty());
    assert!(store.is_complete(&everything));
}

#[test]
fn a_relist_delivers_changes_at_once_and_additions_after_the_missed_deletes() {
    let mut store = store_of(5, &[("a", 1), ("b", 2), ("c", 3)]);
    assert_eq!(described(store.apply([begun(), listed("d", 9), listed("a", 8)])), ["~ a v1 v8 Relist"]);
    assert!(described(store.apply([listed("b", 2)])).is_empty(), "unchanged");
    assert_eq!(described(store.apply([ended(9)])), ["- c v3 Missed Relist", "+ d v9 Relist"]);
    assert_eq!(versions(&store), ["a v8", "b v2", "d v9"]);
}

#[test]
fn the_version_moves_only_when_the_list_is_complete() {
    let mut store = store_of(5, &[("a", 1)]);
    drop(store.apply([begun(), listed("a", 8), listed("b", 9)]));
    assert_eq!(store.reader().version(), Some(Version::from(5)));
    drop(store.apply([ended(9)]));
    assert_eq!(store.reader().version(), Some(Version::from(9)));
}

#[test]
fn an_unchanged_object_makes_no_event() {
    let mut store = store_of(5, &[("a", 1)]);
    assert!(described(store.apply(list(9, &[("a", 1)]))).is_empty());
    assert!(described(store.apply([changed("a", 1)])).is_empty());
}

#[test]
fn the_same_key_with_a_new_uid_is_another_object() {
    let mut store = store_of(5, &[("a", 1), ("b", 1)]);
    let reborn = Delta::Changed(object_of("a", "other", 6));
    assert_eq!(described(store.apply([reborn])), ["- a v1 Missed Live", "+ a v6 Live"]);
    let relisted = Delta::Listed(object_of("b", "other", 7));
    let events = described(store.apply([
        begun(),
        listed("c", 8),
        relisted,
        Delta::Listed(object_of("a", "other", 6)),
        ended(9),
    ]));
    assert_eq!(events, ["- b v1 Missed Relist", "+ c v8 Relist", "+ b v7 Relist"]);
}

#[test]
fn what_was_received_before_changes_nothing() {
    let mut store = store_of(5, &[("a", 5), ("b", 4)]);
    drop(store.apply([changed("a", 7), deleted("b", 8)]));
    // A watch resumed from version 5.
    assert!(described(store.apply([changed("a", 6), changed("a", 7), changed("b", 4), deleted("b", 8)])).is_empty());
    assert_eq!(described(store.apply([changed("a", 9)])), ["~ a v7 v9 Live"]);
    assert_eq!(store.reader().version(), Some(Version::from(9)));
}

#[test]
fn a_late_delete_does_not_touch_the_next_object_of_its_name() {
    let mut store = store_of(5, &[]);
    drop(store.apply([Delta::Changed(object_of("a", "second", 9))]));
    assert!(described(store.apply([Delta::Deleted(object_of("a", "first", 8))])).is_empty());
    let events = described(store.apply([Delta::Deleted(object_of("a", "third", 12))]));
    assert_eq!(events, ["- a v9 Missed Live"], "the end of the one that was held is not known");
}

#[test]
fn versions_that_cannot_be_ordered_are_taken_as_they_come() {
    let odd = |version: &str| {
        let json = format!(r#"{{"metadata":{{"name":"a","uid":"u","resourceVersion":"{version}"}}}}"#);
        Delta::Changed(kube_informer::Obj::from_json(json).unwrap())
    };
    let mut store = Store::default();
    assert_eq!(described(store.apply([odd("x"), odd("x"), odd("w")])), ["+ a vx Live", "~ a vx vw Live"]);
}

#[test]
fn only_a_server_that_went_back_brings_older_versions() {
    let mut store = store_of(9, &[("a", 8), ("b", 9)]);
    assert!(described(store.apply(list(5, &[("a", 4)]))).is_empty(), "a stale list");
    assert_eq!(store.reader().version(), Some(Version::from(9)));
    let events = described(store.apply([went_back(), listed("a", 4), ended(5)]));
    assert_eq!(events, ["~ a v8 v4 Relist", "- b v9 Missed Relist"]);
    assert_eq!(store.reader().version(), Some(Version::from(5)));
    assert_eq!(described(store.apply([changed("a", 6)])), ["~ a v4 v6 Live"]);
}

#[test]
fn a_complete_list_that_is_not_older_is_right_even_where_it_shows_older_objects() {
    // A backup of version 5 was restored, and the server reached version 20 before the reflector
    // noticed.
    let mut store = store_of(9, &[("a", 8), ("b", 3), ("c", 4)]);
    drop(store.apply([changed("b", 10), deleted("c", 11)]));
    assert!(
        described(store.apply([begun(), listed("a", 4), listed("b", 3), listed("c", 4)])).is_empty(),
        "decided at the end of the list"
    );
    assert_eq!(described(store.apply([ended(20)])), ["~ a v8 v4 Relist", "~ b v10 v3 Relist", "+ c v4 Relist"]);
    assert_eq!(versions(&store), ["a v4", "b v3", "c v4"]);
    assert!(described(store.apply(list(21, &[("a", 4), ("b", 3), ("c", 4)]))).is_empty());
}

#[test]
fn another_object_of_an_older_version_is_another_object_if_the_list_is_not_older() {
    let mut store = store_of(9, &[("a", 8)]);
    let listed = Delta::Listed(object_of("a", "restored", 4));
    assert_eq!(described(store.apply([begun(), listed, ended(20)])), ["- a v8 Missed Relist", "+ a v4 Relist"]);
    assert_eq!(versions(&store), ["a v4"]);
}

#[test]
fn a_streaming_list_that_repeats_itself_brings_nothing_back() {
    let mut store = store_of(9, &[("a", 8), ("b", 9), ("c", 7)]);
    drop(store.apply([begun(), listed("a", 8), listed("a", 12), listed("b", 9), deleted("b", 13)]));
    assert!(
        described(store.apply([listed("a", 8), listed("b", 9), listed("c", 5), listed("c", 7), ended(20)])).is_empty()
    );
    assert_eq!(versions(&store), ["a v12", "c v7"]);
}

#[test]
fn a_version_given_twice_by_a_server_that_went_back_is_not_unchanged() {
    let mut store = Store::default();
    drop(store.apply([Delta::Changed(labelled("a", "u", 5, r#"{"x":"1"}"#))]));
    let other = Delta::Listed(labelled("a", "u", 5, r#"{"x":"2"}"#));
    assert_eq!(described(store.apply([went_back(), other.clone()])), ["~ a v5 v5 Initial"]);
    assert!(described(store.apply([other])).is_empty());
}

#[test]
fn a_list_begun_again_forgets_nothing_and_deletes_nothing() {
    let mut store = store_of(5, &[("a", 1), ("b", 2)]);
    assert!(described(store.apply([begun(), listed("c", 6)])).is_empty());
    assert!(described(store.apply([begun(), listed("a", 1), listed("c", 6), listed("b", 2)])).is_empty());
    assert_eq!(described(store.apply([ended(7)])), ["+ c v6 Relist"]);
}

#[test]
fn what_only_a_broken_list_showed_goes_without_a_word() {
    let mut store = store_of(5, &[("a", 1)]);
    assert!(described(store.apply([begun(), listed("c", 6)])).is_empty());
    assert!(described(store.apply([begun(), listed("a", 1), ended(7)])).is_empty());
    assert_eq!(versions(&store), ["a v1"]);
}

#[test]
fn an_abandoned_list_delivers_its_objects_and_deletes_nothing() {
    let mut store = store_of(5, &[("a", 1)]);
    let everything = kube_informer::store::WatchScope::Everything;
    let events = described(store.apply([begun(), listed("c", 6), Delta::RelistAbandoned(everything)]));
    assert_eq!(events, ["+ c v6 Relist"]);
    assert_eq!(versions(&store), ["a v1", "c v6"]);
    assert_eq!(described(store.apply([changed("c", 7), ended(9)])), ["~ c v6 v7 Live"], "a stray end is nothing");
}

#[test]
fn a_dropped_list_takes_its_new_objects_back_and_deletes_nothing() {
    let mut store = store_of(5, &[("a", 1), ("b", 2)]);
    let everything = kube_informer::store::WatchScope::Everything;
    let dropped = Delta::RelistDropped(everything);
    let events = described(store.apply([begun(), listed("b", 3), listed("c", 6), changed("d", 7), dropped]));
    assert_eq!(events, ["~ b v2 v3 Relist", "+ d v7 Live"], "what was reported stays");
    assert_eq!(versions(&store), ["a v1", "b v3", "d v7"]);
    assert_eq!(described(store.apply([changed("c", 6)])), ["+ c v6 Live"]);
}

#[test]
fn a_watch_during_a_list_is_applied() {
    let mut store = store_of(5, &[("a", 1), ("b", 2)]);
    drop(store.apply([begun(), listed("a", 1), listed("c", 6)]));
    // `d` and `c` are newer than the list of version 7, and `b` was deleted before it; none is
    // delivered yet.
    let events = described(store.apply([changed("d", 8), deleted("b", 7), changed("c", 9)]));
    assert_eq!(events, ["+ d v8 Live", "- b v7 Known Live", "+ c v9 Live"]);
    assert!(described(store.apply([listed("b", 2), ended(7)])).is_empty());
    assert_eq!(versions(&store), ["a v1", "c v9", "d v8"]);
}

#[test]
fn a_list_of_one_namespace_sweeps_that_namespace_only() {
    let mut store = Store::default();
    let of = |name: &str| {
        let (begun, scope) = (Relist { scope: namespace(name), history: History::Continues }, namespace(name));
        (Delta::RelistBegun(begun), move |version: u64| Delta::RelistEnded {
            scope: scope.clone(),
            version: version.into(),
        })
    };
    let ((begin_a, end_a), (begin_b, end_b)) = (of("a"), of("b"));
    drop(store.apply([begin_a.clone(), begin_b.clone(), listed("a/x", 1), listed("b/x", 2), end_a(3)]));
    assert_eq!(described(store.apply([end_b(4)])), ["+ b/x v2 Initial"]);
    assert_eq!(store.reader().version(), Some(Version::from(3)), "the scope that is least known");
    assert_eq!(described(store.apply([begin_a, end_a(5)])), ["- a/x v1 Missed Relist"]);
    assert_eq!(versions(&store), ["b/x v2"]);
    assert_eq!(described(store.apply([Delta::ScopeLeft(namespace("b"))])), ["- b/x v2 Filtered Live"]);
    assert_eq!(described(store.apply([begin_b, listed("b/x", 2), end_b(6)])), ["+ b/x v2 Initial"]);
}

#[test]
fn a_resync_delivers_every_object_but_those_with_a_queued_delta() {
    let mut store = store_of(5, &[("a", 1), ("b", 2)]);
    let mut events = described(store.apply([Delta::Resync { except: Vec::new() }]));
    events.sort();
    assert_eq!(events, ["~ a v1 v1 Resync", "~ b v2 v2 Resync"]);
    let except = vec![ObjectKey::cluster("b")];
    assert_eq!(described(store.apply([Delta::Resync { except }])), ["~ a v1 v1 Resync"]);
}

#[test]
fn a_resync_does_not_deliver_undelivered_objects() {
    let mut store = store_of(5, &[]);
    assert!(described(store.apply([begun(), listed("a", 6), Delta::Resync { except: Vec::new() }])).is_empty());
}

#[test]
fn a_queued_update_wins_over_a_resync() {
    for discipline in [Discipline::Ordered, Discipline::Keyed] {
        let mut store = store_of(5, &[("a", 1)]);
        let mut queue = DeltaFifo::new(discipline, DeltaFifoBounds::default(), |_| true);
        queue.push(Delta::Resync { except: Vec::new() }).unwrap();
        queue.push(changed("a", 6)).unwrap();
        assert!(described(store.apply(queue.pop())).is_empty());
        assert_eq!(described(store.apply(queue.pop())), ["~ a v1 v6 Live"]);
    }
}

#[test]
fn an_object_that_was_only_queued_is_deleted_once_if_the_list_lacks_it() {
    let before: [Vec<Delta>; 6] = [
        vec![changed("a", 1)],
        vec![changed("a", 1), changed("a", 2)],
        vec![changed("a", 1), deleted("a", 2)],
        vec![changed("a", 1), deleted("a", 2), Delta::Changed(object_of("a", "again", 3))],
        vec![begun(), listed("a", 1), ended(1)],
        vec![begun(), listed("a", 1), ended(1), changed("a", 2), deleted("a", 3)],
    ];
    for discipline in [Discipline::Ordered, Discipline::Keyed] {
        for before in &before {
            let mut store = Store::default();
            let known = store.reader();
            let known = move |key: &ObjectKey| known.get(key).is_some();
            let mut queue = DeltaFifo::new(discipline, DeltaFifoBounds::default(), known);
            for delta in before.iter().cloned().chain(list(9, &[("b", 5)])) {
                queue.push(delta).unwrap();
            }
            let mut events = Vec::new();
            while !queue.is_empty() {
                events.extend(described(store.apply(queue.pop())));
            }
            let (added, deleted): (Vec<_>, Vec<_>) = events
                .iter()
                .filter(|line| !line.starts_with('~') && line.contains(" a "))
                .partition(|l| l.starts_with('+'));
            assert_eq!(added.len(), deleted.len(), "{discipline:?} {before:?}: {events:?}");
            assert!(events.last().is_some_and(|line| line.starts_with("+ b v5")), "{events:?}");
            assert_eq!(versions(&store), ["b v5"]);
        }
    }
}

#[test]
fn a_deletion_of_an_unknown_object_is_not_delivered() {
    let mut store = store_of(5, &[]);
    assert!(described(store.apply([deleted("a", 6)])).is_empty());
}

#[test]
fn an_object_that_ingest_leaves_out_is_never_added_and_one_that_was_there_is_deleted() {
    let ingest = Ingest::default().keep_if(|object| object.label("keep") != Some("no"));
    let mut store = Store::new(ingest);
    let at = |version, keep: &str| labelled("a", "u", version, &format!(r#"{{"keep":"{keep}"}}"#));
    assert!(described(store.apply([Delta::Changed(at(1, "no"))])).is_empty());
    assert_eq!(described(store.apply([Delta::Changed(at(2, "yes"))])), ["+ a v2 Live"]);
    assert_eq!(described(store.apply([Delta::Changed(at(3, "no"))])), ["- a v2 Filtered Live"]);
    assert_eq!(described(store.apply([Delta::Changed(at(4, "yes"))])), ["+ a v4 Live"]);
    assert_eq!(described(store.apply([begun(), Delta::Listed(at(5, "no")), ended(5)])), ["- a v4 Filtered Initial"]);
    assert!(described(store.apply([Delta::Deleted(at(6, "no"))])).is_empty());
}

#[test]
fn each_object_is_transformed_once_and_its_missed_end_not_at_all() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let encoder = BodyEncoder::new(BodyEncoderSettings::default());
    let ingest = Ingest::default().transform(encoder, move |value| {
        counted.fetch_add(1, Ordering::Relaxed);
        let count = value["metadata"]["labels"]["count"].as_str().map_or(0, |count| count.parse().unwrap());
        value["metadata"]["labels"]["count"] = json!((count + 1).to_string());
        if value["metadata"]["name"] == "drop" { Verdict::Drop } else { Verdict::Keep }
    });
    let mut store = Store::new(ingest);
    drop(store.apply(list(3, &[("a", 1), ("drop", 2), ("b", 3)])));
    assert_eq!(calls.load(Ordering::Relaxed), 3);
    assert_eq!(versions(&store), ["a v1", "b v3"]);
    let held = store.reader().get(&ObjectKey::cluster("a")).unwrap();
    assert_eq!(held.label("count"), Some("1"));
    drop(store.apply([begun(), listed("a", 1), ended(4)]));
    assert_eq!(calls.load(Ordering::Relaxed), 3, "unchanged objects and missed ends are not transformed again");
}

#[test]
fn an_ingest_function_that_panics_leaves_the_object_as_received() {
    let encoder = BodyEncoder::new(BodyEncoderSettings::default());
    let ingest = Ingest::default().keep_if(|_| panic!("keep_if")).transform(encoder, |_| panic!("transform"));
    let mut store = Store::new(ingest);
    assert_eq!(described(store.apply([changed("a", 1)])), ["+ a v1 Live"]);
    assert_eq!(described(store.apply([changed("a", 2)])), ["~ a v1 v2 Live"]);
}

#[test]
fn a_transform_that_returns_what_is_no_object_of_the_key_is_logged_but_not_each_time() {
    let logs = Logs::record();
    let encoder = BodyEncoder::new(BodyEncoderSettings::default());
    let ingest = Ingest::default().transform(encoder, |value| {
        match value["metadata"]["name"].as_str() {
            Some("a") => *value = json!("rubbish"),
            _ => value["metadata"]["name"] = json!("other"),
        }
        Verdict::Keep
    });
    let mut store = Store::new(ingest);
    assert_eq!(described(store.apply([changed("a", 1)])), ["+ a v1 Live"]);
    assert_eq!(described(store.apply([changed("b", 1)])), ["+ b v1 Live"]);
    let useless = "ERROR message=the result of the transform was rejected, and the object is stored as received:";
    assert_eq!(
        logs.take(Level::ERROR),
        [
            format!("{useless} its result: unexpected byte in JSON key=a times=1"),
            format!("{useless} it changed the key to other key=b times=2"),
        ]
    );
    (2..1002).for_each(|version| drop(store.apply([changed("a", version)])));
    assert_eq!(logs.take(Level::ERROR).len(), 8, "4, 8, ..., 512 times");
}

#[test]
fn events_are_delivered_in_the_order_of_their_deltas() {
    let mut store = store_of(1, &[("a", 1)]);
    let events = store.apply([changed("c", 2), changed("a", 3), deleted("c", 4), changed("b", 5)]);
    assert_eq!(events.len(), 4);
    assert_eq!(described(events), ["+ c v2 Live", "~ a v1 v3 Live", "- c v4 Known Live", "+ b v5 Live"]);
}

#[test]
fn readers_see_all_of_a_batch_before_any_of_it_is_delivered() {
    let mut store = store_of(1, &[("a", 1)]);
    let reader = store.reader();
    let mut events = store.apply([changed("a", 2), changed("b", 3)]);
    assert_eq!(events.next().map(|event| crate::objects::line(&event)).as_deref(), Some("~ a v1 v2 Live"));
    assert!(reader.get(&ObjectKey::cluster("b")).is_some());
}

#[test]
fn the_version_of_the_store_follows_its_deltas() {
    let mut store = store_of(5, &[("a", 1)]);
    let version = |store: &Store| store.reader().version().map(|version| version.to_string());
    drop(store.apply([changed("a", 6)]));
    assert_eq!(version(&store).as_deref(), Some("6"));
    drop(store.apply([deleted("a", 8)]));
    assert_eq!(version(&store).as_deref(), Some("8"), "the version of the deletion");
    drop(store.apply([changed("b", 9), changed("c", 10)]));
    assert_eq!(version(&store).as_deref(), Some("10"), "the last of a batch");
    let everything = kube_informer::store::WatchScope::Everything;
    drop(store.apply([Delta::Bookmark { scope: everything, version: Version::from(20) }]));
    assert_eq!(version(&store).as_deref(), Some("20"));
    drop(store.apply([changed("b", 9)]));
    assert_eq!(version(&store).as_deref(), Some("20"));
}

#[test]
fn a_snapshot_shows_its_moment_for_as_long_as_it_is_held() {
    let mut store = store_of(5, &[("a", 1), ("n/b", 2)]);
    let lister = kube_informer::Lister::<kube_informer::Untyped>::new(store.reader());
    let snapshot = lister.snapshot();
    drop(store.apply([changed("a", 6), deleted("n/b", 7), changed("c", 8)]));
    let mut shown: Vec<_> = snapshot.iter().map(|object| format!("{} v{}", object.key(), object.version())).collect();
    shown.sort();
    assert_eq!(shown, ["a v1", "n/b v2"]);
    assert_eq!(snapshot.version(), Some(&Version::from(5)));
    drop(snapshot);
    store.tidy();
    assert_eq!(versions(&store), ["a v6", "c v8"]);
}

#[test]
fn ten_thousand_objects_come_and_go() {
    let mut store = Store::default();
    let keys: Vec<String> = (0..10_000).map(|n| format!("ns-{}/name-{n}", n % 7)).collect();
    let all: Vec<_> = keys.iter().map(|key| (key.as_str(), 1)).collect();
    assert_eq!(store.apply(list(1, &all)).len(), 10_000);
    let (kept, gone): (Vec<_>, Vec<_>) = all.iter().copied().partition(|(key, _)| key.ends_with('3'));
    assert_eq!(store.apply(list(2, &kept)).len(), gone.len());
    for (key, _) in &gone {
        assert!(store.reader().get(&key.parse().unwrap()).is_none());
    }
    for (key, _) in &kept {
        assert!(store.reader().get(&key.parse().unwrap()).is_some());
    }
    assert_eq!(store.apply(list(3, &[])).len(), kept.len());
    assert!(versions(&store).is_empty());
    assert_eq!(described(store.apply([Delta::Changed(object("ns-0/name-0", 9))])).len(), 1);
}
