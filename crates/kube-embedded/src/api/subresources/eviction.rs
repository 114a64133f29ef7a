//! `pods/eviction`: deletes a pod if its disruption budget permits it.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{done, validate};
use crate::admission::{metadata, parts};
use crate::api::delete_options::DeleteOptions;
use crate::api::verbs::delete::delete;
use crate::api::verbs::update::replace;
use crate::api::view::View;
use crate::api::write::{Authorship, SERVER_MANAGER, Write};
use crate::api::write_options::{DryRun, WriteOptions};
use crate::encoding::value::text;
use crate::http::negotiate::Form;
use crate::http::reply::Reply;
use crate::http::status::{Cause, Details, Status};
use crate::kinds::{Part, Registry, status_condition};
use crate::storage::selector::LabelSelector;
use crate::storage::{Expect, KeyRange, Labels, Object, Outdated};

const VIOLATION: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

const TOO_MANY_BUDGETS: &str =
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";

/// The number of pods that a budget may count as being evicted.
const MAX_DISRUPTED: usize = 2000;

/// Evicts a pod.
///
/// # Errors
///
/// 400 for an eviction of another pod, 404, 409 if a precondition does not hold, and 429 if the
/// budget of the pod does not permit it.
pub(crate) fn evict(write: &Write<'_>, name: &str, eviction: &Value) -> Result<Reply, Status> {
    if metadata::text(eviction, "name") != name {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let mut options = match &eviction["deleteOptions"] {
        Value::Null => DeleteOptions::default(),
        options => DeleteOptions::of(options)?,
    };
    if write.is_dry_run() {
        options.dry_run = DryRun::All;
    }
    validate(write, eviction)?;
    loop {
        let existing = write.find(&write.key(name)).ok_or_else(|| write.not_found(name))?;
        let pod = write.view.value(&existing);
        let permission = match is_unprotected(&pod) {
            true => Permission::WhileUnchanged(None),
            false => permission(write, &pod, name, options.dry_run)?,
        };
        let revision = match &permission {
            Permission::Given => None,
            Permission::WhileUnchanged(_) => Some(existing.revision()),
            Permission::TooManyBudgets => return Err(Status::internal(TOO_MANY_BUDGETS)),
            Permission::Retry => continue,
        };
        match (disrupt(write, name, &options, revision)?, permission) {
            (Ok(()), _) => return Ok(done()),
            (Err(Outdated), Permission::WhileUnchanged(Some(budget))) => return Err(unsettled(&budget)),
            (Err(Outdated), _) => {}
        }
    }
}

/// Marks and deletes a pod. The inner result is an error if the pod is not at the given revision.
fn disrupt(
    write: &Write<'_>,
    name: &str,
    options: &DeleteOptions,
    revision: Option<u64>,
) -> Result<Result<(), Outdated>, Status> {
    let mut settled = options.clone();
    if options.dry_run == DryRun::No {
        let Ok(marked) = mark(write, name, options, revision)? else { return Ok(Err(Outdated)) };
        settled.resource_version = options.resource_version.as_ref().map(|_| marked.to_string());
    }
    // The deletion belongs to the eviction: no webhook is asked about it.
    let dry_run = WriteOptions { dry_run: options.dry_run, ..WriteOptions::default() };
    let deletion = Write { options: dry_run, authorship: Authorship::Untracked, gate: None, ..*write };
    delete(&deletion, name, &settled).map(|_| Ok(()))
}

/// Adds the condition of an evicted pod, and returns the revision of that.
fn mark(
    write: &Write<'_>,
    name: &str,
    options: &DeleteOptions,
    revision: Option<u64>,
) -> Result<Result<u64, Outdated>, Status> {
    loop {
        let existing = write.find(&write.key(name)).ok_or_else(|| write.not_found(name))?;
        let mut pod = write.view.value(&existing);
        options.check_preconditions(write.kind(), &pod)?;
        if revision.is_some_and(|revision| revision != existing.revision()) {
            return Ok(Err(Outdated));
        }
        let condition = json!({
            "type": "DisruptionTarget", "status": "True",
            "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
        });
        parts::set_pod_condition(&mut pod, condition, &write.cluster.clock.seconds());
        if let Ok(marked) = write.put(Expect::Revision(existing.revision()), existing.key().clone(), &pod) {
            return Ok(Ok(marked.revision()));
        }
    }
}

/// Whether the deletion of a pod disrupts nothing, as it has not started or has ended.
fn is_unprotected(pod: &Value) -> bool {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    matches!(phase, "Succeeded" | "Failed" | "Pending") || metadata::is_deleting(pod)
}

/// The answer of the budgets.
enum Permission {
    Given,
    /// Given for a pod that has not started or is not ready, the latter by the budget of this name.
    WhileUnchanged(Option<String>),
    TooManyBudgets,
    /// A concurrent request changed the budget.
    Retry,
}

/// Asks the budget of a pod, and counts the eviction there.
fn permission(write: &Write<'_>, pod: &Value, name: &str, dry_run: DryRun) -> Result<Permission, Status> {
    let budgets = Registry::new().find("policy", "v1", "poddisruptionbudgets").ok_or_else(Status::unknown_resource)?;
    let range = KeyRange::of(write.namespace);
    let found = write.cluster.storage.list(&budgets.storage, &range).objects;
    let labels = Labels::of(&pod["metadata"]["labels"]);
    let selects = |budget: &Arc<Object>| {
        let selector = &budget.to_value()["spec"]["selector"];
        let selector = selector.is_object().then(|| LabelSelector::of(selector)).flatten();
        selector.is_some_and(|selector| selector.matches(&labels))
    };
    let mut selecting = found.into_iter().filter(selects);
    let Some(stored) = selecting.next() else { return Ok(Permission::Given) };
    if selecting.next().is_some() {
        return Ok(Permission::TooManyBudgets);
    }
    let old = stored.to_value();
    let budget = Budget(&old);
    if !status_condition::is_ready(pod) && budget.permits_unhealthy() {
        return Ok(Permission::WhileUnchanged(Some(budget.name().to_owned())));
    }
    budget.check()?;
    if dry_run == DryRun::All {
        return Ok(Permission::Given);
    }
    let view = View::new(budgets.clone(), budgets, Form::Full, write.cluster.clock);
    let new = budget.without_one(name, &write.cluster.clock.seconds());
    let counted = Write {
        view: &view,
        options: WriteOptions::default(),
        authorship: Authorship::Manager(SERVER_MANAGER),
        gate: None,
        ..*write
    };
    Ok(match replace(&counted, &stored, &old, new, Some(Part::Status))? {
        Ok(_) => Permission::Given,
        Err(_) => Permission::Retry,
    })
}

/// A pod disruption budget.
struct Budget<'b>(&'b Value);

impl Budget<'_> {
    fn name(&self) -> &str {
        metadata::text(self.0, "name")
    }

    fn number(&self, field: &str) -> i64 {
        self.0["status"][field].as_i64().unwrap_or(0)
    }

    fn permits_unhealthy(&self) -> bool {
        let (healthy, desired) = (self.number("currentHealthy"), self.number("desiredHealthy"));
        self.0["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow" || healthy >= desired && desired > 0
    }

    fn check(&self) -> Result<(), Status> {
        let name = self.name();
        if self.number("observedGeneration") < metadata::number(self.0, "generation").unwrap_or(0) {
            return Err(unsettled(name));
        }
        let allowed = self.number("disruptionsAllowed");
        let disrupted = self.0["status"]["disruptedPods"].as_object().map_or(0, serde_json::Map::len);
        let (why, more) = match () {
            () if allowed < 0 => ("pdb disruptions allowed is negative", "pdb disruptions allowed is negative"),
            () if disrupted > MAX_DISRUPTED => (
                "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
                "too many pending evictions not confirmed by PDB controller",
            ),
            () if allowed == 0 => return Err(violation(&self.why_not(), 0)),
            () => return Ok(()),
        };
        let refused = Status::forbidden("policy", "poddisruptionbudget", name, why);
        let cause = format!("The disruption budget {name} does not allow evicting pods currently: {more}");
        let about = Details::about("policy", "poddisruptionbudget", name);
        Err(refused.with_details(Details { causes: vec![Cause::new("DisruptionBudget", "", cause)], ..about }))
    }

    fn why_not(&self) -> String {
        let (name, desired, healthy) = (self.name(), self.number("desiredHealthy"), self.number("currentHealthy"));
        let refusal = status_condition::find(self.0, "DisruptionAllowed")
            .filter(|condition| condition["status"] == "False")
            .map(|condition| (text(&condition["reason"]), text(&condition["message"])))
            .filter(|(_, message)| !message.is_empty());
        let does_not = format!("The disruption budget {name} does not allow evicting pods currently");
        match refusal {
            Some(("SyncFailed", message)) => {
                format!("{does_not} because it failed sync: {message}")
            }
            _ if healthy <= desired => {
                format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
            }
            Some((reason, message)) => format!("{does_not} ({reason}): {message}"),
            None => does_not,
        }
    }

    /// The budget after the eviction of a pod.
    fn without_one(&self, pod: &str, now: &str) -> Value {
        let mut budget = self.0.clone();
        let allowed = self.number("disruptionsAllowed") - 1;
        let status = &mut budget["status"];
        status["disruptionsAllowed"] = json!(allowed);
        if !status["disruptedPods"].is_object() {
            status["disruptedPods"] = json!({});
        }
        status["disruptedPods"][pod] = json!(now);
        if allowed == 0 {
            let refusal = json!({
                "type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
                "observedGeneration": self.number("observedGeneration"),
            });
            status_condition::set(&mut budget, refusal, now);
        }
        budget
    }
}

fn violation(why: &str, retry_after_seconds: u32) -> Status {
    let causes = vec![Cause::new("DisruptionBudget", "", why)];
    let details = Details { causes, retry_after_seconds, ..Details::default() };
    Status::new(429, "TooManyRequests", VIOLATION).with_details(details)
}

/// 429: the status of a budget is not up to date.
fn unsettled(budget: &str) -> Status {
    violation(&format!("The disruption budget {budget} is still being processed by the server."), 10)
}
