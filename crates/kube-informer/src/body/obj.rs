//! [`Obj`], the public handle of an object.

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, Time};

use super::decoded::Decoded;
use super::raw::Raw;
use super::{Arrival, BodyEncoder};
use crate::object::{DecodeError, FieldPath, Labels, Object, ObjectKey, OrText, Owner, Uid, Version};

/// An object in a cache or an event.
///
/// Key, version, labels, owners and other metadata are already decoded and cost nothing to read.
/// The body stays encoded until it is read: [`get`](Self::get) decodes it into `K` on first use, at
/// most once for this handle, its clones, and all handlers and indexes of one event. `K` is any
/// type that serde can deserialize: a `k8s_openapi` type, a derived one, `DynamicObject`, or a
/// small struct with only the fields that are needed (which is also the fastest, since the rest is
/// skipped).
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Obj;
///
/// let map = Obj::<ConfigMap>::from_json(
///     r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"b","labels":{"app":"web"}},"data":{"k":"v"}}"#,
/// )?;
/// assert_eq!(map.key().to_string(), "b/a");
/// assert_eq!(map.label("app"), Some("web"));
/// assert_eq!(map.get()?.data.as_ref().unwrap()["k"], "v");
/// # Ok::<_, kube_informer::DecodeError>(())
/// ```
pub struct Obj<K = Untyped> {
    raw: Arc<Raw>,
    decoded: OnceLock<Arc<Decoded>>,
    kind: PhantomData<fn() -> K>,
}

/// The type parameter of an object without a Rust type, as used internally.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Obj;
///
/// let object: Obj = Obj::from_json(r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#)?;
/// assert_eq!(object.name(), "a", "metadata needs no type");
/// assert_eq!(object.view::<ConfigMap>().get()?.data.as_ref().unwrap()["k"], "v");
/// # Ok::<_, kube_informer::DecodeError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Untyped {}

impl<K> Obj<K> {
    /// Namespace and name.
    #[must_use]
    #[doc(alias("ObjectToName", "MetaObjectToName"))]
    pub fn key(&self) -> &ObjectKey {
        &self.raw.meta().key
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.key().name()
    }

    /// The namespace, unless the object has none.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.key().namespace()
    }

    /// The uid: objects with the same key and different uids are different objects.
    #[must_use]
    pub fn uid(&self) -> Option<&Uid> {
        self.raw.meta().uid.as_ref()
    }

    /// The `resourceVersion`.
    #[must_use]
    pub fn version(&self) -> &Version {
        &self.raw.meta().version
    }

    /// The generation, which the server increments when the desired state (the spec) changes.
    ///
    /// ```
    /// use kube_informer::Event;
    ///
    /// /// Whether the desired state changed, and not only the status.
    /// fn is_wish<K>(event: &Event<K>) -> bool {
    ///     event.old().is_none_or(|old| old.generation() != event.object().generation())
    /// }
    /// # use kube_informer::{Obj, Origin, Untyped};
    /// # let state = |generation| Obj::<Untyped>::from_json(format!(r#"{{"metadata":{{"name":"a","generation":{generation}}}}}"#)).unwrap();
    /// assert!(is_wish(&Event::updated(state(1), state(2), Origin::Live)));
    /// assert!(!is_wish(&Event::updated(state(2), state(2), Origin::Live)));
    /// ```
    #[must_use]
    pub fn generation(&self) -> Option<i64> {
        self.raw.meta().generation()
    }

    /// The labels.
    #[must_use]
    pub fn labels(&self) -> Labels<'_> {
        self.raw.meta().labels()
    }

    /// The value of one label.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels().get(key)
    }

    /// The value of one annotation. Not cached: each call reads it from the encoded body.
    ///
    /// ```
    /// use kube_informer::Obj;
    ///
    /// let object: Obj = Obj::from_json(r#"{"metadata":{"name":"a","annotations":{"example.com/owner":"us"}}}"#)?;
    /// assert_eq!(object.annotation("example.com/owner").as_deref(), Some("us"));
    /// # Ok::<_, kube_informer::DecodeError>(())
    /// ```
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<String> {
        self.raw.annotation(key)
    }

    /// The owner references.
    pub fn owners(&self) -> impl Iterator<Item = Owner<'_>> {
        self.raw.meta().owners()
    }

    /// The owner that is the controller of this object.
    ///
    /// ```
    /// use kube_informer::Obj;
    ///
    /// let pod: Obj = Obj::from_json(
    ///     r#"{"metadata":{"name":"web-1","ownerReferences":[
    ///         {"apiVersion":"v1","kind":"ConfigMap","name":"settings","uid":"u1"},
    ///         {"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"u2","controller":true}]}}"#,
    /// )?;
    /// assert_eq!(pod.owners().count(), 2);
    /// assert_eq!(pod.controller().unwrap().name(), "web");
    /// # Ok::<_, kube_informer::DecodeError>(())
    /// ```
    #[must_use]
    pub fn controller(&self) -> Option<Owner<'_>> {
        self.owners().find(Owner::is_controller)
    }

    /// When deletion was requested; finalizers or a grace period may keep the object alive after
    /// that.
    ///
    /// ```
    /// use kube_informer::Obj;
    ///
    /// let going: Obj = Obj::from_json(
    ///     r#"{"metadata":{"name":"a","deletionTimestamp":"2026-01-02T03:04:05Z","finalizers":["example.com/wait"]}}"#,
    /// )?;
    /// assert!(going.deletion_timestamp().is_some());
    /// # Ok::<_, kube_informer::DecodeError>(())
    /// ```
    #[must_use]
    pub fn deletion_timestamp(&self) -> Option<&Time> {
        self.raw.meta().deletion.as_deref()
    }

    /// The whole object as JSON, as received from the server, without the dropped fields.
    ///
    /// An object received as [protobuf](crate::Wire::Protobuf) is converted to the JSON that the
    /// server would have sent; if it cannot be read, the JSON holds only its key and version.
    ///
    /// ```
    /// use kube_informer::Obj;
    ///
    /// let object: Obj = Obj::from_json(r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#)?;
    /// let value: serde_json::Value = serde_json::from_slice(&object.json())?;
    /// assert_eq!(value["data"]["k"], "v");
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn json(&self) -> Bytes {
        self.raw.json()
    }

    /// `metadata.managedFields`, decoded at each call: which field manager owns which fields. Empty
    /// if the object has none, or if the informer
    /// [drops](crate::InformerBuilder::drop_managed_fields) them.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::Obj;
    ///
    /// let map = Obj::<ConfigMap>::from_json(
    ///     r#"{"metadata":{"name":"a","managedFields":[{"manager":"us","operation":"Apply","apiVersion":"v1"}]}}"#,
    /// )?;
    /// assert_eq!(map.managed_fields()?[0].manager.as_deref(), Some("us"));
    /// assert_eq!(map.get()?.metadata.managed_fields, None, "not decoded with the body");
    /// # Ok::<_, kube_informer::DecodeError>(())
    /// ```
    pub fn managed_fields(&self) -> Result<Vec<ManagedFieldsEntry>, DecodeError> {
        self.raw.managed_fields()
    }

    /// The scalar at a path as text, found without decoding the body: a string without quotes, a
    /// number or a boolean as written.
    ///
    /// None if the path does not exist or is null, an object or a list. With `[*]` in the path, the
    /// first match. The path may be given as text, which is parsed at each call: then the result is
    /// a `Result`. Parse a [`FieldPath`] once for many objects.
    ///
    /// ```
    /// use kube_informer::Obj;
    ///
    /// let pod: Obj = Obj::from_json(r#"{"metadata":{"name":"a"},"spec":{"nodeName":"n1","priority":7,"containers":[{"name":"main"}]}}"#)?;
    /// assert_eq!(pod.value_at("spec.nodeName")?.as_deref(), Some("n1"));
    /// assert_eq!(pod.value_at("spec.priority")?.as_deref(), Some("7"));
    /// assert_eq!(pod.value_at("spec.containers[*].name")?.as_deref(), Some("main"));
    /// assert_eq!(pod.value_at("spec.containers")?, None);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn value_at<P: OrText<FieldPath>>(&self, path: P) -> P::Checked<Option<String>> {
        path.checked(|path| self.raw.value_at(path))
    }

    /// All scalars at a path as text: [`value_at`](Self::value_at) for paths with `[*]`.
    ///
    /// ```
    /// use kube_informer::Obj;
    ///
    /// let pod: Obj = Obj::from_json(r#"{"metadata":{"name":"a"},"status":{"podIPs":[{"ip":"10.0.0.1"},{"ip":"fd00::1"}]}}"#)?;
    /// assert_eq!(pod.values_at("status.podIPs[*].ip")?, ["10.0.0.1", "fd00::1"]);
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn values_at<P: OrText<FieldPath>>(&self, path: P) -> P::Checked<Vec<String>> {
        path.checked(|path| self.raw.values_at(path))
    }

    /// The same object viewed as another type. Clones and views share decoded bodies.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::Obj;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Colour { data: Data }
    /// #[derive(serde::Deserialize)]
    /// struct Data { colour: String }
    ///
    /// let map = Obj::<ConfigMap>::from_json(r#"{"metadata":{"name":"a"},"data":{"colour":"blue"}}"#)?;
    /// assert_eq!(map.view::<Colour>().get()?.data.colour, "blue");
    /// # Ok::<_, kube_informer::DecodeError>(())
    /// ```
    #[must_use]
    pub fn view<V: Object>(&self) -> Obj<V> {
        self.share()
    }

    /// Creates an object outside of any cache, for tests, from the JSON that a server would send.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kube_informer::Obj;
    ///
    /// let pod = Obj::<Pod>::from_json(r#"{"metadata":{"name":"a"},"spec":"odd"}"#)?;
    /// assert_eq!(pod.name(), "a", "a body that fits no type is an object all the same");
    /// assert!(Obj::<Pod>::from_json(r#"{"metadata":{}}"#).is_err(), "one without a name is not");
    /// # Ok::<_, kube_informer::DecodeError>(())
    /// ```
    pub fn from_json(json: impl Into<Bytes>) -> Result<Self, DecodeError> {
        BodyEncoder::detached().accept(&json.into(), Arrival::Listed).map(Obj::cast)
    }

    pub(crate) fn new(raw: Arc<Raw>) -> Self {
        Self { raw, decoded: OnceLock::new(), kind: PhantomData }
    }

    pub(crate) fn raw(&self) -> &Arc<Raw> {
        &self.raw
    }

    /// The same handle with another type: unlike [`view`](Self::view), it does not count a
    /// reference, and the type need not be decodable.
    #[must_use]
    pub fn cast<V>(self) -> Obj<V> {
        Obj { raw: self.raw, decoded: self.decoded, kind: PhantomData }
    }

    /// A second handle that shares decoded bodies with this one.
    pub(crate) fn share<V>(&self) -> Obj<V> {
        let decoded = Arc::clone(self.decoded.get_or_init(|| self.raw.decoded()));
        Obj { raw: Arc::clone(&self.raw), decoded: OnceLock::from(decoded), kind: PhantomData }
    }

    /// A handle that shares no decoded body with this one, as each read of a cache returns one.
    /// What keeps objects for long keeps such handles, so that decoded bodies do not stay in
    /// memory.
    #[must_use]
    pub fn fresh_handle(&self) -> Self {
        Self::new(Arc::clone(&self.raw))
    }

    /// The approximate size in bytes, as stored, by which queues of events are bounded.
    #[must_use]
    pub fn weight(&self) -> usize {
        self.raw.weight()
    }
}

impl<K: Object> Obj<K> {
    /// The body, decoded on first use. A body that does not fit `K` is an error only here: the
    /// informer and other readers are not affected.
    ///
    /// `metadata.managedFields` are left out, in every type: they are half of the work of decoding
    /// a pod. [`managed_fields`](Self::managed_fields) decodes them alone, and
    /// [`decode_managed_fields`] decodes them with every body. It is safe to change such an object
    /// and write it back with an update: a server keeps the managers of an object if the update
    /// names none. (To remove them all, an update has to name one that is empty.) The body is not
    /// the whole object wherever it is written elsewhere, such as to a backup or to another
    /// cluster, or compared with what a server returns: [`json`](Self::json) is.
    ///
    /// [`decode_managed_fields`]: crate::InformerBuilder::decode_managed_fields
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::Obj;
    ///
    /// let map = Obj::<ConfigMap>::from_json(r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#)?;
    /// assert_eq!(map.get()?.data.as_ref().unwrap()["k"], "v");
    ///
    /// let odd = Obj::<ConfigMap>::from_json(r#"{"metadata":{"name":"b"},"data":{"k":7}}"#)?;
    /// assert_eq!(odd.get().unwrap_err().path().unwrap().to_string(), "data.k");
    /// # Ok::<_, kube_informer::DecodeError>(())
    /// ```
    pub fn get(&self) -> Result<&K, DecodeError> {
        let decoded = self.decoded.get_or_init(|| self.raw.decoded());
        decoded.get_or_decode(&self.raw)
    }

    /// The body, to be kept longer than this handle. Shares the decoding with [`get`](Self::get).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::Obj;
    ///
    /// let map = Obj::<ConfigMap>::from_json(r#"{"metadata":{"name":"a"},"data":{"k":"v"}}"#)?;
    /// let body: Arc<ConfigMap> = map.to_arc()?;
    /// assert!(std::ptr::eq(&*body, map.get()?), "decoded once");
    /// drop(map);
    /// assert_eq!(body.data.as_ref().unwrap()["k"], "v");
    /// # Ok::<_, kube_informer::DecodeError>(())
    /// ```
    pub fn to_arc(&self) -> Result<Arc<K>, DecodeError> {
        let decoded = self.decoded.get_or_init(|| self.raw.decoded());
        decoded.arc_or_decode(&self.raw)
    }
}

impl<K> Clone for Obj<K> {
    fn clone(&self) -> Self {
        self.share()
    }
}

impl<K> fmt::Debug for Obj<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Obj").field("key", self.key()).field("version", self.version()).finish_non_exhaustive()
    }
}
