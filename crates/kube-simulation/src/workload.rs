//! What the users of a controller do in a run.

use std::fmt;

use kube_embedded::{Server, Status};
use serde_json::Value;

/// A step of the workload.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Create(Value),
    Patch { target: Target, merge: Value, part: Part },
    Delete(Target),
    UntilQuiet,
}

/// Which part of an object a step changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Main,
    Status,
}

/// An object that a step changes.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Target {
    /// `name` may have the form `NAMESPACE/NAME`.
    pub(crate) fn new(api_version: &str, kind: &str, name: &str) -> Self {
        let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
        let [api_version, kind] = [api_version, kind].map(str::to_owned);
        Self { api_version, kind, namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

impl Step {
    /// Whether the step changes something.
    pub(crate) fn is_change(&self) -> bool {
        !matches!(self, Self::UntilQuiet)
    }

    pub(crate) fn apply(&self, server: &Server) -> Result<(), Status> {
        let objects = |target: &Target| {
            server.objects(&target.api_version, &target.kind).map(|objects| objects.namespace(&target.namespace))
        };
        match self {
            Self::Create(object) => server.create(object).map(drop),
            Self::Patch { target, merge, part: Part::Main } => objects(target)?.patch(&target.name, merge).map(drop),
            Self::Patch { target, merge, part: Part::Status } => {
                objects(target)?.patch_status(&target.name, merge).map(drop)
            }
            Self::Delete(target) => objects(target)?.delete(&target.name),
            Self::UntilQuiet => Ok(()),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(object) => {
                write!(f, "create {}", crate::state::ObjectName::of(object))
            }
            Self::Patch { target, merge, .. } => {
                write!(f, "change {} {}/{}: {merge}", target.kind, target.namespace, target.name)
            }
            Self::Delete(target) => write!(f, "delete {} {}/{}", target.kind, target.namespace, target.name),
            Self::UntilQuiet => f.write_str("wait until quiet"),
        }
    }
}
