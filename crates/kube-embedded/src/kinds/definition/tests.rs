use serde_json::json;

use super::super::Registry;
use super::*;

fn crd() -> Value {
    json!({
        "metadata": {"name": "foos.ex.io"},
        "spec": {
            "group": "ex.io", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo", "shortNames": ["fo"]},
            "versions": [
                {"name": "v1", "served": true, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}},
                {"name": "v2", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}},
                 "subresources": {"status": {}}, "selectableFields": [{"jsonPath": ".spec.color"}]},
                {"name": "v3", "served": false, "storage": false, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ]
        }
    })
}

fn causes(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut crd = crd();
    change(&mut crd);
    let causes = Definition::parse(&crd).unwrap_err();
    causes.iter().map(|cause| format!("{} {}: {}", cause.reason, cause.field, cause.message)).collect()
}

#[test]
fn each_served_version_is_a_kind_and_all_share_one_storage() {
    let registry = Registry::new().with_crd(&crd()).unwrap();
    let (v1, v2) = (registry.find("ex.io", "v1", "foos").unwrap(), registry.find("ex.io", "v2", "foos").unwrap());
    assert!(registry.find("ex.io", "v3", "foos").is_none());
    assert_eq!(v1.storage, v2.storage);
    assert_eq!(registry.stored(&v1.storage).unwrap().version, "v2");
    assert_eq!((&*v1.list_kind, &*v1.singular, v1.api_version()), ("FooList", "foo", "ex.io/v1"));
    assert_eq!(v1.subresource(Part::Status), None);
    assert!(v2.subresource(Part::Status).is_some());
    assert_eq!(v1.behaviour.generation, Generation::Counted(Counts::ContentAndStatus));
    assert_eq!(v2.behaviour.generation, Generation::Counted(Counts::Content));
    assert_eq!(registry.by_kind("ex.io", "v2", "Foo").unwrap().plural, "foos");
    assert!(registry.without_crd("foos.ex.io").find("ex.io", "v1", "foos").is_none());
}

#[test]
fn a_custom_kind_selects_by_the_fields_its_version_names() {
    let registry = Registry::new().with_crd(&crd()).unwrap();
    let v2 = registry.find("ex.io", "v2", "foos").unwrap();
    let field = v2.selectable_field("spec.color").unwrap();
    assert_eq!(field.value(&json!({"spec": {"color": "red"}})), "red");
    let v1 = registry.find("ex.io", "v1", "foos").unwrap();
    assert_eq!(v1.selectable_field("spec.color").unwrap_err(), "field label not supported: spec.color");
}

#[test]
fn versions_that_a_webhook_converts_are_served() {
    let mut crd = crd();
    let webhook = json!({"clientConfig": {"url": "https://a/b"}, "conversionReviewVersions": ["v1"]});
    crd["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": webhook});
    let registry = Registry::new().with_crd(&crd).unwrap();
    for version in ["v1", "v2"] {
        assert_eq!(registry.find("ex.io", version, "foos").unwrap().conversion.as_deref(), Some(&webhook));
    }
}

#[test]
fn a_terminating_definition_serves_no_creates() {
    let mut crd = crd();
    crd["status"] = json!({"conditions": [{"type": "Terminating", "status": "True"}]});
    let kind = Registry::new().with_crd(&crd).unwrap().find("ex.io", "v1", "foos").unwrap();
    assert!(!kind.serves(Verb::Create) && !kind.serves(Verb::Patch) && kind.serves(Verb::Watch));
}

#[test]
fn names_that_do_not_fit_are_reported_in_the_servers_words() {
    assert_eq!(
        causes(|crd| crd["metadata"]["name"] = json!("bars.ex.io")),
        [r#"FieldValueInvalid metadata.name: Invalid value: "bars.ex.io": must be spec.names.plural+"."+spec.group"#]
    );
    let mut found = causes(|crd| crd["spec"] = json!({}));
    found.truncate(4);
    assert_eq!(
        found,
        [
            r#"FieldValueInvalid metadata.name: Invalid value: "foos.ex.io": must be spec.names.plural+"."+spec.group"#,
            "FieldValueRequired spec.group: Required value",
            "FieldValueRequired spec.scope: Required value",
            r#"FieldValueInvalid spec.versions: Invalid value: null: must have exactly one version marked as storage version"#
        ]
    );
    assert_eq!(
        causes(|crd| crd["spec"]["scope"] = json!("Universe")),
        [
            r#"FieldValueNotSupported spec.scope: Unsupported value: "Universe": supported values: "Cluster", "Namespaced""#
        ]
    );
    assert_eq!(
        causes(|crd| crd["spec"]["names"]["listKind"] = json!("Foo")),
        [r#"FieldValueInvalid spec.names.listKind: Invalid value: "Foo": kind and listKind may not be the same"#]
    );
    let found = causes(|crd| crd["spec"]["names"]["shortNames"] = json!(["F"]));
    assert!(
        found[0]
            .starts_with(r#"FieldValueInvalid spec.names.shortNames[0]: Invalid value: "F": a DNS-1035 label must"#)
    );
}

#[test]
fn a_version_needs_a_schema() {
    assert_eq!(
        causes(|crd| crd["spec"]["versions"][1]["schema"] = Value::Null),
        ["FieldValueRequired spec.versions[1].schema.openAPIV3Schema: Required value"]
    );
}

#[test]
fn the_ninth_selectable_field_is_too_many() {
    let fields: Vec<Value> = (0..9).map(|at| json!({"jsonPath": format!(".spec.f{at}")})).collect();
    let found = causes(|crd| {
        let mut version = crd["spec"]["versions"][1].take();
        version["selectableFields"] = json!(fields);
        crd["spec"]["versions"] = json!([version]);
    });
    assert_eq!(found, ["FieldValueTooMany spec.selectableFields: Too many: 9: must have at most 8 items"]);
}

#[test]
fn what_a_definition_leaves_out_is_filled_in() {
    let mut crd = crd();
    set_defaults(&mut crd);
    assert_eq!(crd["spec"]["names"]["singular"], "foo");
    assert_eq!(crd["spec"]["names"]["listKind"], "FooList");
    assert_eq!(crd["spec"]["conversion"], json!({"strategy": "None"}));
}

#[test]
fn nothing_that_is_no_definition_panics() {
    for value in
        [json!(null), json!([]), json!({"spec": 7}), json!({"spec": {"versions": {}, "names": []}}), json!("x")]
    {
        assert!(Definition::parse(&value).is_err());
        set_defaults(&mut value.clone());
    }
}
