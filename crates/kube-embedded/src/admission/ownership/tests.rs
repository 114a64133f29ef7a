use std::sync::Arc;

use proptest::collection::btree_map;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::kinds::{Kind, Registry};

fn pods() -> Arc<Kind> {
    Registry::new().find("", "v1", "pods").unwrap()
}

fn by(manager: &str) -> Author<'_> {
    Author { manager, time: "2026-01-01T00:00:00Z", part: None }
}

fn applied(manager: &str, live: Option<&Value>, config: &Value, conflicts: Conflicts) -> Option<Value> {
    apply(&pods(), by(manager), live, config, conflicts).ok()
}

/// A configuration of a pod that sets a few labels and containers.
fn config() -> impl Strategy<Value = Value> {
    let labels = btree_map("[a-c]", "[x-z]", 0..3);
    // At least one: an empty list has no owner.
    let env = btree_map("[A-B]", "[x-z]", 1..3);
    let finalizers = proptest::sample::subsequence(vec!["f/a", "f/b", "f/c"], 0..=3);
    let containers = btree_map("[a-c]", ("[x-z]", env), 1..3);
    (labels, finalizers, containers, proptest::option::of("[x-z]")).prop_map(
        |(labels, finalizers, containers, node)| {
            let containers: Vec<Value> = containers
                .into_iter()
                .map(|(name, (image, env))| {
                    let env: Vec<Value> =
                        env.into_iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
                    json!({"name": name, "image": image, "env": env})
                })
                .collect();
            let mut pod = json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": containers},
            });
            if !labels.is_empty() {
                pod["metadata"]["labels"] = json!(labels);
            }
            if !finalizers.is_empty() {
                pod["metadata"]["finalizers"] = json!(finalizers);
            }
            if let Some(node) = node {
                pod["spec"]["nodeName"] = json!(node);
            }
            pod
        },
    )
}

/// A configuration that shares no field with the others.
fn unrelated() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "annotations": {"mine": "1"}},
        "spec": {"hostname": "h", "containers": [{"name": "z", "image": "mine"}]},
    })
}

/// Sorts all lists, to compare them independently of order.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(sorted).collect();
            items.sort_by_key(ToString::to_string);
            items.into()
        }
        Value::Object(map) => map.iter().map(|(name, value)| (name.clone(), sorted(value))).collect(),
        plain => plain.clone(),
    }
}

/// Whether an object contains everything that a configuration sets.
fn holds(live: &Value, config: &Value) -> bool {
    match (live, config) {
        (Value::Object(live), Value::Object(config)) => {
            config.iter().all(|(name, config)| live.get(name).is_some_and(|live| holds(live, config)))
        }
        (Value::Array(live), Value::Array(config)) => config.iter().all(|config| {
            let same =
                |live: &&Value| config.get("name").map_or(*live == config, |name| live.get("name") == Some(name));
            live.iter().find(same).is_some_and(|live| holds(live, config))
        }),
        (live, config) => live == config,
    }
}

fn container<'v>(pod: &'v Value, name: &str) -> Option<&'v Value> {
    pod["spec"]["containers"].as_array()?.iter().find(|container| container["name"] == name)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn applying_twice_is_applying_once(first in config(), second in config()) {
        let live = applied("m1", None, &first, Conflicts::Refused).unwrap();
        let once = applied("m1", Some(&live), &second, Conflicts::Refused).unwrap();
        let twice = applied("m1", Some(&once), &second, Conflicts::Refused).unwrap();
        prop_assert_eq!(&twice, &once);
        prop_assert!(differ_in_times_only(&once, &twice));
    }

    #[test]
    fn a_manager_alone_has_what_it_says_and_nothing_else(first in config(), second in config()) {
        let live = applied("m1", None, &first, Conflicts::Refused).unwrap();
        let changed = applied("m1", Some(&live), &second, Conflicts::Refused).unwrap();
        let anew = applied("m1", None, &second, Conflicts::Refused).unwrap();
        let parts = |pod: &Value| {
            let some = |value: &Value| if value.is_null() || *value == json!([]) { Value::Null } else { sorted(value) };
            (
                some(&pod["metadata"]["labels"]), some(&pod["metadata"]["finalizers"]),
                some(&pod["spec"]["containers"]), some(&pod["spec"]["nodeName"]),
            )
        };
        prop_assert_eq!(parts(&changed), parts(&anew));
    }

    #[test]
    fn unrelated_managers_may_come_in_any_order(config in config()) {
        let mine_first = applied("mine", None, &unrelated(), Conflicts::Refused).unwrap();
        let mine_first = applied("m1", Some(&mine_first), &config, Conflicts::Refused).unwrap();
        let mine_last = applied("m1", None, &config, Conflicts::Refused).unwrap();
        let mine_last = applied("mine", Some(&mine_last), &unrelated(), Conflicts::Refused).unwrap();
        prop_assert_eq!(sorted(&mine_first), sorted(&mine_last));
    }

    #[test]
    fn no_manager_loses_a_field_to_another(steps in proptest::collection::vec((0..3_usize, config()), 1..6)) {
        let mut live = applied("mine", None, &unrelated(), Conflicts::Refused).unwrap();
        for (who, config) in steps {
            let manager = ["m1", "m2", "m3"][who];
            // A conflict changes nothing.
            if let Some(next) = applied(manager, Some(&live), &config, Conflicts::Refused) {
                live = next;
            }
            prop_assert_eq!(&live["metadata"]["annotations"]["mine"], "1");
            prop_assert_eq!(&live["spec"]["hostname"], "h");
            prop_assert_eq!(container(&live, "z").map(|container| &container["image"]), Some(&json!("mine")));
        }
    }

    #[test]
    fn an_applied_field_stays_until_its_manager_or_force_changes_it(
        steps in proptest::collection::vec((0..3_usize, config()), 1..8),
    ) {
        let mut live: Option<Value> = None;
        let mut configs: [Option<Value>; 3] = [None, None, None];
        for (who, config) in steps {
            if let Some(next) = applied(["m1", "m2", "m3"][who], live.as_ref(), &config, Conflicts::Refused) {
                live = Some(next);
                configs[who] = Some(config);
            }
            let live = live.as_ref().unwrap();
            for config in configs.iter().flatten() {
                prop_assert!(holds(live, config), "{live}\nlost some of\n{config}");
            }
        }
    }

    #[test]
    fn another_manager_may_come_at_any_time(first in config(), second in config(), at in 0..3_usize) {
        // The same two steps, with an apply of unrelated fields before, between or after them.
        let mut live: Option<Value> = None;
        for step in 0..3 {
            if step == at {
                live = applied("mine", live.as_ref(), &unrelated(), Conflicts::Refused);
            }
            if let Some(config) = [&first, &second].get(step) {
                live = applied("m1", live.as_ref(), config, Conflicts::Refused);
            }
        }
        let alone = applied("m1", None, &first, Conflicts::Refused).unwrap();
        let alone = applied("m1", Some(&alone), &second, Conflicts::Refused).unwrap();
        let together = applied("mine", Some(&alone), &unrelated(), Conflicts::Refused).unwrap();
        prop_assert_eq!(sorted(&live.unwrap()), sorted(&together));
    }

    #[test]
    fn a_manager_that_applies_nothing_owns_nothing(config in config()) {
        let before = applied("mine", None, &unrelated(), Conflicts::Refused).unwrap();
        let during = applied("m1", Some(&before), &config, Conflicts::Refused).unwrap();
        let nothing = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}});
        let after = applied("m1", Some(&during), &nothing, Conflicts::Refused).unwrap();
        let some = |value: &Value| match value {
            Value::Object(map) if map.is_empty() => Value::Null,
            Value::Array(items) if items.is_empty() => Value::Null,
            other => other.clone(),
        };
        for part in ["labels", "annotations", "finalizers"] {
            prop_assert_eq!(some(&after["metadata"][part]), some(&before["metadata"][part]), "{}", part);
        }
        prop_assert_eq!(&after["spec"], &before["spec"]);
    }

    #[test]
    fn force_always_gets_what_it_says(first in config(), second in config()) {
        let live = applied("m1", None, &first, Conflicts::Refused).unwrap();
        let forced = applied("m2", Some(&live), &second, Conflicts::Forced).unwrap();
        for (label, value) in second["metadata"]["labels"].as_object().into_iter().flatten() {
            prop_assert_eq!(&forced["metadata"]["labels"][label], value);
        }
        for wanted in second["spec"]["containers"].as_array().into_iter().flatten() {
            let there = container(&forced, wanted["name"].as_str().unwrap()).unwrap();
            prop_assert_eq!(&there["image"], &wanted["image"]);
        }
        // Fields that the forced apply does not set stay.
        for (label, value) in first["metadata"]["labels"].as_object().into_iter().flatten() {
            if second["metadata"]["labels"].get(label).is_none() {
                prop_assert_eq!(&forced["metadata"]["labels"][label], value);
            }
        }
    }

    #[test]
    fn an_update_owns_what_it_changed(first in config(), second in config()) {
        let kind = pods();
        let mut old = first;
        create(&kind, by("maker"), &mut old);
        let mut new = second;
        update(&kind, by("changer"), &old, &mut new);
        let owners = |object: &Value| object["metadata"]["managedFields"].to_string();
        if old["spec"]["nodeName"] != new["spec"]["nodeName"] && !new["spec"]["nodeName"].is_null() {
            let entries = new["metadata"]["managedFields"].as_array().unwrap();
            let with: Vec<&Value> = entries
                .iter()
                .filter(|entry| entry["fieldsV1"]["f:spec"].get("f:nodeName").is_some())
                .map(|entry| &entry["manager"])
                .collect();
            prop_assert_eq!(with, vec!["changer"], "{}", owners(&new));
        }
        let mut again = new.clone();
        update(&kind, by("third"), &new, &mut again);
        prop_assert_eq!(owners(&again), owners(&new));
    }
}
