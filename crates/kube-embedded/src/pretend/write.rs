//! Writes of the simulated cluster, and their execution on a server.

use serde_json::Value;

use super::times::shift;
use crate::api::objects::Objects;
use crate::cluster::Cluster;
use crate::http::status::Status;
use crate::kinds::Part;

/// A write.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Write {
    pub(crate) verb: Verb,
    /// The simulated pod that the write concerns, if any.
    pub(crate) pod: Option<PodRef>,
    pub(crate) author: Author,
}

/// The origin of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    /// The simulation: times are relative to the generator's, and objects contain their
    /// managedFields.
    Simulation,
    /// A controller for objects of other clients, with this field manager.
    Manager(&'static str),
}

/// The operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verb {
    /// Stores an object as it is, including its status.
    Load(Value),
    Create(Value),
    Update(Value),
    UpdateStatus(Value),
    /// Applies a merge patch to an object.
    Patch(ObjectReference, Value),
    /// Applies a merge patch to the status of an object.
    PatchStatus(ObjectReference, Value),
    /// Deletes an object with the grace period of its kind.
    Delete(ObjectReference),
    /// Deletes an object without a grace period.
    Remove(ObjectReference),
}

/// A reference to an object.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ObjectReference {
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// A reference to a pod of the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct PodRef {
    pub(crate) app: usize,
    pub(crate) serial: u64,
}

impl Write {
    pub(crate) fn new(verb: Verb) -> Self {
        Self { verb, pod: None, author: Author::Simulation }
    }

    pub(crate) fn of_pod(pod: PodRef, verb: Verb) -> Self {
        Self { verb, pod: Some(pod), author: Author::Simulation }
    }

    pub(crate) fn by(manager: &'static str, verb: Verb) -> Self {
        Self { verb, pod: None, author: Author::Manager(manager) }
    }

    /// The pod or replica set that a write of the simulation deletes.
    pub(crate) fn doomed(&self) -> Option<&ObjectReference> {
        match &self.verb {
            Verb::Delete(target) | Verb::Remove(target)
                if self.author == Author::Simulation && matches!(target.kind, "Pod" | "ReplicaSet") =>
            {
                Some(target)
            }
            _ => None,
        }
    }

    /// Executes the write, shifting times of the simulation by `seconds`. Returns the revision of
    /// the stored object, 0 if none was stored.
    ///
    /// # Errors
    ///
    /// The error that a client would get.
    pub(crate) fn apply(self, cluster: &Cluster, seconds: i64) -> Result<u64, Status> {
        let kind = |api_version: &str, kind: &str| {
            let objects = Objects::new(cluster, api_version, kind)?;
            Ok::<_, Status>(match self.author {
                Author::Simulation => objects,
                Author::Manager(manager) => objects.managed_by(manager),
            })
        };
        let of = |object: &Value| {
            kind(object["apiVersion"].as_str().unwrap_or_default(), object["kind"].as_str().unwrap_or_default())
        };
        let target = |target: &ObjectReference| {
            Ok::<_, Status>(kind(target.api_version, target.kind)?.namespace(&target.namespace))
        };
        let timed = |mut object: Value| {
            if self.author == Author::Simulation {
                shift(&mut object, seconds);
            }
            object
        };
        match self.verb {
            Verb::Load(object) => of(&object)?.load(timed(object)),
            Verb::Create(object) => of(&object)?.make(timed(object)),
            Verb::Update(object) => of(&object)?.store(timed(object), None),
            Verb::UpdateStatus(object) => of(&object)?.store(timed(object), Some(Part::Status)),
            Verb::Patch(which, patch) => target(&which)?.amend(&which.name, timed(patch), None),
            Verb::PatchStatus(which, patch) => target(&which)?.amend(&which.name, timed(patch), Some(Part::Status)),
            Verb::Delete(which) => target(&which)?.delete(&which.name).map(|()| 0),
            Verb::Remove(which) => target(&which)?.remove(&which.name).map(|()| 0),
        }
    }
}
