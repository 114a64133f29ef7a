//! The loop that the controllers of the zoo share: caches from LIST and WATCH, a queue of names,
//! retries. It is correct; the bugs are in the reconcilers.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions,
    VersionMatch, WatchEvent, WatchParams,
};
use kube::{Client, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

/// The wait before a failed request or reconciliation is repeated.
const RETRY: Duration = Duration::from_secs(1);

/// Which state the lists of an operator may show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// The latest state.
    Latest,
    /// `resourceVersion=0` at first, and then not older than the last version seen, as client-go
    /// lists.
    Any,
}

/// What an operator does when the server says that its version is too old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    Relist,
    /// Watches again from the same version: one of the bugs.
    Resume,
}

/// What happened to an object, as a watch or the comparison with a list shows it.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// Created, or first seen in a list.
    Added(DynamicObject),
    /// The object before and after.
    Changed(Box<[DynamicObject; 2]>),
    /// A DELETED event of a watch.
    Deleted(DynamicObject),
    /// The object was absent from a list: its last known state.
    Vanished(DynamicObject),
}

/// The caches of an operator, and its client.
pub(crate) struct World {
    pub(crate) client: Client,
    caches: BTreeMap<&'static str, BTreeMap<String, DynamicObject>>,
}

pub(crate) type Outcome = Result<Option<Duration>, kube::Error>;

pub(crate) trait Reconciler {
    /// Makes the cluster agree with one Thing. Returns after which time to look again.
    async fn reconcile(&mut self, world: &World, name: &str) -> Outcome;

    /// Observes an event. The name of the Thing is queued in any case.
    fn observe(&mut self, _kind: &str, _event: &Event) {}

    /// Whether a failed reconciliation is repeated.
    fn retries(&self) -> bool {
        true
    }
}

pub(crate) struct Operator {
    pub(crate) kinds: &'static [&'static str],
    pub(crate) reads: Reads,
    pub(crate) gone: Gone,
}

impl Default for Operator {
    fn default() -> Self {
        Self { kinds: &["Thing", "ConfigMap"], reads: Reads::Latest, gone: Gone::Relist }
    }
}

enum Message {
    Listed(&'static str, Vec<DynamicObject>),
    Changed(&'static str, DynamicObject),
    Deleted(&'static str, DynamicObject),
}

impl Operator {
    /// Reconciles until it is dropped.
    pub(crate) async fn run(self, client: Client, mut reconciler: impl Reconciler) {
        let mut world = World { client, caches: BTreeMap::new() };
        let (sender, mut messages) = mpsc::channel(1000);
        let mut watches = JoinSet::new();
        for kind in self.kinds {
            watches.spawn(watch(world.api(kind), kind, self.reads, self.gone, sender.clone()));
        }
        let mut due = BTreeSet::new();
        let mut later: BTreeMap<String, Instant> = BTreeMap::new();
        loop {
            while let Ok(message) = messages.try_recv() {
                world.apply(message, &mut reconciler, &mut due);
            }
            let is_synced = world.caches.len() == self.kinds.len();
            if is_synced && let Some(name) = due.pop_first() {
                later.remove(&name);
                match reconciler.reconcile(&world, &name).await {
                    Ok(None) => {}
                    Ok(Some(wait)) => drop(later.insert(name, Instant::now() + wait)),
                    Err(error) => {
                        tracing::warn!(%name, %error, "reconciliation failed");
                        if reconciler.retries() {
                            later.insert(name, Instant::now() + RETRY);
                        }
                    }
                }
                continue;
            }
            let next = later.values().min().copied();
            tokio::select! {
                            biased;
                            Some(message) = messages.recv() => world.apply(message, &mut reconciler, &mut due),
                            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                                let now = Instant::now();
            due.extend(later.iter().filter(|(_, at)| **at <= now).map(|(name, _)| name.clone()));
                                later.retain(|_, at| *at > now);
                            }
                        }
        }
    }
}

impl World {
    pub(crate) fn api(&self, kind: &str) -> Api<DynamicObject> {
        Api::default_namespaced_with(self.client.clone(), &resource(kind))
    }

    pub(crate) fn cached(&self, kind: &str, name: &str) -> Option<&DynamicObject> {
        self.caches.get(kind)?.get(name)
    }

    pub(crate) fn thing(&self, name: &str) -> Option<&DynamicObject> {
        self.cached("Thing", name)
    }

    /// The cached objects of a kind that belong to a Thing.
    pub(crate) fn children(&self, kind: &str, thing: &str) -> Vec<&DynamicObject> {
        let all = self.caches.get(kind).into_iter().flat_map(BTreeMap::values);
        all.filter(|object| parent(object) == Some(thing)).collect()
    }

    /// The Thing as it is now, if it is the one that is cached, is not being deleted, and wants the
    /// same. The cache may be behind, also behind that of the children, and a child that is created
    /// for an earlier incarnation or an earlier wish would be garbage.
    pub(crate) async fn confirmed(&self, thing: &DynamicObject) -> Result<Option<DynamicObject>, kube::Error> {
        let live = self.api("Thing").get_opt(&thing.name_any()).await?;
        let wanted = (thing.uid(), thing.metadata.generation);
        Ok(live.filter(|live| (live.uid(), live.metadata.generation) == wanted && !is_deleting(live)))
    }

    /// Creates an object. One that exists already is as good.
    pub(crate) async fn ensure(&self, object: &DynamicObject) -> Result<(), kube::Error> {
        match self.create(object).await {
            Err(error) if code(&error) == 409 => Ok(()),
            other => other.map(drop),
        }
    }

    pub(crate) async fn create(&self, object: &DynamicObject) -> Result<DynamicObject, kube::Error> {
        let kind = &object.types.as_ref().unwrap().kind;
        self.api(kind).create(&PostParams::default(), object).await
    }

    /// Deletes an object by its name. One that is gone already is as good.
    pub(crate) async fn delete(&self, kind: &str, name: &str) -> Result<(), kube::Error> {
        absent_is_ok(self.api(kind).delete(name, &DeleteParams::default()).await.map(drop))
    }

    /// Deletes the very config map that is cached, and no later one of its name.
    pub(crate) async fn delete_cached(&self, object: &DynamicObject) -> Result<(), kube::Error> {
        let preconditions = Preconditions { uid: object.uid(), resource_version: None };
        let params = DeleteParams::default().preconditions(preconditions);
        absent_is_ok(self.api("ConfigMap").delete(&object.name_any(), &params).await.map(drop))
    }

    pub(crate) async fn patch(&self, kind: &str, name: &str, merge: &Value) -> Result<(), kube::Error> {
        self.api(kind).patch(name, &PatchParams::default(), &Patch::Merge(merge)).await.map(drop)
    }

    pub(crate) async fn patch_status(&self, name: &str, status: &Value) -> Result<(), kube::Error> {
        let patch = json!({ "status": status });
        self.api("Thing").patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop)
    }

    fn apply(&mut self, message: Message, reconciler: &mut impl Reconciler, due: &mut BTreeSet<String>) {
        let mut events = Vec::new();
        let kind = match message {
            Message::Listed(kind, objects) => {
                let mut before = self.caches.insert(kind, BTreeMap::new()).unwrap_or_default();
                let cache = self.caches.entry(kind).or_default();
                for object in objects {
                    events.push(match before.remove(&object.name_any()) {
                        None => Event::Added(object.clone()),
                        Some(old) => Event::Changed(Box::new([old, object.clone()])),
                    });
                    cache.insert(object.name_any(), object);
                }
                events.extend(before.into_values().map(Event::Vanished));
                kind
            }
            Message::Changed(kind, new) => {
                let old = self.caches.entry(kind).or_default().insert(new.name_any(), new.clone());
                events.push(match old {
                    None => Event::Added(new),
                    Some(old) => Event::Changed(Box::new([old, new])),
                });
                kind
            }
            Message::Deleted(kind, object) => {
                self.caches.entry(kind).or_default().remove(&object.name_any());
                events.push(Event::Deleted(object));
                kind
            }
        };
        for event in events {
            let object = match &event {
                Event::Added(object) | Event::Deleted(object) | Event::Vanished(object) => object,
                Event::Changed(states) => &states[1],
            };
            match kind {
                "Thing" => drop(due.insert(object.name_any())),
                _ => due.extend(parent(object).map(str::to_owned)),
            }
            reconciler.observe(kind, &event);
        }
    }
}

pub(crate) fn is_deleting(object: &DynamicObject) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

/// The code of an error's status; 0 if the server did not answer.
pub(crate) fn code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        _ => 0,
    }
}

pub(crate) fn absent_is_ok(result: Result<(), kube::Error>) -> Result<(), kube::Error> {
    match result {
        Err(error) if code(&error) == 404 => Ok(()),
        other => other,
    }
}

/// A config map of a Thing, which owns it.
pub(crate) fn owned(thing: &DynamicObject, name: &str, data: Value) -> DynamicObject {
    let mut map = unowned(&thing.name_any(), name, data);
    map.owner_references_mut().push(thing.controller_owner_ref(&resource("Thing")).unwrap());
    map
}

/// A config map that belongs to a Thing by its label only.
pub(crate) fn unowned(thing: &str, name: &str, data: Value) -> DynamicObject {
    let mut map = DynamicObject::new(name, &resource("ConfigMap")).data(json!({ "data": data }));
    map.labels_mut().insert("thing".to_owned(), thing.to_owned());
    map
}

fn parent(object: &DynamicObject) -> Option<&str> {
    object.labels().get("thing").map(String::as_str)
}

pub(crate) fn resource(kind: &str) -> ApiResource {
    let (group, version) = if kind == "Thing" { ("zoo.example.com", "v1") } else { ("", "v1") };
    let kind = kube::core::GroupVersionKind::gvk(group, version, kind);
    ApiResource::from_gvk(&kind)
}

/// Lists and watches a kind for ever.
async fn watch(api: Api<DynamicObject>, kind: &'static str, reads: Reads, gone: Gone, sender: mpsc::Sender<Message>) {
    let mut version: Option<String> = None;
    loop {
        let mut params = ListParams::default();
        if reads == Reads::Any {
            params = match &version {
                None => params.match_any(),
                Some(version) => params.at(version).matching(VersionMatch::NotOlderThan),
            };
        }
        let Ok(list) = api.list(&params).await else {
            sleep(RETRY).await;
            continue;
        };
        let mut from = list.metadata.resource_version.unwrap_or_default();
        if sender.send(Message::Listed(kind, list.items)).await.is_err() {
            return;
        }
        while !follow(&api, kind, &mut from, &sender).await || gone == Gone::Resume {
            sleep(RETRY).await;
        }
        version = Some(from);
        sleep(RETRY).await;
    }
}

/// Watches once. Returns whether the version is too old.
async fn follow(
    api: &Api<DynamicObject>,
    kind: &'static str,
    from: &mut String,
    sender: &mpsc::Sender<Message>,
) -> bool {
    let events = match api.watch(&WatchParams::default(), from).await {
        Ok(events) => events,
        Err(error) => return matches!(error, kube::Error::Api(status) if status.code == 410),
    };
    let mut events = pin!(events);
    while let Some(event) = events.next().await {
        let message = match event {
            Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) => {
                *from = object.resource_version().unwrap_or_default();
                Message::Changed(kind, object)
            }
            Ok(WatchEvent::Deleted(object)) => {
                *from = object.resource_version().unwrap_or_default();
                Message::Deleted(kind, object)
            }
            Ok(WatchEvent::Bookmark(bookmark)) => {
                *from = bookmark.metadata.resource_version;
                continue;
            }
            Ok(WatchEvent::Error(status)) => return status.code == 410,
            Err(_) => return false,
        };
        if sender.send(message).await.is_err() {
            return false;
        }
    }
    false
}
