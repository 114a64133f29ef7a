//! A recording on an embedded server: its state at some time, or what happened as it happened.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use jiff::Timestamp;
use kube::Config;
use kube_embedded::table::Columns;
use kube_embedded::{Server, Status};
use kube_informer::Origin;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::connection::Connected;
use crate::client::kind_info::KindInfo;
use crate::failure::{Failure, causes};
use crate::history::{Change, What, recording};
use crate::object::decode::with_managed_fields;

/// A server of its own, with what was there when the recording began.
pub(crate) struct Replay {
    server: Server,
    recording: Recording,
    name: String,
}

/// The changes of a file.
pub(super) struct Recording(Vec<Change>);

impl Replay {
    pub(crate) async fn start(file: &Path) -> Result<Self, Failure> {
        let recording = Recording::read(file)?;
        let server = Server::builder().start().await?;
        recording.load_beginning(&server)?;
        Ok(Self { server, recording, name: file.display().to_string() })
    }

    pub(crate) fn connect(&self) -> Result<Connected, Failure> {
        let address = self.server.url();
        let uri = address.parse().map_err(|error| Failure::Other(format!("{address}: {error}")))?;
        let client = kube_informer::client(Config::new(uri)).map_err(|error| Failure::Other(causes(&error)))?;
        Ok(Connected { client, namespace: "default".to_owned(), address, name: self.name.clone() })
    }

    /// Applies the changes at the pace at which they were recorded.
    pub(crate) async fn play(&self) -> Result<(), Failure> {
        self.recording.play(&self.server, 1.0).await
    }

    pub(crate) async fn shutdown(self) {
        self.server.shutdown().await;
    }
}

impl Recording {
    pub(super) fn read(file: &Path) -> Result<Self, Failure> {
        recording::read(file).map(Self)
    }

    /// The time of the last change.
    pub(super) fn end(&self) -> Option<Timestamp> {
        self.0.last().map(|change| change.at)
    }

    /// Stores what was there when the recording began.
    pub(super) fn load_beginning(&self, server: &Server) -> Result<(), Failure> {
        load(server, self.0.iter().filter(|change| change.origin == Origin::Initial))
    }

    /// Stores what was there at a time.
    pub(super) fn load_at(&self, server: &Server, at: Timestamp) -> Result<(), Failure> {
        load(server, self.0.iter().filter(|change| change.at <= at || change.origin == Origin::Initial))
    }

    /// Applies the changes after the beginning, this many times as fast as they were.
    pub(super) async fn play(&self, server: &Server, speed: f64) -> Result<(), Failure> {
        let began = Instant::now();
        let mut first = None;
        for change in self.0.iter().filter(|change| change.origin != Origin::Initial) {
            let passed = change.at.duration_since(*first.get_or_insert(change.at)).as_secs_f64().max(0.0) / speed;
            tokio::time::sleep_until(began + Duration::try_from_secs_f64(passed).unwrap_or_default()).await;
            apply(server, change)?;
        }
        Ok(())
    }
}

fn load<'c>(server: &Server, changes: impl Iterator<Item = &'c Change>) -> Result<(), Failure> {
    // The last state of each object.
    let mut states = BTreeMap::new();
    for change in changes {
        let id = (change.kind.full_name(), change.object.key());
        match change.what {
            What::Deleted { .. } => drop(states.remove(&id)),
            What::Added | What::Updated { .. } => drop(states.insert(id, change)),
        }
    }
    let mut objects = Vec::new();
    for change in states.into_values() {
        define(server, &change.kind)?;
        objects.push(stored(change));
    }
    // What others depend on comes first.
    objects.sort_by_key(|object| match object["kind"].as_str() {
        Some("CustomResourceDefinition") => 0,
        Some("Namespace") => 1,
        _ => 2,
    });
    for object in objects {
        store(server, &object)?;
    }
    Ok(())
}

fn apply(server: &Server, change: &Change) -> Result<(), Failure> {
    define(server, &change.kind)?;
    let object = stored(change);
    match change.what {
        What::Added => store(server, &object),
        What::Updated { .. } => {
            let updated = server.update(&object).and_then(|_| match server.update_status(&object) {
                // A kind without a status.
                Err(status) if status.code() == 404 => Ok(Value::Null),
                updated => updated,
            });
            match updated {
                Ok(_) => Ok(()),
                Err(status) if status.code() == 404 => store(server, &object),
                Err(status) => Err(failure(&object, &status)),
            }
        }
        What::Deleted { .. } => {
            let deleted = server.objects(&change.kind.api_version(), &change.kind.kind).and_then(|objects| {
                let objects = match change.object.namespace() {
                    Some(namespace) => objects.namespace(namespace),
                    None => objects,
                };
                objects.delete(change.object.name())
            });
            match deleted {
                Ok(()) => Ok(()),
                Err(status) if status.code() == 404 => Ok(()),
                Err(status) => Err(failure(&object, &status)),
            }
        }
    }
}

/// The object as it can be stored: the server has versions of its own.
fn stored(change: &Change) -> Value {
    let mut object = with_managed_fields(&change.object).unwrap_or_default();
    object["apiVersion"] = change.kind.api_version().into();
    object["kind"] = change.kind.kind.clone().into();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
    object
}

fn store(server: &Server, object: &Value) -> Result<(), Failure> {
    match server.load([object.clone()]) {
        Ok(_) => Ok(()),
        // Objects that the server creates itself, such as the namespace `default`.
        Err(status) if status.code() == 409 => Ok(()),
        Err(status) => Err(failure(object, &status)),
    }
}

/// Defines a custom kind whose definition is not in the recording.
fn define(server: &Server, kind: &KindInfo) -> Result<(), Failure> {
    let is_built_in = Columns::built_in(&kind.group, &kind.version, &kind.plural).is_some();
    if is_built_in || server.objects(&kind.api_version(), &kind.kind).is_ok() {
        return Ok(());
    }
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.full_name()},
        "spec": {
            "group": kind.group, "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
            "names": {"plural": kind.plural, "kind": kind.kind, "singular": kind.kind.to_lowercase(), "shortNames": kind.short_names},
            "versions": [{"name": kind.version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    });
    server.create(&definition).map(drop).map_err(|status| failure(&definition, &status))
}

fn failure(object: &Value, status: &Status) -> Failure {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
    Failure::Other(format!("replaying {kind} {name}: {}", status.message()))
}
