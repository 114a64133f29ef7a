//! What the users of a controller do in a run.

use std::fmt;

use kube_embedded::{Server, Status};
use serde_json::Value;

use crate::state::ObjectName;

/// A step of the workload.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Create(Value),
    Patch { target: ObjectName, merge: Value, part: Part },
    Delete(ObjectName),
    UntilQuiet,
}

/// Which part of an object a step changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Main,
    Status,
}

/// The object that a step changes. `name` may have the form `NAMESPACE/NAME`.
pub(crate) fn target(api_version: &str, kind: &str, name: &str) -> ObjectName {
    let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
    let [api_version, kind, namespace, name] = [api_version, kind, namespace, name].map(str::to_owned);
    ObjectName { api_version, kind, namespace, name }
}

impl Step {
    /// Whether the step changes something.
    pub(crate) fn is_change(&self) -> bool {
        !matches!(self, Self::UntilQuiet)
    }

    pub(crate) fn apply(&self, server: &Server) -> Result<(), Status> {
        let objects = |target: &ObjectName| {
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
            Self::Create(object) => write!(f, "create {}", ObjectName::of(object)),
            Self::Patch { target, merge, .. } => write!(f, "change {target}: {merge}"),
            Self::Delete(target) => write!(f, "delete {target}"),
            Self::UntilQuiet => f.write_str("wait until quiet"),
        }
    }
}
