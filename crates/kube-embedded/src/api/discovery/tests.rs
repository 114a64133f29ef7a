use serde_json::{Value, json};

use super::*;

/// Responses of a real server, without the kinds that are not served here: one per line, as path,
/// tab, document.
const RECORDED: &str = include_str!("recorded.txt");

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn every_document_is_the_one_a_real_server_answered() {
    let registry = Registry::new();
    for line in RECORDED.lines() {
        let (path, expected) = line.split_once('\t').unwrap();
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let document = match parts[..] {
            ["api", "aggregated"] => aggregated(&registry, Root::Api),
            ["apis", "aggregated"] => aggregated(&registry, Root::Apis),
            ["api"] => api_versions("127.0.0.1:6443"),
            ["apis"] => group_list(&registry),
            ["api", version] => resource_list(&registry, "", version).unwrap(),
            ["apis", name] => group(&registry, name).unwrap(),
            ["apis", name, version] => resource_list(&registry, name, version).unwrap(),
            _ => panic!("no document at {path}"),
        };
        assert_eq!(text(document), expected, "{path}");
    }
    assert_eq!(RECORDED.lines().count(), 46);
}

#[test]
fn groups_and_versions_that_are_not_served_have_no_document() {
    let registry = Registry::new();
    assert_eq!(group(&registry, ""), None);
    assert_eq!(group(&registry, "nope.io"), None);
    assert_eq!(resource_list(&registry, "apps", "v2"), None);
}

#[test]
fn custom_groups_come_last_and_by_name_with_the_best_version_first() {
    let crd = |plural: &str, group: &str, versions: &[&str]| {
        let versions: Vec<Value> = versions
            .iter()
            .enumerate()
            .map(|(at, name)| {
                json!({"name": name, "served": true, "storage": at == 0, "subresources": {"status": {}},
                       "schema": {"openAPIV3Schema": {"type": "object"}}})
            })
            .collect();
        json!({
            "metadata": {"name": format!("{plural}.{group}")},
            "spec": {"group": group, "scope": "Cluster", "versions": versions,
                     "names": {"plural": plural, "kind": "Foo", "shortNames": ["fo"], "categories": ["all"]}}
        })
    };
    let registry = Registry::new()
        .with_crd(&crd("foos", "z.io", &["v1alpha1", "v2beta1", "v1", "oddity"]))
        .and_then(|registry| registry.with_crd(&crd("bars", "a.io", &["v1"])))
        .unwrap();
    let listed: Value = serde_json::from_slice(&group_list(&registry)).unwrap();
    let groups: Vec<&str> = listed["groups"].as_array().unwrap().iter().map(|g| g["name"].as_str().unwrap()).collect();
    assert_eq!(groups[groups.len() - 3..], ["storagemigration.k8s.io", "a.io", "z.io"]);
    let expected = r#"{"kind":"APIGroup","apiVersion":"v1","name":"z.io","versions":[{"groupVersion":"z.io/v1","version":"v1"},{"groupVersion":"z.io/v2beta1","version":"v2beta1"},{"groupVersion":"z.io/v1alpha1","version":"v1alpha1"},{"groupVersion":"z.io/oddity","version":"oddity"}],"preferredVersion":{"groupVersion":"z.io/v1","version":"v1"}}"#;
    assert_eq!(text(group(&registry, "z.io").unwrap()), expected);
    let all = text(aggregated(&registry, Root::Apis));
    let expected = r#"{"metadata":{"name":"a.io"},"versions":[{"version":"v1","resources":[{"resource":"bars","responseKind":{"group":"a.io","version":"v1","kind":"Foo"},"scope":"Cluster","singularResource":"foo","verbs":["delete","deletecollection","get","list","patch","create","update","watch"],"shortNames":["fo"],"categories":["all"],"subresources":[{"subresource":"status","responseKind":{"group":"a.io","version":"v1","kind":"Foo"},"verbs":["get","patch","update"]}]}],"freshness":"Current"}]}"#;
    assert!(all.contains(expected), "{all}");
}
