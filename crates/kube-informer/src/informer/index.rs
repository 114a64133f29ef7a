//! Indexes: lookup of objects by computed values.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::marker::PhantomData;
use std::sync::{Arc, Weak};

use crate::body::{Obj, Untyped};
use crate::object::FieldPath;
use crate::object::Object;
use crate::object::ObjectKey;
use crate::store::index_table::{Bucket, Function, Table};
use crate::store::{Hamt, Reader, StoreEntry, StoreState, WeakReader, guarded_for};

/// Finds objects of kind `K` by values of type `V`.
///
/// An index may be created at any time, and its results are complete from the start. The writer
/// builds the index table in small steps, so that a build does not delay changes; until the table
/// is ready, lookups scan every object. The table is dropped with the last handle of the index.
///
/// Each lookup reads one snapshot, which covers both the index and the objects. If the index
/// function panics, the object it was called with has no values in the index.
///
/// ```
/// # kube_embedded::doctest(["a", "b"], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use std::net::IpAddr;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{Index, Informer, Obj};
///
/// fn ip(map: &Obj<ConfigMap>) -> Option<IpAddr> {
///     map.get().ok()?.data.as_ref()?.get("ip")?.parse().ok()
/// }
/// let maps = Informer::<ConfigMap>::builder(client).start();
/// let by_ip: Index<ConfigMap, IpAddr> = maps.index(ip);
/// maps.synced().await?;
/// assert_eq!(by_ip.get(&IpAddr::from([10, 0, 0, 2]))[0].name(), "b");
/// # Ok(()) });
/// ```
#[must_use = "an index without handles is removed"]
pub struct Index<K, V> {
    reader: Reader,
    id: usize,
    function: Arc<Function<V>>,
    /// Shared by all handles; the writer drops the table when the last one is dropped.
    wanted: Arc<()>,
    kind: PhantomData<fn() -> K>,
}

impl<K, V: Hash + Eq + Send + Sync + 'static> Index<K, V> {
    /// Creates an index of a [`Store`](crate::store::Store) by the values that a function returns.
    ///
    /// For the cache of an informer, use [`Informer::index`](crate::Informer::index).
    ///
    /// The function runs once per change of an object. A body that it decodes is shared with the
    /// handlers of that change. Its return value must not borrow from the object: `collect` the
    /// values into a `Vec`.
    pub fn new<I>(reader: &Reader, function: impl Fn(&Obj<K>) -> I + Send + Sync + 'static) -> Self
    where
        K: Object,
        I: IntoIterator<Item = V>,
    {
        Self::over(reader, move |object| function(&object.share()).into_iter().collect())
    }

    fn over(reader: &Reader, function: impl Fn(&Obj<Untyped>) -> Vec<V> + Send + Sync + 'static) -> Self {
        let function: Arc<Function<V>> =
            Arc::new(move |object| guarded_for("index", object.key(), || function(object)).unwrap_or_default());
        let wanted = Arc::new(());
        let hashing = reader.state().hashing().clone();
        let table = Table::new(Arc::clone(&function), Arc::downgrade(&wanted), hashing);
        let id = reader.add_table(Box::new(table));
        Self { reader: reader.clone(), id, function, wanted, kind: PhantomData }
    }

    /// Returns all objects that have this value, in no particular order.
    #[doc(alias("ByIndex", "ByTypedIndex", "TypedIndex"))]
    pub fn get<Q: Hash + Eq + ?Sized>(&self, value: &Q) -> Vec<Obj<K>>
    where
        V: Borrow<Q>,
    {
        let mut found = Vec::new();
        self.each(&self.reader.state(), value, |entry| found.push(entry.object().cast()));
        found
    }

    /// Returns the keys of all objects that have this value, in no particular order.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::{Informer, ObjectKey};
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let by_app = maps.index_by_label("app");
    /// maps.synced().await?;
    /// assert_eq!(by_app.keys("web"), [ObjectKey::namespaced("default", "a")]);
    /// # Ok(()) });
    /// ```
    #[doc(alias("IndexKeys"))]
    pub fn keys<Q: Hash + Eq + ?Sized>(&self, value: &Q) -> Vec<ObjectKey>
    where
        V: Borrow<Q>,
    {
        let mut found = Vec::new();
        self.each(&self.reader.state(), value, |entry| found.push(entry.key().clone()));
        found
    }

    /// Returns the number of objects that have this value.
    pub fn count<Q: Hash + Eq + ?Sized>(&self, value: &Q) -> usize
    where
        V: Borrow<Q>,
    {
        let state = self.reader.state();
        if let Some(table) = self.table(&state) {
            return self.bucket(&state, table, value).map_or(0, |bucket| bucket.members.len());
        }
        let mut count = 0;
        self.each(&state, value, |_| count += 1);
        count
    }

    /// Returns the distinct values in the index, in no particular order.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let by_app = maps.index_by_label("app");
    /// maps.synced().await?;
    /// let mut apps = by_app.values();
    /// apps.sort();
    /// assert_eq!(apps, ["db", "web"]);
    /// # Ok(()) });
    /// ```
    #[must_use]
    #[doc(alias("ListIndexFuncValues"))]
    pub fn values(&self) -> Vec<V>
    where
        V: Clone,
    {
        let state = self.reader.state();
        match self.table(&state) {
            Some(table) => table.iter().map(|bucket| V::clone(&bucket.value)).collect(),
            None => {
                let all: hashbrown::HashSet<V> =
                    state.iter().flat_map(|entry| (self.function)(&entry.object())).collect();
                all.into_iter().collect()
            }
        }
    }

    pub(crate) fn each<'s, Q: Hash + Eq + ?Sized>(
        &self,
        state: &'s StoreState,
        value: &Q,
        mut f: impl FnMut(&'s StoreEntry),
    ) where
        V: Borrow<Q>,
    {
        match self.table(state) {
            Some(table) => {
                let members = self.bucket(state, table, value).into_iter().flat_map(|bucket| &bucket.members);
                members.filter_map(|place| state.at(*place)).for_each(f);
            }
            None => {
                let has =
                    |entry: &&StoreEntry| (self.function)(&entry.object()).iter().any(|has| has.borrow() == value);
                state.iter().filter(has).for_each(&mut f);
            }
        }
    }

    fn table<'s>(&self, state: &'s StoreState) -> Option<&'s Hamt<Bucket<V>>> {
        state.table(self.id)?.downcast_ref()
    }

    fn bucket<'s, Q: Hash + Eq + ?Sized>(
        &self,
        state: &StoreState,
        table: &'s Hamt<Bucket<V>>,
        value: &Q,
    ) -> Option<&'s Bucket<V>>
    where
        V: Borrow<Q>,
    {
        let hash = state.hashing().hash_one(value) as u32;
        table.get(hash, |bucket| V::borrow(&bucket.value) == value)
    }
}

impl<K, V> Index<K, V> {
    /// Returns a handle that keeps neither the index nor the informer.
    ///
    /// For handlers: see [`WeakIndex`].
    #[must_use]
    pub fn downgrade(&self) -> WeakIndex<K, V> {
        WeakIndex {
            reader: self.reader.downgrade(),
            id: self.id,
            function: Arc::downgrade(&self.function),
            wanted: Arc::downgrade(&self.wanted),
            kind: PhantomData,
        }
    }
}

/// A handle that keeps neither its index nor the informer; see [`Index::downgrade`].
///
/// A detached handler that captures an [`Index`] of its own informer keeps that informer running
/// for ever. One that captures a `WeakIndex` does not.
///
/// ```
/// # kube_embedded::doctest(["a", "b"], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Informer;
/// use kube_informer::informer::WeakIndex;
///
/// let maps = Informer::<ConfigMap>::builder(client).start();
/// let by_app = maps.index_by_label("app");
/// let weak: WeakIndex<ConfigMap, String> = by_app.downgrade();
/// maps.synced().await?;
/// assert_eq!(weak.upgrade().map(|by_app| by_app.count("web")), Some(1));
/// drop(by_app);
/// assert!(weak.upgrade().is_none(), "it was the last handle of the index");
/// # Ok(()) });
/// ```
pub struct WeakIndex<K, V> {
    reader: WeakReader,
    id: usize,
    function: Weak<Function<V>>,
    wanted: Weak<()>,
    kind: PhantomData<fn() -> K>,
}

impl<K, V> WeakIndex<K, V> {
    /// Returns the index, unless its last handle or the last handle of the cache has been dropped.
    ///
    /// The returned index is a handle of both: drop it soon.
    #[must_use]
    pub fn upgrade(&self) -> Option<Index<K, V>> {
        Some(Index {
            wanted: self.wanted.upgrade()?,
            function: self.function.upgrade()?,
            reader: self.reader.upgrade()?,
            id: self.id,
            kind: PhantomData,
        })
    }
}

impl<K> Index<K, String> {
    /// Creates an index of a [`Store`](crate::store::Store) by the value of one label. Decodes no
    /// bodies.
    ///
    /// For the cache of an informer, use
    /// [`Informer::index_by_label`](crate::Informer::index_by_label).
    pub fn by_label(reader: &Reader, label: impl Into<String>) -> Self {
        let label = label.into();
        Self::over(reader, move |object| object.label(&label).map(str::to_owned).into_iter().collect())
    }

    /// Creates an index of a [`Store`](crate::store::Store) by the values at a path; `[*]` selects
    /// every array element. Decodes no bodies.
    ///
    /// For the cache of an informer, use
    /// [`Informer::index_by_path`](crate::Informer::index_by_path).
    pub fn by_path(reader: &Reader, path: FieldPath) -> Self {
        Self::over(reader, move |object| object.values_at(&path))
    }
}

impl<K, V> Clone for Index<K, V> {
    fn clone(&self) -> Self {
        Self {
            reader: self.reader.clone(),
            id: self.id,
            function: Arc::clone(&self.function),
            wanted: Arc::clone(&self.wanted),
            kind: PhantomData,
        }
    }
}

impl<K, V> Clone for WeakIndex<K, V> {
    fn clone(&self) -> Self {
        Self {
            reader: self.reader.clone(),
            id: self.id,
            function: Weak::clone(&self.function),
            wanted: Weak::clone(&self.wanted),
            kind: PhantomData,
        }
    }
}

impl<K, V> fmt::Debug for WeakIndex<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakIndex").field("id", &self.id).finish_non_exhaustive()
    }
}

impl<K, V> fmt::Debug for Index<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index").field("id", &self.id).finish_non_exhaustive()
    }
}
