//! Watching the definition of a resource that the server does not know.

use futures_util::stream::BoxStream;

/// Whether a resource is defined, as far as is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum DefinitionState {
    /// Not known.
    #[default]
    Unknown,
    /// It is not defined.
    Absent,
    /// It is defined, or its definition has changed: a retry may succeed.
    Present,
}

/// Watches the definition of a resource that the server does not know.
pub(crate) trait DefinitionWatch: Send + Sync {
    /// The state of the definition, whenever it changes. Dropping the stream ends the watch.
    fn look(&self) -> BoxStream<'static, DefinitionState>;
}
