//! Decoding of bodies before they are read, for stores that keep all of them decoded.

use std::sync::{Arc, Weak};

use tokio::task::{self, JoinSet};

use crate::body::Raw;
use crate::object::ObjectKey;
use crate::store::{Delta, Reader};

/// Decodes a body into the type of the informer, unless it is decoded.
pub(crate) type DecodeBody = fn(&Arc<Raw>);

/// Maximum number of batches that are decoded at a time. Beyond it the controller takes no further
/// deltas, and the reflector and the server wait.
const MAX_TASKS: usize = 4;

/// A task yields after this many objects, which take some tens of microseconds each.
const YIELD_AFTER: usize = 8;

/// Decodes what arrives in tasks of the runtime: not in the controller, which has further deltas to
/// apply, and not in the reflector.
#[derive(Debug)]
pub(super) struct DecodeAhead {
    decode: Option<DecodeBody>,
    tasks: JoinSet<()>,
}

impl DecodeAhead {
    pub(super) fn new(decode: Option<DecodeBody>) -> Self {
        Self { decode, tasks: JoinSet::new() }
    }

    /// The keys of the objects that this batch brings; none if bodies are not decoded on arrival.
    pub(super) fn keys(&self, batch: &[Delta]) -> Vec<ObjectKey> {
        if self.decode.is_none() {
            return Vec::new();
        }
        let key = |delta: &Delta| match delta {
            Delta::Changed(object) | Delta::Listed(object) | Delta::Entered(object) => Some(object.key().clone()),
            _ => None,
        };
        batch.iter().filter_map(key).collect()
    }

    /// Decodes the objects with these keys, as the store has them.
    pub(super) fn start(&mut self, keys: &[ObjectKey], store: &Reader) {
        let Some(decode) = self.decode else { return };
        while self.tasks.try_join_next().is_some() {}
        // Weak: what is replaced meanwhile need not be decoded.
        let objects: Vec<Weak<Raw>> = {
            let state = store.state();
            keys.iter().filter_map(|key| state.get(key)).map(|entry| Arc::downgrade(&entry.raw)).collect()
        };
        if objects.is_empty() {
            return;
        }
        self.tasks.spawn(async move {
            for objects in objects.chunks(YIELD_AFTER) {
                objects.iter().filter_map(Weak::upgrade).for_each(|object| decode(&object));
                task::yield_now().await;
            }
        });
    }

    pub(super) fn is_full(&self) -> bool {
        self.tasks.len() >= MAX_TASKS
    }

    /// Completes when a task has ended. If the type of the informer panics while it is decoded, the
    /// rest of its batch is left to its readers.
    pub(super) async fn room(&mut self) {
        self.tasks.join_next().await;
    }

    /// Ends all tasks.
    pub(super) async fn finish(&mut self) {
        self.tasks.shutdown().await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::body::Obj;
    use crate::store::{Ingest, Store};

    #[tokio::test]
    async fn it_is_full_at_the_limit_has_room_when_a_batch_is_decoded_and_ends_with_its_store() {
        static DECODED: AtomicUsize = AtomicUsize::new(0);
        let mut ahead = DecodeAhead::new(Some(|_| {
            DECODED.fetch_add(1, Ordering::Relaxed);
        }));
        let mut store = Store::new(Ingest::default());
        let object = |nth: usize| Obj::from_json(format!(r#"{{"metadata":{{"name":"a{nth}"}}}}"#)).unwrap();
        for batch in 0..MAX_TASKS {
            assert!(!ahead.is_full());
            let deltas: Vec<_> = (0..20).map(|nth| Delta::Changed(object(20 * batch + nth))).collect();
            let keys = ahead.keys(&deltas);
            drop(store.apply(deltas));
            ahead.start(&keys, &store.reader());
        }
        assert!(ahead.is_full());
        ahead.room().await;
        assert!(!ahead.is_full() && DECODED.load(Ordering::Relaxed) >= 20);
        ahead.finish().await;
        assert!(ahead.tasks.is_empty());
    }
}
