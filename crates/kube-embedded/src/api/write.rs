//! Functions that all writes share.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use super::access::User;
use super::view::View;
use super::write_options::{DryRun, Origin, WriteOptions};
use crate::admission::metadata;
use crate::cluster::Cluster;
use crate::http::reply::{Content, Reply};
use crate::http::status::Status;
use crate::kinds::{Kind, Schema};
use crate::storage::{Draft, Expect, Key, Object, Outdated};
use crate::webhooks::{Gate, Operation, Stage};

/// The field manager of what the server itself writes.
pub(crate) const SERVER_MANAGER: &str = "kube-apiserver";

/// A write: its target, version and options.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Write<'r> {
    pub(crate) cluster: &'r Cluster,
    pub(crate) view: &'r View,
    pub(crate) namespace: Option<&'r str>,
    pub(crate) options: WriteOptions,
    pub(crate) authorship: Authorship<'r>,
    /// The webhooks that are called for it, if there are any.
    pub(crate) gate: Option<&'r Gate>,
    /// The user that sent it, if it came over HTTP.
    pub(crate) user: Option<&'r User>,
}

/// How the field ownership of a write is tracked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Authorship<'r> {
    /// Not at all: `metadata.managedFields` is stored as given. For writes inside the server.
    Untracked,
    /// The changed fields belong to this manager.
    Manager(&'r str),
    /// The managers are already set, as after server-side apply.
    Computed,
}

impl<'r> Write<'r> {
    /// A write of the server itself or of the Rust API, which calls no webhooks.
    pub(crate) fn internal(
        cluster: &'r Cluster,
        view: &'r View,
        namespace: Option<&'r str>,
        authorship: Authorship<'r>,
    ) -> Self {
        Self { cluster, view, namespace, options: WriteOptions::default(), authorship, gate: None, user: None }
    }

    /// The same write with its managers already set.
    pub(crate) fn settled(self) -> Self {
        Self { authorship: Authorship::Computed, ..self }
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

    /// Whether a client sent the write.
    pub(crate) fn is_of_client(&self) -> bool {
        self.options.origin == Origin::Client
    }

    /// Passes an object through the webhooks. Returns it if they may have changed it.
    ///
    /// # Errors
    ///
    /// Those of [`Gate::pass`].
    pub(crate) fn pass(
        &self,
        (stage, operation): (Stage, Operation),
        object: &Value,
        old: &Value,
    ) -> Result<Option<Value>, Status> {
        self.gate.map_or(Ok(None), |gate| gate.pass((stage, operation), object, old, self.options.dry_run))
    }

    /// The object in its current state.
    pub(crate) fn find(&self, key: &Key) -> Option<Arc<Object>> {
        // An attempt whose conversions are missing ends here; it is repeated.
        self.cluster.storage.get(&self.kind().storage, key).filter(|_| !self.view.is_waiting())
    }

    /// Stores an object that is in the version of the request.
    pub(crate) fn put(&self, expect: Expect, key: Key, object: &Value) -> Result<Arc<Object>, Outdated> {
        let stored = self.view.stored();
        let kind = self.kind();
        let draft = if kind.version == stored.version && kind.group == stored.group {
            Draft::new(stored, key, object)
        } else {
            let mut converted = object.clone();
            self.view.to_stored(&mut converted);
            Draft::new(stored, key, &converted)
        };
        if self.view.is_waiting() {
            return Err(Outdated);
        }
        self.cluster.storage.put(&self.kind().storage, expect, draft, Instant::now())
    }

    /// Removes an object.
    pub(crate) fn take(&self, object: &Object) -> Result<Arc<Object>, Outdated> {
        if self.view.is_waiting() {
            return Err(Outdated);
        }
        let storage = &self.cluster.storage;
        storage.delete(&self.kind().storage, object.key(), object.revision(), Instant::now())
    }

    pub(crate) fn not_found(&self, name: &str) -> Status {
        Status::not_found(&self.kind().group, &self.kind().plural, name)
    }

    pub(crate) fn conflict(&self, name: &str, why: &str) -> Status {
        Status::conflict(&self.kind().group, &self.kind().plural, name, why)
    }

    /// 422, which names the Kind instead of the resource.
    pub(crate) fn invalid(&self, object: &Value, causes: Vec<crate::http::status::Cause>) -> Status {
        Status::invalid(&self.kind().group, &self.kind().kind, metadata::text(object, "name"), causes)
    }

    /// The reply with an object that is not stored, such as that of a dry run: it has the resource
    /// version from before.
    pub(crate) fn tried(&self, code: u16, mut object: Value, before: Option<&Object>) -> Reply {
        match before {
            Some(before) => metadata::set(&mut object, "resourceVersion", before.revision().to_string()),
            None => metadata::remove(&mut object, "resourceVersion"),
        }
        Reply::new(code, Content::Unsaved(object))
    }

    /// Sets the namespace of the request in the object.
    ///
    /// # Errors
    ///
    /// 400 if the object has another namespace.
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

/// Whether a kind is that of certificate signing requests, which have a requester and an approval.
pub(crate) fn is_signing_request(kind: &Kind) -> bool {
    &*kind.kind == "CertificateSigningRequest" && !kind.is_custom()
}

/// The status of an object whose status was never written; `None` if it is omitted.
pub(crate) fn empty_status(kind: &Kind) -> Option<Value> {
    match kind.schema {
        Schema::Typed(of) => of.field("status").and_then(|(_, field)| field.zero()),
        Schema::Custom => None,
    }
}

/// Copies a top-level field from another object, or removes it if the other object has none.
pub(crate) fn keep(object: &mut Value, name: &str, from: &Value) {
    set_or_remove(object, name, from.get(name).cloned());
}

/// Sets or removes a top-level field.
pub(crate) fn set_or_remove(object: &mut Value, name: &str, value: Option<Value>) {
    let Some(parts) = object.as_object_mut() else { return };
    match value {
        Some(value) => parts.insert(name.to_owned(), value),
        None => parts.remove(name),
    };
}

/// The key of an object in the real server's etcd, which some error messages contain.
pub(crate) fn registry_path(kind: &Kind, key: &Key) -> String {
    let includes_group = kind.is_custom() || matches!(&*kind.group, "apiextensions.k8s.io" | "apiregistration.k8s.io");
    let prefix = match (&*kind.group, &*kind.plural) {
        (group, plural) if includes_group => format!("{group}/{plural}"),
        ("", "services") => "services/specs".to_owned(),
        ("", "endpoints") => "services/endpoints".to_owned(),
        ("", "nodes") => "minions".to_owned(),
        ("", "replicationcontrollers") => "controllers".to_owned(),
        ("networking.k8s.io", "ingresses") => "ingress".to_owned(),
        (_, plural) => plural.to_owned(),
    };
    format!("/registry/{prefix}/{key}")
}
