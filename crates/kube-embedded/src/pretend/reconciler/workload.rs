//! What the controllers of stateful sets, daemon sets and jobs have in common: the pods that they
//! create, and the revision of a template.

use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use super::book::Book;
use super::part::{name, target};
use crate::pretend::write::Verb;

pub(super) const MANAGER: &str = "kube-controller-manager";

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
