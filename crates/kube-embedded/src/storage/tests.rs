//! Tests of the storage against a model that keeps every state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use proptest::prelude::*;
use serde_json::json;
use tokio::time::Instant;

use super::latest::Gone;
use super::{ChangeKind, CursorError, Draft, Expect, Key, KeyRange, Outdated, Storage, TableId, Window};
use crate::kinds::{Kind, Registry};

fn pods() -> Arc<Kind> {
    Registry::new().find("", "v1", "pods").expect("pods are built in")
}

fn config_maps() -> Arc<Kind> {
    Registry::new().find("", "v1", "configmaps").expect("config maps are built in")
}

fn storage(changes: usize) -> Storage {
    Storage::new(Window { changes, age: Duration::from_secs(300) })
}

fn draft(kind: &Kind, key: &Key, content: u32) -> Draft {
    Draft::new(kind, key.clone(), &json!({"metadata": {"name": key.name(), "labels": {"c": content.to_string()}}}))
}

fn put(storage: &Storage, kind: &Kind, key: &Key, content: u32) -> u64 {
    let expect = storage.get(&kind.storage, key).map_or(Expect::Absent, |object| Expect::Revision(object.revision()));
    storage
        .put(&kind.storage, expect, draft(kind, key, content), Instant::now())
        .expect("there is no other writer")
        .revision()
}

fn content(object: &super::Object) -> u32 {
    object.labels().get("c").and_then(|text| text.parse().ok()).expect("every object has its content")
}

#[test]
fn equal_content_changes_nothing_and_makes_no_event() {
    let (storage, kind) = (storage(10), pods());
    let key = Key::new(Some("ns"), "a");
    let first = put(&storage, &kind, &key, 1);
    assert_eq!(put(&storage, &kind, &key, 1), first);
    assert_eq!(storage.revision(), first);
    assert_eq!(storage.changes(&kind.storage, 0, 10).unwrap().0.len(), 1);
}

#[test]
fn a_write_that_relies_on_the_past_is_refused() {
    let (storage, kind) = (storage(10), pods());
    let key = Key::new(Some("ns"), "a");
    let first = put(&storage, &kind, &key, 1);
    put(&storage, &kind, &key, 2);
    let now = Instant::now();
    let late = storage.put(&kind.storage, Expect::Revision(first), draft(&kind, &key, 3), now);
    assert_eq!(late.unwrap_err(), Outdated);
    let twice = storage.put(&kind.storage, Expect::Absent, draft(&kind, &key, 3), now);
    assert_eq!(twice.unwrap_err(), Outdated);
    assert_eq!(storage.delete(&kind.storage, &key, first, now).unwrap_err(), Outdated);
}

#[test]
fn keys_are_ordered_by_their_bytes() {
    let (storage, kind) = (storage(10), pods());
    for namespace in ["ord", "ord-x"] {
        put(&storage, &kind, &Key::new(Some(namespace), "a"), 1);
    }
    let all = storage.list(&kind.storage, &KeyRange::everything());
    let keys: Vec<_> = all.objects.iter().map(|object| object.key().as_str()).collect();
    assert_eq!(keys, ["ord-x/a", "ord/a"]);
    assert_eq!(storage.list(&kind.storage, &KeyRange::of(Some("ord"))).objects.len(), 1);
}

#[test]
fn a_deletion_has_the_last_state_and_its_own_revision() {
    let (storage, kind) = (storage(10), pods());
    let key = Key::new(Some("ns"), "a");
    let made = put(&storage, &kind, &key, 1);
    let last = storage.delete(&kind.storage, &key, made, Instant::now()).unwrap();
    assert_eq!((last.revision(), content(&last)), (made + 1, 1));
    assert!(storage.get(&kind.storage, &key).is_none());
    let (changes, _) = storage.changes(&kind.storage, made, 10).unwrap();
    assert_eq!(changes[0].kind, ChangeKind::Deleted);
}

#[test]
fn a_compaction_forgets_the_past_but_not_the_present() {
    let (storage, kind) = (storage(10), pods());
    let (a, b) = (Key::new(Some("ns"), "a"), Key::new(Some("ns"), "b"));
    put(&storage, &kind, &a, 1);
    let second = put(&storage, &kind, &b, 1);
    storage.delete(&kind.storage, &a, second - 1, Instant::now()).unwrap();
    storage.compact();
    assert!(storage.list_at(&kind.storage, &KeyRange::everything(), second, None).is_none());
    assert_eq!(storage.can_watch_from(&kind.storage, second), Err(CursorError::Compacted { oldest: second + 1 }));
    assert!(storage.can_watch_from(&kind.storage, second + 1).is_ok());
    let now = storage.list(&kind.storage, &KeyRange::everything());
    assert_eq!((now.objects.len(), now.revision), (1, second + 1));
}

#[test]
fn after_a_compaction_the_cache_of_a_quiet_kind_can_be_watched_on() {
    let (storage, quiet, other) = (storage(10), pods(), config_maps());
    put(&storage, &quiet, &Key::new(Some("ns"), "a"), 1);
    let last = put(&storage, &other, &Key::new(Some("ns"), "b"), 1);
    storage.compact();
    let cached = storage.list_cached(&quiet.storage, &KeyRange::everything());
    assert_eq!((cached.objects.len(), cached.revision), (1, last));
    assert!(storage.can_watch_from(&quiet.storage, cached.revision).is_ok());
    assert!(storage.changes(&quiet.storage, cached.revision, 10).is_ok());
}

#[test]
fn going_back_to_a_backup_takes_the_revision_back() {
    let (storage, kind) = (storage(10), pods());
    let key = Key::new(Some("ns"), "a");
    let made = put(&storage, &kind, &key, 1);
    let backup = storage.backup();
    let mut follower = storage.follow(&kind.storage);
    put(&storage, &kind, &key, 2);
    follower.mark_seen();
    storage.restore(&backup);
    assert_eq!(storage.revision(), made);
    assert_eq!(content(&storage.get(&kind.storage, &key).unwrap()), 1);
    assert_eq!(follower.changed().now_or_never(), Some(Err(Gone)), "who watched before is cut off");
    assert_eq!(put(&storage, &kind, &key, 3), made + 1, "revisions are given out again");
}

#[tokio::test(start_paused = true)]
async fn changes_older_than_the_window_are_forgotten() {
    let (storage, kind) = (storage(10), pods());
    let first = put(&storage, &kind, &Key::new(Some("ns"), "a"), 1);
    tokio::time::advance(Duration::from_secs(200)).await;
    let second = put(&storage, &kind, &Key::new(Some("ns"), "b"), 1);
    tokio::time::advance(Duration::from_secs(200)).await;
    storage.expire(Instant::now());
    assert!(storage.changes(&kind.storage, first - 1, 10).is_err());
    assert_eq!(storage.changes(&kind.storage, first, 10).unwrap().0[0].revision(), second);
}

#[derive(Debug, Clone)]
enum Step {
    Put { key: u8, content: u32 },
    Delete { key: u8 },
    Compact,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..6_u8, 0..4_u32).prop_map(|(key, content)| Step::Put { key, content }),
        3 => (0..6_u8).prop_map(|key| Step::Delete { key }),
        1 => Just(Step::Compact),
    ]
}

/// A complete state: content by key.
type State = BTreeMap<String, u32>;

fn read(storage: &Storage, table: &TableId, revision: u64, limit: usize) -> Option<State> {
    let mut found = State::new();
    let mut range = KeyRange::everything();
    loop {
        let page = storage.list_at(table, &range, revision, Some(limit))?;
        found.extend(page.objects.iter().map(|object| (object.key().to_string(), content(object))));
        let Some(last) = page.objects.last().filter(|_| page.remaining > 0) else { return Some(found) };
        range = KeyRange::everything().starting_at(&format!("{}\0", last.key()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_revision_still_known_reads_as_it_was(steps in prop::collection::vec(step(), 1..60), window in 1..40_usize) {
        let (storage, kind) = (storage(window), pods());
        let key = |key: u8| Key::new(Some(if key.is_multiple_of(2) { "even" } else { "odd" }), &format!("k{key}"));
        let mut states: Vec<(u64, State)> = vec![(0, State::new())];
        let mut known_from = 0;
        for step in steps {
            let mut state = states.last().expect("there is a first").1.clone();
            let before = storage.revision();
            match step {
                Step::Put { key: k, content } => {
                    put(&storage, &kind, &key(k), content);
                    state.insert(key(k).to_string(), content);
                }
                Step::Delete { key: k } => {
                    if let Some(object) = storage.get(&kind.storage, &key(k)) {
                        storage.delete(&kind.storage, &key(k), object.revision(), Instant::now()).expect("there is no other writer");
                        state.remove(key(k).as_str());
                    }
                }
                Step::Compact => {
                    storage.compact();
                    known_from = storage.revision();
                }
            }
            if storage.revision() > before {
                states.push((storage.revision(), state));
            }
        }
        // Of the changes, the last `window` are still available.
        let kept = states.len().saturating_sub(1 + window);
        let known_from = known_from.max(states[kept].0);
        for (at, (revision, state)) in states.iter().enumerate() {
            let exact = read(&storage, &kind.storage, *revision, 2);
            let changes = storage.changes(&kind.storage, *revision, 1000);
            if *revision >= known_from {
                prop_assert_eq!(exact.as_ref(), Some(state));
                let delivered: Vec<u64> = changes.expect("within the window").0.iter().map(|change| change.revision()).collect();
                let wanted: Vec<u64> = states[at + 1..].iter().map(|(revision, _)| *revision).collect();
                prop_assert_eq!(delivered, wanted);
            } else {
                prop_assert!(exact.is_none());
                prop_assert!(changes.is_err());
            }
        }
    }
}
