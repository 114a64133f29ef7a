//! What a pretended cluster wants written, and how it gets onto a server.

use serde_json::Value;

use super::times::shift;
use crate::cluster::Cluster;
use crate::objects::Objects;
use crate::status::Status;

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Write {
    pub(crate) verb: Verb,
    /// The pod it is about, if it is about one.
    pub(crate) pod: Option<PodRef>,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verb {
    Create(Value),
    Update(Value),
    UpdateStatus(Value),
    /// Merges a patch into an object.
    Patch(Target, Value),
    /// Deletes an object, with the grace its kind has.
    Delete(Target),
    /// Deletes an object for good.
    Remove(Target),
}

/// An object that is only named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// A pod within the pretended cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PodRef {
    pub(crate) app: usize,
    pub(crate) serial: u64,
}

impl Write {
    pub(crate) fn new(verb: Verb) -> Self {
        Self { verb, pod: None }
    }

    pub(crate) fn of_pod(pod: PodRef, verb: Verb) -> Self {
        Self { verb, pod: Some(pod) }
    }

    /// Whether a deployment is replaced by it.
    pub(crate) fn is_of_deployment(&self) -> bool {
        matches!(&self.verb, Verb::Update(object) | Verb::UpdateStatus(object) if object["kind"] == "Deployment")
    }

    /// Carries it out, with all times moved by so many seconds, and tells the revision of an update, which is 0 otherwise.
    ///
    /// # Errors
    ///
    /// What a client would get.
    pub(crate) fn apply(self, cluster: &Cluster, seconds: i64) -> Result<u64, Status> {
        let of = |object: &Value| {
            Objects::new(
                cluster,
                object["apiVersion"].as_str().unwrap_or_default(),
                object["kind"].as_str().unwrap_or_default(),
            )
        };
        let target = |target: &Target| {
            let objects = Objects::new(cluster, target.api_version, target.kind)?;
            Ok::<_, Status>(objects.namespace(&target.namespace))
        };
        match self.verb {
            Verb::Create(mut object) => {
                shift(&mut object, seconds);
                of(&object)?.load(object).map(|()| 0)
            }
            Verb::Update(mut object) => {
                shift(&mut object, seconds);
                of(&object)?.update(&object).map(|stored| revision(&stored))
            }
            Verb::UpdateStatus(mut object) => {
                shift(&mut object, seconds);
                of(&object)?.update_status(&object).map(|stored| revision(&stored))
            }
            Verb::Patch(which, mut patch) => {
                shift(&mut patch, seconds);
                target(&which)?.patch(&which.name, &patch).map(|stored| revision(&stored))
            }
            Verb::Delete(which) => target(&which)?.delete(&which.name).map(|()| 0),
            Verb::Remove(which) => target(&which)?.remove(&which.name).map(|()| 0),
        }
    }
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}
