//! Records and checks the events of a handler as they arrive.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube_informer::Event;
use kube_informer::store::EventOrder;

/// A handler that records its events, and an error if they are out of order. Clones share the
/// record.
#[derive(Debug, Clone, Default)]
pub(super) struct EventRecorder(Arc<Mutex<Record>>);

#[derive(Debug, Default)]
struct Record {
    order: EventOrder,
    /// Key and version of every received state.
    states: HashSet<(String, String)>,
    events: usize,
    error: Option<String>,
}

impl EventRecorder {
    /// The handler function, to be called with every event.
    pub(super) fn handler<K: 'static>(&self) -> impl FnMut(Event<K>) + Send + use<K> {
        let recorder = self.clone();
        move |event| recorder.record(&event)
    }

    /// The current version of each object according to the events. `Err` if they were out of order.
    pub(super) fn objects(&self) -> Result<BTreeMap<String, String>, String> {
        let record = self.lock();
        match &record.error {
            Some(error) => Err(error.clone()),
            None => Ok(record.order.objects().map(|(key, version)| (key.to_string(), version.to_string())).collect()),
        }
    }

    /// Whether this state of this object was received as an addition or an update.
    pub(super) fn has_received(&self, key: &str, version: &str) -> bool {
        self.lock().states.contains(&(key.to_owned(), version.to_owned()))
    }

    pub(super) fn events(&self) -> usize {
        self.lock().events
    }

    fn record<K>(&self, event: &Event<K>) {
        let mut record = self.lock();
        record.events += 1;
        match record.order.check(event) {
            Err(error) => drop(record.error.get_or_insert(error)),
            Ok(()) if event.is_deleted() => {}
            Ok(()) => drop(record.states.insert((event.key().to_string(), event.object().version().to_string()))),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
