//! The status of a `CustomResourceDefinition`, which the server maintains.

use serde_json::{Value, json};

use super::Registry;
use crate::kinds::status_condition;

/// States of a definition that are expressed as conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    /// The kind is about to be served.
    Installing,
    /// The kind is served.
    Established,
    /// The definition is being deleted; deletion of its custom resources has not started.
    DeletionPending,
    /// The custom resources are being deleted.
    DeletionInProgress,
    /// All custom resources are deleted.
    DeletionCompleted,
}

impl Condition {
    fn parts(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Condition::Installing => ("Established", "False", "Installing", "the initial names have been accepted"),
            Condition::Established => {
                ("Established", "True", "InitialNamesAccepted", "the initial names have been accepted")
            }
            Condition::DeletionPending => (
                "Terminating",
                "True",
                "InstanceDeletionPending",
                "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
            ),
            Condition::DeletionInProgress => {
                ("Terminating", "True", "InstanceDeletionInProgress", "CustomResource deletion is in progress")
            }
            Condition::DeletionCompleted => {
                ("Terminating", "False", "InstanceDeletionCompleted", "removed all instances")
            }
        }
    }
}

/// Sets a condition. `now` is in RFC 3339 with whole seconds. `lastTransitionTime` changes only
/// with the status.
pub(crate) fn set_condition(crd: &mut Value, condition: Condition, now: &str) {
    let (kind, status, reason, message) = condition.parts();
    put_condition(crd, kind, status, reason, message, now);
}

/// Sets the status of a new definition: no names accepted yet.
pub(crate) fn initial_status(crd: &mut Value) {
    let Some(crd) = crd.as_object_mut() else { return };
    let versions = crd.get("spec").map_or(&Value::Null, |spec| &spec["versions"]);
    let stored: Vec<&Value> = stored_version(versions).into_iter().collect();
    let status = json!({"conditions": null, "acceptedNames": {"plural": "", "kind": ""}, "storedVersions": stored});
    crd.insert("status".to_owned(), status);
}

/// Adds the storage version to `status.storedVersions`. Versions are never removed.
pub(crate) fn stored_versions(crd: &mut Value) {
    let Some(version) = stored_version(&crd["spec"]["versions"]).cloned() else { return };
    let Some(status) = crd.get_mut("status").filter(|status| status.is_object()) else { return };
    match &mut status["storedVersions"] {
        Value::Array(stored) if stored.contains(&version) => {}
        Value::Array(stored) => stored.push(version),
        other => *other = json!([version]),
    }
}

/// Accepts the names of a definition unless another definition of the group uses them, and sets the
/// `NamesAccepted` condition. Returns whether the kind can be served.
pub(crate) fn accept_names(crd: &mut Value, registry: &Registry, now: &str) -> bool {
    if !crd["status"].is_object() {
        initial_status(crd);
    }
    let (group, name) = (crd["spec"]["group"].clone(), crd["metadata"]["name"].clone());
    let requested = crd["spec"]["names"].clone();
    let (mut resources, mut kinds): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for definition in registry.definitions().filter(|each| *each.name != name && *each.stored.group == group) {
        let kind = &definition.stored;
        resources.extend([&kind.plural, &kind.singular].into_iter().chain(&kind.short_names).map(ToString::to_string));
        kinds.extend([&kind.kind, &kind.list_kind].map(ToString::to_string));
    }
    let mut accepted = crd["status"]["acceptedNames"].take();
    let mut conflict = None;
    for (key, used, reason) in [
        ("plural", &resources, "PluralConflict"),
        ("singular", &resources, "SingularConflict"),
        ("shortNames", &resources, "ShortNamesConflict"),
        ("kind", &kinds, "KindConflict"),
        ("listKind", &kinds, "ListKindConflict"),
    ] {
        let names: Vec<&str> = match &requested[key] {
            Value::String(name) => vec![name],
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            _ => continue,
        };
        let taken: Vec<&str> = names.into_iter().filter(|name| used.iter().any(|used| used == name)).collect();
        match taken.first() {
            Some(name) if accepted[key] != requested[key] => {
                conflict = Some((reason, format!("{name:?} is already in use")));
            }
            _ => accepted[key] = requested[key].clone(),
        }
    }
    match &requested["categories"] {
        Value::Null => {}
        categories => accepted["categories"] = categories.clone(),
    }
    crd["status"]["acceptedNames"] = accepted;
    match conflict {
        None => {
            put_condition(crd, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now);
            true
        }
        Some((reason, message)) => {
            put_condition(crd, "NamesAccepted", "False", reason, &message, now);
            put_condition(crd, "Established", "False", "NotAccepted", "not all names are accepted", now);
            false
        }
    }
}

fn stored_version(versions: &Value) -> Option<&Value> {
    versions.as_array()?.iter().find(|version| version["storage"] == true).map(|version| &version["name"])
}

fn put_condition(crd: &mut Value, kind: &str, status: &str, reason: &str, message: &str, now: &str) {
    if !crd["status"].is_object() {
        initial_status(crd);
    }
    let condition = json!({
        "type": kind, "status": status, "lastTransitionTime": now, "reason": reason, "message": message
    });
    status_condition::set(crd, condition, now);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crd() -> Value {
        json!({
            "metadata": {"name": "foos.ex.io"},
            "spec": {
                "group": "ex.io", "scope": "Namespaced",
                "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList", "shortNames": ["fo"]},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}]
            }
        })
    }

    #[test]
    fn a_new_definition_gets_its_names_accepted_and_is_established() {
        let mut crd = crd();
        initial_status(&mut crd);
        assert_eq!(crd["status"]["storedVersions"], json!(["v1"]));
        assert!(accept_names(&mut crd, &Registry::new(), "2026-01-01T00:00:00Z"));
        set_condition(&mut crd, Condition::Established, "2026-01-01T00:00:01Z");
        assert_eq!(crd["status"]["acceptedNames"], crd["spec"]["names"]);
        let expected = json!([
            {"type": "NamesAccepted", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "NoConflicts",
             "message": "no conflicts found"},
            {"type": "Established", "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z",
             "reason": "InitialNamesAccepted", "message": "the initial names have been accepted"}
        ]);
        assert_eq!(crd["status"]["conditions"], expected);
    }

    #[test]
    fn a_name_that_another_definition_of_the_group_has_is_not_accepted() {
        let registry = Registry::new().with_crd(&crd()).unwrap();
        let mut other = crd();
        other["metadata"]["name"] = json!("bars.ex.io");
        other["spec"]["names"] = json!({"plural": "bars", "singular": "bar", "kind": "Foo", "listKind": "BarList"});
        assert!(!accept_names(&mut other, &registry, "2026-01-01T00:00:00Z"));
        assert_eq!(other["status"]["conditions"][0]["reason"], "KindConflict");
        assert_eq!(other["status"]["conditions"][0]["message"], "\"Foo\" is already in use");
        assert_eq!(other["status"]["acceptedNames"]["plural"], "bars");
        assert_eq!(other["status"]["acceptedNames"]["kind"], "");
    }

    #[test]
    fn a_condition_keeps_its_time_until_its_status_changes() {
        let mut crd = crd();
        set_condition(&mut crd, Condition::DeletionPending, "2026-01-01T00:00:00Z");
        set_condition(&mut crd, Condition::DeletionInProgress, "2026-01-01T00:00:05Z");
        let condition = &crd["status"]["conditions"][0];
        assert_eq!(condition["reason"], "InstanceDeletionInProgress");
        assert_eq!(condition["lastTransitionTime"], "2026-01-01T00:00:00Z");
    }

    #[test]
    fn a_new_storage_version_is_added_to_the_stored_ones() {
        let mut crd = crd();
        initial_status(&mut crd);
        crd["spec"]["versions"][0]["name"] = json!("v2");
        stored_versions(&mut crd);
        stored_versions(&mut crd);
        assert_eq!(crd["status"]["storedVersions"], json!(["v1", "v2"]));
    }
}
