//! Adapters from subscriptions to the streams that kube-runtime controllers accept.

use futures_util::Stream;
use futures_util::stream::{self, StreamExt};
use kube_runtime::watcher;

use super::subscription::Subscription;
use crate::body::Obj;
use crate::object::Object;
use crate::store::Event;

impl<K: Object + Clone> Subscription<K> {
    /// Returns a stream of every object that is added, changed or deleted.
    ///
    /// The stream fits `Controller::owns_stream` and `Controller::watches_stream` of
    /// `kube-runtime`. Such a controller opens no watch for this kind; it receives the changes of a
    /// cache that it can also read.
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
    /// use kube::core::PartialObjectMeta;
    /// use kube_informer::Informer;
    /// use kube_runtime::Controller;
    ///
    /// fn controller(deployments: Controller<Deployment>, sets: &Informer<ReplicaSet>) -> Controller<Deployment> {
    ///     // Owner references are part of the metadata, so no bodies have to be decoded.
    ///     let sets = sets.view::<PartialObjectMeta<ReplicaSet>>();
    ///     deployments.owns_stream(sets.subscribe().touched_objects())
    /// }
    /// ```
    ///
    /// An object whose owners change is yielded twice, in its old and its new state, so that the
    /// former owner is reconciled too. A deleted object is yielded in its last known state. A
    /// resync yields every object again.
    ///
    /// The stream never yields an error: the informer handles server failures, and reports them in
    /// its [`Health`](crate::Health). An object that cannot be decoded as `K` is skipped with a
    /// warning. The stream ends when the informer stops.
    ///
    /// `Controller::for_stream` accepts the stream too, but requires a `kube_runtime` store, which
    /// holds every object decoded: a second cache. Let the controller watch its own kind
    /// (`Controller::new`), or build it on a [`WorkQueue`](crate::WorkQueue).
    pub fn touched_objects(self) -> impl Stream<Item = Result<K, watcher::Error>> + Send + use<K> {
        self.flat_map(|event| stream::iter(touched(event))).filter_map(async |object| decoded(&object).map(Ok))
    }

    /// Returns a stream of every object that is added or changed, without deletions.
    ///
    /// Use it for controllers that ignore deleted objects. An object whose owners change is yielded
    /// once, in its new state. Otherwise it behaves like
    /// [`touched_objects`](Self::touched_objects).
    ///
    /// ```
    /// # kube_embedded::doctest(["a"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// use futures_util::TryStreamExt;
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let mut applied = Box::pin(maps.subscribe().applied_objects());
    /// assert_eq!(applied.try_next().await?.unwrap().metadata.name.as_deref(), Some("a"));
    /// # Ok(()) });
    /// ```
    pub fn applied_objects(self) -> impl Stream<Item = Result<K, watcher::Error>> + Send + use<K> {
        let applied = self.filter_map(async |event| match event {
            Event::Added { object, .. } | Event::Updated { new: object, .. } => Some(object),
            Event::Deleted { .. } => None,
        });
        applied.filter_map(async |object| decoded(&object).map(Ok))
    }
}

/// The objects of an event; for an update that changes the owners, the old state too.
fn touched<K>(event: Event<K>) -> impl Iterator<Item = Obj<K>> {
    let (before, now) = match event {
        Event::Added { object, .. } => (None, object),
        Event::Updated { old, new, .. } => (Some(old).filter(|old| !same_owners(old, &new)), new),
        Event::Deleted { last, .. } => (None, last),
    };
    before.into_iter().chain([now])
}

fn same_owners<K>(one: &Obj<K>, other: &Obj<K>) -> bool {
    one.owners().map(|owner| owner.uid_text()).eq(other.owners().map(|owner| owner.uid_text()))
}

fn decoded<K: Object + Clone>(object: &Obj<K>) -> Option<K> {
    match object.get() {
        Ok(body) => Some(body.clone()),
        Err(error) => {
            tracing::warn!(key = %object.key(), %error, "an object that does not fit its type is not passed to the controller");
            None
        }
    }
}
