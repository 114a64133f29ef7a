//! Access to objects without HTTP.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::delete_options::DeleteOptions;
use super::verbs::delete::delete;
use super::verbs::patch::{self, Patch};
use super::verbs::update::update;
use super::verbs::{create, get};
use super::view::View;
use super::write::{Authorship, Write};
use super::write_options::FieldValidation;
use crate::admission::decode::{self, Decoded};
use crate::admission::metadata;
use crate::cluster::Cluster;
use crate::controllers::namespaces;
use crate::http::negotiate::Form;
use crate::http::reply::{Content, Reply};
use crate::http::status::Status;
use crate::kinds::{Kind, Part, Registry, ResourceScope};
use crate::server::Server;
use crate::storage::{Key, KeyRange, Object};

/// The namespace of objects that have none.
const DEFAULT_NAMESPACE: &str = "default";

impl Server {
    /// Creates an object as a POST does, and returns it as stored. Unlike that of a client, the
    /// spec of a built-in kind is not validated, so that a test can store as little as it needs.
    ///
    /// Its `apiVersion` and `kind` select the kind. Its namespace is that in its metadata, or else
    /// `default`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use serde_json::json;
    /// let server = kube_embedded::Server::builder().in_process().start().await?;
    /// let made = server.create(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}))?;
    /// assert_eq!(made["metadata"]["namespace"], "default");
    /// assert_eq!(server.objects("v1", "ConfigMap")?.len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// The status that a client would get.
    pub fn create(&self, object: &impl Serialize) -> Result<Value, Status> {
        let (objects, object) = self.addressed(object)?;
        objects.create(&object)
    }

    /// Replaces an object as a PUT does, and returns it as stored. The spec of a built-in kind is
    /// not validated.
    ///
    /// # Errors
    ///
    /// The status that a client would get.
    pub fn update(&self, object: &impl Serialize) -> Result<Value, Status> {
        let (objects, object) = self.addressed(object)?;
        objects.update(&object)
    }

    /// Replaces the status of an object, exactly as a PUT of its status does, and returns the
    /// object as stored.
    ///
    /// # Errors
    ///
    /// The status that a client would get.
    pub fn update_status(&self, object: &impl Serialize) -> Result<Value, Status> {
        let (objects, object) = self.addressed(object)?;
        objects.update_status(&object)
    }

    /// The objects of a kind, such as `objects("apps/v1", "Deployment")`.
    ///
    /// # Errors
    ///
    /// 404 for a kind that is not served.
    pub fn objects(&self, api_version: &str, kind: &str) -> Result<Objects<'_>, Status> {
        Objects::new(self.cluster(), api_version, kind)
    }

    /// Stores many objects unchanged, as from a backup, and returns their number.
    ///
    /// Unlike with [`Server::create`], status, uid, generation and creation timestamp are kept.
    /// Missing ones are filled in, and missing namespaces are created. Samples of a
    /// [`Generator`](crate::generate::Generator) can be loaded as they are.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use kube_embedded::generate::Generator;
    ///
    /// let server = kube_embedded::Server::builder().in_process().start().await?;
    /// assert_eq!(server.load(Generator::new(7).pods(100))?, 100);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// At the first object that cannot be stored; those before it stay.
    pub fn load(&self, objects: impl IntoIterator<Item = impl Into<Value>>) -> Result<usize, Status> {
        let mut known: Option<(String, String, Objects<'_>)> = None;
        let mut count = 0;
        for object in objects {
            let object: Value = object.into();
            let (api_version, kind) = (string_field(&object, "apiVersion"), string_field(&object, "kind"));
            let objects = match known.take() {
                Some((v, k, objects)) if v == api_version && k == kind => objects,
                _ => self.objects(api_version, kind)?,
            };
            let (api_version, kind) = (api_version.to_owned(), kind.to_owned());
            objects.load(object)?;
            known = Some((api_version, kind, objects));
            count += 1;
        }
        Ok(count)
    }

    fn addressed(&self, object: &impl Serialize) -> Result<(Objects<'_>, Value), Status> {
        let object = to_value(object)?;
        let objects = self.objects(string_field(&object, "apiVersion"), string_field(&object, "kind"))?;
        Ok((objects, object))
    }
}

/// The objects of one kind.
///
/// Objects are looked up by name in the namespace set with [`Objects::namespace`], or else in
/// `default`; lists and counts cover the namespace set, or else all namespaces.
///
/// Writes through this type do not track field ownership: `metadata.managedFields` is stored as
/// given. Writes of clients are tracked as on the real server.
#[derive(Debug, Clone)]
pub struct Objects<'s> {
    cluster: &'s Cluster,
    view: View,
    namespace: Option<String>,
    manager: Option<&'static str>,
}

impl<'s> Objects<'s> {
    pub(crate) fn new(cluster: &'s Cluster, api_version: &str, kind: &str) -> Result<Self, Status> {
        let registry: Arc<Registry> = cluster.registry();
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let kind = registry.by_kind(group, version, kind).ok_or_else(Status::unknown_resource)?;
        let stored = registry.stored(&kind.storage).unwrap_or_else(|| kind.clone());
        if kind.conversion.is_some() && kind.version != stored.version {
            let why = format!(
                "the Rust API calls no conversion webhook: use the storage version {} of {}",
                stored.version, kind.kind
            );
            return Err(Status::internal(why));
        }
        Ok(Self { cluster, view: View::new(kind, stored, Form::Full, cluster.clock), namespace: None, manager: None })
    }

    /// Sets the namespace. Has no effect on cluster-scoped kinds.
    #[must_use]
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Sets a field manager: changed fields are recorded as owned by it, as for writes of clients.
    pub(crate) fn managed_by(mut self, manager: &'static str) -> Self {
        self.manager = Some(manager);
        self
    }

    /// Creates an object.
    ///
    /// # Errors
    ///
    /// The status that a client would get.
    pub fn create(&self, object: &impl Serialize) -> Result<Value, Status> {
        let object = self.conform(to_value(object)?)?;
        let namespace = self.namespace_of(&object.object);
        create::create(&self.write(namespace.as_deref()), object).map(|reply| self.value(reply))
    }

    /// Replaces an object.
    ///
    /// # Errors
    ///
    /// The status that a client would get.
    pub fn update(&self, object: &impl Serialize) -> Result<Value, Status> {
        self.replace(to_value(object)?, None)
    }

    /// Replaces the status of an object.
    ///
    /// # Errors
    ///
    /// The status that a client would get.
    pub fn update_status(&self, object: &impl Serialize) -> Result<Value, Status> {
        if self.kind().subresource(Part::Status).is_none() {
            return Err(Status::unknown_resource());
        }
        self.replace(to_value(object)?, Some(Part::Status))
    }

    /// Applies a JSON merge patch to an object: null removes a field, other values are set.
    ///
    /// # Errors
    ///
    /// The status that a client would get.
    pub fn patch(&self, name: &str, merge: &impl Serialize) -> Result<Value, Status> {
        let merge = Patch::Merge(to_value(merge)?);
        let namespace = self.target_namespace();
        patch::patch(&self.write(namespace), name, &merge, None).map(|reply| self.value(reply))
    }

    /// Applies a JSON merge patch to the status of an object.
    ///
    /// # Errors
    ///
    /// The status that a client would get.
    pub fn patch_status(&self, name: &str, merge: &impl Serialize) -> Result<Value, Status> {
        if self.kind().subresource(Part::Status).is_none() {
            return Err(Status::unknown_resource());
        }
        let merge = Patch::Merge(to_value(merge)?);
        let namespace = self.target_namespace();
        patch::patch(&self.write(namespace), name, &merge, Some(Part::Status)).map(|reply| self.value(reply))
    }

    /// Deletes an object. It is removed, or only gets a deletion timestamp if finalizers or a grace
    /// period delay the deletion.
    ///
    /// # Errors
    ///
    /// The status that a client would get.
    pub fn delete(&self, name: &str) -> Result<(), Status> {
        delete(&self.write(self.target_namespace()), name, &DeleteOptions::default()).map(drop)
    }

    /// Deletes an object without a grace period.
    pub(crate) fn remove(&self, name: &str) -> Result<(), Status> {
        let options = DeleteOptions { grace_seconds: Some(0), ..DeleteOptions::default() };
        delete(&self.write(self.target_namespace()), name, &options).map(drop)
    }

    /// Deletes all objects of the namespace set, or else of all namespaces, and returns their
    /// number.
    ///
    /// # Errors
    ///
    /// The status that a client would get.
    pub fn delete_all(&self) -> Result<usize, Status> {
        let objects = self.current();
        for object in &objects {
            match delete(&self.write(object.key().namespace()), object.key().name(), &DeleteOptions::default()) {
                Ok(_) => {}
                Err(status) if status.code() == 404 => {}
                Err(status) => return Err(status),
            }
        }
        Ok(objects.len())
    }

    /// Returns one object.
    ///
    /// # Errors
    ///
    /// 404 if there is no object with that name.
    pub fn get(&self, name: &str) -> Result<Value, Status> {
        let key = Key::new(self.target_namespace(), name);
        get::find(self.cluster, self.kind(), &key).map(|object| self.view.value(&object))
    }

    /// Returns all objects, ordered by namespace and name.
    #[must_use]
    pub fn list(&self) -> Vec<Value> {
        self.current().iter().map(|object| self.view.value(object)).collect()
    }

    /// The number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        match self.selected_namespace() {
            None => self.cluster.storage.count(&self.kind().storage),
            Some(_) => self.current().len(),
        }
    }

    /// Whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn kind(&self) -> &Kind {
        &self.view.kind
    }

    fn write<'w>(&'w self, namespace: Option<&'w str>) -> Write<'w> {
        Write::internal(
            self.cluster,
            &self.view,
            namespace,
            self.manager.map_or(Authorship::Untracked, Authorship::Manager),
        )
    }

    /// The namespace that was set; `None` for cluster-scoped kinds.
    fn selected_namespace(&self) -> Option<&str> {
        self.namespace.as_deref().filter(|_| self.kind().scope == ResourceScope::Namespaced)
    }

    /// The namespace in which objects are looked up by name.
    fn target_namespace(&self) -> Option<&str> {
        match self.kind().scope {
            ResourceScope::Cluster => None,
            ResourceScope::Namespaced => Some(self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE)),
        }
    }

    /// The namespace of an object, which may contain it.
    fn namespace_of(&self, object: &Value) -> Option<String> {
        let own = self.target_namespace()?;
        Some(match (&self.namespace, metadata::text(object, "namespace")) {
            (None, given) if !given.is_empty() => given.to_owned(),
            _ => own.to_owned(),
        })
    }

    fn conform(&self, mut object: Value) -> Result<Decoded, Status> {
        if !object.is_object() {
            return Err(Status::bad_request(format!("a {} is an object", self.kind().kind)));
        }
        object["apiVersion"] = self.kind().api_version().into();
        object["kind"] = (*self.kind().kind).into();
        decode::conform(self.kind(), object, FieldValidation::Ignore)
    }

    fn replace(&self, object: Value, part: Option<Part>) -> Result<Value, Status> {
        self.replaced(object, part).map(|reply| self.value(reply))
    }

    fn replaced(&self, object: Value, part: Option<Part>) -> Result<Reply, Status> {
        let object = self.conform(object)?;
        let namespace = self.namespace_of(&object.object);
        let name = metadata::text(&object.object, "name").to_owned();
        update(&self.write(namespace.as_deref()), &name, object, part)
    }

    /// Stores an object unchanged, and returns its revision.
    pub(crate) fn load(&self, object: Value) -> Result<u64, Status> {
        let object = self.conform(object)?;
        let namespace = self.namespace_of(&object.object);
        if let Some(namespace) = &namespace {
            namespaces::ensure(self.cluster, namespace)?;
        }
        create::load(&self.write(namespace.as_deref()), object).map(|reply| revision(&reply))
    }

    /// Creates an object, and returns its revision.
    pub(crate) fn make(&self, object: Value) -> Result<u64, Status> {
        let object = self.conform(object)?;
        let namespace = self.namespace_of(&object.object);
        create::create(&self.write(namespace.as_deref()), object).map(|reply| revision(&reply))
    }

    /// Replaces an object or a part of it, and returns its revision.
    pub(crate) fn store(&self, object: Value, part: Option<Part>) -> Result<u64, Status> {
        self.replaced(object, part).map(|reply| revision(&reply))
    }

    /// Applies a JSON merge patch to an object or a part of it, and returns its revision.
    pub(crate) fn amend(&self, name: &str, merge: Value, part: Option<Part>) -> Result<u64, Status> {
        let write = self.write(self.target_namespace());
        patch::patch(&write, name, &Patch::Merge(merge), part).map(|reply| revision(&reply))
    }

    /// The objects that pass a test, which is evaluated before they are parsed.
    pub(crate) fn list_where(&self, fits: impl Fn(&Object) -> bool) -> Vec<Value> {
        self.current().iter().filter(|object| fits(object)).map(|object| self.view.value(object)).collect()
    }

    fn current(&self) -> Vec<Arc<Object>> {
        self.cluster.storage.list(&self.kind().storage, &KeyRange::of(self.selected_namespace())).objects
    }

    fn value(&self, reply: Reply) -> Value {
        match reply.content {
            Content::Object(object) => self.view.value(&object),
            Content::Unsaved(object) => object,
            Content::Success(_) | Content::List(_) | Content::Scale(_) | Content::Document(_) => Value::Null,
        }
    }
}

/// The revision of the stored object; 0 if none was stored.
fn revision(reply: &Reply) -> u64 {
    match &reply.content {
        Content::Object(object) => object.revision(),
        Content::Unsaved(_) | Content::Success(_) | Content::List(_) | Content::Scale(_) | Content::Document(_) => 0,
    }
}

fn to_value(object: &impl Serialize) -> Result<Value, Status> {
    serde_json::to_value(object).map_err(|error| Status::bad_request(error.to_string()))
}

fn string_field<'v>(object: &'v Value, name: &str) -> &'v str {
    object[name].as_str().unwrap_or_default()
}
