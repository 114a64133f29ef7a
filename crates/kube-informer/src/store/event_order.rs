//! A check of the order of one handler's events.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;

use super::{Event, Origin};
use crate::body::Obj;
use crate::object::{ObjectKey, Uid, Version};

/// Checks that the events of one handler are in order: guarantee 4 of the crate as a program.
///
/// Each object is added once, updated from the last delivered state to newer ones, and deleted
/// once; after a deletion it returns only as a newer object. For tests of handlers and of
/// [`ListWatch`](crate::client::ListWatch) implementations. Memory is proportional to the number of
/// objects that exist.
///
/// ```
/// use kube_informer::store::EventOrder;
/// use kube_informer::{Event, Obj, Origin};
///
/// # fn main() -> Result<(), kube_informer::DecodeError> {
/// let object = Obj::<()>::from_json(r#"{"metadata":{"name":"a","uid":"u","resourceVersion":"1"}}"#)?;
/// let added = Event::added(object, Origin::Live);
/// let mut order = EventOrder::default();
/// assert_eq!(order.check(&added), Ok(()));
/// assert!(order.check(&added).unwrap_err().contains("added twice"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct EventOrder {
    known: HashMap<ObjectKey, State>,
    /// The last state of deleted objects, direct-mapped by the hash of the key: a later deletion
    /// evicts an earlier one of the same slot, which then goes unchecked.
    deleted: Box<[Option<(u64, State)>]>,
    may_return_unchanged: bool,
    may_go_back: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct State {
    uid: Option<Uid>,
    version: Version,
}

const DELETED_SLOTS: usize = 1 << 12;

impl State {
    fn of<K>(object: &Obj<K>) -> Self {
        Self { uid: object.uid().cloned(), version: object.version().clone() }
    }
}

impl Default for EventOrder {
    fn default() -> Self {
        Self {
            known: HashMap::new(),
            deleted: vec![None; DELETED_SLOTS].into_boxed_slice(),
            may_return_unchanged: false,
            may_go_back: false,
        }
    }
}

impl EventOrder {
    /// Accepts that a deleted object returns with the same uid and version, as objects do that
    /// leave a filter or a scope and enter it again.
    pub fn allow_unchanged_returns(&mut self) {
        self.may_return_unchanged = true;
    }

    /// Accepts versions that go back, as after the restore of a server's backup.
    pub fn allow_going_back(&mut self) {
        self.may_go_back = true;
    }

    /// Records an event. `Err` says what is out of order.
    pub fn check<K>(&mut self, event: &Event<K>) -> Result<(), String> {
        let key = event.key();
        match event {
            Event::Added { object, .. } => self.added(key, State::of(object)),
            Event::Updated { old, new, origin, .. } => self.updated(key, &State::of(old), State::of(new), *origin),
            Event::Deleted { last, .. } => self.deleted(key, State::of(last)),
        }
    }

    /// Key and version of each object that exists according to the events.
    pub fn objects(&self) -> impl Iterator<Item = (&ObjectKey, &Version)> {
        self.known.iter().map(|(key, state)| (key, &state.version))
    }

    fn added(&mut self, key: &ObjectKey, state: State) -> Result<(), String> {
        if let Some(known) = self.known.get(key) {
            return Err(format!("{key} is added twice: {known:?}, then {state:?}"));
        }
        let (slot, hash) = slot_of(key);
        if let Some((_, deleted)) = self.deleted[slot].as_ref().filter(|(of, _)| *of == hash) {
            let older = state.version < deleted.version && !self.may_go_back;
            if older || (state == *deleted && !self.may_return_unchanged && !self.may_go_back) {
                return Err(format!("{key} is deleted as {deleted:?} and returns as {state:?}"));
            }
        }
        self.known.insert(key.clone(), state);
        Ok(())
    }

    fn updated(&mut self, key: &ObjectKey, old: &State, new: State, origin: Origin) -> Result<(), String> {
        let Some(known) = self.known.get_mut(key) else {
            return Err(format!("{key} is updated before it is added: {new:?}"));
        };
        if known != old {
            return Err(format!("{key} is updated from a state that was not delivered: {old:?}, not {known:?}"));
        }
        if old.uid != new.uid {
            return Err(format!("{key} becomes another object: {old:?}, then {new:?}"));
        }
        let is_newer = new.version > old.version;
        let is_resync = new.version == old.version && origin == Origin::Resync;
        if !(is_newer || is_resync || self.may_go_back) {
            return Err(format!("{key} is updated to a state that is not newer: {old:?}, then {new:?} ({origin:?})"));
        }
        *known = new;
        Ok(())
    }

    fn deleted(&mut self, key: &ObjectKey, last: State) -> Result<(), String> {
        let Some(known) = self.known.get(key) else {
            return Err(format!("{key} is deleted before it is added: {last:?}"));
        };
        if known.uid != last.uid {
            return Err(format!("another {key} is deleted: {last:?}, not {known:?}"));
        }
        if last.version < known.version && !self.may_go_back {
            return Err(format!("{key} goes back when it is deleted: {known:?}, then {last:?}"));
        }
        self.known.remove(key);
        let (slot, hash) = slot_of(key);
        self.deleted[slot] = Some((hash, last));
        Ok(())
    }
}

fn slot_of(key: &ObjectKey) -> (usize, u64) {
    let hash = FixedState::default().hash_one(key);
    (hash as usize % DELETED_SLOTS, hash)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Untyped;
    use crate::store::FinalState;

    fn object(uid: &str, version: u64) -> Obj<Untyped> {
        let metadata = format!(r#"{{"name":"a","uid":"{uid}","resourceVersion":"{version}"}}"#);
        Obj::from_json(format!(r#"{{"metadata":{metadata}}}"#)).unwrap()
    }

    fn added(uid: &str, version: u64) -> Event<Untyped> {
        Event::added(object(uid, version), Origin::Live)
    }

    fn updated(from: u64, to: u64) -> Event<Untyped> {
        Event::updated(object("u", from), object("u", to), Origin::Relist)
    }

    fn deleted(uid: &str, version: u64) -> Event<Untyped> {
        Event::deleted(object(uid, version), FinalState::Known, Origin::Live)
    }

    /// The first error of a sequence of events.
    fn error_of(mut order: EventOrder, events: &[Event<Untyped>]) -> String {
        events.iter().find_map(|event| order.check(event).err()).unwrap_or_default()
    }

    #[test]
    fn a_whole_life_is_in_order_and_leaves_the_current_versions() {
        let mut order = EventOrder::default();
        for event in [added("u", 1), updated(1, 2), deleted("u", 3), added("v", 4)] {
            assert_eq!(order.check(&event), Ok(()));
        }
        let objects: Vec<_> = order.objects().map(|(key, version)| format!("{key} {version}")).collect();
        assert_eq!(objects, ["a 4"]);
    }

    #[test]
    fn each_kind_of_disorder_is_an_error() {
        let error = |events: [Event<Untyped>; 2]| error_of(EventOrder::default(), &events);
        assert!(error([added("u", 1), added("u", 2)]).contains("added twice"));
        assert!(error([updated(1, 2), updated(2, 3)]).contains("updated before it is added"));
        assert!(error([deleted("u", 1), added("u", 2)]).contains("deleted before it is added"));
        assert!(error([added("u", 1), updated(2, 3)]).contains("not delivered"));
        assert!(error([added("u", 2), updated(2, 1)]).contains("not newer"));
        assert!(error([added("u", 1), updated(1, 1)]).contains("not newer"));
        assert!(error([added("u", 1), deleted("v", 2)]).contains("another a"));
        assert!(error([added("u", 2), deleted("u", 1)]).contains("goes back"));
        for version in [2, 3] {
            let events = [added("u", 1), deleted("u", 3), added("u", version)];
            assert!(error_of(EventOrder::default(), &events).contains("returns as"));
        }
    }

    #[test]
    fn what_is_allowed_is_in_order() {
        let mut returning = EventOrder::default();
        returning.allow_unchanged_returns();
        assert_eq!(error_of(returning.clone(), &[added("u", 1), deleted("u", 3), added("u", 3)]), "");
        assert!(error_of(returning, &[added("u", 1), deleted("u", 3), added("u", 2)]).contains("returns as"));
        let mut restored = EventOrder::default();
        restored.allow_going_back();
        assert_eq!(error_of(restored, &[added("u", 9), updated(9, 5), deleted("u", 4), added("u", 2)]), "");
    }
}
