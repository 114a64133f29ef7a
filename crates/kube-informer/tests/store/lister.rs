//! Listers: get, list, select, sort and count, from one snapshot, without decoding.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::objects::{changed, labelled};
use kube_informer::store::Delta;
use kube_informer::store::Store;
use kube_informer::{Lister, Obj, ObjectKey, Selector, Untyped};

fn names(objects: &[Obj<Untyped>]) -> Vec<String> {
    objects.iter().map(|object| object.key().to_string()).collect()
}

fn fixed() -> Lister<Untyped> {
    Lister::fixed([
        labelled("b/x", "1", 1, r#"{"app":"web"}"#),
        labelled("a/y", "2", 2, r#"{"app":"db"}"#),
        labelled("a/x", "3", 3, r#"{"app":"web","tier":"front"}"#),
        labelled("z", "4", 4, "{}"),
    ])
}

#[test]
fn a_fixed_lister_has_what_it_was_given() {
    let lister = fixed();
    assert_eq!((lister.len(), lister.list().len(), lister.keys().len()), (4, 4, 4));
    assert_eq!(
        lister.get(&ObjectKey::namespaced("a", "x")).map(|object| object.version().to_string()).as_deref(),
        Some("3")
    );
    assert!(lister.get(&ObjectKey::cluster("x")).is_none());
    assert!(Lister::<Untyped>::fixed([]).list().is_empty());
}

#[test]
fn a_sorted_list_is_ordered_by_namespace_and_name() {
    assert_eq!(names(&fixed().sorted()), ["z", "a/x", "a/y", "b/x"]);
}

#[test]
fn a_namespace_lister_sees_its_namespace_only() {
    let lister = fixed();
    let a = lister.namespace("a");
    assert_eq!(names(&a.sorted()), ["a/x", "a/y"]);
    assert_eq!((a.len(), a.list().len(), a.keys().len()), (2, 2, 2));
    assert!(a.get("x").is_some() && a.get("z").is_none());
    assert_eq!(names(&a.select("app=web").unwrap()), ["a/x"]);
    assert_eq!(names(&lister.namespace("").list()), ["z"]);
    assert_eq!((lister.namespace("none").len(), lister.namespace("none").list().len()), (0, 0));
}

#[test]
fn selecting_gives_a_part_all_or_none() {
    let lister = fixed();
    let selected = |text: &str| {
        let mut names = names(&lister.select(text).unwrap());
        names.sort();
        names
    };
    assert_eq!(selected("app=web"), ["a/x", "b/x"]);
    assert_eq!(selected("app in (web,db),!tier"), ["a/y", "b/x"]);
    assert_eq!(selected("!app"), ["z"]);
    assert_eq!(selected("").len(), 4);
    assert!(selected("app=none").is_empty());
    assert_eq!(lister.snapshot().select("app=web").unwrap().count(), 2);
}

#[test]
fn selecting_from_a_hundred_thousand_objects_finds_all_of_them() {
    let mut store = Store::default();
    let batch = (0..100_000_u64).map(|n| {
        Delta::Changed(labelled(
            &format!("ns-{}/n{n}", n % 50),
            &n.to_string(),
            n + 1,
            &format!(r#"{{"app":"a{}"}}"#, n % 1000),
        ))
    });
    drop(store.apply(batch));
    let lister = Lister::<Untyped>::new(store.reader());
    let count = |text: &str| lister.select(&text.parse::<Selector>().unwrap()).len();
    assert_eq!(count("app=a7"), 100);
    assert_eq!(count("app"), 100_000);
    assert_eq!(count("app=none"), 0);
}

#[test]
fn a_snapshot_selects_by_the_labels_of_its_own_time() {
    let mut store = Store::default();
    let labels =
        |app: &str, version: u64| Delta::Changed(labelled("n/a", "1", version, &format!(r#"{{"app":"{app}"}}"#)));
    drop(store.apply([labels("old", 1)]));
    let lister = Lister::<Untyped>::new(store.reader());
    let snapshot = lister.snapshot();
    // The id of an unused label set is reused for the next new one.
    drop(store.apply([labels("new", 2)]));
    let selectors = ["app=old", "app=new"].map(|text| text.parse::<Selector>().unwrap());
    assert_eq!(selectors.each_ref().map(|selector| snapshot.select(selector).count()), [1, 0]);
    assert_eq!(selectors.each_ref().map(|selector| lister.select(selector).len()), [0, 1]);
    assert_eq!(selectors.each_ref().map(|selector| lister.namespace("n").select(selector).len()), [0, 1]);
}

#[test]
fn readers_never_see_half_of_a_batch() {
    let mut store = Store::default();
    let at = |version: u64| [changed("a", version), changed("n/b", version)];
    drop(store.apply(at(1)));
    let lister = Lister::<Untyped>::new(store.reader());
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let versions: Vec<_> = lister.list().iter().map(|object| object.version().clone()).collect();
                    assert_eq!(versions[0], versions[1]);
                }
            });
        }
        for version in 2..2_000 {
            drop(store.apply(at(version)));
        }
        stop.store(true, Ordering::Relaxed);
    });
}
