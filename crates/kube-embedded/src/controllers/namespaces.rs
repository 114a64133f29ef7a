//! Namespaces: creation, finalizers, and admission of objects into them.

use serde_json::{Value, json};

use crate::admission::decode;
use crate::admission::metadata;
use crate::api::verbs::create::create;
use crate::api::view::View;
use crate::api::write::SERVER_MANAGER;
use crate::api::write::{Authorship, Write};
use crate::api::write_options::FieldValidation;
use crate::cluster::Cluster;
use crate::http::negotiate::Form;
use crate::http::status::{Cause, Details, Status, qualified};
use crate::kinds::{GroupResource, Registry};
use crate::storage::{Key, KeyRange, Object};

/// The namespaces of a new server.
pub(crate) const INITIAL: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// The namespaces that cannot be deleted.
pub(crate) const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

/// The label that contains the namespace's own name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The finalizer in a namespace's spec until its contents are deleted.
pub(crate) const FINALIZER: &str = "kubernetes";

pub(crate) fn table() -> GroupResource {
    GroupResource { group: "".into(), resource: "namespaces".into() }
}

/// Creates the initial namespaces of every server.
pub(crate) fn create_initial(cluster: &Cluster) {
    for name in INITIAL {
        let made = make(cluster, name, Authorship::Manager(SERVER_MANAGER));
        debug_assert!(made.is_ok(), "these namespaces are as they must be");
    }
}

/// Creates a namespace if it does not exist.
///
/// # Errors
///
/// 422 for an invalid name.
pub(crate) fn ensure(cluster: &Cluster, name: &str) -> Result<(), Status> {
    make(cluster, name, Authorship::Untracked)
}

fn make(cluster: &Cluster, name: &str, authorship: Authorship<'_>) -> Result<(), Status> {
    if cluster.storage.get(&table(), &Key::new(None, name)).is_some() {
        return Ok(());
    }
    let kind = Registry::new().find("", "v1", "namespaces").ok_or_else(Status::unknown_resource)?;
    let view = View::new(kind.clone(), kind.clone(), Form::Full, cluster.clock);
    let write = Write::internal(cluster, &view, None, authorship);
    let object = json!({"metadata": {"name": name}});
    let object = decode::conform(&kind, object, FieldValidation::Ignore)?;
    match create(&write, object) {
        // Another client created it concurrently.
        Err(status) if status.reason() == "AlreadyExists" => Ok(()),
        made => made.map(drop),
    }
}

/// Checks whether objects can be created in the namespace of a request.
///
/// # Errors
///
/// 404 if the namespace does not exist, 403 if it is terminating.
pub(crate) fn admit(write: &Write<'_>, name: &str) -> Result<(), Status> {
    let namespace = write.namespace.unwrap_or_default();
    match phase(write.cluster, namespace).as_deref() {
        None => Err(Status::not_found("", "namespaces", namespace)),
        Some("Terminating") => {
            let kind = write.kind();
            let subject = match name {
                "" => qualified(&kind.group, &kind.plural),
                name => format!("{} \"{name}\"", qualified(&kind.group, &kind.plural)),
            };
            let why = "unable to create new content in namespace";
            let message = format!("{subject} is forbidden: {why} {namespace} because it is being terminated");
            let detail = format!("namespace {namespace} is being terminated");
            let causes = vec![Cause::new("NamespaceTerminating", "metadata.namespace", detail)];
            let details = Details { causes, ..Details::about(&kind.group, &kind.plural, name) };
            Err(Status::new(403, "Forbidden", message).with_details(details))
        }
        Some(_) => Ok(()),
    }
}

/// The phase of a namespace. `None` if it does not exist.
fn phase(cluster: &Cluster, namespace: &str) -> Option<String> {
    cluster.storage.get(&table(), &Key::new(None, namespace)).and_then(|object| phase_of(&object))
}

fn phase_of(object: &Object) -> Option<String> {
    let kind = Registry::new().find("", "v1", "namespaces")?;
    let at = kind.selectable_fields().iter().position(|field| field.name() == "status.phase")?;
    Some(object.fields().get(at).map(ToString::to_string).unwrap_or_default())
}

/// The terminating namespaces that still have the `kubernetes` finalizer.
pub(crate) fn terminating(cluster: &Cluster) -> Vec<String> {
    let namespaces = cluster.storage.list_cached(&table(), &KeyRange::everything()).objects;
    let terminating = namespaces.iter().filter(|each| phase_of(each).as_deref() == Some("Terminating"));
    let held = terminating.filter(|each| finalizers(&each.to_value()).iter().any(|finalizer| finalizer == FINALIZER));
    held.map(|each| each.key().name().to_owned()).collect()
}

/// Adds the `kubernetes` finalizer to a new namespace.
pub(crate) fn prepare(object: &mut Value) {
    let mut finalizers = finalizers(object);
    if !finalizers.iter().any(|finalizer| finalizer == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
    set_finalizers(object, Some(json!(finalizers)));
}

/// Labels a namespace with its name.
pub(crate) fn label(object: &mut Value) {
    let name = metadata::text(object, "name").to_owned();
    if !name.is_empty() {
        object["metadata"]["labels"][NAME_LABEL] = json!(name);
    }
}

/// The finalizers in a namespace's spec.
pub(crate) fn finalizers(object: &Value) -> Vec<String> {
    let finalizers = object["spec"]["finalizers"].as_array().into_iter().flatten();
    finalizers.filter_map(Value::as_str).map(str::to_owned).collect()
}

pub(crate) fn keep_finalizers(object: &mut Value, from: &Value) {
    set_finalizers(object, from["spec"].get("finalizers").cloned());
}

/// Sets the finalizers in a namespace's spec. An empty list removes the field.
pub(crate) fn set_finalizers(object: &mut Value, finalizers: Option<Value>) {
    if !object["spec"].is_object() {
        object["spec"] = json!({});
    }
    match finalizers.filter(|finalizers| finalizers.as_array().is_some_and(|list| !list.is_empty())) {
        Some(finalizers) => object["spec"]["finalizers"] = finalizers,
        None => {
            if let Some(spec) = object["spec"].as_object_mut() {
                spec.remove("finalizers");
            }
        }
    }
}
