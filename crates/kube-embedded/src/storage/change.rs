//! One change of a table, as watches read it.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::object::Object;
use crate::api::view::View;

/// What happened to the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Created,
    Updated,
    Deleted,
}

/// The type of a watch event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Added,
    Modified,
    Deleted,
}

impl FrameKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// One entry of the log.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) kind: ChangeKind,
    /// The object after the change. For a deletion: its last state with the revision of the
    /// deletion.
    pub(crate) object: Arc<Object>,
    /// The object before the change.
    pub(crate) previous: Option<Arc<Object>>,
    pub(crate) at: Instant,
    /// Encoded frames by event type and view: each is encoded once for all watches.
    frames: Mutex<Vec<(FrameKind, View, Bytes)>>,
}

impl Change {
    pub(crate) fn new(kind: ChangeKind, object: Arc<Object>, previous: Option<Arc<Object>>, at: Instant) -> Self {
        Self { kind, object, previous, at, frames: Mutex::default() }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.object.revision()
    }

    /// The frame of this change in a view, created by `encode` on the first call and then cached.
    pub(crate) fn frame(&self, kind: FrameKind, view: &View, encode: impl FnOnce() -> Bytes) -> Bytes {
        let mut frames = self.frames.lock();
        if let Some((.., frame)) = frames.iter().find(|(k, v, _)| *k == kind && v.is(view)) {
            return frame.clone();
        }
        let frame = encode();
        frames.push((kind, view.clone(), frame.clone()));
        frame
    }
}
