//! Objects that are gone, until they are delivered.

use std::collections::{HashMap, VecDeque};

use kube_informer::{Obj, ObjectKey};
use parking_lot::Mutex;

/// The last states of objects that are gone and have not been delivered yet, oldest first.
#[derive(Debug)]
pub(super) struct GoneObjects<K>(Mutex<HashMap<ObjectKey, VecDeque<Obj<K>>>>);

/// Objects of one name that may be gone before the first of them is delivered.
const MAX_OF_A_NAME: usize = 16;

impl<K> GoneObjects<K> {
    pub(super) fn push(&self, last: Obj<K>) {
        let key = last.key().clone();
        // Dropped and logged after the lock is released: a decoded body is a value of the user.
        let dropped = {
            let mut all = self.0.lock();
            let of_name = all.entry(key).or_default();
            let dropped = if of_name.len() == MAX_OF_A_NAME { of_name.pop_front() } else { None };
            of_name.push_back(last);
            dropped
        };
        if let Some(dropped) = dropped {
            tracing::warn!(object = %dropped.key(), "too many objects of this name are gone: the first is not delivered");
        }
    }

    pub(super) fn first(&self, key: &ObjectKey) -> Option<Obj<K>> {
        self.0.lock().get(key)?.front().cloned()
    }

    /// An object has been delivered. Returns whether another one of this name is gone.
    pub(super) fn delivered(&self, object: &Obj<K>) -> bool {
        let is_same = |gone: &Obj<K>| gone.uid() == object.uid() && gone.version() == object.version();
        // Dropped after the lock is released.
        let (_delivered, is_empty) = {
            let mut all = self.0.lock();
            let Some(of_name) = all.get_mut(object.key()) else { return false };
            let delivered = of_name.iter().position(is_same).and_then(|index| of_name.remove(index));
            let is_empty = of_name.is_empty();
            if is_empty {
                all.remove(object.key());
            }
            (delivered, is_empty)
        };
        !is_empty
    }
}

impl<K> Default for GoneObjects<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}
