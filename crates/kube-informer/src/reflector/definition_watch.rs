//! Looking out for a resource that the server does not know.

use futures_util::stream::BoxStream;

/// Whether a resource is defined, as far as can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum DefinitionState {
    /// Nothing can be said.
    #[default]
    Unknown,
    /// It is not defined.
    Absent,
    /// It is defined, or its definition has changed: asking again may help.
    Present,
}

/// Looks out for a resource that the server does not know.
pub(crate) trait DefinitionWatch: Send + Sync {
    /// What is seen, whenever that changes. Looking ends when the stream is dropped.
    fn look(&self) -> BoxStream<'static, DefinitionState>;
}
