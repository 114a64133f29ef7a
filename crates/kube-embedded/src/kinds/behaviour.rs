//! What sets one kind apart from another when its objects are written and deleted.

use std::borrow::Cow;

use serde_json::Value;

use super::NameRule;

/// How the server treats the objects of one kind.
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
    /// The text of the warning that comes with each answer about a kind on its way out.
    pub(crate) deprecation: Option<&'static str>,
    /// The text of the warning that comes with a delete that names no propagation policy.
    pub(crate) delete_warning: Option<&'static str>,
    pub(crate) lifecycle: Lifecycle,
}

/// Who counts `metadata.generation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Generation {
    /// Nobody: what the client sends is stored, usually nothing.
    AsSent,
    /// The server sets 1 and never counts on.
    One,
    /// The server sets 1 and adds 1 whenever these change.
    Counted(Counts),
    /// The server sets nothing, but adds 1 when the content changes.
    CountedFromNothing,
}

/// The changes that [`Generation::Counted`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counts {
    /// Everything but metadata and status.
    Content,
    /// The content and the annotations (Deployments).
    ContentAndAnnotations,
    /// The content and the labels (`EndpointSlice`s).
    ContentAndLabels,
    /// Everything but metadata (custom resources without a status subresource).
    ContentAndStatus,
}

/// Whether an update may come without a resourceVersion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UpdateVersion {
    Optional,
    Required,
}

/// What PUT does when there is no such object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PutMissing {
    NotFound,
    Creates,
}

/// What DELETE answers when the object goes at once. One that stays is always answered with the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeleteReply {
    Status,
    Object,
}

/// What happens to dependents when the client does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Orphan,
}

/// What becomes of the status a client sends on create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InitialStatus {
    /// It is content like any other.
    Kept,
    /// It is dropped; required fields show their zero values.
    Empty,
    /// It is dropped, and the phase set.
    Phase(&'static str),
}

/// Kinds with a life of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifecycle {
    Plain,
    /// Born with `spec.finalizers: ["kubernetes"]` and a label of its name; stays Terminating until finalized.
    Namespace,
    /// Deleted with a grace period once it has a node.
    Pod,
    /// Counts the changes of its template in an annotation, from 1.
    DaemonSet,
    /// Serves a kind while it lives; its objects go first.
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

    /// Whether an update from `old` to `new` adds 1.
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
