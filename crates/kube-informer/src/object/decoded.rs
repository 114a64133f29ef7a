//! Bodies decoded so far, one for each type they were read as.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::{Arc, OnceLock};

use super::kind::Object;
use super::raw::Raw;
use crate::error::DecodeError;

type Body = Result<Arc<dyn Any + Send + Sync>, DecodeError>;

/// An append-only chain of bodies, shared by all handles of one event. Nothing is ever decoded twice into one type here,
/// however many threads ask at once; a failure is remembered as well.
#[derive(Default)]
pub(crate) struct Decoded {
    first: OnceLock<Box<Entry>>,
}

struct Entry {
    view: TypeId,
    body: OnceLock<Body>,
    next: OnceLock<Box<Entry>>,
}

impl Decoded {
    pub(super) fn get_or_decode<K: Object>(&self, raw: &Raw) -> Result<&K, DecodeError> {
        match self.body::<K>(raw) {
            Ok(body) => Ok(body.downcast_ref().expect("an entry holds the type it is named after")),
            Err(error) => Err(error.clone()),
        }
    }

    pub(super) fn arc_or_decode<K: Object>(&self, raw: &Raw) -> Result<Arc<K>, DecodeError> {
        match self.body::<K>(raw) {
            Ok(body) => Ok(Arc::clone(body).downcast().expect("an entry holds the type it is named after")),
            Err(error) => Err(error.clone()),
        }
    }

    fn body<K: Object>(&self, raw: &Raw) -> &Body {
        let view = TypeId::of::<K>();
        let mut slot = &self.first;
        loop {
            let entry = slot.get_or_init(|| Box::new(Entry { view, body: OnceLock::new(), next: OnceLock::new() }));
            if entry.view == view {
                return entry.body.get_or_init(|| raw.decode::<K>().map(|body| Arc::new(body) as _));
            }
            slot = &entry.next;
        }
    }
}

impl fmt::Debug for Decoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoded").finish_non_exhaustive()
    }
}
