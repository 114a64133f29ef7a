//! Subscriptions as the streams that kube-runtime's controllers take.

use futures_util::Stream;
use futures_util::stream::{self, StreamExt};
use kube_runtime::watcher;

use super::subscription::Subscription;
use crate::body::Obj;
use crate::object::Object;
use crate::store::Event;

impl<K: Object + Clone> Subscription<K> {
    /// Every object that is added, changed or deleted, as `Controller::owns_stream` and `Controller::watches_stream` of `kube-runtime`
    /// take them: a controller of kube's that watches nothing itself, but hears of changes from a cache it can also read.
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
    /// use kube::core::PartialObjectMeta;
    /// use kube_informer::Informer;
    /// use kube_runtime::Controller;
    ///
    /// fn controller(deployments: Controller<Deployment>, sets: &Informer<ReplicaSet>) -> Controller<Deployment> {
    ///     // Whose they are stands in their metadata; their bodies need not be decoded.
    ///     let sets = sets.view::<PartialObjectMeta<ReplicaSet>>();
    ///     deployments.owns_stream(sets.subscribe().touched_objects())
    /// }
    /// ```
    ///
    /// An object whose owners change comes twice, as it was and as it is, so that whom it was taken from hears of it too. A deleted
    /// object comes as it last was. A resync brings everything again.
    ///
    /// The stream never fails: that the server is away is the informer's business, and shows in its [`Health`](crate::Health). An object
    /// that does not fit `K` is passed over, with a warning. The stream ends when the informer stops.
    ///
    /// `Controller::for_stream` would take it too, but wants a `kube_runtime` store beside it, which holds every object decoded: a second
    /// cache. Let the controller watch its own kind (`Controller::new`), or build it on a [`WorkQueue`](crate::WorkQueue).
    pub fn touched_objects(self) -> impl Stream<Item = Result<K, watcher::Error>> + Send + use<K> {
        self.flat_map(|event| stream::iter(touched(event))).filter_map(async |object| decoded(&object).map(Ok))
    }

    /// Every object that is added or changed, for controllers that care for nothing that is gone. Otherwise as
    /// [`touched_objects`](Self::touched_objects).
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # for name in ["a"] {
    /// #     server.create(&serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}))?;
    /// # }
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// use futures_util::TryStreamExt;
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let mut applied = Box::pin(maps.subscribe().applied_objects());
    /// assert_eq!(applied.try_next().await?.unwrap().metadata.name.as_deref(), Some("a"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn applied_objects(self) -> impl Stream<Item = Result<K, watcher::Error>> + Send + use<K> {
        let applied = self.filter_map(async |event| match event {
            Event::Added { object, .. } | Event::Updated { new: object, .. } => Some(object),
            Event::Deleted { .. } => None,
        });
        applied.filter_map(async |object| decoded(&object).map(Ok))
    }
}

fn touched<K>(event: Event<K>) -> impl Iterator<Item = Obj<K>> {
    let (before, now) = match event {
        Event::Added { object, .. } => (None, object),
        Event::Updated { old, new, .. } => (Some(old).filter(|old| !same_owners(old, &new)), new),
        Event::Deleted { last, .. } => (None, last),
    };
    before.into_iter().chain([now])
}

fn same_owners<K>(one: &Obj<K>, other: &Obj<K>) -> bool {
    one.owners().map(|owner| owner.uid()).eq(other.owners().map(|owner| owner.uid()))
}

fn decoded<K: Object + Clone>(object: &Obj<K>) -> Option<K> {
    match object.get() {
        Ok(body) => Some(body.clone()),
        Err(error) => {
            tracing::warn!(key = %object.key(), %error, "a controller is not told of an object that does not fit its type");
            None
        }
    }
}
