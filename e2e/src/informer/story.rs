//! Checks the events of a handler as they arrive.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube_informer::{Event, Obj, Origin, Version};

/// A handler that records an error if the events of an object are inconsistent: one add,
/// consecutive updates with increasing versions, one delete. Clones share the state.
#[derive(Debug, Clone, Default)]
pub(super) struct Story(Arc<Mutex<Told>>);

#[derive(Debug, Default)]
struct Told {
    known: BTreeMap<String, State>,
    /// Every received state.
    states: HashSet<(String, String)>,
    /// The last state of each deleted object.
    left: BTreeMap<String, State>,
    events: usize,
    wrong: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct State {
    uid: Option<String>,
    version: Version,
}

impl State {
    fn of<K>(object: &Obj<K>) -> Self {
        Self { uid: object.uid().map(ToString::to_string), version: object.version().clone() }
    }
}

impl Story {
    /// The handler function, to be called with every event.
    pub(super) fn handler<K: 'static>(&self) -> impl FnMut(Event<K>) + Send + use<K> {
        let story = self.clone();
        move |event| story.hear(&event)
    }

    pub(super) fn hear<K>(&self, event: &Event<K>) {
        let mut told = self.told();
        told.events += 1;
        if let Err(wrong) = told.check(event) {
            told.wrong.get_or_insert(wrong);
        }
    }

    /// The current version of each object according to the events. `Err` if they were inconsistent.
    pub(super) fn believed(&self) -> Result<BTreeMap<String, String>, String> {
        let told = self.told();
        match &told.wrong {
            Some(wrong) => Err(wrong.clone()),
            None => Ok(told.known.iter().map(|(key, state)| (key.clone(), state.version.to_string())).collect()),
        }
    }

    /// Whether this state of this object was ever received.
    pub(super) fn has_heard(&self, key: &str, version: &str) -> bool {
        self.told().states.contains(&(key.to_owned(), version.to_owned()))
    }

    pub(super) fn events(&self) -> usize {
        self.told().events
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Told {
    fn check<K>(&mut self, event: &Event<K>) -> Result<(), String> {
        let key = event.key().to_string();
        let known = self.known.get(&key);
        match event {
            Event::Added { object, .. } => {
                let state = State::of(object);
                if let Some(known) = known {
                    return Err(format!("{key} is added twice: {known:?}, then {state:?}"));
                }
                if let Some(left) = self.left.get(&key)
                    && (state.version < left.version || (state.uid == left.uid && state.version == left.version))
                {
                    return Err(format!("{key} is added again as it was before: {left:?}, then {state:?}"));
                }
                self.know(key, state);
            }
            Event::Updated { old, new, origin, .. } => {
                let (old, new) = (State::of(old), State::of(new));
                let Some(known) = known else { return Err(format!("{key} is updated before it is added: {new:?}")) };
                if *known != old {
                    return Err(format!("{key} is updated from a state that was not told: {old:?}, not {known:?}"));
                }
                if known.uid != new.uid {
                    return Err(format!("{key} becomes another object: {known:?}, then {new:?}"));
                }
                match new.version.partial_cmp(&old.version) {
                    Some(std::cmp::Ordering::Greater) => {}
                    Some(std::cmp::Ordering::Equal) if *origin == Origin::Resync => {}
                    _ => return Err(format!("{key} does not go on: {old:?}, then {new:?} ({origin:?})")),
                }
                self.know(key, new);
            }
            Event::Deleted { last, .. } => {
                let last = State::of(last);
                let Some(known) = known else { return Err(format!("{key} is deleted before it is added: {last:?}")) };
                if known.uid != last.uid {
                    return Err(format!("another {key} is deleted: {known:?} was known, {last:?} goes"));
                }
                if last.version < known.version {
                    return Err(format!("{key} goes back as it is deleted: {known:?}, then {last:?}"));
                }
                self.known.remove(&key);
                self.left.insert(key, last);
            }
        }
        Ok(())
    }

    fn know(&mut self, key: String, state: State) {
        self.states.insert((key.clone(), state.version.to_string()));
        self.known.insert(key, state);
    }
}

#[cfg(test)]
mod tests {
    use kube_informer::{DecodeError, FinalState, Untyped};

    use super::*;

    fn object(uid: &str, version: u64) -> Result<Obj<Untyped>, DecodeError> {
        let metadata = format!(r#"{{"name":"a","uid":"{uid}","resourceVersion":"{version}"}}"#);
        Obj::from_json(format!(r#"{{"metadata":{metadata}}}"#))
    }

    /// The error of a sequence of events, if any.
    fn wrong(events: impl IntoIterator<Item = Event<Untyped>>) -> String {
        let story = Story::default();
        events.into_iter().for_each(|event| story.hear(&event));
        story.believed().err().unwrap_or_default()
    }

    fn added(uid: &str, version: u64) -> Result<Event<Untyped>, DecodeError> {
        Ok(Event::added(object(uid, version)?, Origin::Live))
    }

    fn updated(from: u64, to: u64) -> Result<Event<Untyped>, DecodeError> {
        Ok(Event::updated(object("u", from)?, object("u", to)?, Origin::Relist))
    }

    fn deleted(uid: &str, version: u64) -> Result<Event<Untyped>, DecodeError> {
        Ok(Event::deleted(object(uid, version)?, FinalState::Known, Origin::Live))
    }

    #[test]
    fn a_whole_story_is_believed() -> Result<(), DecodeError> {
        let story = Story::default();
        for event in [added("u", 1)?, updated(1, 2)?, deleted("u", 3)?, added("v", 4)?] {
            story.hear(&event);
        }
        assert_eq!(story.believed(), Ok(BTreeMap::from([("a".to_owned(), "4".to_owned())])));
        assert!(story.has_heard("a", "2") && !story.has_heard("a", "3"));
        Ok(())
    }

    #[test]
    fn a_broken_story_is_noticed() -> Result<(), DecodeError> {
        assert!(wrong([added("u", 1)?, added("u", 2)?]).contains("added twice"));
        assert!(wrong([updated(1, 2)?]).contains("updated before it is added"));
        assert!(wrong([deleted("u", 1)?]).contains("deleted before it is added"));
        assert!(wrong([added("u", 1)?, updated(2, 3)?]).contains("was not told"));
        assert!(wrong([added("u", 2)?, updated(2, 1)?]).contains("does not go on"));
        assert!(wrong([added("u", 1)?, updated(1, 1)?]).contains("does not go on"));
        assert!(wrong([added("u", 1)?, deleted("v", 2)?]).contains("another a is deleted"));
        assert!(wrong([added("u", 2)?, deleted("u", 1)?]).contains("goes back"));
        assert!(wrong([added("u", 1)?, deleted("u", 3)?, added("u", 2)?]).contains("as it was before"));
        Ok(())
    }
}
