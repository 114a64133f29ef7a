//! The event recorder: tells people what a controller does, by objects of `events.k8s.io/v1`.
//!
//! ```
//! # kube_embedded::doctest(["a"], async |server| {
//! # let client = kube::Client::new(server.service(), "default");
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube::Resource;
//! use kube::api::Api;
//! use kube_controller::Leadership;
//! use kube_controller::recorder::{NewEvent, Recorder};
//!
//! let recorder = Recorder::new("websites");
//! recorder.start(&Leadership::unelected().writer(&client)); // a manager does this
//! let map = Api::<ConfigMap>::default_namespaced(client).get("a").await?;
//! recorder.record(&map.object_ref(&()), NewEvent::normal("Published", "Publish", "serves 3 pages"));
//! recorder.shutdown().await; // all that was recorded is published
//!
//! let event = &server.objects("events.k8s.io/v1", "Event")?.list()[0];
//! assert_eq!((&event["note"], &event["regarding"]["name"]), (&"serves 3 pages".into(), &"a".into()));
//! # Ok(()) });
//! ```
//!
//! A recorder is made before there is a leadership to write with, so that reconcilers can hold it;
//! [`ManagerBuilder::recorder`](crate::manager::ManagerBuilder::recorder) starts it then.
//!
//! Recording never waits: an event enters a queue of 1,000, and is dropped and counted if that is
//! full. One task publishes. As in client-go:
//!
//! - A repeated event (same type, reason, action, note and objects) is written once more when it
//!   occurs a second time, as a series. From then on its count is written every 30 minutes, and
//!   when it has not occurred for 6 minutes, which ends the series.
//! - Of events that differ only in their notes, the tenth within 10 minutes and all that follow are
//!   one series, whose note begins with `(combined from similar events): `.
//! - For each object, 25 events are written at once, and then one every 5 minutes.
//! - Of each of these 4,096 keys are remembered.
//! - A request that fails without a response, or with 429 or 5xx, is sent up to 12 times, 10
//!   seconds apart, the first wait being a random part of that.
//!
//! An event is for people: publish what has changed, not what was found. The role needs `create`
//! and `patch` for `events` in the group `events.k8s.io`.

// `correlator` is pure. Uses `leadership`.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::jiff::Timestamp;
use kube_informer::object::Kind;
use kube_informer::{Obj, ObjectKey};
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

pub use self::new_event::NewEvent;

use self::correlator::{Correlator, Occurrence};
use self::publisher::Publisher;
use crate::leadership::Writer;
use crate::names::host_name;

mod correlator;
mod new_event;
mod publisher;

/// The capacity of the queue.
const QUEUE: usize = 1_000;

/// Publishes events in the background. Cheap to clone.
///
/// When the last clone is dropped, the task publishes what is queued, without repeating requests
/// that fail, and ends.
#[derive(Debug, Clone)]
#[doc(alias = "EventRecorder")]
#[doc(alias = "EventBroadcaster")]
pub struct Recorder {
    controller: Arc<str>,
    queue: mpsc::Sender<Occurrence>,
    stop: Arc<watch::Sender<bool>>,
    counters: Arc<Counters>,
    task: Arc<Mutex<Task>>,
}

/// The task that publishes.
#[derive(Debug)]
enum Task {
    Waiting { occurrences: mpsc::Receiver<Occurrence>, stop: watch::Receiver<bool> },
    Running(JoinHandle<()>),
    Ended,
}

/// The figures of a recorder since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecorderFigures {
    /// Events that were recorded.
    pub recorded: u64,
    /// Requests that the server has accepted: new events, and the counts of series.
    pub published: u64,
    /// Events that were dropped because the queue was full, or closed by a shutdown, or because the
    /// recorder was shut down without ever being started.
    pub dropped: u64,
    /// Requests that were left out by the rate limit.
    pub limited: u64,
    /// Requests that failed for good.
    pub failed: u64,
}

#[derive(Debug, Default)]
struct Counters {
    recorded: AtomicU64,
    published: AtomicU64,
    dropped: AtomicU64,
    limited: AtomicU64,
    failed: AtomicU64,
}

impl Recorder {
    /// Creates a recorder, which writes events in the name of a controller.
    ///
    /// The name is the `reportingController` of the events: a name such as `websites`, with a
    /// prefix such as `example.com/websites` if it is to be unique.
    #[must_use]
    pub fn new(controller: &str) -> Self {
        let (queue, occurrences) = mpsc::channel(QUEUE);
        let counters = Arc::<Counters>::default();
        let stop = watch::Sender::new(false);
        let task = Task::Waiting { occurrences, stop: stop.subscribe() };
        let task = Arc::new(Mutex::new(task));
        Self { controller: controller.into(), queue, stop: Arc::new(stop), counters, task }
    }

    /// Returns the name of the controller.
    #[must_use]
    pub fn controller(&self) -> &str {
        &self.controller
    }

    /// Starts to publish: what is in the queue, and what is recorded from now on. Does nothing if
    /// it has been started before.
    ///
    /// Must be called within a tokio runtime.
    #[doc(alias = "StartRecordingToSink")]
    pub fn start(&self, writer: &Writer) {
        let mut task = self.task.lock();
        *task = match mem::replace(&mut *task, Task::Ended) {
            Task::Waiting { occurrences, stop } => {
                let controller = &*self.controller;
                let correlator = Correlator::new(controller, &format!("{controller}-{}", host_name()));
                let publisher = Publisher::new(writer.client().clone(), correlator, Arc::clone(&self.counters));
                Task::Running(tokio::spawn(publisher.run(occurrences, stop)))
            }
            other => other,
        };
    }

    /// Records an event about an object. Never waits and never fails.
    ///
    /// kube's `Resource::object_ref` and [`reference_to`] make a reference.
    #[doc(alias = "Eventf")]
    pub fn record(&self, regarding: &ObjectReference, event: NewEvent) {
        let occurrence = Occurrence::new(regarding, event, Timestamp::now());
        self.counters.recorded.fetch_add(1, Ordering::Relaxed);
        if self.queue.try_send(occurrence).is_err() {
            self.counters.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the figures of the recorder.
    #[must_use]
    pub fn figures(&self) -> RecorderFigures {
        let Counters { recorded, published, dropped, limited, failed } = &*self.counters;
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RecorderFigures {
            recorded: of(recorded),
            published: of(published),
            dropped: of(dropped),
            limited: of(limited),
            failed: of(failed),
        }
    }

    /// Publishes what is queued and the counts of all series, and ends the task. What other clones
    /// record from now on is dropped.
    ///
    /// Failed requests are not repeated. What was recorded by a recorder that was never started is
    /// dropped. Drop the future to wait no longer: the task then ends by
    /// itself.
    pub async fn shutdown(&self) {
        self.stop.send_replace(true);
        let task = mem::replace(&mut *self.task.lock(), Task::Ended);
        match task {
            Task::Waiting { mut occurrences, .. } => {
                occurrences.close();
                while occurrences.try_recv().is_ok() {
                    self.counters.dropped.fetch_add(1, Ordering::Relaxed);
                }
            }
            // Only a panic would be an error, and has been reported.
            Task::Running(task) => drop(task.await),
            Task::Ended => {}
        }
    }
}

/// Returns a reference to an object of an informer.
#[must_use]
pub fn reference_to<K: Kind>(object: &Obj<K>) -> ObjectReference {
    let (resource, key): (_, &ObjectKey) = (K::resource(), object.key());
    ObjectReference {
        api_version: Some(resource.api_version),
        kind: Some(resource.kind),
        namespace: key.namespace().map(ToOwned::to_owned),
        name: Some(key.name().to_owned()),
        uid: object.uid().map(ToString::to_string),
        resource_version: Some(object.version().to_string()),
        field_path: None,
    }
}
