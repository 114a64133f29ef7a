//! Read access to a store.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;

use super::delta::WatchScope;
use super::index_table::AnyTable;
use super::state::{StoreEntry, StoreState};
use crate::body::{Obj, Untyped};
use crate::object::ObjectKey;
use crate::object::Version;

/// Reads a store without blocking or delaying the writer; every read is answered from one state.
#[derive(Clone)]
pub struct Reader {
    shared: Arc<StoreShared>,
    /// Keeps the informer running as long as this reader exists.
    feed: Option<Arc<dyn Feed>>,
}

/// A [`Reader`] that keeps neither the store nor its informer.
#[derive(Clone)]
pub(crate) struct WeakReader {
    shared: Weak<StoreShared>,
    feed: Option<Weak<dyn Feed>>,
}

impl WeakReader {
    /// A reader, if another one that keeps the informer running exists.
    pub(crate) fn upgrade(&self) -> Option<Reader> {
        let feed = match &self.feed {
            Some(feed) => Some(feed.upgrade()?),
            None => None,
        };
        Some(Reader { shared: self.shared.upgrade()?, feed })
    }
}

/// The informer that fills a store.
pub(crate) trait Feed: Send + Sync {
    /// The time since the store was last known to have everything that the server had; none if it
    /// is not synced.
    fn age(&self) -> Option<Duration>;
}

/// State shared by the writer and its readers.
pub(super) struct StoreShared {
    state: ArcSwap<StoreState>,
    /// Index tables that the writer has not yet adopted.
    waiting: Mutex<Vec<(usize, Box<dyn AnyTable>)>>,
    next_index: AtomicUsize,
}

impl Reader {
    pub(super) fn new(shared: Arc<StoreShared>) -> Self {
        Self { shared, feed: None }
    }

    /// A reader of the same store that keeps the informer running.
    pub(crate) fn with_feed(&self, feed: Arc<dyn Feed>) -> Self {
        Self { shared: Arc::clone(&self.shared), feed: Some(feed) }
    }

    pub(crate) fn downgrade(&self) -> WeakReader {
        WeakReader { shared: Arc::downgrade(&self.shared), feed: self.feed.as_ref().map(Arc::downgrade) }
    }

    /// The informer that fills the store; none for a fixed set of objects.
    pub(crate) fn feed(&self) -> Option<&dyn Feed> {
        self.feed.as_deref()
    }

    /// The object with this key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<Obj<Untyped>> {
        self.state().get(key).map(StoreEntry::object)
    }

    /// The resource version of the store; none until its first list is complete.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.state().version().cloned()
    }

    /// The current state, for a short read.
    pub(crate) fn state(&self) -> Guard<Arc<StoreState>> {
        self.shared.state.load()
    }

    /// The current state, as a snapshot that may be kept.
    pub(crate) fn snapshot(&self) -> Arc<StoreState> {
        self.shared.state()
    }

    /// The approximate size of the objects in this scope, in bytes. Takes time for each of them.
    pub(crate) fn bytes_in(&self, scope: &WatchScope) -> u64 {
        let state = self.snapshot();
        let weight = |entry: &StoreEntry| entry.raw.weight() as u64;
        match scope {
            WatchScope::Everything => state.iter().map(weight).sum(),
            WatchScope::Namespace(namespace) => state.namespace(namespace).map(weight).sum(),
        }
    }

    /// Passes an index table to the writer, which starts to build it with its next `apply`.
    pub(crate) fn add_table(&self, table: Box<dyn AnyTable>) -> usize {
        let id = self.shared.next_index.fetch_add(1, Ordering::Relaxed);
        self.shared.waiting.lock().push((id, table));
        id
    }
}

impl StoreShared {
    pub(super) fn new(state: StoreState) -> Self {
        Self { state: ArcSwap::from_pointee(state), waiting: Mutex::default(), next_index: AtomicUsize::new(0) }
    }

    /// The published state.
    pub(super) fn state(&self) -> Arc<StoreState> {
        self.state.load_full()
    }

    /// Publishes a state, and returns the one published before.
    pub(super) fn publish(&self, state: StoreState) -> Arc<StoreState> {
        self.state.swap(Arc::new(state))
    }

    pub(super) fn waiting(&self) -> Vec<(usize, Box<dyn AnyTable>)> {
        std::mem::take(&mut self.waiting.lock())
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("state", &**self.state()).finish_non_exhaustive()
    }
}

impl fmt::Debug for StoreShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("state", &**self.state.load()).finish_non_exhaustive()
    }
}
