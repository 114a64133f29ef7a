//! The caches of a controller, as read-your-writes needs them.

use std::fmt;

use futures_util::FutureExt;
use futures_util::future::select_all;
use kube::Client;
use kube::core::ApiResource;
use kube_informer::{Informer, Obj, Object, ObjectKey, Snapshot, Uid, Version, WaitError};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::unseen::{Awaited, CacheState};
use super::{CacheId, Tracker};
use crate::context::request;

/// The caches that a controller has declared.
#[derive(Default)]
pub(crate) struct Caches(Vec<Cache>);

pub(crate) struct Cache {
    informer: Informer<IgnoredAny>,
    is_metadata_only: bool,
}

/// Why the caches cannot get to what a key wrote.
#[derive(Debug, thiserror::Error)]
pub(crate) enum VisibilityError {
    /// The version that the server has could not be read.
    #[error("after a write of {resource} whose outcome is unknown, its version cannot be read: {cause}")]
    List { resource: String, cause: kube::Error },
    #[error("the cache of {resource} has stopped")]
    Stopped { resource: String },
}

impl Caches {
    /// Adds a cache and returns its number.
    pub(crate) fn add<K: Object>(&mut self, informer: &Informer<K>) -> CacheId {
        self.0.push(Cache { informer: informer.view(), is_metadata_only: K::METADATA_ONLY });
        self.0.len() - 1
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Informer<IgnoredAny>> {
        self.0.iter().map(|cache| &cache.informer)
    }

    /// Returns the caches of a resource, in any version.
    pub(crate) fn of(&self, resource: &ApiResource) -> Vec<CacheId> {
        let is_same = |cache: &&(usize, &Cache)| {
            let own = cache.1.informer.resource();
            (&own.group, &own.plural) == (&resource.group, &resource.plural)
        };
        self.0.iter().enumerate().filter(|cache| is_same(&cache)).map(|(id, _)| id).collect()
    }

    /// Returns an object as cached with its body, in this version of its kind.
    pub(crate) fn object(&self, resource: &ApiResource, key: &ObjectKey) -> Option<(CacheId, Obj<IgnoredAny>)> {
        let has_bodies = |cache: &Cache| {
            let own = cache.informer.resource();
            !cache.is_metadata_only && own.api_version == resource.api_version && own.plural == resource.plural
        };
        let mut caches = self.0.iter().enumerate().filter(|(_, cache)| has_bodies(cache));
        caches.find_map(|(id, cache)| Some((id, cache.informer.lister().get(key)?)))
    }

    /// Returns whether the caches have all that a key wrote, as far as that is known now.
    pub(crate) fn have_all(&self, tracker: &Tracker) -> bool {
        tracker.with(|unseen| {
            let ids: Vec<CacheId> = unseen.caches().map(|(id, _)| id).collect();
            for id in ids {
                match self.0.get(id) {
                    Some(cache) => _ = unseen.compare(id, &cache.informer.lister().snapshot()),
                    None => unseen.forget(id),
                }
            }
            unseen.is_empty()
        })
    }

    /// Completes when the caches have all that a key wrote.
    pub(crate) async fn visible(&self, client: &Client, tracker: &Tracker) -> Result<(), VisibilityError> {
        loop {
            // Each time, because a task of the reconciler may outlive its attempt, and its request
            // may be lost while the caches are awaited.
            self.resolve_lost(client, tracker).await?;
            if self.have_all(tracker) {
                return Ok(());
            }
            let mut awaited: Vec<_> = tracker.with(|unseen| unseen.caches().collect());
            // What was lost just now is resolved in the next turn.
            awaited.retain(|(_, awaited)| !awaited.is_empty());
            if awaited.is_empty() {
                tracker.all_answered().await;
                continue;
            }
            let waits = awaited.into_iter().filter_map(|(id, awaited)| Some((id, self.0.get(id)?, awaited)));
            let waits =
                waits.map(|(id, cache, awaited)| cache.changed(awaited).map(move |waited| (id, waited)).boxed());
            let ((id, waited), _, _) = select_all(waits).await;
            match waited {
                Ok(()) => {}
                Err(WaitError::Stopped) => return Err(VisibilityError::Stopped { resource: self.name(id) }),
                // What was written may be undone; the cache has what the server has.
                Err(_) => tracker.with(|unseen| unseen.forget(id)),
            }
        }
    }

    /// Asks the server for the version to wait for after writes whose outcome is unknown.
    async fn resolve_lost(&self, client: &Client, tracker: &Tracker) -> Result<(), VisibilityError> {
        let lost: Vec<(CacheId, Option<String>)> =
            tracker.with(|unseen| unseen.to_resolve().map(|(id, ns)| (id, ns.map(str::to_owned))).collect());
        for (id, namespace) in lost {
            let Some(cache) = self.0.get(id) else { continue };
            let version = latest_version(client, cache.informer.resource(), namespace.as_deref()).await;
            let version = version.map_err(|cause| VisibilityError::List { resource: self.name(id), cause })?;
            tracker.with(|unseen| unseen.resolve(id, namespace.as_deref(), version));
        }
        Ok(())
    }

    fn name(&self, id: CacheId) -> String {
        self.0.get(id).map(|cache| cache.informer.resource().plural.clone()).unwrap_or_default()
    }
}

impl Cache {
    /// Completes when what is awaited may have become true.
    async fn changed(&self, awaited: Awaited) -> Result<(), WaitError> {
        let Awaited { version, object } = awaited;
        let version = version.map(|version| self.informer.wait_for(version).boxed());
        let object = object.map(|(key, state)| {
            let is_reached =
                move |now: Option<&Obj<IgnoredAny>>| state.is_reached(now.and_then(Obj::uid), now.map(Obj::version));
            self.informer.wait_until(key, is_reached).map(|waited| waited.map(drop)).boxed()
        });
        let waits: Vec<_> = version.into_iter().chain(object).collect();
        if waits.is_empty() {
            return Ok(());
        }
        let (waited, _, _) = select_all(waits).await;
        waited
    }
}

impl CacheState for Snapshot<IgnoredAny> {
    fn version(&self) -> Option<Version> {
        Snapshot::version(self).cloned()
    }

    fn object(&self, key: &ObjectKey) -> Option<(Option<Uid>, Version)> {
        self.get(key).map(|object| (object.uid().cloned(), object.version().clone()))
    }
}

/// Returns the version that a resource has: a consistent list of at most one object, metadata only.
pub(crate) async fn latest_version(
    client: &Client,
    resource: &ApiResource,
    namespace: Option<&str>,
) -> Result<Version, kube::Error> {
    #[derive(Deserialize)]
    struct Listed {
        metadata: ListMeta,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ListMeta {
        resource_version: String,
    }
    let listed: Listed = client.request(request::list_one(resource, namespace)?).await?;
    Ok(Version::new(listed.metadata.resource_version))
}

impl fmt::Debug for Caches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|cache| &cache.informer.resource().plural)).finish()
    }
}
