//! Events that handlers receive.

use crate::body::{Obj, Untyped};
use crate::object::ObjectKey;

/// A change of the cache, delivered to handlers after readers can see it.
///
/// Each object has one sequence of events: added once, updated any number of times, deleted once.
/// An object that is deleted and created again under the same name is a new object with its own
/// sequence.
///
/// ```
/// use kube_informer::{Event, Obj, Origin, Untyped};
///
/// let object = Obj::<Untyped>::from_json(r#"{"metadata":{"name":"a","namespace":"b"}}"#)?;
/// let event = Event::added(object, Origin::Live);
/// assert_eq!(event.key().to_string(), "b/a");
/// assert!(event.old().is_none() && !event.is_deleted());
/// # Ok::<_, kube_informer::DecodeError>(())
/// ```
#[derive(Debug)]
#[doc(alias(
    "ResourceEventHandler",
    "TypedResourceEventHandler",
    "ResourceEventHandlerFuncs",
    "TypedResourceEventHandlerFuncs"
))]
pub enum Event<K = Untyped> {
    /// The object is new to the cache.
    #[doc(alias("OnAdd"))]
    #[non_exhaustive]
    Added {
        /// Its current state.
        object: Obj<K>,
        /// Why the event is reported.
        origin: Origin,
    },
    /// The object has changed, or is reported again without a change ([`Origin::Resync`]).
    #[doc(alias("OnUpdate"))]
    #[non_exhaustive]
    Updated {
        /// Its previous state.
        old: Obj<K>,
        /// Its current state.
        new: Obj<K>,
        /// Why the event is reported.
        origin: Origin,
    },
    /// The object has been removed from the cache.
    #[doc(alias("OnDelete", "DeletedObject"))]
    #[non_exhaustive]
    Deleted {
        /// Its last known state.
        last: Obj<K>,
        /// Whether that is its final state on the server.
        state: FinalState,
        /// Why the event is reported.
        origin: Origin,
    },
}

/// Why an event is reported.
///
/// ```
/// use kube_informer::{Event, Obj, Origin, Untyped};
///
/// // Alert on changes, not on objects that existed before the informer started.
/// fn alarms(event: &Event<Untyped>) -> bool {
///     matches!(event.origin(), Origin::Live | Origin::Relist)
/// }
/// let object = Obj::from_json(r#"{"metadata":{"name":"a"}}"#)?;
/// assert!(!alarms(&Event::added(object, Origin::Initial)));
/// # Ok::<_, kube_informer::DecodeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// Found by the first list.
    #[doc(alias("ResourceEventHandlerDetailedFuncs", "TypedResourceEventHandlerDetailedFuncs"))]
    Initial,
    /// Reported by the watch, as it happened.
    Live,
    /// Found by a later list: it happened while no watch was open.
    Relist,
    /// No change: a resync periodically reports all objects again.
    Resync,
}

/// How much is known about the final state of a deleted object.
///
/// ```
/// use kube_informer::{Event, FinalState};
///
/// fn line<K>(event: &Event<K>) -> String {
///     match event {
///         Event::Deleted { last, state: FinalState::Known, .. } => format!("{} was deleted", last.key()),
///         Event::Deleted { last, state: FinalState::Missed, .. } => format!("{} is gone, who knows since when", last.key()),
///         Event::Deleted { last, .. } => format!("{} is of no interest any more", last.key()),
///         other => format!("{} is there", other.key()),
///     }
/// }
/// # let last = kube_informer::Obj::<kube_informer::Untyped>::from_json(r#"{"metadata":{"name":"a"}}"#).unwrap();
/// # assert_eq!(line(&Event::deleted(last, FinalState::Known, kube_informer::Origin::Live)), "a was deleted");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[doc(alias = "DeletedFinalStateUnknown")]
pub enum FinalState {
    /// The server sent the final state with the deletion.
    Known,
    /// The deletion was missed: this is the last state received, and there may have been later
    /// ones.
    Missed,
    /// Not deleted on the server: the object no longer passes the filter, its scope is no longer
    /// watched, or its shard has moved.
    Filtered,
}

impl<K> Event<K> {
    /// Creates an `Added`, for tests.
    #[must_use]
    pub fn added(object: Obj<K>, origin: Origin) -> Self {
        Self::Added { object, origin }
    }

    /// Creates an `Updated`, for tests.
    #[must_use]
    pub fn updated(old: Obj<K>, new: Obj<K>, origin: Origin) -> Self {
        Self::Updated { old, new, origin }
    }

    /// Creates a `Deleted`, for tests.
    #[must_use]
    pub fn deleted(last: Obj<K>, state: FinalState, origin: Origin) -> Self {
        Self::Deleted { last, state, origin }
    }

    /// The key of the object.
    #[must_use]
    #[doc(alias("DeletionHandlingObjectToName"))]
    pub fn key(&self) -> &ObjectKey {
        self.object().key()
    }

    /// The current state of the object, or the last known state of a deleted one.
    ///
    /// ```
    /// use kube_informer::{Event, FinalState, Obj, Origin, Untyped};
    ///
    /// let last = Obj::<Untyped>::from_json(r#"{"metadata":{"name":"a","labels":{"app":"web"}}}"#)?;
    /// let event = Event::deleted(last, FinalState::Known, Origin::Live);
    /// assert_eq!(event.object().label("app"), Some("web"));
    /// # Ok::<_, kube_informer::DecodeError>(())
    /// ```
    #[must_use]
    pub fn object(&self) -> &Obj<K> {
        match self {
            Self::Added { object, .. } => object,
            Self::Updated { new, .. } => new,
            Self::Deleted { last, .. } => last,
        }
    }

    /// The state before an update; none for other events.
    #[must_use]
    pub fn old(&self) -> Option<&Obj<K>> {
        match self {
            Self::Updated { old, .. } => Some(old),
            Self::Added { .. } | Self::Deleted { .. } => None,
        }
    }

    /// Why the event is reported.
    #[must_use]
    pub fn origin(&self) -> Origin {
        match self {
            Self::Added { origin, .. } | Self::Updated { origin, .. } | Self::Deleted { origin, .. } => *origin,
        }
    }

    /// Whether this is a `Deleted`.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        matches!(self, Self::Deleted { .. })
    }

    /// The states before and after the event, for filters that compare both.
    ///
    /// ```
    /// use kube_informer::{Event, Obj, Origin, Untyped};
    ///
    /// /// Whether an object enters or leaves the set of objects with this label.
    /// fn crosses<K>(event: &Event<K>, label: &str) -> bool {
    ///     let has = |object: Option<&Obj<K>>| object.is_some_and(|object| object.label(label).is_some());
    ///     let (before, after) = event.states();
    ///     has(before) != has(after)
    /// }
    /// let old = Obj::<Untyped>::from_json(r#"{"metadata":{"name":"a"}}"#)?;
    /// let new = Obj::from_json(r#"{"metadata":{"name":"a","labels":{"gold":""}}}"#)?;
    /// assert!(crosses(&Event::updated(old, new, Origin::Live), "gold"));
    /// # Ok::<_, kube_informer::DecodeError>(())
    /// ```
    #[must_use]
    pub fn states(&self) -> (Option<&Obj<K>>, Option<&Obj<K>>) {
        match self {
            Self::Added { object, .. } => (None, Some(object)),
            Self::Updated { old, new, .. } => (Some(old), Some(new)),
            Self::Deleted { last, .. } => (Some(last), None),
        }
    }

    /// The same event with another object type.
    pub(crate) fn cast<V>(self) -> Event<V> {
        match self {
            Self::Added { object, origin } => Event::Added { object: object.cast(), origin },
            Self::Updated { old, new, origin } => Event::Updated { old: old.cast(), new: new.cast(), origin },
            Self::Deleted { last, state, origin } => Event::Deleted { last: last.cast(), state, origin },
        }
    }

    /// The same event with another object type, sharing the objects and what is decoded of them.
    pub(crate) fn share<V>(&self) -> Event<V> {
        match self {
            Self::Added { object, origin } => Event::Added { object: object.share(), origin: *origin },
            Self::Updated { old, new, origin } => {
                Event::Updated { old: old.share(), new: new.share(), origin: *origin }
            }
            Self::Deleted { last, state, origin } => {
                Event::Deleted { last: last.share(), state: *state, origin: *origin }
            }
        }
    }
}

impl<K> Clone for Event<K> {
    fn clone(&self) -> Self {
        self.share()
    }
}
