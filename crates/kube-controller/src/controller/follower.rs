//! Follows the ranges that a member of a group holds: opens them for attempts, and closes them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use kube::Client;
use kube_informer::{Event, Informer, Object, Origin, Registration, Version, WaitError, WorkQueue};
use kube_informer::{ObjectKey, shard::HashRange};
use parking_lot::Mutex;
use serde::de::IgnoredAny;
use tokio::time::{sleep, timeout};

use super::plural_name;
use super::ranges::{OpenRange, OpenRanges};
use crate::consistency::{Caches, Gate, latest_version};
use crate::context::ControllerContext;
use crate::leadership::Leadership;
use crate::sharding::{Change, Participant, Tenure, Versions};

/// How long a cache that is not known to be behind is waited for after a crash of the last holder.
///
/// The version that the server has is often one of other resources, which a quiet cache reaches
/// with its next bookmark only. The last write of the crashed holder is older than this already.
const AFTER_A_CRASH: Duration = Duration::from_secs(5);
/// How long the caches are waited for before a release, until they have what was written.
const BEFORE_A_RELEASE: Duration = Duration::from_secs(5);

/// The part of a controller that follows its group.
pub(super) struct Follower<K> {
    pub(super) name: Arc<str>,
    pub(super) client: Client,
    pub(super) informer: Informer<K>,
    pub(super) caches: Arc<Caches>,
    pub(super) gate: Option<Arc<Gate>>,
    pub(super) queue: WorkQueue<ObjectKey>,
    pub(super) ranges: Arc<OpenRanges>,
    pub(super) context: MakeContext,
    pub(super) seen: Seen,
}

/// The latest versions of the changes that each cache has delivered.
///
/// Not the versions that the caches have reached: those include bookmarks, which another cache may
/// get a minute later, though it has the same objects.
pub(super) struct Seen {
    latest: Arc<Mutex<BTreeMap<String, Version>>>,
    _registrations: Vec<Registration>,
}

/// Makes what attempts write with, by a right.
type MakeContext = Box<dyn Fn(&Leadership) -> Arc<ControllerContext> + Send + Sync>;

type Opening = BoxFuture<'static, Tenure>;

impl Seen {
    pub(super) fn new(caches: &Caches) -> Self {
        let latest = Arc::<Mutex<BTreeMap<String, Version>>>::default();
        let registrations = caches.iter().map(|informer| {
            let (resource, latest) = (plural_name(informer.resource()), Arc::clone(&latest));
            informer.on_event(move |event: Event<IgnoredAny>| {
                let (old, new) = event.states();
                for object in old.into_iter().chain(new) {
                    raise(&mut latest.lock(), &resource, object.version());
                }
            })
        });
        let registrations = registrations.collect();
        Self { latest, _registrations: registrations }
    }
}

fn raise(all: &mut BTreeMap<String, Version>, resource: &str, version: &Version) {
    match all.get_mut(resource) {
        Some(before) if *before < *version => *before = version.clone(),
        Some(_) => {}
        None => drop(all.insert(resource.to_owned(), version.clone())),
    }
}

impl<K: Object> Follower<K> {
    /// Opens and closes ranges for ever.
    pub(super) async fn run(&self, participant: &mut Participant) {
        let (mut opening, mut closing) = (FuturesUnordered::<Opening>::new(), FuturesUnordered::new());
        // Ranges that are to be opened when the caches are there.
        let mut awaited: BTreeMap<HashRange, u64> = BTreeMap::new();
        loop {
            tokio::select! {
                biased;
                change = participant.next() => match change {
                    Change::Gained(tenure) => {
                        awaited.insert(tenure.range(), tenure.epoch());
                        opening.push(self.caught_up(tenure));
                    }
                    Change::Draining(tenure) => {
                        awaited.remove(&tenure.range());
                        match self.ranges.close(&tenure) {
                            Some(range) => closing.push(self.closed(range)),
                            // Nothing was done for it.
                            None => participant.ended(&tenure, tenure.versions().cloned()),
                        }
                    }
                    Change::Lost(tenure) => {
                        if awaited.get(&tenure.range()) == Some(&tenure.epoch()) {
                            awaited.remove(&tenure.range());
                        }
                        // Its attempts are cancelled.
                        drop(self.ranges.close(&tenure));
                    }
                },
                Some((tenure, versions)) = closing.next(), if !closing.is_empty() => {
                    participant.ended(&tenure, versions);
                }
                Some(tenure) = opening.next(), if !opening.is_empty() => {
                    if awaited.get(&tenure.range()) == Some(&tenure.epoch()) {
                        awaited.remove(&tenure.range());
                        self.open(tenure);
                    }
                }
            }
        }
    }

    /// The controller has stopped and no attempt runs: ends the work for all ranges.
    pub(super) async fn finish(self, participant: Participant) {
        let ranges = self.ranges.close_all();
        if ranges.is_empty() {
            return;
        }
        let versions = self.versions().await;
        for range in ranges {
            participant.ended(range.tenure(), versions.clone());
        }
    }

    fn open(&self, tenure: Tenure) {
        let range = tenure.range();
        let context = (self.context)(tenure.leadership());
        self.ranges.open(tenure, context);
        // After opening, so that no change is missed that was dropped before.
        let mut count = 0_usize;
        for object in self.informer.lister().snapshot().iter() {
            if range.contains(self.ranges.hash(object.key().namespace(), object.uid())) {
                count += 1;
                self.queue.add_from(object.key().clone(), Origin::Resync);
            }
        }
        tracing::debug!(controller = &*self.name, %range, objects = count, "a range is reconciled from now on");
    }

    /// Completes with a range that was closed, and what the caches have, when its attempts have
    /// ended.
    async fn closed(&self, range: Arc<OpenRange>) -> (Tenure, Option<Versions>) {
        range.idle().await;
        (range.tenure().clone(), self.versions().await)
    }

    /// The versions of the latest changes in the caches. `None` if the caches do not have
    /// everything that this controller wrote.
    async fn versions(&self) -> Option<Versions> {
        let gate = self.gate.as_ref()?;
        if timeout(BEFORE_A_RELEASE, gate.all_visible()).await.is_err() {
            return None;
        }
        let mut versions = self.seen.latest.lock().clone();
        // Changes that were not delivered to the handler yet.
        for informer in self.caches.iter() {
            let (resource, snapshot) = (plural_name(informer.resource()), informer.lister().snapshot());
            for object in snapshot.iter() {
                raise(&mut versions, &resource, object.version());
            }
        }
        Some(versions)
    }

    /// Completes when the caches have what the last holder of a range had.
    fn caught_up(&self, tenure: Tenure) -> Opening {
        let (client, caches, name) = (self.client.clone(), Arc::clone(&self.caches), Arc::clone(&self.name));
        Box::pin(async move {
            for informer in caches.iter() {
                let resource = plural_name(informer.resource());
                let waited = match tenure.versions().map(|all| all.get(&resource)) {
                    Some(None) => continue,
                    Some(Some(version)) => informer.wait_for(version.clone()).await,
                    None => match latest(&name, &client, informer).await {
                        Some(version) => timeout(AFTER_A_CRASH, informer.wait_for(version)).await.unwrap_or(Ok(())),
                        None => continue,
                    },
                };
                match waited {
                    Ok(()) => {}
                    // Nothing is reconciled any more.
                    Err(WaitError::Stopped) => return std::future::pending().await,
                    Err(cause) => {
                        tracing::warn!(controller = &*name, resource, %cause, "a range is reconciled all the same");
                    }
                }
            }
            tenure
        })
    }
}

/// The version that the server has; `None` if it does not say.
async fn latest(controller: &str, client: &Client, informer: &Informer<IgnoredAny>) -> Option<Version> {
    loop {
        match timeout(AFTER_A_CRASH, latest_version(client, informer.resource(), None)).await {
            Ok(Ok(version)) => return Some(version),
            // A controller of some namespaces may not list all.
            Ok(Err(kube::Error::Api(status))) if status.code == 403 => return None,
            Ok(Err(error)) => {
                let resource = plural_name(informer.resource());
                tracing::warn!(controller, resource, %error, "the version of a resource cannot be read; it is tried again");
            }
            Err(_) => {}
        }
        sleep(Duration::from_secs(1)).await;
    }
}
