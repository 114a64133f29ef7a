//! What an informer is restricted to, as text.

use std::fmt;

use crate::object::{FieldSelector, Selector};
use crate::shard::ShardKey;

/// Namespaces and selectors, to be printed. `None` means all namespaces.
pub(crate) struct ScopeText<'a> {
    pub(crate) namespaces: Option<Vec<&'a str>>,
    pub(crate) labels: Option<&'a Selector>,
    pub(crate) fields: Option<&'a FieldSelector>,
    /// The key of the shard, whose ranges may move.
    pub(crate) shard: Option<ShardKey>,
}

impl fmt::Display for ScopeText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = "";
        if let Some(names) = &self.namespaces {
            write!(f, "in {}", if names.is_empty() { "no namespace".to_owned() } else { names.join(", ") })?;
            before = " ";
        }
        if let Some(labels) = self.labels.filter(|labels| !labels.is_everything()) {
            write!(f, "{before}where {labels}")?;
            before = " ";
        }
        if let Some(fields) = self.fields.filter(|fields| !fields.is_everything()) {
            write!(f, "{before}with {fields}")?;
            before = " ";
        }
        if let Some(key) = self.shard {
            write!(f, "{before}sharded by {}", key.path())?;
        }
        Ok(())
    }
}
