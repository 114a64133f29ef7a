//! What a reconciler reads and writes with: [`Context`].
//!
//! `writes` sends the writes of one kind, `request` has their HTTP, `children` sets what every
//! child has, and `no_op` finds applies that would change nothing; the last three are pure. Uses
//! `leadership` to write and `consistency` to record what was written.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kube::core::{ApiResource, DynamicObject};
use kube_informer::{Kind, Lister, Obj, ObjectKey};
use serde::Serialize;

pub(crate) use self::children::{Children, Parent};
pub use self::write_error::WriteError;
pub use self::writes::{Patch, Writes};
use crate::consistency::{Caches, Tracker};
use crate::controller::Owned;
use crate::figures::FiguresRecorder;
use crate::leadership::Writer;

mod children;
mod no_op;
pub(crate) mod request;
mod write_error;
mod writes;

/// What a reconciler reads and writes with, for the object of one attempt.
///
/// Reads are served from caches: see [`get`](Self::get), [`list`](Self::list) and
/// [`owned`](Self::owned). Their first argument is what declaring a kind returned, so that no kind
/// can be read that is not watched.
///
/// Writes go to the server, in the name of the controller's field manager. Those of kinds that were
/// declared with [`owns`](crate::ControllerBuilder::owns) are *children*: they get the owner
/// reference, the namespace and the labels of the controller, so that they are deleted with their
/// owner, and their changes lead back to it.
///
/// A context can write until its attempt ends. A task that keeps it longer gets an error.
#[derive(Clone)]
pub struct Context {
    parts: Arc<ContextParts>,
}

struct ContextParts {
    shared: Arc<ControllerContext>,
    parent: Parent,
    tracker: Tracker,
    has_ended: AtomicBool,
}

/// What the contexts of a controller share.
pub(crate) struct ControllerContext {
    pub(crate) writer: Writer,
    pub(crate) manager: Arc<str>,
    pub(crate) resource: ApiResource,
    pub(crate) caches: Arc<Caches>,
    pub(crate) children: Children,
    pub(crate) figures: FiguresRecorder,
    /// Whether another process may write for an object of the same name: then writes to the object
    /// that is reconciled name its uid.
    pub(crate) is_by_uid: bool,
}

impl Context {
    pub(crate) fn new(shared: Arc<ControllerContext>, parent: Parent, tracker: Tracker) -> Self {
        Self { parts: Arc::new(ContextParts { shared, parent, tracker, has_ended: AtomicBool::new(false) }) }
    }

    /// The attempt has ended: nothing is written any more.
    pub(crate) fn end(&self) {
        self.parts.has_ended.store(true, Ordering::Release);
    }

    /// Returns the key of the object that is reconciled.
    #[must_use]
    pub fn key(&self) -> &ObjectKey {
        &self.parts.parent.key
    }

    /// Returns a cached object of the namespace of the object that is reconciled.
    #[must_use]
    pub fn get<C>(&self, kind: &Lister<C>, name: &str) -> Option<Obj<C>> {
        kind.namespace(self.key().namespace().unwrap_or_default()).get(name)
    }

    /// Returns the cached objects of the namespace of the object that is reconciled.
    #[must_use]
    pub fn list<C>(&self, kind: &Lister<C>) -> Vec<Obj<C>> {
        kind.namespace(self.key().namespace().unwrap_or_default()).list()
    }

    /// Returns the cached children: the objects of a kind whose controller, by their owner
    /// references, is the object that is reconciled. An index lookup.
    #[must_use]
    pub fn owned<C>(&self, kind: &Owned<C>) -> Vec<Obj<C>> {
        self.parts.parent.uid.as_ref().map(|uid| kind.by_owner().get(uid)).unwrap_or_default()
    }

    /// Applies an object (server-side apply), and takes over fields of other managers.
    ///
    /// Only the fields in `object` are set; fields that an earlier apply set are removed. Text of
    /// the type `K` is filled in: `apiVersion` and `kind`. If the cache shows that nothing would
    /// change, nothing is sent, and the cached object is returned.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_controller::{Context, Error};
    /// # async fn reconcile(ctx: Context) -> Result<(), Error> {
    /// let map = serde_json::json!({"metadata": {"name": "settings"}, "data": {"colour": "blue"}});
    /// ctx.apply::<ConfigMap>(&map).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn apply<K: Kind>(&self, object: &(impl Serialize + Sync)) -> Result<Obj<K>, WriteError> {
        self.kind::<K>().apply(object).await
    }

    /// Applies the status of the object that is reconciled: `status` is the value of its field
    /// `status`.
    ///
    /// Left out if nothing would change, as [`apply`](Self::apply) is.
    pub async fn apply_status(&self, status: &(impl Serialize + Sync)) -> Result<(), WriteError> {
        self.writes::<DynamicObject>(&self.parts.shared.resource, None).apply_parent_status(status).await
    }

    /// Creates an object, whose name may be left to the server (`generateName`).
    pub async fn create<K: Kind>(&self, object: &(impl Serialize + Sync)) -> Result<Obj<K>, WriteError> {
        self.kind::<K>().create(object).await
    }

    /// Patches an object.
    pub async fn patch<K: Kind>(&self, key: &ObjectKey, patch: &Patch) -> Result<Obj<K>, WriteError> {
        self.kind::<K>().patch(key, patch).await
    }

    /// Deletes an object, if it is still the same: the same uid. No error if it is gone.
    pub async fn delete<K: Kind>(&self, object: &Obj<K>) -> Result<(), WriteError> {
        self.kind::<K>().delete(object).await
    }

    /// Returns the writes of the kind `K`, with more choice than the methods of the context.
    #[must_use]
    pub fn kind<K: Kind>(&self) -> Writes<'_, K> {
        self.writes(&K::resource(), Some(K::in_namespaces()))
    }

    /// Returns the writes of a kind that is known only at run time.
    ///
    /// Its objects have to name their namespace.
    #[must_use]
    pub fn resource(&self, resource: &ApiResource) -> Writes<'_, DynamicObject> {
        self.writes(resource, None)
    }

    pub(crate) fn writes<K>(&self, resource: &ApiResource, is_namespaced: Option<bool>) -> Writes<'_, K> {
        Writes::new(self, resource.clone(), is_namespaced)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").field("key", self.key()).finish_non_exhaustive()
    }
}
