//! Reading the cache.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

pub use self::snapshot::{ObjRef, Snapshot};

use self::selection::Selection;
use super::Core;
use super::Stale;
use crate::body::Obj;
use crate::object::ObjectKey;
use crate::object::Selector;
use crate::object::Version;
use crate::store::{Delta, History, Relist, WatchScope};
use crate::store::{Reader, Store};

mod selection;
mod snapshot;

/// Reads a cache of objects of kind `K`. Cheap to clone.
///
/// Every answer is of one moment. Reading never waits for the cache to be written, and never makes it wait. Nothing is decoded to
/// find, to select or to sort. The order of lists is unspecified unless they are [`sorted`](Self::sorted).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kube_embedded::Server::builder().in_process().start().await?;
/// # let client = kube::Client::new(server.service(), "default");
/// # for (name, app, ip) in [("a", "web", "10.0.0.1"), ("b", "db", "10.0.0.2")] {
/// #     server.create(&serde_json::json!({
/// #         "apiVersion": "v1", "kind": "ConfigMap",
/// #         "metadata": {"name": name, "namespace": "default", "labels": {"app": app}}, "data": {"ip": ip},
/// #     }))?;
/// # }
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{Informer, Lister, ObjectKey};
///
/// let maps = Informer::<ConfigMap>::builder(client).start();
/// maps.synced().await?;
/// let lister: Lister<ConfigMap> = maps.lister();
/// assert!(lister.get(&ObjectKey::namespaced("default", "a")).is_some());
/// assert_eq!(lister.select(&"app=web".parse()?).len(), 1);
/// assert_eq!(lister.sorted()[1].name(), "b");
/// # Ok(())
/// # }
/// ```
#[doc(alias("Store", "ThreadSafeStore", "Indexer", "TypedIndexer", "GenericLister", "NewGenericLister"))]
pub struct Lister<K> {
    reader: Reader,
    kind: PhantomData<fn() -> K>,
}

impl<K> Lister<K> {
    #[doc(hidden)]
    #[must_use]
    pub fn new(reader: Reader) -> Self {
        Self { reader, kind: PhantomData }
    }

    /// A lister of these objects and no others, for tests.
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

    /// The object of this key.
    #[must_use]
    #[doc(alias("GetByKey", "KeyGetter"))]
    pub fn get(&self, key: &ObjectKey) -> Option<Obj<K>> {
        self.reader.state().get(key).map(|entry| entry.object().cast())
    }

    /// All objects.
    #[must_use]
    #[doc(alias("ListAll"))]
    pub fn list(&self) -> Vec<Obj<K>> {
        let state = self.reader.state();
        let mut all = Vec::with_capacity(state.len());
        state.iter().for_each(|entry| all.push(entry.object().cast()));
        all
    }

    /// All objects, ordered by key.
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

    /// All objects with such labels. The selector is tried once for each set of labels that occurs, not for each object.
    ///
    /// ```
    /// use kube_informer::{Lister, Obj, Untyped};
    ///
    /// let of = |app| Obj::<Untyped>::from_json(format!(r#"{{"metadata":{{"name":"{app}","labels":{{"app":"{app}"}}}}}}"#)).unwrap();
    /// let lister = Lister::fixed([of("web"), of("db"), of("cache")]);
    /// assert_eq!(lister.select(&"app in (web, db)".parse()?).len(), 2);
    /// # Ok::<_, kube_informer::ParseError>(())
    /// ```
    #[must_use]
    #[doc(alias("AppendFunc"))]
    pub fn select(&self, selector: &Selector) -> Vec<Obj<K>> {
        let state = self.reader.state();
        let mut all = Vec::new();
        let mut selection = Selection::new(selector, &state);
        state
            .iter()
            .filter(|entry| selection.takes_in_passing(entry))
            .for_each(|entry| all.push(entry.object().cast()));
        all
    }

    /// All keys.
    #[must_use]
    #[doc(alias("ListKeys", "KeyLister", "KeyListerGetter"))]
    pub fn keys(&self) -> Vec<ObjectKey> {
        let state = self.reader.state();
        let mut all = Vec::with_capacity(state.len());
        state.iter().for_each(|entry| all.push(entry.key().clone()));
        all
    }

    /// How many objects there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.reader.state().len()
    }

    /// Everything at this moment, to be walked without a reference count for each object.
    ///
    /// A snapshot that is kept keeps alive what it shows, so drop it soon.
    ///
    /// ```
    /// use kube_informer::{Lister, Obj, Untyped};
    ///
    /// let of = |app| Obj::<Untyped>::from_json(format!(r#"{{"metadata":{{"name":"{app}","labels":{{"app":"{app}"}}}}}}"#)).unwrap();
    /// let snapshot = Lister::fixed([of("web"), of("db")]).snapshot();
    /// // However often it is walked, it shows the same.
    /// assert_eq!(snapshot.iter().filter(|object| object.label("app") == Some("web")).count(), 1);
    /// assert_eq!(snapshot.count(), 2);
    /// ```
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<K> {
        Snapshot::new(self.reader.snapshot())
    }

    /// This lister, if the cache is full and the server was heard of within this time; for reads that must not be stale.
    ///
    /// Hearing of the server means any byte from it. A kind of which nothing changes may be silent for a minute or more, until it is
    /// asked whether it is still there. A lister of [`fixed`](Self::fixed) objects is always fresh.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let server = kube_embedded::Server::builder().in_process().start().await?;
    /// # let client = kube::Client::new(server.service(), "default");
    /// # tokio::time::pause();
    /// # for name in ["a"] {
    /// #     server.create(&serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}))?;
    /// # }
    /// use std::time::Duration;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_embedded::faults::{Fault, Rule};
    /// use kube_informer::Informer;
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// maps.synced().await?;
    /// let lister = maps.lister();
    /// assert_eq!(lister.fresh_within(Duration::from_secs(10))?.count(), 1);
    ///
    /// server.faults().inject(Rule::new(Fault::Disconnect));
    /// server.cut();
    /// tokio::time::sleep(Duration::from_secs(60)).await;
    /// let stale = lister.fresh_within(Duration::from_secs(10)).unwrap_err();
    /// assert!(stale.age > Some(Duration::from_secs(50)));
    /// assert_eq!(lister.count(), 1, "who does not mind reads what was last known");
    /// # Ok(())
    /// # }
    /// ```
    pub fn fresh_within(&self, time: Duration) -> Result<Self, Stale> {
        match self.reader.held().and_then(|held| held.downcast_ref::<Core>()) {
            Some(informer) => informer.check_fresh(time).map(|()| self.clone()),
            None => Ok(self.clone()),
        }
    }

    /// A lister of one namespace. The empty name stands for objects that have none.
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
    /// The object of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Obj<K>> {
        self.reader.state().get_named(&self.namespace, name).map(|entry| entry.object().cast())
    }

    /// All objects of the namespace.
    #[must_use]
    pub fn list(&self) -> Vec<Obj<K>> {
        let state = self.reader.state();
        let mut all = Vec::with_capacity(state.namespace_len(&self.namespace));
        state.namespace(&self.namespace).for_each(|entry| all.push(entry.object().cast()));
        all
    }

    /// All objects of the namespace, ordered by name.
    #[must_use]
    pub fn sorted(&self) -> Vec<Obj<K>> {
        sorted(self.list())
    }

    /// All objects of the namespace with such labels.
    #[must_use]
    pub fn select(&self, selector: &Selector) -> Vec<Obj<K>> {
        let state = self.reader.state();
        let selection = Selection::new(selector, &state);
        let all = state.namespace(&self.namespace).filter(|entry| selection.takes(entry));
        all.map(|entry| entry.object().cast()).collect()
    }

    /// All keys of the namespace.
    #[must_use]
    pub fn keys(&self) -> Vec<ObjectKey> {
        self.reader.state().namespace(&self.namespace).map(|entry| entry.key().clone()).collect()
    }

    /// How many objects the namespace has.
    #[must_use]
    pub fn count(&self) -> usize {
        self.reader.state().namespace_len(&self.namespace)
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

impl<K> Clone for NamespaceLister<K> {
    fn clone(&self) -> Self {
        Self { reader: self.reader.clone(), namespace: Arc::clone(&self.namespace), kind: PhantomData }
    }
}

impl<K> fmt::Debug for Lister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lister").field("objects", &self.count()).finish_non_exhaustive()
    }
}

impl<K> fmt::Debug for NamespaceLister<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NamespaceLister").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}
