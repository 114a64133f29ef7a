//! Shared by informer tests: an in-process API server, and handlers that check the events they
//! receive.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part of this")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube_embedded::Server;
use kube_informer::{Event, Informer, Obj, ObjectKey, Origin, Registration, Version};
use serde_json::{Value, json};

pub async fn server() -> Server {
    Server::builder().in_process().seed(1).start().await.unwrap()
}

pub fn client(server: &Server) -> Client {
    Client::new(server.service(), "default")
}

pub fn config_map(namespace: &str, name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"value": value}},
        "data": {"value": value},
    })
}

/// Creates or updates a config map.
pub fn put(server: &Server, namespace: &str, name: &str, value: &str) -> Version {
    let objects = server.objects("v1", "ConfigMap").unwrap().namespace(namespace);
    let made = match objects.get(name) {
        Ok(_) => objects.patch(name, &json!({"metadata": {"labels": {"value": value}}, "data": {"value": value}})),
        Err(_) => objects.create(&config_map(namespace, name, value)),
    };
    version_of(&made.unwrap())
}

pub fn remove(server: &Server, namespace: &str, name: &str) {
    server.objects("v1", "ConfigMap").unwrap().namespace(namespace).delete(name).unwrap();
}

pub fn version_of(object: &Value) -> Version {
    Version::new(object["metadata"]["resourceVersion"].as_str().unwrap())
}

pub fn key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::namespaced(namespace, name)
}

/// Name and resource version of every config map on the server.
pub fn truth(server: &Server) -> BTreeMap<String, String> {
    let all = server.objects("v1", "ConfigMap").unwrap().list();
    all.iter().map(|map| (name_of(map), version_of(map).to_string())).collect()
}

fn name_of(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap().to_owned();
    format!("{}/{}", text("namespace"), text("name"))
}

/// Name and resource version of every config map in the cache.
pub fn cached(maps: &Informer<ConfigMap>) -> BTreeMap<String, String> {
    let all = maps.lister().list();
    all.iter().map(|map| (map.key().to_string(), map.version().to_string())).collect()
}

/// A handler that records its events and checks the event sequence of each object: added once,
/// updated from the last delivered state, deleted once.
#[derive(Clone, Default)]
pub struct EventRecorder(Arc<Mutex<Record>>);

#[derive(Default)]
struct Record {
    known: BTreeMap<String, (Option<String>, Version)>,
    lines: Vec<String>,
    wrong: Option<String>,
    may_go_back: bool,
}

impl EventRecorder {
    pub fn handler<K: 'static>(&self) -> impl FnMut(Event<K>) + Send + use<K> {
        let record = self.clone();
        move |event| record.hear(&event)
    }

    pub fn hear<K>(&self, event: &Event<K>) {
        let mut record = self.0.lock().unwrap();
        record.lines.push(line(event));
        if let Err(wrong) = record.check(event) {
            let lines = record.lines.join("\n");
            record.wrong.get_or_insert(format!("{wrong}:\n{lines}"));
        }
    }

    /// Allows versions to go back, before the server is restored from a backup.
    pub fn server_may_go_back(&self) {
        self.0.lock().unwrap().may_go_back = true;
    }

    /// Returns the events recorded since the last call.
    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().lines)
    }

    /// Name and version of each object according to the received events. Panics if an event
    /// sequence was invalid.
    pub fn believed(&self) -> BTreeMap<String, String> {
        let record = self.0.lock().unwrap();
        if let Some(wrong) = &record.wrong {
            panic!("{wrong}");
        }
        record.known.iter().map(|(key, (_, version))| (key.clone(), version.to_string())).collect()
    }
}

impl Record {
    fn check<K>(&mut self, event: &Event<K>) -> Result<(), String> {
        let key = event.key().to_string();
        let state = |object: &Obj<K>| (object.uid().map(ToString::to_string), object.version().clone());
        let known = self.known.get(&key);
        match event {
            Event::Added { object, .. } => {
                if known.is_some() {
                    return Err(format!("{key} is added twice"));
                }
                self.known.insert(key, state(object));
            }
            Event::Updated { old, new, origin, .. } => {
                let Some(known) = known else { return Err(format!("{key} is updated before it is added")) };
                if *known != state(old) {
                    return Err(format!("{key} is updated from a state that was not told: {known:?}"));
                }
                if known.0 != state(new).0 {
                    return Err(format!("{key} becomes another object"));
                }
                if new.version() < old.version() && !self.may_go_back {
                    return Err(format!("{key} goes back"));
                }
                if new.version() == old.version() && *origin != Origin::Resync && !self.may_go_back {
                    return Err(format!("{key} is updated without a change"));
                }
                self.known.insert(key, state(new));
            }
            Event::Deleted { last, .. } => {
                let Some(known) = known else { return Err(format!("{key} is deleted before it is added")) };
                if known.0 != state(last).0 {
                    return Err(format!("another {key} is deleted"));
                }
                self.known.remove(&key);
            }
        }
        Ok(())
    }
}

/// Formats an event as a short line.
pub fn line<K>(event: &Event<K>) -> String {
    let origin = match event.origin() {
        Origin::Live => String::new(),
        other => format!(" ({other:?})"),
    };
    match event {
        Event::Added { object, .. } => format!("+ {}{origin}", object.key()),
        Event::Updated { new, .. } => format!("~ {}{origin}", new.key()),
        Event::Deleted { last, state, .. } => format!("- {} {state:?}{origin}", last.key()),
    }
}

/// Numbers of lists and watches of config maps that the server received. Streaming lists count as
/// lists.
pub fn asked(server: &Server) -> (usize, usize) {
    let requests = server.requests();
    let maps = requests.iter().filter(|seen| seen.path.ends_with("/configmaps") && seen.method == "GET");
    let (watches, lists): (Vec<_>, Vec<_>) =
        maps.partition(|seen| seen.query.contains("watch=true") && !seen.query.contains("sendInitialEvents=true"));
    (lists.len(), watches.len())
}

/// Waits until the handler has an empty backlog and has returned.
pub async fn drained(handler: &Registration) {
    while handler.backlog() > 0 {
        tokio::task::yield_now().await;
    }
    tokio::task::yield_now().await;
}
