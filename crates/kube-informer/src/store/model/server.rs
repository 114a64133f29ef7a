//! A server: a map and a log of its changes.

use std::collections::BTreeMap;

use super::rng::Rng;
use crate::body::{Obj, Untyped};
use crate::object::ObjectKey;
use crate::store::Delta;

#[derive(Debug)]
pub(super) struct Server {
    namespaces: Vec<Option<&'static str>>,
    pub(super) objects: BTreeMap<ObjectKey, Obj<Untyped>>,
    /// Each change with its revision.
    pub(super) log: Vec<(u64, Delta)>,
    pub(super) revision: u64,
    /// Every state ever created: states are identified by their address, which must not be reused.
    all_states: Vec<Obj<Untyped>>,
    /// Number of uids issued. A uid is never reused, not even after going back in time.
    uids: u64,
}

impl Server {
    pub(super) fn new(namespaces: &[Option<&'static str>]) -> Self {
        let namespaces = namespaces.to_vec();
        Self { namespaces, objects: BTreeMap::new(), log: Vec::new(), revision: 1, all_states: Vec::new(), uids: 0 }
    }

    /// Creates, changes, deletes, or deletes and recreates a random object.
    pub(super) fn write(&mut self, rng: &mut Rng) {
        let namespace = *rng.pick(&self.namespaces);
        let name = *rng.pick(&["p", "q", "r", "s"]);
        let key = ObjectKey::namespaced(namespace.unwrap_or_default(), name);
        match self.objects.get(&key).and_then(Obj::uid).map(ToString::to_string) {
            None => self.create(&key, rng),
            Some(uid) => match rng.below(6) {
                0 => self.delete(&key),
                1 => {
                    self.delete(&key);
                    self.create(&key, rng);
                }
                _ => self.change(&key, &uid, rng),
            },
        }
    }

    /// Goes back in time, as if restored from a backup: later changes are lost, and their revisions
    /// are reused.
    pub(super) fn go_back(&mut self, rng: &mut Rng) {
        self.revision = rng.between(self.revision.saturating_sub(8).max(1), self.revision);
        self.log.retain(|(revision, _)| *revision <= self.revision);
        self.objects.clear();
        for (_, delta) in &self.log {
            match delta {
                Delta::Changed(object) => drop(self.objects.insert(object.key().clone(), object.clone())),
                other => drop(other.key().and_then(|key| self.objects.remove(key))),
            }
        }
    }

    fn create(&mut self, key: &ObjectKey, rng: &mut Rng) {
        self.uids += 1;
        let uid = format!("uid-{}", self.uids);
        self.change(key, &uid, rng);
    }

    fn change(&mut self, key: &ObjectKey, uid: &str, rng: &mut Rng) {
        self.revision += 1;
        let app = *rng.pick(&["x", "y", "z"]);
        let object = object(key, uid, self.revision, app, rng.below(1 << 20));
        self.all_states.push(object.clone());
        self.objects.insert(key.clone(), object.clone());
        self.log.push((self.revision, Delta::Changed(object)));
    }

    fn delete(&mut self, key: &ObjectKey) {
        let Some(last) = self.objects.remove(key) else { return };
        self.revision += 1;
        let uid = last.uid().map(ToString::to_string).unwrap_or_default();
        let last = object(key, &uid, self.revision, last.label("app").unwrap_or_default(), 0);
        self.all_states.push(last.clone());
        self.log.push((self.revision, Delta::Deleted(last)));
    }
}

fn object(key: &ObjectKey, uid: &str, version: u64, app: &str, data: u64) -> Obj<Untyped> {
    let namespace = key.namespace().map(|namespace| format!(r#""namespace":"{namespace}","#)).unwrap_or_default();
    let name = key.name();
    Obj::from_json(format!(
        r#"{{"metadata":{{"name":"{name}",{namespace}"uid":"{uid}","resourceVersion":"{version}","labels":{{"app":"{app}"}}}},"data":{data}}}"#
    ))
    .unwrap()
}
