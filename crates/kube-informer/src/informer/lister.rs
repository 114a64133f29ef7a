//! Listers, which read the cache, and snapshots of it.
//!
//! `selection` evaluates label selectors for both. May use `object`, `body` and `store`; from the
//! informer only `Core` and `Stale`.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

pub use self::snapshot::{ObjRef, Snapshot};

use self::selection::Selection;
use super::Stale;
use crate::body::Obj;
use crate::object::{ObjectKey, OrText, Selector, Version};
use crate::store::{Delta, History, Relist, WatchScope};
use crate::store::{Reader, Store, WeakReader};

mod selection;
mod snapshot;

/// Reads a cache of objects of kind `K`. Cheap to clone.
///
/// Every call reads one consistent snapshot. Readers never block the writer, and the writer never
/// blocks readers. Lookup, selection and sorting decode no bodies. The order of lists is
/// unspecified unless they are [`sorted`](Self::sorted).
///
/// ```
/// # kube_embedded::doctest(["a", "b"], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{Informer, Lister, ObjectKey};
///
/// let maps = Informer::<ConfigMap>::builder(client).start();
/// maps.synced().await?;
/// let lister: Lister<ConfigMap> = maps.lister();
/// assert!(lister.get(&ObjectKey::namespaced("default", "a")).is_some());
/// assert_eq!(lister.select("app=web")?.len(), 1);
/// assert_eq!(lister.sorted()[1].name(), "b");
/// # Ok(()) });
/// ```
#[doc(alias("Store", "ThreadSafeStore", "Indexer", "TypedIndexer", "GenericLister", "NewGenericLister"))]
pub struct Lister<K> {
    reader: Reader,
    kind: PhantomData<fn() -> K>,
}

impl<K> Lister<K> {
    /// Creates a lister of a [`Store`].
    ///
    /// For the cache of an informer, use [`Informer::lister`](crate::Informer::lister).
    #[must_use]
    pub fn new(reader: Reader) -> Self {
        Self { reader, kind: PhantomData }
    }

    /// Creates a lister of a fixed set of objects, for tests.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::{Lister, Obj};
    ///
    /// let map = Obj::<ConfigMap>::from_json(r#"{"metadata":{"name":"a","namespace":"b"}}"#)?;
    /// let lister = Lister::fixed([map]);
    /// assert_eq!(lister.namespace("b").get("a").unwrap().key().to_string(), "b/a");
    /// # Ok::<_, kube_informer::DecodeError>(())
    /// ```
    #[must_use]
    pub fn fixed(objects: impl IntoIterator<Item = Obj<K>>) -> Self {
        let mut store = Store::default();
        let scope = WatchScope::Everything;
        let begun = Delta::RelistBegun(Relist { scope: scope.clone(), history: History::Continues });
        let listed = objects.into_iter().map(|object| Delta::Listed(object.cast()));
        let ended = Delta::RelistEnded { scope, version: Version::from(0) };
        let reader = store.reader();
        drop(store.apply([begun].into_iter().chain(listed).chain([ended])));
        Self::new(reader)
    }

    /// Returns the object with this key.
    #[must_use]
    #[doc(alias("GetByKey", "KeyGetter"))]
    pub fn get(&self, key: &ObjectKey) -> Option<Obj<K>> {
        self.reader.state().get(key).map(|entry| entry.object().cast())
    }

    /// Returns all objects.
    #[must_use]
    #[doc(alias("ListAll"))]
    pub fn list(&self) -> Vec<Obj<K>> {
        let state = self.reader.state();
        let mut all = Vec::with_capacity(state.len());
        state.iter().for_each(|entry| all.push(entry.object().cast()));
        all
    }

    /// Returns all objects, ordered by key.
    ///
    /// ```
    /// use kube_informer::{Lister, Obj, Untyped};
    ///
    /// let named = |name| Obj::<Untyped>::from_json(format!(r#"{{"metadata":{{"name":"{name}"}}}}"#)).unwrap();
    /// let sorted = Lister::fixed([named("b"), named("c"), named("a")]).sorted();
    /// assert!(sorted.iter().map(|object| object.name()).eq(["a", "b", "c"]));
    /// ```
    #[must_use]
    pub fn sorted(&self) -> Vec<Obj<K>> {
        sorted(self.list())
    }

    /// Returns all objects that match a label selector.
    ///
    /// The selector is evaluated once per distinct label set, not once per object. It may be given
    /// as text: then the result is a `Result`.
    ///
    /// ```
    /// use kube_informer::{Lister, Obj, Untyped};
    ///
    /// let of = |app| Obj::<Untyped>::from_json(format!(r#"{{"metadata":{{"name":"{app}","labels":{{"app":"{app}"}}}}}}"#)).unwrap();
    /// let lister = Lister::fixed([of("web"), of("db"), of("cache")]);
    /// assert_eq!(lister.select("app in (web, db)")?.len(), 2);
    /// # Ok::<_, kube_informer::object::ParseError>(())
    /// ```
    #[must_use]
    #[doc(alias("AppendFunc"))]
    pub fn select<S: OrText<Selector>>(&self, selector: S) -> S::Checked<Vec<Obj<K>>> {
        selector.checked(|selector| {
            let state = self.reader.state();
            let mut all = Vec::new();
            let mut selection = Selection::new(selector, &state);
            state
                .iter()
                .filter(|entry| selection.takes_in_passing(entry))
                .for_each(|entry| all.push(entry.object().cast()));
            all
        })
    }

    /// Returns all keys.
    #[must_use]
    #[doc(alias("ListKeys", "KeyLister", "KeyListerGetter"))]
    pub fn keys(&self) -> Vec<ObjectKey> {
        let state = self.reader.state();
        let mut all = Vec::with_capacity(state.len());
        state.iter().for_each(|entry| all.push(entry.key().clone()));
        all
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.reader.state().len()
    }

    /// Returns whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a snapshot, which can be iterated without a reference count update per object.
    ///
    /// A snapshot keeps all of its objects in memory, so drop it soon.
    ///
    /// ```
    /// use kube_informer::{Lister, Obj, Untyped};
    ///
    /// let of = |app| Obj::<Untyped>::from_json(format!(r#"{{"metadata":{{"name":"{app}","labels":{{"app":"{app}"}}}}}}"#)).unwrap();
    /// let snapshot = Lister::fixed([of("web"), of("db")]).snapshot();
    /// // Every iteration returns the same objects.
    /// assert_eq!(snapshot.iter().filter(|object| object.label("app") == Some("web")).count(), 1);
    /// assert_eq!(snapshot.len(), 2);
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<K> {
        Snapshot::new(self.reader.snapshot())
    }

    /// Returns this lister if the cache is full and was recently known to have everything that the
    /// server had.
    ///
    /// Use it for reads that must not be stale. The time is that of
    /// [`Health::caught_up`](crate::Health::caught_up): bytes alone do not count, such as those of
    /// a relist in progress, or those that a reconnected watch sends before it has caught up. The
    /// watch of a kind that does not change may be silent for a minute or more, until the reflector
    /// probes the server. A lister of [`fixed`](Self::fixed) objects is always fresh.
    ///
    /// ```
    /// # kube_embedded::doctest(["a"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # tokio::time::pause();
    /// use std::time::Duration;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_embedded::faults::{Fault, Rule};
    /// use kube_informer::Informer;
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// maps.synced().await?;
    /// let lister = maps.lister();
    /// assert_eq!(lister.fresh_within(Duration::from_secs(10))?.len(), 1);
    ///
    /// server.faults().inject(Rule::new(Fault::Disconnect));
    /// server.cut();
    /// tokio::time::sleep(Duration::from_secs(60)).await;
    /// let stale = lister.fresh_within(Duration::from_secs(10)).unwrap_err();
    /// assert!(stale.age > Some(Duration::from_secs(50)));
    /// assert_eq!(lister.len(), 1, "who does not mind reads what was last known");
    /// # Ok(()) });
    /// ```
    pub fn fresh_within(&self, time: Duration) -> Result<Self, Stale> {
        let Some(feed) = self.reader.feed() else { return Ok(self.clone()) };
        match feed.age() {
            Some(age) if age <= time => Ok(self.clone()),
            age => Err(Stale { age }),
        }
    }

    /// Returns a handle that does not keep the informer running.
    ///
    /// For handlers: see [`WeakLister`].
    #[must_use]
    pub fn downgrade(&self) -> WeakLister<K> {
        WeakLister { reader: self.reader.downgrade(), kind: PhantomData }
    }

    /// Returns a lister of one namespace. The empty name selects objects without a namespace.
    ///
    /// ```
    /// use kube_informer::{Lister, Obj, Untyped};
    ///
    /// let object = |json: &str| Obj::<Untyped>::from_json(json.to_owned()).unwrap();
    /// let lister = Lister::fixed([
    ///     object(r#"{"metadata":{"name":"a","namespace":"one"}}"#),
    ///     object(r#"{"metadata":{"name":"b"}}"#),
    /// ]);
    /// assert_eq!(lister.namespace("one").list()[0].name(), "a");
    /// assert_eq!(lister.namespace("").list()[0].name(), "b");
    /// ```
    #[doc(alias(
        "NamespaceIndex",
        "MetaNamespaceIndexFunc",
        "ListAllByNamespace",
        "ByNamespace",
        "GenericNamespaceLister"
    ))]
    pub fn namespace(&self, namespace: impl Into<Arc<str>>) -> NamespaceLister<K> {
        NamespaceLister { reader: self.reader.clone(), namespace: namespace.into(), kind: PhantomData }
    }
}

/// A handle of a cache that does not keep its informer running; see [`Lister::downgrade`].
///
/// A detached handler that captures a [`Lister`] of its own informer keeps that informer running
/// for ever. One that captures a `WeakLister` does not.
///
/// ```
/// # kube_embedded::doctest(["a"], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Informer;
/// use kube_informer::informer::WeakLister;
///
/// let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
/// let maps = Informer::<ConfigMap>::builder(client).start();
/// let lister: WeakLister<ConfigMap> = maps.lister().downgrade();
/// maps.on_event(move |event| {
///     // `None` if the last handle has been dropped, and the informer stops.
///     let Some(lister) = lister.upgrade() else { return };
///     sender.send((event.key().clone(), lister.len())).unwrap_or_default();
/// })
/// .detach();
/// assert!(receiver.recv().await.is_some());
/// drop(maps);
/// assert!(receiver.recv().await.is_none(), "the informer has stopped, and the handler is dropped");
/// # Ok(()) });
/// ```
pub struct WeakLister<K> {
    reader: WeakReader,
    kind: PhantomData<fn() -> K>,
}

impl<K> WeakLister<K> {
    /// Returns a lister, unless the last handle of the cache has been dropped.
    ///
    /// The lister is a handle: drop it soon.
    #[must_use]
    pub fn upgrade(&self) -> Option<Lister<K>> {
        self.reader.upgrade().map(Lister::new)
    }
}

/// Reads one namespace of a cache; see [`Lister`].
///
/// ```
/// use kube_informer::{Lister, Obj, Untyped};
///
/// let object = |json: &str| Obj::<Untyped>::from_json(json.to_owned()).unwrap();
/// let lister = Lister::fixed([
///     object(r#"{"metadata":{"name":"a","namespace":"one"}}"#),
///     object(r#"{"metadata":{"name":"a","namespace":"two"}}"#),
/// ]);
/// let one = lister.namespace("one");
/// assert!(one.get("a").is_some());
/// assert_eq!(one.list().len(), 1);
/// ```
pub struct NamespaceLister<K> {
    reader: Reader,
    namespace: Arc<str>,
    kind: PhantomData<fn() -> K>,
}

impl<K> NamespaceLister<K> {
    /// Returns the object with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Obj<K>> {
        self.reader.state().get_named(&self.namespace, name).map(|entry| entry.object().cast())
    }

    /// Returns all objects of the namespace.
    #[must_use]
    pub fn list(&self) -> Vec<Obj<K>> {
        let state = self.reader.state();
        let mut all = Vec::with_capacity(state.namespace_len(&self.namespace));
        state.namespace(&self.namespace).for_each(|entry| all.push(entry.object().cast()));
        all
    }

    /// Returns all objects of the namespace, ordered by name.
    #[must_use]
    pub fn sorted(&self) -> Vec<Obj<K>> {
        sorted(self.list())
    }

    /// Returns all objects of the namespace that match a label selector, as
    /// [`Lister::select`] does.
    #[must_use]
    pub fn select<S: OrText<Selector>>(&self, selector: S) -> S::Checked<Vec<Obj<K>>> {
        selector.checked(|selector| {
            let state = self.reader.state();
            let selection = Selection::new(selector, &state);
            let all = state.namespace(&self.namespace).filter(|entry| selection.takes(entry));
            all.map(|entry| entry.object().cast()).collect()
        })
    }

    /// Returns all keys of the namespace.
    #[must_use]
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.reader.state().namespace(&self.namespace).map(|entry| entry.key().clone()).collect()
    }

    /// Returns the number of objects in the namespace.
    #[must_use]
    pub fn len(&self) -> usize {
        self.reader.state().namespace_len(&self.namespace)
    }

    /// Returns whether the namespace has no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn sorted<K>(mut objects: Vec<Obj<K>>) -> Vec<Obj<K>> {
    objects.sort_unstable_by(|a, b| a.key().cmp(b.key()));
    objects
}

impl<K> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Self::new(self.reader.clone())
    }
}

impl<K> Clone for WeakLister<K> {
    fn clone(&self) -> Self {
        Self { reader: self.reader.clone(), kind: PhantomData }
    }
}

impl<K> Clone for NamespaceLister<K> {
    fn clone(&self) -> Self {
        Self { reader: self.reader.clone(), namespace: Arc::clone(&self.namespace), kind: PhantomData }
    }
}

impl<K> fmt::Debug for Lister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lister").field("objects", &self.len()).finish_non_exhaustive()
    }
}

impl<K> fmt::Debug for WeakLister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakLister").finish_non_exhaustive()
    }
}

impl<K> fmt::Debug for NamespaceLister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamespaceLister").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}
