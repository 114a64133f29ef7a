//! What a handler is told.

use crate::body::{Obj, Untyped};
use crate::object::ObjectKey;

/// A change of the cache, told after readers can see it.
///
/// For each object the story is: added once, updated any number of times, deleted once. An object that was deleted and made again
/// under the same name is a new object, with a story of its own.
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
        /// As it is now.
        object: Obj<K>,
        /// Why this is told.
        origin: Origin,
    },
    /// The object has changed, or is told again without a change ([`Origin::Resync`]).
    #[doc(alias("OnUpdate"))]
    #[non_exhaustive]
    Updated {
        /// As it was.
        old: Obj<K>,
        /// As it is now.
        new: Obj<K>,
        /// Why this is told.
        origin: Origin,
    },
    /// The object is gone from the cache.
    #[doc(alias("OnDelete", "DeletedObject"))]
    #[non_exhaustive]
    Deleted {
        /// The last that is known of it.
        last: Obj<K>,
        /// How much that says.
        state: FinalState,
        /// Why this is told.
        origin: Origin,
    },
}

/// Why an event is told.
///
/// ```
/// use kube_informer::{Event, Obj, Origin, Untyped};
///
/// // Alarms are for what happens, not for what was there before us.
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
    /// By the first list.
    #[doc(alias("ResourceEventHandlerDetailedFuncs", "TypedResourceEventHandlerDetailedFuncs"))]
    Initial,
    /// By the watch, as it happened.
    Live,
    /// By a later list: it happened while nobody watched.
    Relist,
    /// Nothing happened: all objects are told again from time to time.
    Resync,
}

/// How much is known of a deleted object's end.
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
    /// The server sent it with the deletion.
    Known,
    /// The deletion was missed: this is the last state that was seen, and there may have been later ones.
    Missed,
    /// It is not deleted, but no longer passes the filter it had passed.
    Filtered,
}

impl<K> Event<K> {
    /// An `Added`, for tests.
    #[must_use]
    pub fn added(object: Obj<K>, origin: Origin) -> Self {
        Self::Added { object, origin }
    }

    /// An `Updated`, for tests.
    #[must_use]
    pub fn updated(old: Obj<K>, new: Obj<K>, origin: Origin) -> Self {
        Self::Updated { old, new, origin }
    }

    /// A `Deleted`, for tests.
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

    /// The object as it is now, or the last that is known of it.
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

    /// The object as it was before an update.
    #[must_use]
    pub fn old(&self) -> Option<&Obj<K>> {
        match self {
            Self::Updated { old, .. } => Some(old),
            Self::Added { .. } | Self::Deleted { .. } => None,
        }
    }

    /// Why this is told.
    #[must_use]
    pub fn origin(&self) -> Origin {
        match self {
            Self::Added { origin, .. } | Self::Updated { origin, .. } | Self::Deleted { origin, .. } => *origin,
        }
    }

    /// Whether the object is gone.
    #[must_use]
    pub fn is_deleted(&self) -> bool {
        matches!(self, Self::Deleted { .. })
    }

    /// The object before and after: what a filter on both sides wants to see.
    ///
    /// ```
    /// use kube_informer::{Event, Obj, Origin, Untyped};
    ///
    /// /// Whether an object enters or leaves what has this label.
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

    /// The same event under another type.
    pub(crate) fn cast<V>(self) -> Event<V> {
        match self {
            Self::Added { object, origin } => Event::Added { object: object.cast(), origin },
            Self::Updated { old, new, origin } => Event::Updated { old: old.cast(), new: new.cast(), origin },
            Self::Deleted { last, state, origin } => Event::Deleted { last: last.cast(), state, origin },
        }
    }

    /// The same event under another type, sharing what has been decoded of it.
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
