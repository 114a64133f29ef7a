//! Indexes: complete whenever they are created, and consistent with the objects.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::objects::{deleted, labelled};
use kube_informer::store::Delta;
use kube_informer::store::Store;
use kube_informer::{Index, Lister, Obj, ObjectKey, Untyped};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
struct Ips {
    ips: Vec<String>,
}

fn with_ips(key: &str, version: u64, ips: &[&str]) -> Delta {
    let json = format!(
        r#"{{"metadata":{{"name":"{key}","uid":"{key}","resourceVersion":"{version}"}},"ips":{}}}"#,
        serde_json::to_string(ips).expect("strings")
    );
    Delta::Changed(Obj::from_json(json).expect("well-formed"))
}

fn with_app(key: &str, version: u64, app: &str) -> Delta {
    Delta::Changed(labelled(key, key, version, &format!(r#"{{"app":"{app}"}}"#)))
}

fn ips(object: &Obj<Ips>) -> Vec<String> {
    object.get().map(|body| body.ips.clone()).unwrap_or_default()
}

fn sorted<T: ToString>(all: impl IntoIterator<Item = T>) -> Vec<String> {
    let mut all: Vec<_> = all.into_iter().map(|one| one.to_string()).collect();
    all.sort();
    all
}

#[test]
fn objects_with_several_values_are_found_by_each_of_them() {
    let mut store = Store::default();
    let by_ip: Index<Ips, String> = Index::new(&store.reader(), ips);
    drop(store.apply([with_ips("a", 1, &["1", "2"]), with_ips("b", 2, &["2", "3", "3"])]));
    assert_eq!(sorted(by_ip.keys("1")), ["a"]);
    assert_eq!(sorted(by_ip.keys("2")), ["a", "b"]);
    assert_eq!((by_ip.count("3"), by_ip.count("4")), (1, 0));
    assert_eq!(sorted(by_ip.values()), ["1", "2", "3"]);
    drop(store.apply([with_ips("a", 3, &["2", "4"])]));
    assert_eq!(sorted(by_ip.values()), ["2", "3", "4"], "a value that no object has is gone");
    drop(store.apply([with_ips("b", 4, &[])]));
    assert_eq!(sorted(by_ip.values()), ["2", "4"]);
}

#[test]
fn a_deleted_object_is_gone_from_every_index_and_its_neighbours_stay() {
    let mut store = Store::default();
    let by_app: Index<Untyped, String> = Index::by_label(&store.reader(), "app");
    let by_ip: Index<Ips, String> = Index::new(&store.reader(), ips);
    drop(store.apply([with_app("a", 1, "web"), with_app("b", 2, "web"), with_ips("c", 3, &["1"])]));
    drop(store.apply([deleted("a", 4), deleted("c", 5)]));
    assert_eq!(sorted(by_app.keys("web")), ["b"]);
    assert_eq!(by_ip.values(), Vec::<String>::new());
}

#[test]
fn an_index_is_complete_whenever_it_is_made() {
    let mut store = Store::default();
    let before: Index<Untyped, String> = Index::by_label(&store.reader(), "app");
    drop(store.apply([with_app("a", 1, "web"), with_app("b", 2, "db")]));
    let after: Index<Untyped, String> = Index::by_label(&store.reader(), "app");
    for index in [&before, &after] {
        assert_eq!(sorted(index.keys("web")), ["a"], "before the writer has built it");
        assert_eq!((index.count("web"), sorted(index.values())), (1, vec!["db".to_owned(), "web".to_owned()]));
    }
    drop(store.apply([with_app("c", 3, "web")]));
    for index in [&before, &after] {
        assert_eq!(sorted(index.keys("web")), ["a", "c"]);
    }
}

#[test]
fn a_late_index_is_built_a_little_at_a_time_and_is_complete_throughout() {
    let mut store = Store::default();
    let key = |n: u64| format!("o{n}");
    drop(store.apply((0..1_000).map(|n| with_ips(&key(n), n + 1, &["1", &n.to_string()]))));
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let late: Index<Ips, String> = Index::new(&store.reader(), move |object| {
        counted.fetch_add(1, Ordering::Relaxed);
        ips(object)
    });
    let (mut version, mut steps) = (1_000, 0);
    loop {
        let before = calls.load(Ordering::Relaxed);
        // Objects are added, changed and deleted meanwhile, whether or not the index has processed
        // them.
        version += 3;
        let (new, other, gone) = (key(version), key(version % 400), key(400 + version % 600));
        let lasting = with_ips(&new, version - 2, &["1"]);
        drop(store.apply([lasting, with_ips(&other, version - 1, &["2", "3"]), deleted(&gone, version)]));
        assert!(calls.load(Ordering::Relaxed) - before <= 64 + 2, "a batch waits for a few objects, not for all");
        let lister = Lister::<Ips>::new(store.reader());
        for ip in ["1", "2", "3", "500"] {
            let found = lister.list().into_iter().filter(|object| ips(object).iter().any(|one| one == ip));
            assert_eq!(sorted(late.keys(ip)), sorted(found.map(|object| object.key().clone())));
        }
        steps += 1;
        if !store.is_building() {
            break;
        }
    }
    assert!(steps > 10);
    let before = calls.load(Ordering::Relaxed);
    assert!(late.count("1") > 100 && late.count("3") > 1);
    assert_eq!(calls.load(Ordering::Relaxed), before, "it is built");
}

#[test]
fn an_index_by_path_decodes_nothing() {
    let mut store = Store::default();
    let by_node: Index<Untyped, String> = Index::by_path(&store.reader(), "spec.nodeName".parse().unwrap());
    let json = r#"{"metadata":{"name":"a","uid":"a","resourceVersion":"1"},"spec":{"nodeName":"n1"}}"#;
    drop(store.apply([Delta::Changed(Obj::from_json(json).unwrap())]));
    assert_eq!(sorted(by_node.get("n1").iter().map(Obj::key)), ["a"]);
}

#[test]
fn an_index_by_path_has_every_value_that_the_path_leads_to() {
    let pod = |version: u64, ips: &str, images: &str, ports: &str| {
        let json = format!(
            r#"{{"metadata":{{"name":"a","uid":"a","resourceVersion":"{version}"}},"ports":{ports},
                "spec":{{"containers":{images}}},"status":{{"podIPs":{ips}}}}}"#
        );
        Delta::Changed(Obj::from_json(json).unwrap())
    };
    let mut store = Store::default();
    let index = |path: &str| -> Index<Untyped, String> { Index::by_path(&store.reader(), path.parse().unwrap()) };
    let (by_ip, by_image) = (index("status.podIPs[*].ip"), index("spec.containers[*].image"));
    let (by_port, by_arg) = (index("ports[*]"), index("spec.containers[*].args[*]"));
    let ips = r#"[{"ip":"10.0.0.1"},{"ip":"fd00::1"},{"ip":null},{}]"#;
    let images = r#"[{"image":"web","args":["-v","-x"]},{"image":"db"},{"image":"web","args":["-v"]}]"#;
    drop(store.apply([pod(1, ips, images, r#"[80,"http",true,null,[1],{"n":2}]"#)]));
    assert_eq!(sorted(by_ip.values()), ["10.0.0.1", "fd00::1"]);
    assert_eq!(sorted(by_image.values()), ["db", "web"]);
    assert_eq!(sorted(by_arg.values()), ["-v", "-x"]);
    assert_eq!(sorted(by_port.values()), ["80", "http", "true"], "scalars only");
    assert_eq!((by_ip.count("fd00::1"), by_image.count("web")), (1, 1));
    drop(store.apply([pod(2, r#"[{"ip":"fd00::1"}]"#, "[]", "{}")]));
    assert_eq!(sorted(by_ip.values()), ["fd00::1"], "what it no longer has is gone");
    assert!(by_image.values().is_empty() && by_port.values().is_empty() && by_arg.values().is_empty());
}

#[test]
fn old_bodies_are_not_asked_again() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let mut store = Store::default();
    let index: Index<Ips, String> = Index::new(&store.reader(), move |object| {
        counted.fetch_add(1, Ordering::Relaxed);
        ips(object)
    });
    drop(store.apply([with_ips("a", 1, &["1"]), with_ips("a", 2, &["2"]), deleted("a", 3)]));
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    assert!(index.values().is_empty());
}

#[test]
fn a_function_that_panics_finds_nothing_and_harms_nothing() {
    let mut store = Store::default();
    let index: Index<Ips, String> = Index::new(&store.reader(), |object: &Obj<Ips>| {
        assert_ne!(object.name(), "bad", "as the test wants");
        ips(object)
    });
    drop(store.apply([with_ips("bad", 1, &["1"]), with_ips("good", 2, &["1"])]));
    assert_eq!(sorted(index.keys("1")), ["good"]);
    drop(store.apply([with_ips("bad", 3, &["1"]), deleted("bad", 4), with_ips("good", 5, &["2"])]));
    assert_eq!(sorted(index.values()), ["2"]);
    let late: Index<Ips, String> = Index::new(&store.reader(), |_: &Obj<Ips>| -> Vec<String> { panic!("always") });
    assert!(late.get("2").is_empty());
}

#[test]
fn a_value_whose_comparison_panics_takes_down_nothing_but_its_index() {
    #[derive(Clone, Debug)]
    struct Odd(String);
    impl PartialEq for Odd {
        fn eq(&self, other: &Self) -> bool {
            assert!(self.0 != "odd" || other.0 != "odd", "odd values cannot be compared");
            self.0 == other.0
        }
    }
    impl Eq for Odd {}
    impl std::hash::Hash for Odd {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            self.0.hash(state);
        }
    }
    let mut store = Store::default();
    let index: Index<Ips, Odd> =
        Index::new(&store.reader(), |object: &Obj<Ips>| ips(object).into_iter().map(Odd).collect::<Vec<_>>());
    drop(store.apply([with_ips("a", 1, &["odd"]), with_ips("b", 2, &["odd"]), with_ips("c", 3, &["even"])]));
    assert_eq!(sorted(index.keys(&Odd("even".to_owned()))), ["c"]);
    assert_eq!(Lister::<Untyped>::new(store.reader()).len(), 3);
}

#[test]
fn a_snapshot_has_objects_and_indexes_of_one_moment() {
    let mut store = Store::default();
    let index: Index<Untyped, String> = Index::by_label(&store.reader(), "app");
    let lister = Lister::<Untyped>::new(store.reader());
    drop(store.apply([with_app("a", 1, "web"), with_app("b", 2, "web")]));
    let snapshot = lister.snapshot();
    drop(store.apply([with_app("a", 3, "db"), deleted("b", 4)]));
    let shown = snapshot.indexed(&index, "web");
    assert_eq!(sorted(shown.iter().map(|object| format!("{} v{}", object.key(), object.version()))), ["a v1", "b v2"]);
    assert!(index.get("web").is_empty());
    assert_eq!(snapshot.get(&ObjectKey::cluster("a")).and_then(|object| object.label("app")), Some("web"));
}

#[test]
fn an_index_without_handles_is_removed() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&calls);
    let mut store = Store::default();
    let index: Index<Ips, String> = Index::new(&store.reader(), move |object| {
        counted.fetch_add(1, Ordering::Relaxed);
        ips(object)
    });
    drop(store.apply([with_ips("a", 1, &["1"])]));
    drop(index.clone());
    drop(store.apply([with_ips("a", 2, &["1"])]));
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    drop(index);
    drop(store.apply([with_ips("a", 3, &["1"])]));
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}
