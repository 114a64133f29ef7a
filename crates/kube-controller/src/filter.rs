//! Event filters: which changes of an object concern a controller.
//!
//! Uses nothing else of the crate.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Not;
use std::sync::Arc;

use kube_informer::{Event, Obj, Origin};
use serde::Deserialize;

/// Decides which events of a watched kind reach a controller.
///
/// A filter sees the state before and after a change: none before an addition, none after a
/// deletion. Resyncs pass every filter, because they are not changes.
///
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use kube_controller::Filter;
///
/// // The spec has changed, or the annotations have, but not of deployments that are paused.
/// let paused = Filter::<Deployment>::state(|object| object.annotation("example.com/paused").is_some());
/// let filter = Filter::generation().or(Filter::annotations()).and(!paused);
/// # let object = |json: &'static str| kube_informer::Obj::<Deployment>::from_json(json).unwrap();
/// let (old, new) = (
///     object(r#"{"metadata":{"name":"a","generation":1}}"#),
///     object(r#"{"metadata":{"name":"a","generation":2}}"#),
/// );
/// assert!(filter.passes(Some(&old), Some(&new)));
/// assert!(!filter.passes(Some(&old), Some(&old)));
/// ```
#[doc(alias("Predicate", "predicate_filter"))]
pub struct Filter<K> {
    test: Arc<Test<K>>,
}

type Test<K> = dyn Fn(Option<&Obj<K>>, Option<&Obj<K>>) -> bool + Send + Sync;

impl<K: 'static> Filter<K> {
    /// Creates a filter from a function of the state before and after a change.
    pub fn new(test: impl Fn(Option<&Obj<K>>, Option<&Obj<K>>) -> bool + Send + Sync + 'static) -> Self {
        Self { test: Arc::new(test) }
    }

    /// Passes changes of objects that pass a test, before or after the change.
    ///
    /// So an object that stops to pass is seen once more.
    pub fn state(test: impl Fn(&Obj<K>) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |old, new| old.is_some_and(&test) || new.is_some_and(&test))
    }

    /// Passes additions, deletions, and updates that changed the generation or began a deletion:
    /// changes of the spec, not of the status.
    ///
    /// Kinds without generations pass always.
    #[must_use]
    #[doc(alias = "GenerationChangedPredicate")]
    pub fn generation() -> Self {
        Self::of(|old, new| {
            let is_unknown = new.generation().is_none();
            is_unknown || old.generation() != new.generation() || old.deletion_timestamp() != new.deletion_timestamp()
        })
    }

    /// Passes additions, deletions, and updates that changed a label.
    #[must_use]
    #[doc(alias = "LabelChangedPredicate")]
    pub fn labels() -> Self {
        Self::of(|old, new| !old.labels().iter().eq(new.labels().iter()))
    }

    /// Passes additions, deletions, and updates that changed an annotation.
    #[must_use]
    #[doc(alias = "AnnotationChangedPredicate")]
    pub fn annotations() -> Self {
        Self::of(|old, new| annotations(old) != annotations(new))
    }

    /// Passes what both filters pass.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::new(move |old, new| self.passes(old, new) && other.passes(old, new))
    }

    /// Passes what one of the filters passes.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::new(move |old, new| self.passes(old, new) || other.passes(old, new))
    }

    /// Returns whether a change passes.
    #[must_use]
    pub fn passes(&self, old: Option<&Obj<K>>, new: Option<&Obj<K>>) -> bool {
        (self.test)(old, new)
    }

    pub(crate) fn passes_event(&self, event: &Event<K>) -> bool {
        let (old, new) = event.states();
        event.origin() == Origin::Resync || self.passes(old, new)
    }

    /// A filter of updates alone.
    fn of(changed: impl Fn(&Obj<K>, &Obj<K>) -> bool + Send + Sync + 'static) -> Self {
        Self::new(move |old, new| match (old, new) {
            (Some(old), Some(new)) => changed(old, new),
            _ => true,
        })
    }
}

impl<K: 'static> Not for Filter<K> {
    type Output = Self;

    fn not(self) -> Self {
        Self::new(move |old, new| !self.passes(old, new))
    }
}

impl<K> Clone for Filter<K> {
    fn clone(&self) -> Self {
        Self { test: Arc::clone(&self.test) }
    }
}

impl<K> fmt::Debug for Filter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter").finish_non_exhaustive()
    }
}

/// The annotations of an object; none if its metadata cannot be read.
fn annotations<K>(object: &Obj<K>) -> BTreeMap<String, String> {
    #[derive(Deserialize)]
    struct Annotated {
        metadata: Annotations,
    }
    #[derive(Deserialize)]
    struct Annotations {
        #[serde(default)]
        annotations: Option<BTreeMap<String, String>>,
    }
    let read = serde_json::from_slice::<Annotated>(&object.json());
    read.ok().and_then(|object| object.metadata.annotations).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

    use kube_informer::{FinalState, Untyped};
    use serde_json::{Value, json};

    use super::*;

    fn object(metadata: &Value) -> Obj<Untyped> {
        Obj::from_json(json!({ "metadata": metadata }).to_string()).unwrap()
    }

    fn base() -> Obj<Untyped> {
        object(&json!({"name": "a", "generation": 1, "labels": {"l": "1"}, "annotations": {"a": "1"}}))
    }

    #[test]
    fn each_filter_passes_only_changes_of_its_part() {
        let spec = object(&json!({"name": "a", "generation": 2, "labels": {"l": "1"}, "annotations": {"a": "1"}}));
        let label = object(&json!({"name": "a", "generation": 1, "labels": {"l": "2"}, "annotations": {"a": "1"}}));
        let note = object(&json!({"name": "a", "generation": 1, "labels": {"l": "1"}, "annotations": {"a": "2"}}));
        let passed = |filter: &Filter<Untyped>| {
            [&spec, &label, &note, &base()].map(|new| filter.passes(Some(&base()), Some(new)))
        };
        assert_eq!(passed(&Filter::generation()), [true, false, false, false]);
        assert_eq!(passed(&Filter::labels()), [false, true, false, false]);
        assert_eq!(passed(&Filter::annotations()), [false, false, true, false]);
        assert_eq!(passed(&Filter::generation().or(Filter::labels())), [true, true, false, false]);
        assert_eq!(passed(&!Filter::labels()), [true, false, true, true]);
        assert_eq!(passed(&Filter::labels().and(Filter::annotations())), [false; 4]);
    }

    #[test]
    fn additions_and_deletions_pass_filters_of_updates() {
        for filter in [Filter::generation(), Filter::labels(), Filter::annotations()] {
            assert!(filter.passes(None, Some(&base())) && filter.passes(Some(&base()), None));
        }
    }

    #[test]
    fn the_beginning_of_a_deletion_passes_the_filter_of_generations() {
        let going = object(&json!({"name": "a", "generation": 1, "deletionTimestamp": "2026-01-01T00:00:00Z"}));
        assert!(Filter::generation().passes(Some(&base()), Some(&going)));
    }

    #[test]
    fn an_object_that_stops_to_pass_is_seen_once_more() {
        let gold = Filter::<Untyped>::state(|object| object.label("l") == Some("2"));
        let other = object(&json!({"name": "a", "labels": {"l": "2"}}));
        assert!(gold.passes(Some(&other), Some(&base())) && !gold.passes(Some(&base()), Some(&base())));
    }

    #[test]
    fn resyncs_pass_every_filter() {
        let none = Filter::<Untyped>::new(|_, _| false);
        assert!(none.passes_event(&Event::updated(base(), base(), Origin::Resync)));
        assert!(!none.passes_event(&Event::updated(base(), base(), Origin::Live)));
        assert!(!none.passes_event(&Event::deleted(base(), FinalState::Known, Origin::Live)));
    }
}
