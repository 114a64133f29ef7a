//! Finalizers: what has to be cleaned up before an object may go. Pure.

use kube_informer::Obj;
use serde::Deserialize;
use serde_json::{Value, json};

/// What a finalizer demands for an object.
#[derive(Debug, PartialEq)]
pub(crate) enum Step {
    /// Reconcile it: the finalizer is set.
    Reconcile,
    /// Set the finalizer with this patch, then reconcile what it returns.
    Add(Value),
    /// Clean up, and then remove the finalizer with this patch.
    CleanUp(Value),
    /// It is being deleted, and is cleaned up already.
    Leave,
}

#[derive(Deserialize)]
struct Finalized {
    metadata: Finalizers,
}

#[derive(Deserialize)]
struct Finalizers {
    #[serde(default)]
    finalizers: Option<Vec<String>>,
}

/// Returns what the finalizer `name` demands for an object.
///
/// The patches test what they were computed from: if the finalizers or the object itself have
/// changed meanwhile, the server refuses them, and the object is reconciled again.
pub(crate) fn step<K>(object: &Obj<K>, name: &str) -> Result<Step, serde_json::Error> {
    let present: Finalized = serde_json::from_slice(&object.json())?;
    let present = present.metadata.finalizers.unwrap_or_default();
    let at = present.iter().position(|finalizer| finalizer == name);
    let same_object = json!({"op": "test", "path": "/metadata/uid", "value": object.uid().map(ToString::to_string)});
    Ok(match (at, object.deletion_timestamp().is_some()) {
        (Some(_), false) => Step::Reconcile,
        (None, true) => Step::Leave,
        (None, false) if present.is_empty() => Step::Add(json!([
            same_object,
            {"op": "test", "path": "/metadata/finalizers", "value": null},
            {"op": "add", "path": "/metadata/finalizers", "value": [name]},
        ])),
        (None, false) => Step::Add(json!([
            same_object,
            {"op": "test", "path": "/metadata/finalizers", "value": present},
            {"op": "add", "path": "/metadata/finalizers/-", "value": name},
        ])),
        (Some(at), true) => Step::CleanUp(json!([
            same_object,
            {"op": "test", "path": format!("/metadata/finalizers/{at}"), "value": name},
            {"op": "remove", "path": format!("/metadata/finalizers/{at}")},
        ])),
    })
}
