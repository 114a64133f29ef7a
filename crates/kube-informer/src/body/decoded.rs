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
    /// Not boxed: most bodies are read as one type.
    first: OnceLock<TypedBody>,
    /// Whether another handle has used it since the last eviction attempt (the reference bit of the
    /// cache). All handles of one event count as one.
    accessed: AtomicBool,
}

struct TypedBody {
    type_id: TypeId,
    /// Whether a thread has begun to decode it.
    is_begun: AtomicBool,
    body: OnceLock<Body>,
    next: OnceLock<Box<TypedBody>>,
}

impl TypedBody {
    fn new(type_id: TypeId) -> Self {
        Self { type_id, is_begun: AtomicBool::new(false), body: OnceLock::new(), next: OnceLock::new() }
    }
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

    /// Decodes the body before it is read, unless a reader has begun to: then it does not wait.
    pub(crate) fn decode_ahead<K: Object>(self: &Arc<Self>, raw: &Arc<Raw>) {
        if !self.entry(TypeId::of::<K>()).is_begun.load(Ordering::Relaxed) {
            self.body::<K>(raw);
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
        entry.is_begun.store(true, Ordering::Relaxed);
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
        let mut entry = self.first.get_or_init(|| TypedBody::new(type_id));
        while entry.type_id != type_id {
            entry = entry.next.get_or_init(|| Box::new(TypedBody::new(type_id)));
        }
        entry
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
