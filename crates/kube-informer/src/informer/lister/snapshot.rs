//! Immutable snapshots of the cache.

use std::borrow::Borrow;
use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;
use std::sync::Arc;

use bytes::Bytes;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::selection::Selection;
use crate::body::Obj;
use crate::informer::Index;
use crate::object::{DecodeError, FieldPath, Labels, Object, ObjectKey, OrText, Owner, Selector, Uid, Version};
use crate::store::{StoreEntry, StoreState};

/// An immutable snapshot of a cache: its objects and its indexes.
///
/// ```
/// use kube_informer::{Lister, Obj, Untyped};
///
/// let named = |name| Obj::<Untyped>::from_json(format!(r#"{{"metadata":{{"name":"{name}"}}}}"#)).unwrap();
/// let snapshot = Lister::fixed([named("a"), named("b")]).snapshot();
/// let mut names: Vec<&str> = snapshot.iter().map(|object| object.name()).collect();
/// names.sort();
/// assert_eq!(names, ["a", "b"]);
/// ```
pub struct Snapshot<K> {
    state: Arc<StoreState>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Snapshot<K> {
    pub(super) fn new(state: Arc<StoreState>) -> Self {
        Self { state, kind: PhantomData }
    }

    /// Returns the object with this key.
    #[must_use]
    pub fn get(&self, key: &ObjectKey) -> Option<ObjRef<'_, K>> {
        self.state.get(key).map(ObjRef::new)
    }

    /// Iterates over all objects.
    pub fn iter(&self) -> impl Iterator<Item = ObjRef<'_, K>> {
        self.state.iter().map(ObjRef::new)
    }

    /// Iterates over all objects of a namespace.
    pub fn namespace(&self, namespace: &str) -> impl Iterator<Item = ObjRef<'_, K>> + use<'_, K> {
        self.state.namespace(namespace).map(ObjRef::new)
    }

    /// Iterates over all objects that match a label selector. It may be given as text: then the
    /// result is a `Result`.
    ///
    /// ```
    /// use kube_informer::{Lister, Obj, Untyped};
    ///
    /// let of = |app| Obj::<Untyped>::from_json(format!(r#"{{"metadata":{{"name":"{app}","labels":{{"app":"{app}"}}}}}}"#)).unwrap();
    /// let snapshot = Lister::fixed([of("web"), of("db"), of("cache")]).snapshot();
    /// assert_eq!(snapshot.select("app in (web, db)")?.count(), 2);
    /// # Ok::<_, kube_informer::object::ParseError>(())
    /// ```
    pub fn select<S: OrText<Selector>>(&self, selector: S) -> S::Checked<impl Iterator<Item = ObjRef<'_, K>>> {
        selector.checked(|selector| {
            let mut selection = Selection::new(selector.clone(), &self.state);
            self.state.iter().filter(move |entry| selection.takes_in_passing(entry)).map(ObjRef::new)
        })
    }

    /// Returns all objects that have this value in an index, as of the snapshot.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let by_app = maps.index_by_label("app");
    /// maps.synced().await?;
    /// let snapshot = maps.lister().snapshot();
    /// server.objects("v1", "ConfigMap")?.delete_all()?;
    /// assert_eq!(snapshot.indexed(&by_app, "web")[0].name(), "a");
    /// # Ok(()) });
    /// ```
    pub fn indexed<V, Q>(&self, index: &Index<K, V>, value: &Q) -> Vec<ObjRef<'_, K>>
    where
        V: Hash + Eq + Send + Sync + Borrow<Q> + 'static,
        Q: Hash + Eq + ?Sized,
    {
        let mut found = Vec::new();
        index.each(&self.state, value, |entry| found.push(ObjRef::new(entry)));
        found
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.state.len()
    }

    /// Returns whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The resource version of the cache; `None` until the first list is complete.
    ///
    /// ```
    /// # kube_embedded::doctest(["a"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).build();
    /// assert_eq!(maps.lister().snapshot().version(), None);
    /// maps.start();
    /// maps.synced().await?;
    /// assert_eq!(maps.lister().snapshot().version(), Some(&server.revision().into()));
    /// # Ok(()) });
    /// ```
    #[must_use]
    #[doc(alias("LastStoreSyncResourceVersion"))]
    pub fn version(&self) -> Option<&Version> {
        self.state.version()
    }
}

/// A borrowed object of a [`Snapshot`]: it has the methods of [`Obj`].
///
/// ```
/// use kube_informer::{Lister, Obj, Untyped};
///
/// let web = Obj::<Untyped>::from_json(r#"{"metadata":{"name":"a","labels":{"app":"web"}}}"#)?;
/// let snapshot = Lister::fixed([web]).snapshot();
/// let longest = snapshot.iter().max_by_key(|object| object.name().len()).unwrap();
/// assert_eq!(longest.key().to_string(), "a");
/// # Ok::<_, kube_informer::DecodeError>(())
/// ```
pub struct ObjRef<'a, K> {
    entry: &'a StoreEntry,
    kind: PhantomData<fn() -> K>,
}

impl<'a, K> ObjRef<'a, K> {
    fn new(entry: &'a StoreEntry) -> Self {
        Self { entry, kind: PhantomData }
    }

    /// The key: namespace and name.
    #[must_use]
    pub fn key(&self) -> &'a ObjectKey {
        self.entry.key()
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.key().name()
    }

    /// The namespace; `None` for cluster-scoped objects.
    #[must_use]
    pub fn namespace(&self) -> Option<&'a str> {
        self.key().namespace()
    }

    /// The uid.
    #[must_use]
    pub fn uid(&self) -> Option<&'a Uid> {
        self.entry.raw.meta().uid.as_ref()
    }

    /// The `resourceVersion`.
    #[must_use]
    pub fn version(&self) -> &'a Version {
        &self.entry.raw.meta().version
    }

    /// The generation, which the server increments when the desired state (the spec) changes.
    #[must_use]
    pub fn generation(&self) -> Option<i64> {
        self.entry.raw.meta().generation()
    }

    /// The labels.
    #[must_use]
    pub fn labels(&self) -> Labels<'a> {
        self.entry.raw.meta().labels()
    }

    /// The value of one label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&'a str> {
        self.labels().get(key)
    }

    /// The value of one annotation. Not cached: each call reads it from the encoded body.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<String> {
        self.entry.raw.annotation(key)
    }

    /// The owner references.
    pub fn owners(&self) -> impl Iterator<Item = Owner<'a>> + use<'a, K> {
        self.entry.raw.meta().owners()
    }

    /// The owner that is the controller of this object.
    #[must_use]
    pub fn controller(&self) -> Option<Owner<'a>> {
        self.owners().find(Owner::is_controller)
    }

    /// When deletion was requested; finalizers or a grace period may keep the object alive after
    /// that.
    #[must_use]
    pub fn deletion_timestamp(&self) -> Option<&'a Time> {
        self.entry.raw.meta().deletion.as_deref()
    }

    /// The object as JSON. See [`Obj::json`].
    #[must_use]
    pub fn json(&self) -> Bytes {
        self.entry.raw.json()
    }

    /// The scalar at a path as text, found without decoding the body. See [`Obj::value_at`].
    ///
    /// ```
    /// use kube_informer::{Lister, Obj};
    ///
    /// let pod: Obj = Obj::from_json(r#"{"metadata":{"name":"a"},"spec":{"nodeName":"n1"}}"#)?;
    /// let snapshot = Lister::fixed([pod]).snapshot();
    /// assert_eq!(snapshot.iter().next().unwrap().value_at("spec.nodeName")?.as_deref(), Some("n1"));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn value_at<P: OrText<FieldPath>>(&self, path: P) -> P::Checked<Option<String>> {
        path.checked(|path| self.entry.raw.value_at(path))
    }

    /// All scalars at a path as text. See [`Obj::values_at`].
    #[must_use]
    pub fn values_at<P: OrText<FieldPath>>(&self, path: P) -> P::Checked<Vec<String>> {
        path.checked(|path| self.entry.raw.values_at(path))
    }

    /// The approximate size in bytes, as stored.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.entry.raw.weight()
    }

    /// The same object viewed as another type.
    #[must_use]
    pub fn view<V: Object>(&self) -> ObjRef<'a, V> {
        self.cast()
    }

    /// The same object with another type, which need not be decodable.
    #[must_use]
    pub fn cast<V>(self) -> ObjRef<'a, V> {
        ObjRef::new(self.entry)
    }

    /// Returns an owned handle, which outlives the snapshot and can read the body.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::{Lister, Obj};
    ///
    /// let map = Obj::<ConfigMap>::from_json(r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#)?;
    /// let snapshot = Lister::fixed([map]).snapshot();
    /// let kept = snapshot.iter().next().map(|map| map.to_obj()).unwrap();
    /// drop(snapshot);
    /// assert_eq!(kept.get()?.data.as_ref().unwrap()["k"], "v");
    /// # Ok::<_, kube_informer::DecodeError>(())
    /// ```
    #[must_use]
    pub fn to_obj(&self) -> Obj<K> {
        self.entry.object().cast()
    }
}

impl<K: Object> ObjRef<'_, K> {
    /// The body. In contrast to [`Obj::get`], this returns a counted reference, because nothing
    /// else holds the decoded body; several calls may decode several times.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::{Lister, Obj};
    ///
    /// let map = Obj::<ConfigMap>::from_json(r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#)?;
    /// let snapshot = Lister::fixed([map]).snapshot();
    /// for map in snapshot.iter() {
    ///     assert_eq!(map.get()?.data.as_ref().unwrap()["k"], "v");
    /// }
    /// # Ok::<_, kube_informer::DecodeError>(())
    /// ```
    pub fn get(&self) -> Result<Arc<K>, DecodeError> {
        self.to_obj().to_arc()
    }

    /// The same as [`get`](Self::get), under the name that it has on [`Obj`].
    pub fn to_arc(&self) -> Result<Arc<K>, DecodeError> {
        self.get()
    }
}

impl<K> Clone for ObjRef<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K> Copy for ObjRef<'_, K> {}

impl<K> fmt::Debug for ObjRef<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjRef").field("key", self.key()).field("version", self.version()).finish_non_exhaustive()
    }
}

impl<K> fmt::Debug for Snapshot<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("state", &self.state).finish()
    }
}
