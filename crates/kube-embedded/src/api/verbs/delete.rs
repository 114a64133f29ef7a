//! Removing an object, at once or when nothing holds it any longer.

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

/// The grace of a pod that says nothing about it.
const POD_GRACE: i64 = 30;

/// What a deletion came to.
enum Outcome {
    /// The object is gone; this was its last state.
    Gone(Content),
    /// The object stays for now, in this state.
    Stays(Content),
}

/// How an object is to go.
enum Plan {
    /// It stays as it is: it is on its way already.
    Pending,
    /// It is marked first, and removed only if nothing holds it.
    Mark(Value),
    /// It is marked as going without delay and removed thereafter.
    MarkAndRemove(Value),
    /// It is removed as it is.
    Remove,
}

/// Deletes an object.
///
/// # Errors
///
/// 403, 404 and 409 as the real server has them.
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
        Plan::Pending => Ok(Outcome::Stays(Content::Object(existing.clone()))),
        Plan::Mark(marked) if write.is_dry_run() => Ok(Outcome::Stays(unsaved(marked))),
        Plan::MarkAndRemove(marked) if write.is_dry_run() => Ok(Outcome::Gone(unsaved(marked))),
        Plan::Remove if write.is_dry_run() => Ok(Outcome::Gone(Content::Object(existing.clone()))),
        Plan::Mark(marked) => {
            let stored = write.put(Expect::Revision(existing.revision()), existing.key().clone(), &marked)?;
            if write.kind().behaviour.lifecycle == Lifecycle::CustomResourceDefinition {
                crds::terminate(write.cluster, stored.key());
            }
            Ok(Outcome::Stays(Content::Object(stored)))
        }
        Plan::MarkAndRemove(marked) => {
            let stored = write.put(Expect::Revision(existing.revision()), existing.key().clone(), &marked)?;
            remove(write, &stored)
        }
        Plan::Remove => remove(write, existing),
    }
}

fn remove(write: &Write<'_>, existing: &Object) -> Result<Outcome, Outdated> {
    let last = write.take(existing)?;
    crds::removed(write.cluster, write.kind(), &last);
    Ok(Outcome::Gone(Content::Object(last)))
}

fn answer(write: &Write<'_>, old: &Value, options: &DeleteOptions, outcome: Outcome) -> Reply {
    let kind = write.kind();
    let reply = match (outcome, kind.behaviour.delete_reply) {
        (Outcome::Stays(object), _) => {
            Reply::new(if options.orphan_dependents == Some(false) { 202 } else { 200 }, object)
        }
        (Outcome::Gone(last), DeleteReply::Object) => Reply::ok(last),
        (Outcome::Gone(_), DeleteReply::Status) => {
            let about = Details::about(&kind.group, &kind.plural, metadata::text(old, "name"));
            Reply::ok(Content::Success(Details { uid: metadata::text(old, "uid").to_owned(), ..about }))
        }
    };
    let warning = kind.behaviour.delete_warning.filter(|_| options.leaves_dependents_open());
    reply.with_warnings(warning.map(str::to_owned).into_iter().collect())
}

/// Most kinds know no grace: an object stays only if a finalizer holds it.
fn plan(write: &Write<'_>, old: &Value, options: &DeleteOptions) -> Plan {
    let finalizers = options.finalizers(&write.kind().behaviour, old);
    if finalizers.is_empty() {
        return Plan::Remove;
    }
    let mut marked = old.clone();
    metadata::set_finalizers(&mut marked, finalizers);
    mark(&mut marked, write.cluster.clock.now(), 0);
    Plan::Mark(marked)
}

/// A pod that runs somewhere is given time to end; once it has begun, the time can only be shortened.
fn plan_pod(write: &Write<'_>, old: &Value, options: &DeleteOptions) -> Plan {
    let asked = options.grace_seconds.map(|seconds| if seconds < 0 { 1 } else { seconds });
    let mut marked = old.clone();
    let grace = if metadata::is_deleting(old) {
        let Some(left) = metadata::number(old, "deletionGracePeriodSeconds") else {
            return plan(write, old, options);
        };
        let Some(asked) = asked.filter(|asked| *asked < left) else { return Plan::Pending };
        let end: Timestamp = metadata::text(old, "deletionTimestamp").parse().unwrap_or(Timestamp::UNIX_EPOCH);
        let shortened = Duration::from_secs(left.saturating_sub(asked).try_into().unwrap_or(0));
        let end = end.checked_sub(shortened).unwrap_or(end);
        metadata::set(&mut marked, "deletionTimestamp", Clock::in_seconds(end));
        metadata::set(&mut marked, "deletionGracePeriodSeconds", asked);
        asked
    } else {
        let own = old["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(POD_GRACE);
        let runs = !old["spec"]["nodeName"].as_str().unwrap_or_default().is_empty();
        let over = matches!(old["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        let grace = match asked.unwrap_or(own) {
            _ if !runs || over => 0,
            negative if negative < 0 => 1,
            grace => grace,
        };
        mark(&mut marked, write.cluster.clock.now(), grace);
        grace
    };
    let finalizers = options.finalizers(&write.kind().behaviour, old);
    let held = grace > 0 || !finalizers.is_empty();
    metadata::set_finalizers(&mut marked, finalizers);
    if held { Plan::Mark(marked) } else { Plan::MarkAndRemove(marked) }
}

/// A namespace is Terminating until whoever empties it says that it is empty.
fn plan_namespace(write: &Write<'_>, old: &Value, options: &DeleteOptions) -> Plan {
    if metadata::is_deleting(old) {
        return match namespaces::finalizers(old).is_empty() {
            true => plan(write, old, options),
            false => Plan::Pending,
        };
    }
    let mut marked = old.clone();
    metadata::set(&mut marked, "deletionTimestamp", write.cluster.clock.seconds());
    marked["status"]["phase"] = json!("Terminating");
    Plan::Mark(marked)
}

/// A definition stays until its objects are gone.
fn plan_definition(write: &Write<'_>, old: &Value, options: &DeleteOptions) -> Plan {
    if metadata::is_deleting(old) {
        return match metadata::finalizers(old).is_empty() {
            true => plan(write, old, options),
            false => Plan::Pending,
        };
    }
    let mut marked = old.clone();
    let now = write.cluster.clock.seconds();
    let mut finalizers = options.finalizers(&write.kind().behaviour, old);
    if !finalizers.iter().any(|finalizer| finalizer == crds::CLEANUP) {
        finalizers.push(crds::CLEANUP.to_owned());
    }
    metadata::set_finalizers(&mut marked, finalizers);
    set_condition(&mut marked, Condition::DeletionPending, &now);
    metadata::set(&mut marked, "deletionTimestamp", now);
    Plan::Mark(marked)
}

/// Marks an object as being deleted, to be gone after a grace. A second mark changes nothing.
fn mark(object: &mut Value, now: Timestamp, grace: i64) {
    if !metadata::is_deleting(object) {
        metadata::count_generation(object);
        let end = now.checked_add(Duration::from_secs(grace.try_into().unwrap_or(0))).unwrap_or(Timestamp::MAX);
        metadata::set(object, "deletionTimestamp", Clock::in_seconds(end));
    }
    metadata::set(object, "deletionGracePeriodSeconds", grace);
}
