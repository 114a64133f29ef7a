//! What the controllers that create pods have in common: the pods of stateful sets, daemon sets and
//! jobs, how many are created in one step, and the revision of a template.

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::book::{Book, MANAGER};
use super::part::{name, target};
use crate::pretend::write::Verb;

/// Maximum number of pods that a controller creates or deletes in one step.
pub(super) const BURST: usize = 500;

/// The label with the revision of the template that a pod was made from.
pub(super) const REVISION: &str = "controller-revision-hash";

/// A kind of workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::pretend) enum Workload {
    StatefulSet,
    DaemonSet,
    Job,
}

impl Workload {
    pub(in crate::pretend) const ALL: [Self; 3] = [Self::StatefulSet, Self::DaemonSet, Self::Job];

    pub(in crate::pretend) fn kind(self) -> &'static str {
        match self {
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
            Self::Job => "Job",
        }
    }

    pub(in crate::pretend) fn group(self) -> &'static str {
        if self == Self::Job { "batch" } else { "apps" }
    }

    pub(in crate::pretend) fn api_version(self) -> &'static str {
        if self == Self::Job { "batch/v1" } else { "apps/v1" }
    }

    fn component(self) -> &'static str {
        match self {
            Self::StatefulSet => "statefulset-controller",
            Self::DaemonSet => "daemonset-controller",
            Self::Job => "job-controller",
        }
    }

    /// A pod of the workload's template.
    pub(super) fn pod(self, owner: &Value, pod_name: &str, labels: &Value) -> Value {
        let (metadata, template) = (&owner["metadata"], &owner["spec"]["template"]);
        let mut all = template["metadata"]["labels"].clone();
        for (key, value) in labels.as_object().into_iter().flatten() {
            all[key] = value.clone();
        }
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": pod_name,
                "namespace": metadata["namespace"],
                "labels": all,
                "annotations": template["metadata"]["annotations"],
                "ownerReferences": [{
                    "apiVersion": self.api_version(), "kind": self.kind(), "name": metadata["name"],
                    "uid": metadata["uid"], "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "spec": template["spec"],
        })
    }

    pub(super) fn create(self, owner: &Value, pod: Value, book: &mut Book<'_>) {
        let message = format!("Created pod: {}", name(&pod));
        book.write(MANAGER, Verb::Create(pod));
        book.record(self.kind(), self.api_version(), owner, "SuccessfulCreate", message, self.component());
    }

    pub(super) fn delete(self, owner: &Value, pod: &Value, book: &mut Book<'_>) {
        book.write(MANAGER, Verb::Delete(target("v1", "Pod", pod)));
        let message = format!("Deleted pod: {}", name(pod));
        book.record(self.kind(), self.api_version(), owner, "SuccessfulDelete", message, self.component());
    }

    pub(super) fn report(self, owner: &Value, status: &Value, book: &mut Book<'_>) {
        let patch = json!({"status": status});
        book.write(MANAGER, Verb::PatchStatus(target(self.api_version(), self.kind(), owner), patch));
    }
}

/// The revision of a workload's template.
pub(super) fn revision(owner: &Value) -> String {
    let hash = digest(&SHA256, owner["spec"]["template"].to_string().as_bytes());
    hash.as_ref().iter().take(5).map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn is_of_revision(pod: &Value, revision: &str) -> bool {
    pod["metadata"]["labels"][REVISION] == revision
}

#[cfg(test)]
mod tests {
    use rand_pcg::Pcg64Mcg;

    use super::super::{job, replica_set, stateful_set};
    use super::*;
    use crate::pretend::events::EventLog;

    /// The number of pods that a step creates.
    fn created(reconcile: impl FnOnce(&mut Book<'_>)) -> usize {
        let (mut event_log, mut rng) = (EventLog::default(), Pcg64Mcg::new(1));
        let time = "2026-01-01T00:00:00Z".to_owned();
        let mut book = Book { now: 0, time, event_log: &mut event_log, rng: &mut rng, writes: Vec::new() };
        reconcile(&mut book);
        book.writes.iter().filter(|write| matches!(&write.verb, Verb::Create(pod) if pod["kind"] == "Pod")).count()
    }

    #[test]
    fn a_step_creates_a_limited_number_of_pods() {
        let most = i32::MAX;
        let owner = json!({
            "metadata": {"name": "a", "namespace": "default", "uid": "1"},
            "spec": {
                "replicas": most, "parallelism": most, "completions": most, "podManagementPolicy": "Parallel",
                "template": {"metadata": {"labels": {"app": "a"}}},
            },
        });
        assert_eq!(created(|book| stateful_set::reconcile(&owner, &[], book)), BURST);
        assert_eq!(created(|book| job::reconcile(&owner, &[], book)), BURST);
        assert_eq!(created(|book| replica_set::reconcile(&owner, &[], book)), BURST);
    }
}
