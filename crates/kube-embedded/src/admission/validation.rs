//! Validation of object metadata, with the real server's error messages.

use serde_json::Value;

use super::metadata::{self, FOREGROUND, ORPHAN};
use super::rules::formats;
use crate::encoding::json;
use crate::http::status::Cause;
use crate::kinds::{Kind, NameRule, ResourceScope};
use crate::storage::selector::qualified_name_problems;

/// The validation errors in the metadata of a new object.
pub(crate) fn created(kind: &Kind, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (name, base) = (metadata::text(object, "name"), metadata::text(object, "generateName"));
    if !base.is_empty() {
        let problems = kind.behaviour.name_rule.prefix_problems(base).into_iter();
        causes.extend(problems.map(|why| Cause::invalid("metadata.generateName", quoted(base), why)));
    }
    if name.is_empty() {
        causes.push(Cause::required("metadata.name", "name or generateName is required"));
    } else {
        let problems = kind.behaviour.name_rule.problems(name).into_iter();
        causes.extend(problems.map(|why| Cause::invalid("metadata.name", quoted(name), why)));
    }
    if kind.scope == ResourceScope::Namespaced {
        let namespace = metadata::text(object, "namespace");
        let problems = NameRule::DnsLabel.problems(namespace).into_iter();
        causes.extend(problems.map(|why| Cause::invalid("metadata.namespace", quoted(namespace), why)));
    }
    if let Some(generation) = metadata::number(object, "generation").filter(|generation| *generation < 0) {
        causes.push(Cause::invalid("metadata.generation", generation, "must be greater than or equal to 0"));
    }
    common(kind, object, &mut causes);
    causes
}

/// The validation errors in the metadata of an update.
pub(crate) fn updated(kind: &Kind, object: &Value, old: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if metadata::is_deleting(old) {
        let before = metadata::finalizers(old);
        let mut new = metadata::finalizers(object);
        new.retain(|finalizer| !before.contains(finalizer));
        new.sort_unstable();
        new.dedup();
        if !new.is_empty() {
            let shown: Vec<String> = new.iter().map(|finalizer| quoted(finalizer)).collect();
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                shown.join(", ")
            );
            causes.push(Cause::forbidden("metadata.finalizers", why));
        }
    }
    for name in ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if metadata::part(object, name) != metadata::part(old, name) {
            let value = metadata::part(object, name).unwrap_or(&Value::Null);
            causes.push(Cause::invalid(&format!("metadata.{name}"), shown(value), "field is immutable"));
        }
    }
    common(kind, object, &mut causes);
    causes
}

fn common(kind: &Kind, object: &Value, causes: &mut Vec<Cause>) {
    formats::labels("metadata.labels", &object["metadata"]["labels"], causes);
    formats::annotations("metadata.annotations", &object["metadata"]["annotations"], causes);
    owners(object, causes);
    finalizers(kind, object, causes);
}

fn owners(object: &Value, causes: &mut Vec<Cause>) {
    let owners = metadata::list(object, "ownerReferences");
    let text = |owner: &Value, name: &str| owner[name].as_str().unwrap_or_default().to_owned();
    let mut controller: Option<String> = None;
    for (at, owner) in owners.iter().enumerate() {
        let field = format!("metadata.ownerReferences[{at}]");
        let api_version = text(owner, "apiVersion");
        for name in ["apiVersion", "kind", "name", "uid"] {
            if text(owner, name).is_empty() {
                causes.push(Cause::required(&format!("{field}.{name}"), "must not be empty"));
            }
        }
        if api_version.split('/').any(str::is_empty) && !api_version.is_empty() {
            let why = "must be <group>/<version> or <version>";
            causes.push(Cause::invalid(&format!("{field}.apiVersion"), quoted(&api_version), why));
        }
        if api_version == "v1" && text(owner, "kind") == "Event" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            causes.push(Cause::invalid(&field, shown_owner(owner), why));
        }
        if owner["controller"] == true {
            let this = format!("{}/{}", text(owner, "kind"), text(owner, "name"));
            if let Some(first) = &controller {
                let why = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                );
                let all: Vec<_> = owners.iter().map(shown_owner).collect();
                let all = format!("[{}]", all.join(","));
                causes.push(Cause::invalid("metadata.ownerReferences", all, why));
            }
            controller.get_or_insert(this);
        }
    }
}

fn finalizers(kind: &Kind, object: &Value, causes: &mut Vec<Cause>) {
    const FIELD: &str = "metadata.finalizers";
    let finalizers = metadata::finalizers(object);
    for finalizer in &finalizers {
        let problems = qualified_name_problems(finalizer).into_iter();
        causes.extend(problems.map(|why| Cause::invalid(FIELD, quoted(finalizer), why)));
    }
    if finalizers.contains(&ORPHAN) && finalizers.contains(&FOREGROUND) {
        let why = format!("finalizer {ORPHAN} and {FOREGROUND} cannot be both set");
        causes.push(Cause::invalid(FIELD, shown(&object["metadata"]["finalizers"]), why));
    }
    if kind.is_custom() {
        return;
    }
    for (at, finalizer) in finalizers.into_iter().enumerate() {
        if !finalizer.contains('/') && !matches!(finalizer, ORPHAN | FOREGROUND | "kubernetes") {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            causes.push(Cause::invalid(&format!("{FIELD}[{at}]"), quoted(finalizer), why));
        }
    }
}

/// An owner reference with its fields in the order of the Go struct.
fn shown_owner(owner: &Value) -> String {
    let fields = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let set = fields.iter().filter(|field| !owner[**field].is_null());
    let parts: Vec<_> = set.map(|field| format!("{}:{}", quoted(field), shown(&owner[*field]))).collect();
    format!("{{{}}}", parts.join(","))
}

fn quoted(text: &str) -> String {
    shown(&Value::from(text))
}

fn shown(value: &Value) -> String {
    String::from_utf8_lossy(&json::encode_sorted(value)).into_owned()
}
