//! Replacement of an object or, if `part` is a subresource, of what that may change.

use std::sync::Arc;

use serde_json::{Value, json};

use super::create::{allocate, create};
use crate::admission::decode::Decoded;
use crate::admission::metadata;
use crate::admission::ownership::{self, Author};
use crate::admission::parts;
use crate::admission::rules;
use crate::admission::validation;
use crate::api::write::{Authorship, Write, is_signing_request, keep, registry_path};
use crate::controllers::crds;
use crate::controllers::namespaces;
use crate::controllers::services;
use crate::http::query::parse_uint;
use crate::http::reply::{Content, Reply};
use crate::http::status::{Cause, Status};
use crate::kinds::{DAEMON_SET_GENERATION, Kind, Lifecycle, Part, PutMissing, UpdateVersion, Written};
use crate::storage::{Expect, Object, Outdated};
use crate::webhooks::{Operation, Stage};

const MODIFIED: &str = "the object has been modified; please apply your changes to the latest version and try again";

/// Replaces an object.
///
/// # Errors
///
/// 400, 404, 409, 422 and 500, as on the real server.
pub(crate) fn update(write: &Write<'_>, name: &str, decoded: Decoded, part: Option<Part>) -> Result<Reply, Status> {
    let Decoded { object, warnings } = decoded;
    check_name(name, &object)?;
    let key = write.key(name);
    loop {
        let Some(existing) = write.find(&key) else {
            if part.is_none() && write.kind().behaviour.put_missing == PutMissing::Creates {
                return create(write, Decoded { object, warnings });
            }
            return Err(write.not_found(name));
        };
        let old = write.view.value(&existing);
        check_uid(write, name, &object, &old)?;
        let reply = replace(write, &existing, &old, object.clone(), part)?;
        if let Ok(reply) = reply {
            return Ok(reply.with_warnings(warnings));
        }
    }
}

/// Replaces an object with a new state. The inner result is an error if a concurrent write came
/// first.
pub(crate) fn replace(
    write: &Write<'_>,
    existing: &Arc<Object>,
    old: &Value,
    mut new: Value,
    part: Option<Part>,
) -> Result<Result<Reply, Outdated>, Status> {
    check_version(write, existing, &new)?;
    write.place(&mut new)?;
    // Webhooks receive a scale instead, see there.
    let is_shown = part != Some(Part::Scale);
    if is_shown && let Some(changed) = write.pass((Stage::Mutation, Operation::Update), &new, old)? {
        new = changed;
    }
    let _allocation = services::allocation(write.cluster, write.kind());
    prepare(write, &mut new, old, part);
    let warnings = validate(write, &new, old, part)?;
    metadata::remove(&mut new, "resourceVersion");
    match write.authorship {
        Authorship::Manager(manager) => {
            let time = write.cluster.clock.seconds();
            ownership::update(write.kind(), Author { manager, time: &time, part }, old, &mut new);
        }
        Authorship::Computed if ownership::differ_in_times_only(old, &new) => {
            metadata::keep(&mut new, "managedFields", old);
        }
        Authorship::Computed | Authorship::Untracked => {}
    }
    if part.is_none() {
        allocate(write, &mut new, Some(old))?;
    }
    if is_shown && let Some(admitted) = write.pass((Stage::Validation, Operation::Update), &new, old)? {
        new = admitted;
    }
    let is_removed = completes_deletion(write, &new, old);
    if write.is_dry_run() {
        return Ok(Ok(write.tried(200, new, Some(existing)).with_warnings(warnings)));
    }
    if is_removed {
        let Ok(last) = write.take(existing) else { return Ok(Err(Outdated)) };
        crds::removed(write.cluster, write.kind(), &last);
        return Ok(Ok(write.tried(200, new, Some(existing))));
    }
    let stored = write.put(Expect::Revision(existing.revision()), existing.key().clone(), &new);
    let Ok(stored) = stored else { return Ok(Err(Outdated)) };
    if write.kind().behaviour.lifecycle == Lifecycle::CustomResourceDefinition
        && stored.revision() != existing.revision()
    {
        crds::updated(write, stored.key());
    }
    Ok(Ok(Reply::ok(Content::Object(stored)).with_warnings(warnings)))
}

/// Checks that the name in the object is that in the path.
pub(crate) fn check_name(name: &str, object: &Value) -> Result<(), Status> {
    let own = metadata::text(object, "name");
    if own.is_empty() {
        let why = format!("the name of the object ({name} based on URL) was undeterminable: name must be provided");
        return Err(Status::bad_request(why));
    }
    if own != name {
        let why = format!("the name of the object ({own}) does not match the name on the URL ({name})");
        return Err(Status::bad_request(why));
    }
    Ok(())
}

/// Checks the uid in an update, which is a precondition.
pub(crate) fn check_uid(write: &Write<'_>, name: &str, new: &Value, old: &Value) -> Result<(), Status> {
    let (expected, found) = (metadata::text(new, "uid"), metadata::text(old, "uid"));
    if expected.is_empty() || expected == found {
        return Ok(());
    }
    let path = registry_path(write.kind(), &write.key(name));
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: \
         UID in precondition: {expected}, UID in object meta: {found}"
    );
    Err(write.conflict(name, &why))
}

/// Checks the resource version in an update, which is a precondition; some kinds require it.
fn check_version(write: &Write<'_>, existing: &Object, new: &Value) -> Result<(), Status> {
    let name = existing.key().name();
    let version = match metadata::text(new, "resourceVersion") {
        "" => 0,
        text => parse_uint(text).map_err(Status::internal)?,
    };
    let kind = write.kind();
    match (version, kind.behaviour.update_version) {
        (0, UpdateVersion::Optional) => Ok(()),
        (0, UpdateVersion::Required) => {
            let cause = Cause::invalid("metadata.resourceVersion", 0, "must be specified for an update");
            Err(Status::invalid(&kind.group, &kind.plural, name, vec![cause]))
        }
        (version, _) if version == existing.revision() => Ok(()),
        _ => Err(write.conflict(name, MODIFIED)),
    }
}

/// Copies the fields that an update cannot change from the old object.
fn prepare(write: &Write<'_>, new: &mut Value, old: &Value, part: Option<Part>) {
    let kind = write.kind();
    for name in ["creationTimestamp", "generation"] {
        metadata::keep(new, name, old);
    }
    if metadata::text(new, "uid").is_empty() {
        metadata::keep(new, "uid", old);
    }
    metadata::remove(new, "selfLink");
    if metadata::is_deleting(old) {
        metadata::keep(new, "deletionTimestamp", old);
    }
    if metadata::part(new, "deletionGracePeriodSeconds").is_none() {
        metadata::keep(new, "deletionGracePeriodSeconds", old);
    }
    let now = || write.cluster.clock.seconds();
    match part {
        None | Some(Part::Scale) => {
            if is_signing_request(kind) {
                keep(new, "spec", old);
            }
            if kind.subresource(Part::Status).is_some() {
                keep(new, "status", old);
            }
            match kind.behaviour.lifecycle {
                Lifecycle::Namespace => {
                    namespaces::label(new);
                    namespaces::keep_finalizers(new, old);
                }
                Lifecycle::DaemonSet => count_template(new, old),
                Lifecycle::Plain if kind.kind == "Service" && kind.group.is_empty() => {
                    services::keep_allocated(new, old);
                }
                Lifecycle::CustomResourceDefinition => crds::prepare_update(new),
                Lifecycle::Plain | Lifecycle::Pod => {}
            }
            count_generation(kind, new, old);
        }
        Some(Part::Status) if is_signing_request(kind) => {
            prepare_status(write, new, old);
            parts::keep_approval(new, old, &now());
        }
        Some(Part::Status) => prepare_status(write, new, old),
        Some(Part::Finalize) => {
            let finalizers = new["spec"].get("finalizers").cloned();
            keep(new, "spec", old);
            keep(new, "status", old);
            namespaces::set_finalizers(new, finalizers);
        }
        Some(Part::Approval) => parts::only_conditions(new, old, &now()),
        Some(Part::EphemeralContainers) => {
            parts::only_ephemeral_containers(new, old);
            count_generation(kind, new, old);
        }
        Some(Part::Resize) => {
            parts::only_resources(new, old);
            count_generation(kind, new, old);
        }
        // Created, never updated.
        Some(Part::Binding | Part::Eviction | Part::Token) => {}
    }
}

fn count_generation(kind: &Kind, new: &mut Value, old: &Value) {
    if kind.behaviour.generation.counts(old, new) {
        let generation = metadata::number(old, "generation").unwrap_or(0);
        metadata::set(new, "generation", generation.saturating_add(1));
    }
}

/// A write of the status changes only the status, and of the metadata only what the kind permits.
fn prepare_status(write: &Write<'_>, new: &mut Value, old: &Value) {
    let kind = write.kind();
    let parts: Vec<String> =
        [&*new, old].iter().filter_map(|object| object.as_object()).flat_map(|object| object.keys().cloned()).collect();
    for part in parts.iter().filter(|part| !matches!(part.as_str(), "metadata" | "status" | "kind" | "apiVersion")) {
        keep(new, part, old);
    }
    let version = metadata::part(new, "resourceVersion").cloned();
    // An apply has computed the owners of the new status already.
    let managers = match write.authorship {
        Authorship::Computed => metadata::part(new, "managedFields").cloned(),
        Authorship::Manager(_) | Authorship::Untracked => None,
    };
    match (&*kind.group, &*kind.plural) {
        ("apiextensions.k8s.io" | "apiregistration.k8s.io", _) => keep(new, "metadata", old),
        _ if kind.is_custom() => keep(new, "metadata", old),
        ("apps", "deployments") => metadata::keep(new, "labels", old),
        ("", "pods") => metadata::keep(new, "ownerReferences", old),
        _ => {}
    }
    for (name, value) in [("resourceVersion", version), ("managedFields", managers)] {
        if let Some(value) = value {
            metadata::set(new, name, value);
        }
    }
}

/// Counts the changes of a `DaemonSet`'s template in an annotation.
fn count_template(new: &mut Value, old: &Value) {
    let before =
        old["metadata"]["annotations"][DAEMON_SET_GENERATION].as_str().and_then(|text| text.parse::<i64>().ok());
    let is_changed = new["spec"]["template"] != old["spec"]["template"];
    let count = before.unwrap_or(0).saturating_add(is_changed.into());
    new["metadata"]["annotations"][DAEMON_SET_GENERATION] = json!(count.to_string());
}

/// Validates an update and returns warnings.
fn validate(write: &Write<'_>, new: &Value, old: &Value, part: Option<Part>) -> Result<Vec<String>, Status> {
    let mut warnings = Vec::new();
    let mut causes = validation::updated(write.kind(), new, old);
    let is_checked = match part {
        Some(Part::Status) => is_signing_request(write.kind()),
        Some(Part::Finalize) => false,
        _ => true,
    };
    if is_checked && write.is_of_client() || write.kind().behaviour.lifecycle == Lifecycle::Namespace {
        causes.extend(rules::problems(write.kind(), new, Some(old), part));
    }
    if write.kind().behaviour.lifecycle == Lifecycle::CustomResourceDefinition {
        causes.extend(crds::update_problems(new, old));
        if part.is_none() {
            warnings = crds::warnings(new);
        }
    }
    if let Some(structure) = &write.kind().structure {
        let written = if part == Some(Part::Status) { Written::Status } else { Written::Whole };
        let found = structure.updated(new, old, written);
        causes.extend(found.causes);
        warnings.extend(found.warnings);
    }
    if causes.is_empty() { Ok(warnings) } else { Err(write.invalid(new, causes)) }
}

/// Whether the update completes a pending deletion, because no finalizer or grace period remains.
fn completes_deletion(write: &Write<'_>, new: &Value, old: &Value) -> bool {
    let held =
        !metadata::finalizers(new).is_empty() || metadata::number(old, "deletionGracePeriodSeconds").unwrap_or(0) > 0;
    let held_as_namespace =
        write.kind().behaviour.lifecycle == Lifecycle::Namespace && !namespaces::finalizers(new).is_empty();
    metadata::is_deleting(old) && !held && !held_as_namespace
}
