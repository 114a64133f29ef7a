//! Validation of updates that is specific to single built-in kinds, with the real server's error
//! messages.

use serde_json::Value;

use super::metadata;
use crate::encoding::json;
use crate::http::status::Cause;
use crate::kinds::{Kind, Lifecycle};

/// The validation errors of an update of a built-in kind.
pub(crate) fn updated(kind: &Kind, new: &Value, old: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    match (&*kind.group, &*kind.kind) {
        ("", "Namespace") if kind.behaviour.lifecycle == Lifecycle::Namespace => phase(new, &mut causes),
        ("", "ConfigMap") => frozen(new, old, &["data", "binaryData"], &mut causes),
        ("", "Secret") => {
            if new["type"] != old["type"] {
                let shown = json::encode_sorted(&new["type"]);
                causes.push(Cause::invalid("type", String::from_utf8_lossy(&shown), "field is immutable"));
            }
            frozen(new, old, &["data"], &mut causes);
        }
        _ => {}
    }
    causes
}

/// A namespace is Terminating if and only if it is being deleted.
fn phase(namespace: &Value, causes: &mut Vec<Cause>) {
    let phase = namespace["status"]["phase"].as_str().unwrap_or_default();
    let why = match metadata::is_deleting(namespace) {
        false if phase != "Active" => "may only be 'Active' if `deletionTimestamp` is empty",
        true if phase != "Terminating" => "may only be 'Terminating' if `deletionTimestamp` is not empty",
        _ => return,
    };
    causes.push(Cause::invalid("status.Phase", format!("{phase:?}"), why));
}

/// An immutable config map or secret must keep its data and its `immutable` field.
fn frozen(new: &Value, old: &Value, parts: &[&str], causes: &mut Vec<Cause>) {
    const WHY: &str = "field is immutable when `immutable` is set";
    if old["immutable"] != true {
        return;
    }
    if new["immutable"] != true {
        causes.push(Cause::forbidden("immutable", WHY));
    }
    for part in parts {
        if new.get(part) != old.get(part) {
            causes.push(Cause::forbidden(part, WHY));
        }
    }
}
