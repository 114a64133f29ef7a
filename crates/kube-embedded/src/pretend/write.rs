//! What a pretended cluster wants written, and how it gets onto a server.

use serde_json::Value;

use super::times::shift;
use crate::api::objects::Objects;
use crate::api::verbs::update::Facet;
use crate::cluster::Cluster;
use crate::http::status::Status;

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Write {
    pub(crate) verb: Verb,
    /// The pod of the story it is about, if it is about one.
    pub(crate) pod: Option<PodRef>,
    pub(crate) author: Author,
}

/// Who writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Author {
    /// The story that the seed tells: its times are the generator's, and its objects say themselves
    /// who manages them.
    Story,
    /// One of the cluster's own programs, as it would in a real one.
    Manager(&'static str),
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verb {
    /// Takes an object as it is, status and all.
    Load(Value),
    Create(Value),
    Update(Value),
    UpdateStatus(Value),
    /// Merges a patch into an object.
    Patch(Target, Value),
    /// Merges a patch into the status of an object.
    PatchStatus(Target, Value),
    /// Deletes an object, with the grace its kind has.
    Delete(Target),
    /// Deletes an object for good.
    Remove(Target),
}

/// An object that is only named.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
        Self { verb, pod: None, author: Author::Story }
    }

    pub(crate) fn of_pod(pod: PodRef, verb: Verb) -> Self {
        Self { verb, pod: Some(pod), author: Author::Story }
    }

    pub(crate) fn by(manager: &'static str, verb: Verb) -> Self {
        Self { verb, pod: None, author: Author::Manager(manager) }
    }

    /// The pod or replica set of the story that it deletes.
    pub(crate) fn doomed(&self) -> Option<&Target> {
        match &self.verb {
            Verb::Delete(target) | Verb::Remove(target)
                if self.author == Author::Story && matches!(target.kind, "Pod" | "ReplicaSet") =>
            {
                Some(target)
            }
            _ => None,
        }
    }

    /// Carries it out, the times of the story moved by so many seconds, and tells the revision of
    /// what was stored: 0 if nothing was.
    ///
    /// # Errors
    ///
    /// What a client would get.
    pub(crate) fn apply(self, cluster: &Cluster, seconds: i64) -> Result<u64, Status> {
        let kind = |api_version: &str, kind: &str| {
            let objects = Objects::new(cluster, api_version, kind)?;
            Ok::<_, Status>(match self.author {
                Author::Story => objects,
                Author::Manager(manager) => objects.managed_by(manager),
            })
        };
        let of = |object: &Value| {
            kind(object["apiVersion"].as_str().unwrap_or_default(), object["kind"].as_str().unwrap_or_default())
        };
        let target =
            |target: &Target| Ok::<_, Status>(kind(target.api_version, target.kind)?.namespace(&target.namespace));
        let timed = |mut object: Value| {
            if self.author == Author::Story {
                shift(&mut object, seconds);
            }
            object
        };
        match self.verb {
            Verb::Load(object) => of(&object)?.load(timed(object)),
            Verb::Create(object) => of(&object)?.make(timed(object)),
            Verb::Update(object) => of(&object)?.store(timed(object), Facet::Main),
            Verb::UpdateStatus(object) => of(&object)?.store(timed(object), Facet::Status),
            Verb::Patch(which, patch) => target(&which)?.amend(&which.name, timed(patch), Facet::Main),
            Verb::PatchStatus(which, patch) => target(&which)?.amend(&which.name, timed(patch), Facet::Status),
            Verb::Delete(which) => target(&which)?.delete(&which.name).map(|()| 0),
            Verb::Remove(which) => target(&which)?.remove(&which.name).map(|()| 0),
        }
    }
}
