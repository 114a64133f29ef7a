//! Deltas gathered by object.

use std::collections::VecDeque;

use hashbrown::{HashMap, HashSet};

use super::{Known, spare};
use crate::object::ObjectKey;
use crate::store::Delta;

/// A line of objects, each with all its deltas.
///
/// A delta that is about no single object parts the line: what comes later gathers behind it, never before it, or the end of a
/// list would sweep out what was made after it.
#[derive(Debug, Default)]
pub(super) struct Keyed {
    line: VecDeque<Place>,
    /// Where in line an object is that may still gather deltas, counted from the first place there ever was.
    open: HashMap<ObjectKey, usize>,
    /// How many places have left the line.
    left: usize,
    /// What was popped last: not queued any more, and maybe not in the store yet.
    in_flight: HashSet<ObjectKey>,
}

#[derive(Debug)]
enum Place {
    Object(Vec<Delta>),
    Alone(Delta),
}

impl Keyed {
    /// Whether the delta was kept.
    pub(super) fn push(&mut self, mut delta: Delta, is_known: &Known) -> bool {
        let Some(key) = delta.key() else {
            spare(&mut delta, self.open.keys().cloned());
            self.open.clear();
            self.line.push_back(Place::Alone(delta));
            return true;
        };
        let place = self.open.get(key).and_then(|at| self.line.get_mut(at - self.left));
        if let Some(Place::Object(gathered)) = place {
            // Two deletes in a row are one: the first has the state that the object was last seen in.
            let again = matches!((gathered.last(), &delta), (Some(Delta::Deleted(_)), Delta::Deleted(_)));
            if !again {
                gathered.push(delta);
            }
            return !again;
        }
        if matches!(delta, Delta::Deleted(_)) && !is_known(key) && !self.is_queued(key) {
            return false;
        }
        self.open.insert(key.clone(), self.left + self.line.len());
        self.line.push_back(Place::Object(vec![delta]));
        true
    }

    /// Whether anything is queued or under way for this object, in front of the last delta that parted the line included.
    fn is_queued(&self, key: &ObjectKey) -> bool {
        let about =
            |place: &Place| matches!(place, Place::Object(all) if all.first().and_then(Delta::key) == Some(key));
        self.in_flight.contains(key) || self.line.iter().any(about)
    }

    pub(super) fn pop(&mut self, most: usize) -> Vec<Delta> {
        let mut batch = Vec::new();
        self.in_flight.clear();
        while let Some(place) = self.line.front() {
            match place {
                Place::Alone(_) if !batch.is_empty() => break,
                Place::Object(all) if !batch.is_empty() && batch.len() + all.len() > most => break,
                Place::Alone(_) | Place::Object(_) => {}
            }
            self.left += 1;
            match self.line.pop_front() {
                Some(Place::Object(all)) => {
                    if let Some(key) = all.first().and_then(Delta::key) {
                        // Behind a parting delta it may have a second place, which stays open.
                        if self.open.get(key).is_some_and(|at| *at < self.left) {
                            self.open.remove(key);
                        }
                        self.in_flight.insert(key.clone());
                    }
                    batch.extend(all);
                }
                Some(Place::Alone(mut delta)) => {
                    spare(&mut delta, self.open.keys().cloned());
                    return vec![delta];
                }
                None => {}
            }
        }
        batch
    }
}
