//! Deletion of an object, immediately or once its grace period and finalizers permit it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::admission::metadata;
use crate::api::delete_options::DeleteOptions;
use crate::api::write::Write;
use crate::clock::Clock;
use crate::controllers::crds;
use crate::controllers::namespaces;
use crate::http::reply::{Content, Reply};
use crate::http::status::{Details, Status};
use crate::kinds::{Condition, DeleteReply, Lifecycle, set_condition};
use crate::storage::{Expect, Object, Outdated};
use crate::webhooks::{Operation, Stage};

/// The grace period of a pod that specifies none.
const POD_GRACE: i64 = 30;

/// The result of a deletion request.
enum Outcome {
    /// The object is removed; this was its last state.
    Removed(Content),
    /// The object remains for now, in this state.
    Remains(Content),
}

/// How a deletion proceeds.
enum Plan {
    /// The object is being deleted already and does not change.
    Pending,
    /// The object is stored in this state, with a deletion timestamp, and remains.
    Update(Value),
    /// The object is stored in this state, with a deletion timestamp, and then removed.
    UpdateAndRemove(Value),
    /// The object is removed without another update.
    Remove,
}

/// Deletes an object.
///
/// # Errors
///
/// 403, 404 and 409, as on the real server.
pub(crate) fn delete(write: &Write<'_>, name: &str, options: &DeleteOptions) -> Result<Reply, Status> {
    let kind = write.kind();
    let lifecycle = kind.behaviour.lifecycle;
    if lifecycle == Lifecycle::Namespace && namespaces::IMMORTAL.contains(&name) {
        return Err(Status::forbidden(&kind.group, &kind.plural, name, "this namespace may not be deleted"));
    }
    let key = write.key(name);
    loop {
        let existing = write.find(&key).ok_or_else(|| write.not_found(name))?;
        let old = write.view.value(&existing);
        options.check_preconditions(kind, &old)?;
        for stage in [Stage::Mutation, Stage::Validation] {
            write.pass((stage, Operation::Delete), &Value::Null, &old)?;
        }
        let plan = match lifecycle {
            Lifecycle::Plain | Lifecycle::DaemonSet => plan(write, &old, options),
            Lifecycle::Pod => plan_pod(write, &old, options),
            Lifecycle::Namespace => plan_namespace(write, &old, options),
            Lifecycle::CustomResourceDefinition => plan_definition(write, &old, options),
        };
        let Ok(outcome) = carry_out(write, &existing, plan) else { continue };
        return Ok(answer(write, &old, options, outcome));
    }
}

fn carry_out(write: &Write<'_>, existing: &Arc<Object>, plan: Plan) -> Result<Outcome, Outdated> {
    let unsaved = |mut object: Value| {
        metadata::set(&mut object, "resourceVersion", existing.revision().to_string());
        Content::Unsaved(object)
    };
    match plan {
        Plan::Pending => Ok(Outcome::Remains(Content::Object(existing.clone()))),
        Plan::Update(deleting) if write.is_dry_run() => Ok(Outcome::Remains(unsaved(deleting))),
        Plan::UpdateAndRemove(deleting) if write.is_dry_run() => Ok(Outcome::Removed(unsaved(deleting))),
        Plan::Remove if write.is_dry_run() => Ok(Outcome::Removed(Content::Object(existing.clone()))),
        Plan::Update(deleting) => {
            let stored = write.put(Expect::Revision(existing.revision()), existing.key().clone(), &deleting)?;
            if write.kind().behaviour.lifecycle == Lifecycle::CustomResourceDefinition {
                crds::terminate(write.cluster, stored.key());
            }
            Ok(Outcome::Remains(Content::Object(stored)))
        }
        Plan::UpdateAndRemove(deleting) => {
            let stored = write.put(Expect::Revision(existing.revision()), existing.key().clone(), &deleting)?;
            remove(write, &stored)
        }
        Plan::Remove => remove(write, existing),
    }
}

fn remove(write: &Write<'_>, existing: &Object) -> Result<Outcome, Outdated> {
    let last = write.take(existing)?;
    crds::removed(write.cluster, write.kind(), &last);
    Ok(Outcome::Removed(Content::Object(last)))
}

fn answer(write: &Write<'_>, old: &Value, options: &DeleteOptions, outcome: Outcome) -> Reply {
    let kind = write.kind();
    let reply = match (outcome, kind.behaviour.delete_reply) {
        (Outcome::Remains(object), _) => {
            Reply::new(if options.orphan_dependents == Some(false) { 202 } else { 200 }, object)
        }
        (Outcome::Removed(last), DeleteReply::Object) => Reply::ok(last),
        (Outcome::Removed(_), DeleteReply::Status) => {
            let about = Details::about(&kind.group, &kind.plural, metadata::text(old, "name"));
            Reply::ok(Content::Success(Details { uid: metadata::text(old, "uid").to_owned(), ..about }))
        }
    };
    let warning = kind.behaviour.delete_warning.filter(|_| options.leaves_dependents_open());
    reply.with_warnings(warning.map(str::to_owned).into_iter().collect())
}

/// Most kinds have no grace period: an object remains only while it has finalizers.
fn plan(write: &Write<'_>, old: &Value, options: &DeleteOptions) -> Plan {
    let finalizers = options.finalizers(&write.kind().behaviour, old);
    if finalizers.is_empty() {
        return Plan::Remove;
    }
    let mut deleting = old.clone();
    metadata::set_finalizers(&mut deleting, finalizers);
    set_deletion(&mut deleting, write.cluster.clock.now(), 0);
    Plan::Update(deleting)
}

/// A scheduled pod gets a grace period to terminate. During termination the grace period can only
/// be shortened.
fn plan_pod(write: &Write<'_>, old: &Value, options: &DeleteOptions) -> Plan {
    let requested = options.grace_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
    let mut deleting = old.clone();
    let grace = if metadata::is_deleting(old) {
        let Some(left) = metadata::number(old, "deletionGracePeriodSeconds") else {
            return plan(write, old, options);
        };
        let Some(requested) = requested.filter(|requested| *requested < left) else { return Plan::Pending };
        let end: Timestamp = metadata::text(old, "deletionTimestamp").parse().unwrap_or(Timestamp::UNIX_EPOCH);
        let shortened = Duration::from_secs(left.saturating_sub(requested).try_into().unwrap_or(0));
        let end = end.checked_sub(shortened).unwrap_or(end);
        metadata::set(&mut deleting, "deletionTimestamp", Clock::in_seconds(end));
        metadata::set(&mut deleting, "deletionGracePeriodSeconds", requested);
        requested
    } else {
        let own = old["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(POD_GRACE);
        let is_scheduled = !old["spec"]["nodeName"].as_str().unwrap_or_default().is_empty();
        let finished = matches!(old["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        let grace = match requested.unwrap_or(own) {
            _ if !is_scheduled || finished => 0,
            negative if negative < 0 => 1,
            grace => grace,
        };
        set_deletion(&mut deleting, write.cluster.clock.now(), grace);
        grace
    };
    let finalizers = options.finalizers(&write.kind().behaviour, old);
    let held = grace > 0 || !finalizers.is_empty();
    metadata::set_finalizers(&mut deleting, finalizers);
    if held { Plan::Update(deleting) } else { Plan::UpdateAndRemove(deleting) }
}

/// A namespace is Terminating until the finalizers in its spec are removed.
fn plan_namespace(write: &Write<'_>, old: &Value, options: &DeleteOptions) -> Plan {
    if metadata::is_deleting(old) {
        return match namespaces::finalizers(old).is_empty() {
            true => plan(write, old, options),
            false => Plan::Pending,
        };
    }
    let mut deleting = old.clone();
    metadata::set(&mut deleting, "deletionTimestamp", write.cluster.clock.seconds());
    deleting["status"]["phase"] = json!("Terminating");
    Plan::Update(deleting)
}

/// A definition remains until its objects are deleted.
fn plan_definition(write: &Write<'_>, old: &Value, options: &DeleteOptions) -> Plan {
    if metadata::is_deleting(old) {
        return match metadata::finalizers(old).is_empty() {
            true => plan(write, old, options),
            false => Plan::Pending,
        };
    }
    let mut deleting = old.clone();
    let now = write.cluster.clock.seconds();
    let mut finalizers = options.finalizers(&write.kind().behaviour, old);
    if !finalizers.iter().any(|finalizer| finalizer == crds::CLEANUP) {
        finalizers.push(crds::CLEANUP.to_owned());
    }
    metadata::set_finalizers(&mut deleting, finalizers);
    set_condition(&mut deleting, Condition::DeletionPending, &now);
    metadata::set(&mut deleting, "deletionTimestamp", now);
    Plan::Update(deleting)
}

/// Sets the deletion timestamp, to the end of the grace period. An existing timestamp stays.
fn set_deletion(object: &mut Value, now: Timestamp, grace: i64) {
    if !metadata::is_deleting(object) {
        metadata::count_generation(object);
        let end = now.checked_add(Duration::from_secs(grace.try_into().unwrap_or(0))).unwrap_or(Timestamp::MAX);
        metadata::set(object, "deletionTimestamp", Clock::in_seconds(end));
    }
    metadata::set(object, "deletionGracePeriodSeconds", grace);
}
