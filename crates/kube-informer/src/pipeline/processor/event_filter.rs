//! The event filter of a handler.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use hashbrown::HashSet;

use crate::body::Obj;
use crate::object::ObjectKey;
use crate::store::{Event, FinalState};

/// Passes the events of objects that match a predicate. Updates that make an object match or no
/// longer match become additions and deletions.
///
/// It remembers which objects the handler knows, so the events of each object stay consistent even
/// if a deletion shows a state that does not match, or the predicate is not deterministic.
pub(crate) struct EventFilter<K> {
    predicate: Predicate<K>,
    known: HashSet<ObjectKey>,
    /// The kind of the objects, for logs.
    kind: Arc<str>,
}

type Predicate<K> = Box<dyn Fn(&Obj<K>) -> bool + Send + Sync>;

impl<K> EventFilter<K> {
    pub(crate) fn new(kind: Arc<str>, test: impl Fn(&Obj<K>) -> bool + Send + Sync + 'static) -> Self {
        Self { predicate: Box::new(test), known: HashSet::new(), kind }
    }

    /// The event to deliver to the handler, if any.
    pub(crate) fn pass(&mut self, event: Event<K>) -> Option<Event<K>> {
        let was_known = self.known.contains(event.key());
        // A predicate that panics changes nothing: a known object stays known.
        let passes = |object: &Obj<K>| {
            let answer = catch_unwind(AssertUnwindSafe(|| (self.predicate)(object)));
            answer.unwrap_or_else(|_| {
                tracing::error!(kind = &*self.kind, key = %object.key(), "the filter of a handler panicked");
                was_known
            })
        };
        match event {
            Event::Added { object, origin } => {
                let enters = passes(&object);
                enters.then(|| {
                    self.known.insert(object.key().clone());
                    Event::Added { object, origin }
                })
            }
            Event::Updated { old, new, origin } => match (was_known, passes(&new)) {
                (true, true) => Some(Event::Updated { old, new, origin }),
                (false, true) => {
                    self.known.insert(new.key().clone());
                    Some(Event::Added { object: new, origin })
                }
                (true, false) => {
                    self.known.remove(new.key());
                    Some(Event::Deleted { last: old, state: FinalState::Filtered, origin })
                }
                (false, false) => None,
            },
            Event::Deleted { .. } => self.known.remove(event.key()).then_some(event),
        }
    }
}

impl<K> fmt::Debug for EventFilter<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventFilter").field("known", &self.known.len()).finish_non_exhaustive()
    }
}
