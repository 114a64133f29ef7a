//! A handler's filter.

use std::fmt;

use hashbrown::HashSet;

use crate::body::Obj;
use crate::object::ObjectKey;
use crate::store::guarded;
use crate::store::{Event, FinalState};

/// Lets pass what concerns objects that pass a test, and tells entering from leaving.
///
/// Which objects the handler knows of is remembered, so that its story stays whole even if a deletion shows an object in a state
/// that would not pass, or the test changes its mind.
pub(crate) struct EventFilter<K> {
    test: Test<K>,
    known: HashSet<ObjectKey>,
}

type Test<K> = Box<dyn Fn(&Obj<K>) -> bool + Send + Sync>;

impl<K> EventFilter<K> {
    pub(crate) fn new(test: impl Fn(&Obj<K>) -> bool + Send + Sync + 'static) -> Self {
        Self { test: Box::new(test), known: HashSet::new() }
    }

    /// The event as the handler is to hear it.
    pub(crate) fn pass(&mut self, event: Event<K>) -> Option<Event<K>> {
        let knew = self.known.contains(event.key());
        // A test that panics changes nothing: what was known stays so.
        let passes = |object| guarded("filter", || (self.test)(object)).unwrap_or(knew);
        match event {
            Event::Added { object, origin } => {
                let enters = passes(&object);
                enters.then(|| {
                    self.known.insert(object.key().clone());
                    Event::Added { object, origin }
                })
            }
            Event::Updated { old, new, origin } => match (knew, passes(&new)) {
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
