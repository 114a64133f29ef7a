//! The decoded bodies of one object, one for each type it was read as.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::raw::Raw;
use crate::object::DecodeError;
use crate::object::Object;

type Body = Result<Arc<dyn Any + Send + Sync>, DecodeError>;

/// An append-only linked list of decoded bodies, shared by all handles of one event. Decodes at
/// most once per type, however many threads read concurrently; a failure is cached as well.
#[derive(Default)]
pub(crate) struct Decoded {
    first: OnceLock<Box<TypedBody>>,
    /// Whether another handle has used it since the last eviction attempt (the reference bit of the
    /// cache). All handles of one event count as one.
    accessed: AtomicBool,
}

struct TypedBody {
    type_id: TypeId,
    body: OnceLock<Body>,
    next: OnceLock<Box<TypedBody>>,
}

/// Estimated size of a decoded body relative to its JSON: 43 to 52 KiB for a pod of 8.7 KB.
const GROWTH: usize = 5;

impl Decoded {
    pub(crate) fn get_or_decode<'a, K: Object>(self: &'a Arc<Self>, raw: &Arc<Raw>) -> Result<&'a K, DecodeError> {
        match self.body::<K>(raw) {
            Ok(body) => Ok(body.downcast_ref().expect("an entry holds the type it is named after")),
            Err(error) => Err(error.clone()),
        }
    }

    pub(crate) fn arc_or_decode<K: Object>(self: &Arc<Self>, raw: &Arc<Raw>) -> Result<Arc<K>, DecodeError> {
        match self.body::<K>(raw) {
            Ok(body) => Ok(Arc::clone(body).downcast().expect("an entry holds the type it is named after")),
            Err(error) => Err(error.clone()),
        }
    }

    /// Sets the reference bit.
    pub(crate) fn set_accessed(&self) {
        // Loads first, so that readers of a hot body do not contend for the cache line.
        if !self.accessed.load(Ordering::Relaxed) {
            self.accessed.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the reference bit and clears it.
    pub(crate) fn take_accessed(&self) -> bool {
        self.accessed.swap(false, Ordering::Relaxed)
    }

    fn body<'a, K: Object>(self: &'a Arc<Self>, raw: &Arc<Raw>) -> &'a Body {
        let entry = self.entry(TypeId::of::<K>());
        if let Some(body) = entry.body.get() {
            return body;
        }
        let mut cost = None;
        let body = entry.body.get_or_init(|| {
            // Another handle of the same object may have decoded it in the meantime.
            if let Some(cached) = raw.cached().filter(|cached| !Arc::ptr_eq(cached, self))
                && let Some(body) = cached.peek(TypeId::of::<K>())
            {
                return body.clone();
            }
            let (body, len) = raw.decode::<K>();
            cost = Some(
                size_of::<K>()
                    + size_of::<Self>()
                    + size_of::<TypedBody>()
                    + if body.is_ok() { GROWTH * len } else { 0 },
            );
            body.map(|body| Arc::new(body) as _)
        });
        if let Some(cost) = cost {
            raw.cache_decoded(self, cost);
        }
        body
    }

    fn entry(&self, type_id: TypeId) -> &TypedBody {
        let mut slot = &self.first;
        loop {
            let entry =
                slot.get_or_init(|| Box::new(TypedBody { type_id, body: OnceLock::new(), next: OnceLock::new() }));
            if entry.type_id == type_id {
                return entry;
            }
            slot = &entry.next;
        }
    }

    fn peek(&self, type_id: TypeId) -> Option<&Body> {
        let mut entry = self.first.get()?;
        while entry.type_id != type_id {
            entry = entry.next.get()?;
        }
        entry.body.get()
    }
}

impl fmt::Debug for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoded").finish_non_exhaustive()
    }
}
