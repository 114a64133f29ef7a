//! The task that writes events.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, Patch, PatchParams, PostParams};
use kube::{Client, Error};
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tracing::{debug, warn};

use super::Counters;
use super::correlator::{Correlator, Decision, Occurrence, Write};
use crate::leadership::LeadershipLost;
use crate::rng::Rng;

const TRIES: u32 = 12;
const RETRY: Duration = Duration::from_secs(10);
/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Interval of looking for series that have ended.
const TICK: Duration = Duration::from_secs(60);

pub(super) struct Publisher {
    client: Client,
    correlator: Correlator,
    counters: Arc<Counters>,
    start: Instant,
    rng: Rng,
}

/// Whether a request may be sent again.
enum Failure {
    Temporary(Error),
    Final(Error),
}

impl Publisher {
    pub(super) fn new(client: Client, correlator: Correlator, counters: Arc<Counters>) -> Self {
        Self { client, correlator, counters, start: Instant::now(), rng: Rng::random() }
    }

    /// Publishes until it is stopped or the last recorder is dropped.
    pub(super) async fn run(mut self, mut occurrences: mpsc::Receiver<Occurrence>, mut stop: watch::Receiver<bool>) {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let writes = tokio::select! {
                biased;
                // An error: the last recorder was dropped.
                _ = stop.wait_for(|stop| *stop) => break,
                _ = tick.tick() => self.correlator.due(self.start.elapsed()),
                Some(occurrence) = occurrences.recv() => self.observe(occurrence),
            };
            for write in writes {
                self.publish(&write, &mut stop).await;
            }
        }
        occurrences.close();
        while let Some(occurrence) = occurrences.recv().await {
            for write in self.observe(occurrence) {
                self.publish(&write, &mut stop).await;
            }
        }
        for write in self.correlator.rest(self.start.elapsed()) {
            self.publish(&write, &mut stop).await;
        }
    }

    fn observe(&mut self, occurrence: Occurrence) -> Vec<Write> {
        match self.correlator.observe(occurrence, self.start.elapsed()) {
            Decision::Write(write) => return vec![write],
            Decision::Limited => count(&self.counters.limited),
            Decision::Counted => {}
        }
        Vec::new()
    }

    /// Sends a request, several times if needed, but only once after the stop.
    async fn publish(&mut self, write: &Write, stop: &mut watch::Receiver<bool>) {
        let event = match write {
            Write::Create(event) | Write::Update(event) => Arc::clone(event),
        };
        for nth in 1..=TRIES {
            let error = match self.send(write).await {
                Ok(()) => return count(&self.counters.published),
                Err(Failure::Temporary(error)) if nth < TRIES => error,
                Err(Failure::Temporary(error) | Failure::Final(error)) => {
                    return self.give_up(&event, &error);
                }
            };
            let wait = if nth == 1 { RETRY.mul_f64(self.rng.next_fraction()) } else { RETRY };
            debug!(%error, ?wait, "an event could not be published; it is tried again");
            tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return self.give_up(&event, &error),
                () = sleep(wait) => {}
            }
        }
    }

    async fn send(&self, write: &Write) -> Result<(), Failure> {
        match write {
            Write::Create(event) => self.create(event).await,
            Write::Update(event) => match self.update(event).await {
                // It has expired, or was never created.
                Err(Failure::Final(Error::Api(status))) if status.code == 404 => self.create(event).await,
                done => done,
            },
        }
    }

    async fn create(&self, event: &Event) -> Result<(), Failure> {
        let params = PostParams::default();
        attempt(self.events(event).create(&params, event)).await
    }

    async fn update(&self, event: &Event) -> Result<(), Failure> {
        let (events, params) = (self.events(event), PatchParams::default());
        let name = event.metadata.name.as_deref().unwrap_or_default();
        let series = Patch::Merge(json!({"series": event.series}));
        attempt(events.patch(name, &params, &series)).await
    }

    fn events(&self, event: &Event) -> Api<Event> {
        Api::namespaced(self.client.clone(), event.metadata.namespace.as_deref().unwrap_or("default"))
    }

    fn give_up(&self, event: &Event, error: &Error) {
        count(&self.counters.failed);
        // After a loss every event fails, which is reported once by the election.
        if LeadershipLost::is_cause_of(error) {
            return;
        }
        let (reason, regarding) = (event.reason.as_deref().unwrap_or_default(), event.regarding.as_ref());
        let of = |field: Option<&String>| field.map(|text| text.escape_debug().to_string()).unwrap_or_default();
        warn!(
            reason = %reason.escape_debug(),
            kind = of(regarding.and_then(|regarding| regarding.kind.as_ref())),
            namespace = of(event.metadata.namespace.as_ref()),
            name = of(regarding.and_then(|regarding| regarding.name.as_ref())),
            error = %error.to_string().escape_debug(),
            "an event was not published"
        );
    }
}

async fn attempt(request: impl Future<Output = Result<Event, Error>>) -> Result<(), Failure> {
    let response = timeout(TIMEOUT, request).await;
    match response.unwrap_or_else(|_| Err(Error::Service("no response in time".into()))) {
        Ok(_) => Ok(()),
        Err(Error::Api(status)) if status.code != 429 && status.code < 500 => Err(Failure::Final(Error::Api(status))),
        Err(error) if LeadershipLost::is_cause_of(&error) => Err(Failure::Final(error)),
        Err(error) => Err(Failure::Temporary(error)),
    }
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
