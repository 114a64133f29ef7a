//! `pods/binding`: assigns a pod to a node.

use serde_json::{Value, json};

use super::{done, validate};
use crate::admission::{metadata, parts};
use crate::api::verbs::update::check_uid;
use crate::api::write::{Write, registry_path};
use crate::http::reply::Reply;
use crate::http::status::Status;
use crate::kinds::NameRule;
use crate::storage::Expect;

/// Assigns a pod to the node that a binding names.
///
/// # Errors
///
/// 400 for the binding of another pod, 404, 409 for a pod that cannot be assigned, and 500 for a
/// binding without a valid target.
pub(crate) fn bind(write: &Write<'_>, name: &str, binding: &Value) -> Result<Reply, Status> {
    if metadata::text(binding, "name") != name {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    check_target(&binding["target"])?;
    validate(write, binding)?;
    let key = write.key(name);
    loop {
        let existing = write.find(&key).ok_or_else(|| write.not_found(name))?;
        let mut pod = write.view.value(&existing);
        check_uid(write, name, binding, &pod)?;
        let (expected, found) = (metadata::text(binding, "resourceVersion"), existing.revision().to_string());
        if !expected.is_empty() && expected != found {
            let path = registry_path(write.kind(), &key);
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: \
                 Precondition failed: ResourceVersion in precondition: {expected}, ResourceVersion in object meta: {found}"
            );
            return Err(write.conflict(name, &why));
        }
        if let Some(why) = obstacle(name, &pod) {
            return Err(Status::conflict("", "pods/binding", name, &why));
        }
        pod["spec"]["nodeName"] = binding["target"]["name"].clone();
        for part in ["annotations", "labels"] {
            let added = metadata::part(binding, part).and_then(Value::as_object).cloned();
            for (key, value) in added.into_iter().flatten() {
                pod["metadata"][part][key] = value;
            }
        }
        if let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) {
            status.remove("nominatedNodeName");
        }
        let scheduled = json!({"type": "PodScheduled", "status": "True"});
        parts::set_pod_condition(&mut pod, scheduled, &write.cluster.clock.seconds());
        if write.is_dry_run() || write.put(Expect::Revision(existing.revision()), key.clone(), &pod).is_ok() {
            return Ok(done());
        }
    }
}

/// The first error of a target is not a status in the real server, so it answers 500.
fn check_target(target: &Value) -> Result<(), Status> {
    let text = |part: &str| target[part].as_str().unwrap_or_default();
    let (kind, name) = (text("kind"), text("name"));
    let mut problems = Vec::new();
    if !matches!(kind, "" | "Node") {
        problems.push(format!("target.kind: Unsupported value: {kind:?}: supported values: \"Node\", \"<empty>\""));
    }
    if name.is_empty() {
        problems.push("target.name: Required value".to_owned());
    } else {
        let wrong = NameRule::DnsSubdomain.problems(name);
        problems.extend(wrong.iter().map(|why| format!("target.name: Invalid value: {name:?}: {why}")));
    }
    match problems.as_slice() {
        [] => Ok(()),
        [one] => Err(Status::internal(one.clone())),
        many => Err(Status::internal(format!("[{}]", many.join(", ")))),
    }
}

/// Why a pod cannot be assigned.
fn obstacle(name: &str, pod: &Value) -> Option<String> {
    if metadata::is_deleting(pod) {
        return Some(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    let spec = &pod["spec"];
    match spec["nodeName"].as_str() {
        Some(node) if !node.is_empty() => Some(format!("pod {name} is already assigned to node {node:?}")),
        _ => {
            let has_gates = spec["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
            has_gates.then(|| format!("pod {name} has non-empty .spec.schedulingGates"))
        }
    }
}
