use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::kinds::{Registry, prune};

fn kind(group: &str, version: &str, plural: &str) -> std::sync::Arc<Kind> {
    Registry::new().find(group, version, plural).unwrap()
}

fn custom() -> std::sync::Arc<Kind> {
    let crd = json!({
        "metadata": {"name": "foos.ex.io"},
        "spec": {
            "group": "ex.io", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]
        }
    });
    Registry::new().with_crd(&crd).unwrap().find("ex.io", "v1", "foos").unwrap()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_built_in_object_is_written_in_the_order_of_its_struct() {
    let pod = json!({
        "status": {"podIP": "10.0.0.1", "phase": "Running"},
        "spec": {"nodeName": "n", "containers": [{"image": "i", "name": "c"}], "nodeSelector": {"b": "1", "a": "2"}},
        "metadata": {"managedFields": [], "labels": {"z": "", "a": ""}, "uid": "u", "name": "p", "namespace": "d"}
    });
    let encoded = encode(&kind("", "v1", "pods"), &pod);
    let expected = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","namespace":"d","uid":"u","resourceVersion":"7","labels":{"a":"","z":""},"managedFields":[]},"spec":{"containers":[{"name":"c","image":"i"}],"nodeSelector":{"a":"2","b":"1"},"nodeName":"n"},"status":{"phase":"Running","podIP":"10.0.0.1"}}"#;
    assert_eq!(text(encoded.at_version("7")), expected);
    assert_eq!(&encoded.head()[..encoded.type_prefix()], br#"{"kind":"Pod","apiVersion":"v1","#);
    let whole = [encoded.head(), encoded.tail()].concat();
    let metadata: Value = serde_json::from_slice(&whole[encoded.metadata()]).unwrap();
    assert_eq!(metadata["uid"], "u");
    assert_eq!(metadata["resourceVersion"], "");
}

#[test]
fn a_custom_object_is_written_with_all_keys_sorted() {
    let foo = json!({"spec": {"b": 1, "a": 2}, "alpha": 1, "metadata": {"uid": "u", "name": "x", "namespace": "n"}});
    let encoded = encode(&custom(), &foo);
    let expected = r#"{"alpha":1,"apiVersion":"ex.io/v1","kind":"Foo","metadata":{"name":"x","namespace":"n","resourceVersion":"7","uid":"u"},"spec":{"a":2,"b":1}}"#;
    assert_eq!(text(encoded.at_version("7")), expected);
    assert_eq!(encoded.type_prefix(), 0);
    let whole = [encoded.head(), encoded.tail()].concat();
    assert_eq!(&whole[encoded.metadata()], br#"{"name":"x","namespace":"n","resourceVersion":"","uid":"u"}"#);
}

#[test]
fn an_object_as_it_is_has_its_own_version_or_none() {
    let kind = kind("", "v1", "configmaps");
    let map = json!({"metadata": {"name": "x"}, "data": {"k": "v"}});
    let expected = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x"},"data":{"k":"v"}}"#;
    assert_eq!(text(encode_as_is(&kind, &map)), expected);
    let map = json!({"metadata": {"resourceVersion": "3", "name": "x"}});
    let expected = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"x","resourceVersion":"3"}}"#;
    assert_eq!(text(encode_as_is(&kind, &map)), expected);
}

#[test]
fn numbers_are_written_as_go_writes_them() {
    for (value, expected) in [
        (json!(1.0), "1"),
        (json!(1.5), "1.5"),
        (json!(1.5e30), "1.5e+30"),
        (json!(1e21), "1e+21"),
        (json!(1e20), "100000000000000000000"),
        (json!(1e-6), "0.000001"),
        (json!(1.5e-7), "1.5e-7"),
        (json!(-0.0), "-0"),
        (json!(u64::MAX), "18446744073709551615"),
        (json!(i64::MIN), "-9223372036854775808"),
    ] {
        assert_eq!(text(encode_sorted(&value)), expected);
    }
}

#[test]
fn partial_metadata_of_any_kind_is_written_in_the_order_of_the_struct() {
    let metadata = json!({"annotations": {"b": "1", "a": "2"}, "uid": "u", "name": "x", "resourceVersion": "3"});
    let expected = r#"{"name":"x","uid":"u","resourceVersion":"3","annotations":{"a":"2","b":"1"}}"#;
    assert_eq!(text(encode_metadata(&metadata)), expected);
}

/// One object per kind as recorded from kube-apiserver, one per line.
const RECORDED: &str = include_str!("recorded-objects.jsonl");

#[test]
fn the_objects_of_every_kind_come_out_as_the_server_sent_them() {
    let mut seen = 0;
    for line in RECORDED.lines() {
        let mut object: Value = serde_json::from_str(line).unwrap();
        let api_version = object["apiVersion"].as_str().unwrap().to_owned();
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let kind = Registry::new().by_kind(group, version, object["kind"].as_str().unwrap()).unwrap();
        assert_eq!(text(encode_as_is(&kind, &object)), line);
        let unknown = prune(&kind, &mut object).unwrap();
        assert_eq!(unknown, []);
        assert_eq!(text(encode_as_is(&kind, &object)), line, "pruning must change nothing that the server sent");
        seen += 1;
    }
    assert_eq!(seen, 63);
}

/// The bookmark of every kind as recorded from kube-apiserver, one per line.
const BOOKMARKS: &str = include_str!("recorded-bookmarks.jsonl");

#[test]
fn the_bookmark_of_every_kind_is_the_one_the_server_sent() {
    for line in BOOKMARKS.lines() {
        let object: Value = serde_json::from_str(line).unwrap();
        let api_version = object["apiVersion"].as_str().unwrap();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = Registry::new().by_kind(group, version, object["kind"].as_str().unwrap()).unwrap();
        assert_eq!(text(kind.bookmark().initial_events_end.at_version("RV")), line);
        let plain = line.replace(r#","annotations":{"k8s.io/initial-events-end":"true"}"#, "");
        let plain = plain.replace(r#","k8s.io/initial-events-end":"true""#, "");
        assert_eq!(text(kind.bookmark().plain.at_version("RV")), plain);
    }
    assert_eq!(BOOKMARKS.lines().count(), 64);
}

#[test]
fn the_bookmark_of_a_custom_kind_has_its_keys_sorted() {
    let kind = custom();
    let expected = r#"{"apiVersion":"ex.io/v1","kind":"Foo","metadata":{"resourceVersion":"5"}}"#;
    assert_eq!(text(kind.bookmark().plain.at_version("5")), expected);
    let expected = r#"{"apiVersion":"ex.io/v1","kind":"Foo","metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"resourceVersion":"5"}}"#;
    assert_eq!(text(kind.bookmark().initial_events_end.at_version("5")), expected);
}

/// Arbitrary JSON. Names of real fields are among its keys, so that typed structs are reached.
/// Floats are halves, which every parser reads exactly; integral floats are excluded, because they
/// correctly decode as integers.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|whole| Value::from(f64::from(whole) + 0.5)),
        any::<String>().prop_map(Value::from),
    ];
    let key = prop_oneof![
        proptest::sample::select(vec![
            "metadata",
            "spec",
            "status",
            "name",
            "labels",
            "containers",
            "template",
            "resources",
            "limits",
            "kind",
            "ports",
            "creationTimestamp",
            "resourceVersion",
            "managedFields",
            "ownerReferences",
            "data",
            "conditions",
            "volumes",
        ])
        .prop_map(str::to_owned),
        any::<String>(),
    ];
    leaf.prop_recursive(6, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_is_encoded_parses_back_equal(value in any_value(), at in 0_usize..64) {
        prop_assert_eq!(&serde_json::from_slice::<Value>(&encode_sorted(&value)).unwrap(), &value);
        let registry = Registry::new();
        let kinds = [registry.kinds().nth(at).unwrap().clone(), custom()];
        for kind in &kinds {
            let mut expected = match &value {
                Value::Object(_) => value.clone(),
                _ => json!({}),
            };
            expected["kind"] = Value::from(&*kind.kind);
            expected["apiVersion"] = Value::from(kind.api_version());
            if !expected["metadata"].is_object() {
                expected["metadata"] = json!({});
            }
            prop_assert_eq!(&serde_json::from_slice::<Value>(&encode_as_is(kind, &expected)).unwrap(), &expected);
            expected["metadata"]["resourceVersion"] = json!("9");
            let encoded = encode(kind, &value);
            prop_assert_eq!(&serde_json::from_slice::<Value>(&encoded.at_version("9")).unwrap(), &expected);
        }
    }

    #[test]
    fn pruning_never_panics_and_pruning_twice_changes_nothing(value in any_value(), at in 0_usize..64) {
        let registry = Registry::new();
        let kinds = [registry.kinds().nth(at).unwrap().clone(), custom()];
        for kind in &kinds {
            let mut once = value.clone();
            if prune(kind, &mut once).is_ok() {
                let mut twice = once.clone();
                prop_assert_eq!(prune(kind, &mut twice), Ok(Vec::new()));
                prop_assert_eq!(twice, once);
            }
        }
    }
}
