use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::kinds::{Registry, Schema};

fn pod() -> &'static Struct {
    match Registry::new().find("", "v1", "pods").unwrap().schema {
        Schema::Typed(of) => of,
        Schema::Custom => unreachable!(),
    }
}

fn merged(mut object: Value, patch: Value) -> Value {
    merge(&mut object, patch, pod()).unwrap();
    object
}

fn containers(names: &[&str]) -> Value {
    json!({"spec": {"containers": names.iter().map(|name| json!({"name": name, "image": "i"})).collect::<Vec<_>>()}})
}

#[test]
fn items_are_found_by_their_key() {
    let patch = json!({"spec": {"containers": [{"name": "b", "image": "new"}]}});
    let patched = merged(containers(&["a", "b"]), patch);
    assert_eq!(patched["spec"]["containers"], json!([{"name": "a", "image": "i"}, {"name": "b", "image": "new"}]));
}

#[test]
fn a_list_without_a_key_is_replaced() {
    let object = json!({"spec": {"tolerations": [{"key": "a"}, {"key": "b"}]}});
    let patched = merged(object, json!({"spec": {"tolerations": [{"key": "c"}]}}));
    assert_eq!(patched["spec"]["tolerations"], json!([{"key": "c"}]));
}

#[test]
fn an_item_without_its_key_cannot_be_merged() {
    let mut object = containers(&["a"]);
    let patch = json!({"spec": {"containers": [{"image": "x"}]}});
    let why = "map: map[image:x] does not contain declared merge key: name".to_owned();
    assert_eq!(merge(&mut object, patch, pod()), Err(PatchError::Unmergeable(why)));
}

/// A pod with a few containers, labels and environment variables.
fn some_pod() -> impl Strategy<Value = Value> {
    let labels = btree_map("[a-c]", "[x-z]", 0..3);
    let env = btree_map("[A-C]", "[x-z]", 0..3);
    let container = ("[x-z]", env).prop_map(|(image, env)| {
        let env: Vec<Value> = env.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        json!({"image": image, "env": env})
    });
    let finalizers = proptest::sample::subsequence(vec!["f/a", "f/b", "f/c"], 0..=3);
    (labels, btree_map("[a-d]", container, 0..4), finalizers, vec("[a-c]", 0..3)).prop_map(
        |(labels, containers, finalizers, command)| {
            let containers: Vec<Value> = containers
                .into_iter()
                .map(|(name, mut container)| {
                    container["name"] = name.into();
                    container["command"] = json!(command);
                    container
                })
                .collect();
            json!({"metadata": {"labels": labels, "finalizers": finalizers}, "spec": {"containers": containers}})
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn a_patch_applied_twice_is_applied_once(object in some_pod(), patch in some_pod()) {
        let once = merged(object, patch.clone());
        prop_assert_eq!(merged(once.clone(), patch), once);
    }

    #[test]
    fn patches_of_different_items_may_come_in_any_order(object in some_pod(), one in "[x-z]", other in "[x-z]") {
        let image = |name: &str, image: &str| json!({
            "metadata": {"labels": {name: image}}, "spec": {"containers": [{"name": name, "image": image}]},
        });
        let (one, other) = (image("e", &one), image("f", &other));
        let forth = merged(merged(object.clone(), one.clone()), other.clone());
        let back = merged(merged(object, other), one);
        let named = |of: &Value| {
            let mut items = of["spec"]["containers"].as_array().unwrap().clone();
            items.sort_by_key(ToString::to_string);
            items
        };
        prop_assert_eq!(named(&forth), named(&back));
        prop_assert_eq!(&forth["metadata"], &back["metadata"]);
    }

    #[test]
    fn an_object_patched_with_itself_stays(object in some_pod()) {
        prop_assert_eq!(merged(object.clone(), object.clone()), object);
    }

    #[test]
    fn nothing_changes_nothing(object in some_pod()) {
        prop_assert_eq!(merged(object.clone(), json!({})), object);
    }

    #[test]
    fn everything_a_patch_says_is_there_and_no_other_item_is_lost(object in some_pod(), patch in some_pod()) {
        let patched = merged(object.clone(), patch.clone());
        let items = |of: &Value| of["spec"]["containers"].as_array().unwrap().clone();
        let named = |of: &Value, name: &Value| items(of).into_iter().find(|item| item["name"] == *name);
        for item in items(&patch) {
            let there = named(&patched, &item["name"]);
            prop_assert_eq!(there.as_ref().map(|there| &there["image"]), Some(&item["image"]));
        }
        for item in items(&object) {
            if named(&patch, &item["name"]).is_none() {
                prop_assert_eq!(named(&patched, &item["name"]), Some(item));
            }
        }
    }
}

/// Of the size of the largest request: each item of the patch is looked up in each list.
#[test]
fn long_lists_are_merged_without_searching_them_for_each_item() {
    let names = |range: std::ops::Range<u32>| range.map(|nth| format!("f/{nth}"));
    let items = |range| names(range).map(|name| json!({"name": name, "image": "i"})).collect::<Vec<_>>();
    let object = json!({"metadata": {"finalizers": names(0..40_000).collect::<Vec<_>>()}, "spec": {"containers": items(0..40_000)}});
    let patch = json!({
        "metadata": {"finalizers": names(20_000..60_000).collect::<Vec<_>>()},
        "spec": {"containers": items(20_000..60_000), "$setElementOrder/containers": items(0..60_000)},
    });
    let begun = std::time::Instant::now();
    let patched = merged(object, patch);
    println!("{:?}", begun.elapsed());
    let lengths = [&patched["metadata"]["finalizers"], &patched["spec"]["containers"]];
    assert_eq!(lengths.map(|list| list.as_array().unwrap().len()), [60_000; 2]);
    let deletions = json!({
        "metadata": {"$deleteFromPrimitiveList/finalizers": names(0..60_000).collect::<Vec<_>>()},
        "spec": {"containers": names(0..60_000).map(|name| json!({"name": name, "$patch": "delete"})).collect::<Vec<_>>()},
    });
    let emptied = merged(patched, deletions);
    assert_eq!((&emptied["metadata"]["finalizers"], &emptied["spec"]["containers"]), (&json!([]), &json!([])));
    println!("{:?}", begun.elapsed());
}
