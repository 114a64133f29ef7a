//! This project's informer in the differential test.

use std::future::Future;
use std::time::Duration;

use kube::Config;
use kube::core::DynamicObject;
use kube_informer::reflector::{BackoffSettings, ReflectorSettings};
use kube_informer::{Event, FinalState, Informer, Obj, Origin, Registration};

use super::scenario::Scenario;
use super::transcript::{Line, STEP, State};
use super::transcript_recorder::TranscriptRecorder;
use crate::Error;

/// This project's informer, in this process.
#[derive(Debug)]
pub(crate) struct Ours {
    informer: Informer<DynamicObject>,
    _handler: Registration,
    pub(crate) recorder: TranscriptRecorder,
}

impl Ours {
    /// Starts an informer for the scenario, which reports to this recorder.
    pub(crate) fn start(
        config: Config,
        scenario: &Scenario,
        namespace: &str,
        recorder: TranscriptRecorder,
    ) -> Result<Self, Error> {
        let client = kube_informer::client(config)?;
        let mut builder = Informer::<DynamicObject>::builder_for(client, scenario.kind().resource());
        // Connections break frequently here, so a low backoff cap saves time.
        let backoff = BackoffSettings { cap: Duration::from_secs(2), ..BackoffSettings::default() };
        builder = builder.reflector(ReflectorSettings { backoff, ..ReflectorSettings::default() });
        if scenario.is_of_one_namespace() {
            builder = builder.namespace(namespace);
        }
        if let Some(labels) = scenario.labels() {
            builder = builder.labels(labels);
        }
        if let Some(fields) = scenario.fields() {
            builder = builder.fields(fields);
        }
        if let Some(period) = scenario.resync {
            builder = builder.resync(period);
        }
        let errors = recorder.clone();
        let informer = builder.on_watch_error(move |error| errors.record_error(error)).build();
        let events = recorder.clone();
        let handler = informer.on_event(move |event| match line(&event) {
            Ok(line) => events.record(line),
            Err(error) => events.ended(error.to_string()),
        });
        tokio::spawn(record_synced(informer.clone(), handler.synced(), recorder.clone()));
        informer.start();
        Ok(Self { informer, _handler: handler, recorder })
    }

    /// Reports the content of the cache.
    pub(crate) fn print_cache(&self) -> Result<(), Error> {
        let objects: Result<Vec<State>, Error> = self.informer.lister().sorted().iter().map(state).collect();
        self.recorder.record(Line::Cache { objects: objects? });
        Ok(())
    }

    pub(crate) async fn stop(self) {
        self.informer.shutdown().await;
    }
}

async fn record_synced(
    informer: Informer<DynamicObject>,
    synced: impl Future<Output = Result<(), kube_informer::SyncError>>,
    recorder: TranscriptRecorder,
) {
    if let Err(error) = synced.await {
        return recorder.ended(error.to_string());
    }
    match informer.health().version.and_then(|version| version.number()) {
        Some(version) => recorder.record(Line::Synced { version }),
        None => recorder.ended("it has synced to no version"),
    }
}

fn line(event: &Event<DynamicObject>) -> Result<Line, Error> {
    Ok(match event {
        Event::Added { object, origin, .. } => {
            Line::Added { object: state(object)?, initial: *origin == Origin::Initial }
        }
        Event::Updated { old, new, .. } => Line::Updated { old: state(old)?, object: state(new)? },
        Event::Deleted { last, state: last_state, .. } => {
            Line::Deleted { object: state(last)?, missed: *last_state == FinalState::Missed }
        }
    })
}

fn state(object: &Obj<DynamicObject>) -> Result<State, Error> {
    let annotations = object.get()?.metadata.annotations.as_ref();
    Ok(State {
        key: object.key().to_string(),
        uid: object.uid().map(ToString::to_string).unwrap_or_default(),
        version: object.version().number().ok_or_else(|| format!("{} has no number as version", object.key()))?,
        step: annotations.and_then(|annotations| annotations.get(STEP)).cloned().unwrap_or_default(),
    })
}
