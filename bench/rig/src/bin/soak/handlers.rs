//! Handlers of all types, each of which checks its events.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kube_informer::pipeline::{Backlog, Overflow};
use kube_informer::store::EventOrder;
use kube_informer::{Event, Informer, Obj, Registration};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::informers::Watched;

/// The delivery mode of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// Every event, immediately.
    Every,
    /// The latest state of each object.
    Latest,
    /// A small backlog and too slow for a burst: after an overflow it receives the difference
    /// (`Overflow::Replay`).
    Slow,
    /// As a stream.
    Stream,
    /// Filtered to objects with even resource versions, so that they appear and disappear; with
    /// resync.
    Even,
}

impl Delivery {
    /// All modes.
    pub const ALL: [Self; 5] = [Self::Every, Self::Slow, Self::Stream, Self::Even, Self::Latest];
}

/// A handler and its record of events.
pub struct Handler {
    /// The name of its informer.
    name: &'static str,
    delivery: Delivery,
    recorder: EventRecorder,
    life: Life,
}

/// Checks the events of one handler as they arrive. Clones share the state.
#[derive(Clone)]
struct EventRecorder {
    checked: Arc<Mutex<Checked>>,
    /// The event counter of all handlers.
    events: Arc<AtomicU64>,
}

struct Checked {
    order: EventOrder,
    error: Option<String>,
}

enum Life {
    Registered(Registration),
    Streaming(JoinHandle<()>),
}

impl Handler {
    /// Adds a handler, which shares its event counter with all others.
    pub fn add(watched: &Watched, delivery: Delivery, events: &Arc<AtomicU64>) -> Self {
        let mut order = EventOrder::default();
        if watched.is_rescoped {
            order.allow_unchanged_returns();
        }
        let checked = Arc::new(Mutex::new(Checked { order, error: None }));
        let recorder = EventRecorder { checked, events: Arc::clone(events) };
        let life = listen(&watched.informer, delivery, recorder.clone());
        Self { name: watched.name, delivery, recorder, life }
    }

    /// The first event that was out of order, if any.
    pub fn error(&self) -> Option<String> {
        let checked = self.recorder.checked.lock();
        checked.error.as_ref().map(|error| format!("a handler of {} ({:?}): {error}", self.name, self.delivery))
    }

    /// Checks that the handler's state equals the cache.
    pub fn agrees(&self, cached: &HashMap<String, u64>) -> Result<(), String> {
        let received: HashMap<String, u64> = {
            let checked = self.recorder.checked.lock();
            let objects = checked.order.objects();
            objects.map(|(key, version)| (key.to_string(), version.number().unwrap_or(0))).collect()
        };
        let passes = |version: u64| self.delivery != Delivery::Even || version.is_multiple_of(2);
        for (key, version) in cached.iter().filter(|(_, version)| passes(**version)) {
            if received.get(key) != Some(version) {
                let last = received.get(key);
                return Err(format!("{key} is at {version}, and a handler ({:?}) received {last:?}", self.delivery));
            }
        }
        let wanted = cached.values().filter(|version| passes(**version)).count();
        if received.len() == wanted {
            return Ok(());
        }
        Err(format!("{wanted} objects exist, and a handler ({:?}) has {}", self.delivery, received.len()))
    }

    /// Removes the handler.
    pub async fn end(self) {
        match self.life {
            Life::Registered(registration) => registration.remove().await,
            Life::Streaming(task) => {
                task.abort();
                drop(task.await);
            }
        }
    }
}

impl EventRecorder {
    fn record(&self, event: &Event<Value>) {
        self.events.fetch_add(1, Ordering::Relaxed);
        let mut checked = self.checked.lock();
        if let Err(error) = checked.order.check(event) {
            checked.error.get_or_insert(error);
        }
    }
}

fn listen(informer: &Informer<Value>, delivery: Delivery, recorder: EventRecorder) -> Life {
    let record = move |event: Event<Value>| recorder.record(&event);
    let handler = informer.handler();
    match delivery {
        Delivery::Every => Life::Registered(handler.on_event(record)),
        Delivery::Latest => Life::Registered(handler.backlog(Backlog::Latest).on_event(record)),
        Delivery::Slow => {
            let record = Arc::new(record);
            let handler = handler.backlog(Backlog::Every { limit: 64, overflow: Overflow::Replay });
            Life::Registered(handler.on_event_async(move |event| {
                let record = Arc::clone(&record);
                async move {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    record(event);
                }
            }))
        }
        Delivery::Stream => {
            let mut events = handler.subscribe();
            Life::Streaming(tokio::spawn(async move {
                while let Some(event) = events.next().await {
                    record(event);
                }
            }))
        }
        Delivery::Even => {
            let even = |object: &Obj<Value>| object.version().number().is_some_and(|number| number.is_multiple_of(2));
            let handler = handler.filter(even).resync(Duration::from_secs(20));
            Life::Registered(handler.on_event(record))
        }
    }
}
