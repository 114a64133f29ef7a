//! Checks the events of a handler as they arrive, in memory proportional to the number of objects.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kube_informer::{Event, Obj, ObjectKey, Origin, Uid};
use parking_lot::Mutex;

/// With which versions objects reappear after a handler received their deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Return {
    /// Only with newer versions.
    Newer,
    /// Also with the same version: if objects leave and reenter the cache.
    Same,
}

/// The state of all objects according to the events of one handler. Clones share it.
#[derive(Debug, Clone)]
pub struct Story {
    told: Arc<Mutex<Told>>,
    events: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Told {
    name: String,
    returns: Return,
    known: HashMap<ObjectKey, State>,
    /// The resource versions of deleted objects by hash of the key; the latest one wins on a
    /// collision.
    left: Box<[(u64, u64)]>,
    wrong: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct State {
    uid: Option<Uid>,
    version: u64,
}

const LEFT: usize = 1 << 12;

impl State {
    fn of<K>(object: &Obj<K>) -> Self {
        Self { uid: object.uid().cloned(), version: object.version().number().unwrap_or(0) }
    }
}

impl Story {
    /// Creates an empty state, with an event counter shared with others.
    pub fn new(name: String, returns: Return, events: Arc<AtomicU64>) -> Self {
        let left = vec![(0, 0); LEFT].into_boxed_slice();
        let told = Told { name, returns, known: HashMap::new(), left, wrong: None };
        Self { told: Arc::new(Mutex::new(told)), events }
    }

    /// Records and checks an event.
    pub fn hear<K>(&self, event: &Event<K>) {
        self.events.fetch_add(1, Ordering::Relaxed);
        let mut told = self.told.lock();
        if let Err(wrong) = told.check(event) {
            let wrong = format!("{}: {wrong}", told.name);
            told.wrong.get_or_insert(wrong);
        }
    }

    /// The first inconsistent event, if any.
    pub fn wrong(&self) -> Option<String> {
        self.told.lock().wrong.clone()
    }

    /// The current resource version of each object.
    pub fn believed(&self) -> HashMap<String, u64> {
        self.told.lock().known.iter().map(|(key, state)| (key.to_string(), state.version)).collect()
    }
}

impl Told {
    fn check<K>(&mut self, event: &Event<K>) -> Result<(), String> {
        let key = event.key();
        let known = self.known.get(key);
        match event {
            Event::Added { object, .. } => {
                let state = State::of(object);
                if let Some(known) = known {
                    return Err(format!("{key} is added twice: {known:?}, then {state:?}"));
                }
                let (hash, at) = place(key);
                let (who, version) = self.left[at];
                let older = state.version < version || state.version == version && self.returns == Return::Newer;
                if who == hash && older {
                    return Err(format!("{key} left at {version} and is added again as {state:?}"));
                }
                self.known.insert(key.clone(), state);
            }
            Event::Updated { old, new, origin, .. } => {
                let (old, new) = (State::of(old), State::of(new));
                let Some(known) = known else { return Err(format!("{key} is updated before it is added: {new:?}")) };
                if *known != old {
                    return Err(format!("{key} is updated from a state that was not told: {old:?}, not {known:?}"));
                }
                if old.uid != new.uid {
                    return Err(format!("{key} becomes another object: {old:?}, then {new:?}"));
                }
                if new.version < old.version || new.version == old.version && *origin != Origin::Resync {
                    return Err(format!("{key} does not go on: {old:?}, then {new:?} ({origin:?})"));
                }
                self.known.insert(key.clone(), new);
            }
            Event::Deleted { last, .. } => {
                let last = State::of(last);
                let Some(known) = known else { return Err(format!("{key} is deleted before it is added: {last:?}")) };
                if known.uid != last.uid || last.version < known.version {
                    return Err(format!("{key} was {known:?} and is deleted as {last:?}"));
                }
                self.known.remove(key);
                let (hash, at) = place(key);
                self.left[at] = (hash, last.version);
            }
        }
        Ok(())
    }
}

fn place(key: &ObjectKey) -> (u64, usize) {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
    (hash, hash as usize % LEFT)
}

#[cfg(test)]
mod tests {
    use kube_informer::{DecodeError, FinalState, Untyped};

    use super::*;

    fn object(uid: &str, version: u64) -> Result<Obj<Untyped>, DecodeError> {
        let metadata = format!(r#"{{"name":"a","uid":"{uid}","resourceVersion":"{version}"}}"#);
        Obj::from_json(format!(r#"{{"metadata":{metadata}}}"#))
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

    fn wrong(returns: Return, events: impl IntoIterator<Item = Event<Untyped>>) -> String {
        let story = Story::new("it".to_owned(), returns, Arc::default());
        events.into_iter().for_each(|event| story.hear(&event));
        story.wrong().unwrap_or_default()
    }

    #[test]
    fn a_whole_story_is_believed() -> Result<(), DecodeError> {
        let story = Story::new("it".to_owned(), Return::Newer, Arc::default());
        for event in [added("u", 1)?, updated(1, 2)?, deleted("u", 3)?, added("v", 4)?] {
            story.hear(&event);
        }
        assert_eq!(story.wrong(), None);
        assert_eq!(story.believed(), HashMap::from([("a".to_owned(), 4)]));
        Ok(())
    }

    #[test]
    fn a_broken_story_is_noticed() -> Result<(), DecodeError> {
        let newer = Return::Newer;
        assert!(wrong(newer, [added("u", 1)?, added("u", 2)?]).contains("added twice"));
        assert!(wrong(newer, [updated(1, 2)?]).contains("updated before it is added"));
        assert!(wrong(newer, [deleted("u", 1)?]).contains("deleted before it is added"));
        assert!(wrong(newer, [added("u", 1)?, updated(2, 3)?]).contains("was not told"));
        assert!(wrong(newer, [added("u", 1)?, updated(1, 1)?]).contains("does not go on"));
        assert!(wrong(newer, [added("u", 2)?, deleted("u", 1)?]).contains("is deleted as"));
        assert!(wrong(newer, [added("u", 1)?, deleted("u", 3)?, added("u", 3)?]).contains("left at 3"));
        assert_eq!(wrong(Return::Same, [added("u", 1)?, deleted("u", 3)?, added("u", 3)?]), "");
        assert!(wrong(Return::Same, [added("u", 1)?, deleted("u", 3)?, added("u", 2)?]).contains("left at 3"));
        Ok(())
    }
}
