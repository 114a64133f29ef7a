//! What a controller says about an object.

use k8s_openapi::api::core::v1::ObjectReference;

/// An event about to be recorded.
///
/// The reason and the action are one word each, for machines; the note is for people. What exceeds
/// the server's limits (128 characters, 1 KB of note) is cut off.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "an event is recorded by a recorder"]
pub struct NewEvent {
    pub(super) kind: &'static str,
    pub(super) reason: String,
    pub(super) action: String,
    pub(super) note: String,
    pub(super) related: Option<ObjectReference>,
}

impl NewEvent {
    /// Something that is expected: `Created`, `Scaled`.
    ///
    /// The reason is why the action was taken, the action what was done.
    pub fn normal(reason: impl Into<String>, action: impl Into<String>, note: impl Into<String>) -> Self {
        Self { kind: "Normal", reason: reason.into(), action: action.into(), note: note.into(), related: None }
    }

    /// Something that needs attention: `FailedCreate`.
    pub fn warning(reason: impl Into<String>, action: impl Into<String>, note: impl Into<String>) -> Self {
        Self { kind: "Warning", ..Self::normal(reason, action, note) }
    }

    /// Names a second object, such as the one that was created.
    pub fn related(mut self, object: ObjectReference) -> Self {
        self.related = Some(object);
        self
    }
}
