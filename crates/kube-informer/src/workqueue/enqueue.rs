//! Event handlers that add items to a queue.

use std::hash::Hash;

use super::WorkQueue;
use super::priority::Priority;
use super::slots::Cause;
use crate::body::Obj;
use crate::object::{Kind, ObjectKey, Owner};
use crate::store::{Event, Origin};

impl WorkQueue<ObjectKey> {
    /// Returns an event handler that adds the key of each added, updated or deleted object.
    ///
    /// Deletions that the watch missed are included.
    ///
    /// ```
    /// use kube_informer::workqueue::RateLimit;
    /// use kube_informer::{Event, FinalState, Obj, ObjectKey, Origin, Untyped, WorkQueue};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let queue = WorkQueue::<ObjectKey>::new(RateLimit::default());
    /// let mut handler = queue.enqueue::<Untyped>();
    ///
    /// let gone = Obj::from_json(r#"{"metadata":{"name":"coredns","namespace":"kube-system"}}"#)?;
    /// handler(Event::deleted(gone, FinalState::Missed, Origin::Relist));
    /// assert_eq!(queue.next().await.unwrap().to_string(), "kube-system/coredns");
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "DeletionHandlingMetaNamespaceKeyFunc")]
    #[doc(alias = "EnqueueRequestForObject")]
    pub fn enqueue<K: 'static>(&self) -> impl FnMut(Event<K>) + Send + 'static + use<K> {
        let queue = self.clone();
        move |event: Event<K>| queue.add_from(event.key().clone(), event.origin())
    }

    /// Returns an event handler that adds the keys of the owners of kind `K`, in any version, of
    /// each added, updated or deleted object; on an update, the owners before and after.
    ///
    /// All owner references count, not only that of the controller; for that one alone, use
    /// [`enqueue_with`](Self::enqueue_with) and [`Obj::controller`]. The second type parameter is
    /// the kind of the owned objects, which the compiler knows.
    ///
    /// ```
    /// use k8s_openapi::api::apps::v1::ReplicaSet;
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kube_informer::workqueue::RateLimit;
    /// use kube_informer::{Event, Obj, ObjectKey, Origin, WorkQueue};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let queue = WorkQueue::<ObjectKey>::new(RateLimit::default());
    /// let mut handler = queue.enqueue_owner::<ReplicaSet, Pod>(); // with an informer: `pods.on_event(queue.enqueue_owner::<ReplicaSet, _>())`
    ///
    /// let pod = Obj::from_json(
    ///     r#"{"metadata":{"name":"web-1","namespace":"shop","ownerReferences":[
    ///         {"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"u","controller":true}]}}"#,
    /// )?;
    /// handler(Event::added(pod, Origin::Live));
    /// assert_eq!(queue.next().await.unwrap().to_string(), "shop/web");
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "EnqueueRequestForOwner")]
    pub fn enqueue_owner<K: Kind, O: 'static>(&self) -> impl FnMut(Event<O>) + Send + 'static + use<K, O> {
        self.enqueue_with(|event: &Event<O>| {
            let (old, new) = event.states();
            old.into_iter().chain(new).flat_map(owners_of_kind::<K, O>).collect::<Vec<_>>()
        })
    }
}

/// The keys of the owners of kind `K`, which are in the namespace of the object or cluster-scoped.
fn owners_of_kind<K: Kind, O>(object: &Obj<O>) -> Vec<ObjectKey> {
    let namespace = object.namespace().filter(|_| K::in_namespaces()).unwrap_or_default();
    let owners = object.owners().filter(Owner::is::<K>);
    owners.map(|owner| ObjectKey::namespaced(namespace, owner.name())).collect()
}

impl<T: Hash + Eq + Clone + Send + 'static> WorkQueue<T> {
    /// Returns an event handler that adds the items that `map` returns for each event.
    ///
    /// For example the owner of the object, or on an update the owners before and after.
    ///
    /// ```
    /// use kube_informer::workqueue::RateLimit;
    /// use kube_informer::{Event, Obj, Origin, Untyped, WorkQueue};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let queue = WorkQueue::<String>::new(RateLimit::default());
    /// let app = |object: &Obj<Untyped>| object.label("app").map(str::to_owned);
    /// let mut handler = queue.enqueue_with(move |event: &Event<Untyped>| {
    ///     let (old, new) = event.states();
    ///     old.into_iter().chain(new).filter_map(app).collect::<Vec<_>>()
    /// });
    ///
    /// let old = Obj::from_json(r#"{"metadata":{"name":"a","labels":{"app":"blue"}}}"#)?;
    /// let new = Obj::from_json(r#"{"metadata":{"name":"a","labels":{"app":"green"}}}"#)?;
    /// handler(Event::updated(old, new, Origin::Live));
    /// assert_eq!(queue.next().await.unwrap().as_str(), "blue");
    /// assert_eq!(queue.next().await.unwrap().as_str(), "green");
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "EnqueueRequestsFromMapFunc")]
    pub fn enqueue_with<K, I, M>(&self, mut map: M) -> impl FnMut(Event<K>) + Send + 'static + use<K, I, M, T>
    where
        K: 'static,
        I: IntoIterator<Item = T>,
        M: FnMut(&Event<K>) -> I + Send + 'static,
    {
        let queue = self.clone();
        move |event: Event<K>| {
            let origin = event.origin();
            map(&event).into_iter().for_each(|item| queue.add_from(item, origin));
        }
    }
}

impl From<Origin> for Priority {
    /// Live events have high priority, changes found by a relist normal priority, since they are
    /// already late, and the initial list and resyncs low priority.
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::Live => Self::High,
            Origin::Relist => Self::Normal,
            Origin::Initial | Origin::Resync => Self::Low,
        }
    }
}

impl From<Origin> for Cause {
    fn from(origin: Origin) -> Self {
        match origin {
            Origin::Live => Self::Fresh,
            Origin::Initial | Origin::Relist | Origin::Resync => Self::Repeat,
        }
    }
}
