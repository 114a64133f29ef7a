//! A change of an object.

use std::sync::Arc;

use jiff::Timestamp;
use kube_informer::{Event, FinalState, Obj, Origin};
use serde_json::Value;

use crate::client::kind_info::KindInfo;

/// What happened to an object, and when.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    pub(crate) at: Timestamp,
    pub(crate) kind: Arc<KindInfo>,
    pub(crate) what: What,
    pub(crate) origin: Origin,
    /// The object after the change; of a deleted one, its last state.
    pub(crate) object: Obj<Value>,
}

/// The type of a change, with what is known only for it.
#[derive(Debug, Clone)]
pub(crate) enum What {
    Added,
    Updated {
        /// The object before.
        old: Obj<Value>,
    },
    Deleted {
        why: Removal,
    },
}

/// Why an object is no longer among those that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removal {
    /// The server sent its deletion.
    Deleted,
    /// It was deleted while the watch was disconnected.
    Missed,
    /// It exists, and the selectors of the watch exclude it.
    Unselected,
    /// It exists, and the query is no longer true for it.
    Unmatched,
}

impl Removal {
    /// What is said of it; nothing of an ordinary deletion.
    pub(crate) fn note(self) -> Option<&'static str> {
        match self {
            Self::Deleted => None,
            Self::Missed => Some("missed while disconnected"),
            Self::Unselected => Some("no longer selected"),
            Self::Unmatched => Some("no longer matches"),
        }
    }
}

impl Change {
    pub(crate) fn now(kind: &Arc<KindInfo>, event: Event<Value>) -> Self {
        let origin = event.origin();
        let (what, object) = match event {
            Event::Added { object, .. } => (What::Added, object),
            Event::Updated { old, new, .. } => (What::Updated { old }, new),
            Event::Deleted { last, state, .. } => {
                let why = match state {
                    FinalState::Missed => Removal::Missed,
                    FinalState::Filtered => Removal::Unselected,
                    _ => Removal::Deleted,
                };
                (What::Deleted { why }, last)
            }
        };
        Self { at: Timestamp::now(), kind: Arc::clone(kind), what, origin, object }
    }

    /// The same without decoded bodies, to be kept.
    pub(crate) fn compact(&self) -> Self {
        let what = match &self.what {
            What::Updated { old } => What::Updated { old: old.fresh_handle() },
            other => other.clone(),
        };
        Self {
            at: self.at,
            kind: Arc::clone(&self.kind),
            what,
            origin: self.origin,
            object: self.object.fresh_handle(),
        }
    }

    /// Whether it is an update that only repeats what was there before.
    pub(crate) fn is_resync(&self) -> bool {
        self.origin == Origin::Resync
    }
}
