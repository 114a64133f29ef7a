//! Selection of the objects of a collection that a request is for.

use std::sync::Arc;

use super::view::View;
use crate::cluster::Cluster;
use crate::http::query::ListOptions;
use crate::http::status::Status;
use crate::kinds::Kind;
use crate::storage::selector::{FieldSelector, LabelSelector, ShardSelector};
use crate::storage::{KeyRange, Object};

/// A collection restricted by selectors that the kind supports.
#[derive(Debug, Clone)]
pub(crate) struct Filter {
    range: KeyRange,
    labels: LabelSelector,
    fields: FieldSelector,
    shard: Option<ShardSelector>,
}

/// The parsed selectors of a request, not yet checked against a kind.
#[derive(Debug, Clone)]
pub(crate) struct Selectors {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selectors {
    pub(crate) fn parse(labels: &str, fields: &str) -> Result<Self, Status> {
        Ok(Self { labels: LabelSelector::parse(labels)?, fields: FieldSelector::parse(fields)? })
    }

    pub(crate) fn of(options: &ListOptions) -> Result<Self, Status> {
        Self::parse(&options.label_selector, &options.field_selector)
    }
}

impl Filter {
    /// Checks selectors against the kind: a field that is not selectable gets 400.
    pub(crate) fn new(kind: &Kind, namespace: Option<&str>, selectors: Selectors) -> Result<Self, Status> {
        for term in selectors.fields.terms() {
            kind.selectable_field(&term.field).map_err(Status::bad_request)?;
        }
        Ok(Self { range: KeyRange::of(namespace), labels: selectors.labels, fields: selectors.fields, shard: None })
    }

    /// Restricts the collection to a shard, if the request names one and the server has the
    /// feature.
    pub(crate) fn in_shard(self, cluster: &Cluster, options: &ListOptions) -> Result<Self, Status> {
        let shard = match options.shard_selector.as_str() {
            "" => None,
            _ if !cluster.settings.has_shards => None,
            text => Some(ShardSelector::parse(text)?),
        };
        Ok(Self { shard, ..self })
    }

    /// The shard as a list names it (`shardInfo`).
    pub(crate) fn shard_info(&self) -> Option<String> {
        self.shard.as_ref().map(ToString::to_string)
    }

    /// The keys that can match.
    pub(crate) fn range(&self) -> &KeyRange {
        &self.range
    }

    /// Whether it matches every object of its range.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything() && self.shard.is_none()
    }

    /// The name of the only object that can match, if a field selector fixes it.
    pub(crate) fn name(&self) -> Option<&str> {
        self.fields.fixed("metadata.name")
    }

    pub(crate) fn matches(&self, view: &View, object: &Arc<Object>) -> bool {
        self.shard.as_ref().is_none_or(|shard| shard.matches(object))
            && self.labels.matches(object.labels())
            && self.fields.terms().iter().all(|term| term.accepts(&view.field(object, &term.field)))
    }
}
