//! What all writes have in common.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use super::view::View;
use super::write_options::{DryRun, WriteOptions};
use crate::admission::metadata;
use crate::cluster::Cluster;
use crate::http::reply::{Content, Reply};
use crate::http::status::Status;
use crate::kinds::convert::convert;
use crate::kinds::{Kind, Schema};
use crate::storage::{Draft, Expect, Key, Object, Outdated};

/// One write: where it goes, in which version it is meant, and how serious it is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write<'r> {
    pub(crate) cluster: &'r Cluster,
    pub(crate) view: &'r View,
    pub(crate) namespace: Option<&'r str>,
    pub(crate) options: WriteOptions,
    pub(crate) authorship: Authorship<'r>,
}

/// Whose the fields are that a write changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authorship<'r> {
    /// Nobody's in particular: what the object says about its managers stays as it is given. Writes from within.
    Unnoticed,
    /// This manager's.
    Manager(&'r str),
    /// It has been settled already.
    Settled,
}

impl<'r> Write<'r> {
    /// The same write, once it is settled whose the fields are.
    pub(crate) fn settled(self) -> Self {
        Self { authorship: Authorship::Settled, ..self }
    }

    pub(crate) fn kind(&self) -> &'r Kind {
        &self.view.kind
    }

    pub(crate) fn key(&self, name: &str) -> Key {
        Key::new(self.namespace, name)
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.options.dry_run == DryRun::All
    }

    /// The object in its present state.
    pub(crate) fn find(&self, key: &Key) -> Option<Arc<Object>> {
        self.cluster.storage.get(&self.kind().storage, key)
    }

    /// Stores an object, given in the version of the request.
    pub(crate) fn put(&self, expect: Expect, key: Key, object: &Value) -> Result<Arc<Object>, Outdated> {
        let stored = self.view.stored();
        let kind = self.kind();
        let draft = if kind.version == stored.version && kind.group == stored.group {
            Draft::new(stored, key, object)
        } else {
            let mut converted = object.clone();
            convert(kind, stored, &mut converted);
            Draft::new(stored, key, &converted)
        };
        self.cluster.storage.put(&self.kind().storage, expect, draft, Instant::now())
    }

    /// Removes an object.
    pub(crate) fn take(&self, object: &Object) -> Result<Arc<Object>, Outdated> {
        let storage = &self.cluster.storage;
        storage.delete(&self.kind().storage, object.key(), object.revision(), Instant::now())
    }

    pub(crate) fn not_found(&self, name: &str) -> Status {
        Status::not_found(&self.kind().group, &self.kind().plural, name)
    }

    pub(crate) fn conflict(&self, name: &str, why: &str) -> Status {
        Status::conflict(&self.kind().group, &self.kind().plural, name, why)
    }

    /// 422 in the name of the object's Kind.
    pub(crate) fn invalid(&self, object: &Value, causes: Vec<crate::http::status::Cause>) -> Status {
        Status::invalid(&self.kind().group, &self.kind().kind, metadata::text(object, "name"), causes)
    }

    /// The answer of something that was only tried: the object under the version it had before.
    pub(crate) fn tried(&self, code: u16, mut object: Value, before: Option<&Object>) -> Reply {
        match before {
            Some(before) => metadata::set(&mut object, "resourceVersion", before.revision().to_string()),
            None => metadata::remove(&mut object, "resourceVersion"),
        }
        Reply::new(code, Content::Unsaved(object))
    }

    /// Puts the object into the namespace of the request.
    pub(crate) fn place(&self, object: &mut Value) -> Result<(), Status> {
        let Some(namespace) = self.namespace else {
            metadata::remove(object, "namespace");
            return Ok(());
        };
        match metadata::text(object, "namespace") {
            "" => metadata::set(object, "namespace", namespace),
            own if own == namespace => {}
            _ => {
                let why = "the namespace of the provided object does not match the namespace sent on the request";
                return Err(Status::bad_request(why));
            }
        }
        Ok(())
    }
}

/// What a kind's status is while nobody has written it; `None` is nothing.
pub(crate) fn empty_status(kind: &Kind) -> Option<Value> {
    match kind.schema {
        Schema::Typed(of) => of.field("status").and_then(|(_, field)| field.zero()),
        Schema::Custom => None,
    }
}

/// Gives a top-level part of an object the value it has in another one, or takes it away if it has none there.
pub(crate) fn keep(object: &mut Value, name: &str, from: &Value) {
    set_or_remove(object, name, from.get(name).cloned());
}

/// Sets a top-level part of an object, or takes it away.
pub(crate) fn set_or_remove(object: &mut Value, name: &str, value: Option<Value>) {
    let Some(parts) = object.as_object_mut() else { return };
    match value {
        Some(value) => parts.insert(name.to_owned(), value),
        None => parts.remove(name),
    };
}

/// Where the real server would keep an object in etcd, as some failures tell.
pub(crate) fn registry_path(kind: &Kind, key: &Key) -> String {
    let own_place = kind.is_custom() || matches!(&*kind.group, "apiextensions.k8s.io" | "apiregistration.k8s.io");
    let place = match (&*kind.group, &*kind.plural) {
        (group, plural) if own_place => format!("{group}/{plural}"),
        ("", "services") => "services/specs".to_owned(),
        ("", "endpoints") => "services/endpoints".to_owned(),
        ("", "nodes") => "minions".to_owned(),
        ("", "replicationcontrollers") => "controllers".to_owned(),
        ("networking.k8s.io", "ingresses") => "ingress".to_owned(),
        (_, plural) => plural.to_owned(),
    };
    format!("/registry/{place}/{key}")
}
