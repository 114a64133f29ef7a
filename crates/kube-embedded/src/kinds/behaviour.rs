//! Behaviour that differs between kinds when objects are written and deleted.

use std::borrow::Cow;

use serde_json::Value;

use super::NameRule;

/// How the server handles objects of a kind.
#[derive(Debug, Clone)]
pub(crate) struct Behaviour {
    pub(crate) name_rule: NameRule,
    pub(crate) generation: Generation,
    pub(crate) update_version: UpdateVersion,
    pub(crate) put_missing: PutMissing,
    pub(crate) delete_reply: DeleteReply,
    pub(crate) propagation: Propagation,
    pub(crate) initial_status: InitialStatus,
    /// Finalizers that every new object gets.
    pub(crate) initial_finalizers: Vec<Cow<'static, str>>,
    /// The warning in each response for a deprecated kind.
    pub(crate) deprecation: Option<&'static str>,
    /// The warning for a delete without a propagation policy.
    pub(crate) delete_warning: Option<&'static str>,
    pub(crate) lifecycle: Lifecycle,
}

/// How `metadata.generation` is maintained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// Not maintained: stored as the client sends it, usually absent.
    AsSent,
    /// Set to 1 on create and never incremented.
    One,
    /// Set to 1 on create and incremented on these changes.
    Counted(Counts),
    /// Not set on create, but incremented when the content changes.
    CountedFromNothing,
}

/// The changes that increment [`Generation::Counted`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counts {
    /// Everything except metadata and status.
    Content,
    /// The content and the annotations (Deployments).
    ContentAndAnnotations,
    /// The content and the labels (`EndpointSlice`s).
    ContentAndLabels,
    /// Everything except metadata (custom resources without a status subresource).
    ContentAndStatus,
}

/// Whether an update requires a resourceVersion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpdateVersion {
    Optional,
    Required,
}

/// The result of a PUT of an object that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PutMissing {
    NotFound,
    Creates,
}

/// The response of a DELETE that removes the object at once. If the object stays, the response is
/// always the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeleteReply {
    Status,
    Object,
}

/// The default propagation policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Orphan,
}

/// How a status sent on create is handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InitialStatus {
    /// Kept like any other content.
    Kept,
    /// Dropped; required fields get their zero values.
    Empty,
    /// Dropped, and the phase is set.
    Phase(&'static str),
}

/// Kinds with a special lifecycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    Plain,
    /// Created with `spec.finalizers: ["kubernetes"]` and a label with its name; Terminating until
    /// finalized.
    Namespace,
    /// Deleted with a grace period if it is bound to a node.
    Pod,
    /// Counts template changes in an annotation, starting at 1.
    DaemonSet,
    /// Its kind is served while it exists; on deletion its custom resources are deleted first.
    CustomResourceDefinition,
}

impl Generation {
    /// The generation of a new object, if the server sets it.
    pub(crate) fn initial(self) -> Option<i64> {
        match self {
            Generation::AsSent | Generation::CountedFromNothing => None,
            Generation::One | Generation::Counted(_) => Some(1),
        }
    }

    /// Whether an update from `old` to `new` increments the generation.
    pub(crate) fn counts(self, old: &Value, new: &Value) -> bool {
        match self {
            Generation::AsSent | Generation::One => false,
            Generation::CountedFromNothing => content_differs(old, new, &["status"]),
            Generation::Counted(counts) => match counts {
                Counts::Content => content_differs(old, new, &["status"]),
                Counts::ContentAndAnnotations => {
                    content_differs(old, new, &["status"]) || metadata_differs(old, new, "annotations")
                }
                Counts::ContentAndLabels => {
                    content_differs(old, new, &["status"]) || metadata_differs(old, new, "labels")
                }
                Counts::ContentAndStatus => content_differs(old, new, &[]),
            },
        }
    }
}

fn content_differs(old: &Value, new: &Value, except: &[&str]) -> bool {
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return old != new };
    let counted = |key: &str| !matches!(key, "kind" | "apiVersion" | "metadata") && !except.contains(&key);
    old.iter().any(|(key, value)| counted(key) && new.get(key) != Some(value))
        || new.keys().any(|key| counted(key) && !old.contains_key(key))
}

fn metadata_differs(old: &Value, new: &Value, part: &str) -> bool {
    old["metadata"].get(part) != new["metadata"].get(part)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_status_or_label_does_not_count_but_content_does() {
        let old = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"x": 1}, "status": {}});
        let generation = Generation::Counted(Counts::Content);
        assert!(!generation.counts(&old, &json!({"metadata": {}, "spec": {"x": 1}, "status": {"y": 2}})));
        assert!(generation.counts(&old, &json!({"metadata": {}, "spec": {"x": 2}})));
        assert!(generation.counts(&old, &json!({"metadata": {}, "status": {}})));
        assert!(generation.counts(&old, &json!({"metadata": {}, "spec": {"x": 1}, "rules": []})));
    }

    #[test]
    fn labels_and_annotations_count_where_the_kind_says_so() {
        let old = json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}});
        let relabelled = json!({"metadata": {"labels": {"a": "x"}, "annotations": {"c": "d"}}});
        let annotated = json!({"metadata": {"labels": {"a": "b"}}});
        let (labels, annotations) = (Counts::ContentAndLabels, Counts::ContentAndAnnotations);
        assert!(Generation::Counted(labels).counts(&old, &relabelled));
        assert!(!Generation::Counted(labels).counts(&old, &annotated));
        assert!(Generation::Counted(annotations).counts(&old, &annotated));
        assert!(!Generation::Counted(annotations).counts(&old, &relabelled));
    }

    #[test]
    fn a_custom_status_counts_only_without_its_subresource() {
        let (old, new) = (json!({"status": 1}), json!({"status": 2}));
        assert!(Generation::Counted(Counts::ContentAndStatus).counts(&old, &new));
        assert!(!Generation::Counted(Counts::Content).counts(&old, &new));
    }
}
