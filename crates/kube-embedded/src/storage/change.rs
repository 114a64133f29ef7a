//! One change of a table, as watches see it.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::object::Object;

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
    /// The object after the change; of a deletion, its last state under the revision of the deletion.
    pub(crate) object: Arc<Object>,
    /// The object before the change.
    pub(crate) previous: Option<Arc<Object>>,
    pub(crate) at: Instant,
    /// The frames already written, by what was asked for: an event is encoded once, however many watch it.
    frames: Mutex<Vec<(FrameKey, Bytes)>>,
}

/// What a frame depends on apart from the change: its type and the form of the object in it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FrameKey {
    kind: FrameKind,
    form: u32,
}

impl Change {
    pub(crate) fn new(kind: ChangeKind, object: Arc<Object>, previous: Option<Arc<Object>>, at: Instant) -> Self {
        Self { kind, object, previous, at, frames: Mutex::default() }
    }

    pub(crate) fn revision(&self) -> u64 {
        self.object.revision()
    }

    /// The frame of this change in a form, made by `encode` the first time it is asked for.
    ///
    /// `form` is the identity of a representation (API version, full or metadata only) within the table.
    pub(crate) fn frame(&self, kind: FrameKind, form: u32, encode: impl FnOnce() -> Bytes) -> Bytes {
        let key = FrameKey { kind, form };
        let mut frames = self.frames.lock();
        if let Some((_, frame)) = frames.iter().find(|(k, _)| *k == key) {
            return frame.clone();
        }
        let frame = encode();
        frames.push((key, frame.clone()));
        frame
    }
}
