//! The writes of one kind.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::atomic::Ordering;

use http::Request;
use kube::core::ApiResource;
use kube_informer::{Obj, ObjectKey};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::children::Prepared;
use super::no_op::changes_nothing;
use super::request::{PatchType, Target, check_segment};
use super::write_error::{WriteError, is_refusal};
use super::{Context, ContextParts};
use crate::consistency::{CacheId, Unseen};
use crate::figures::WriteFigures;

/// A change of an object, in one of the forms that servers accept.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Patch {
    /// A JSON patch (RFC 6902): a list of operations, which may test values.
    Json(Value),
    /// A JSON merge patch (RFC 7386): fields to set, and with null to remove.
    Merge(Value),
    /// A strategic merge patch: lists of built-in kinds are merged by their keys.
    Strategic(Value),
}

/// The writes of one kind, in the context of one attempt; see [`Context::kind`].
#[derive(Debug, Clone)]
pub struct Writes<'a, K> {
    context: &'a Context,
    resource: ApiResource,
    /// `None` if that is not known.
    is_namespaced: Option<bool>,
    kind: PhantomData<fn() -> K>,
}

/// Which writes a write counts among.
type Counter = fn(&mut WriteFigures) -> &mut u64;

impl<'a, K> Writes<'a, K> {
    pub(super) fn new(context: &'a Context, resource: ApiResource, is_namespaced: Option<bool>) -> Self {
        Self { context, resource, is_namespaced, kind: PhantomData }
    }

    /// Applies an object; see [`Context::apply`].
    pub async fn apply(&self, object: &(impl Serialize + Sync)) -> Result<Obj<K>, WriteError> {
        let mut prepared = self.prepare("apply", object)?;
        if let Some(uid) = self.own_uid(prepared.namespace.as_deref(), &prepared.name)
            && let Some(Value::Object(metadata)) = prepared.value.get_mut("metadata")
        {
            metadata.insert("uid".to_owned(), uid.into());
        }
        self.apply_prepared(&prepared, "").await
    }

    /// Applies the status of the object that is reconciled.
    pub(super) async fn apply_parent_status(&self, status: &(impl Serialize + Sync)) -> Result<(), WriteError> {
        let parent = &self.parts().parent;
        let mut metadata = json!({"name": parent.key.name()});
        if let Some(namespace) = parent.key.namespace() {
            metadata["namespace"] = namespace.into();
        }
        if let Some(uid) = &parent.uid {
            // An object with the same name that was created meanwhile is another one.
            metadata["uid"] = uid.to_string().into();
        }
        let status = serde_json::to_value(status).map_err(|error| self.not_sent("apply", &parent.key, &error))?;
        let ApiResource { api_version, kind, .. } = &self.resource;
        let prepared = Prepared {
            value: json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "status": status}),
            name: parent.key.name().to_owned(),
            generate_name: String::new(),
            namespace: parent.key.namespace().map(str::to_owned),
        };
        self.apply_prepared(&prepared, "status").await.map(drop)
    }

    async fn apply_prepared(&self, prepared: &Prepared, subresource: &str) -> Result<Obj<K>, WriteError> {
        let (parts, title) = (self.parts(), prepared.title());
        check_segment("name", &prepared.name).map_err(|reason| self.not_sent("apply", &title, &reason))?;
        let key = ObjectKey::namespaced(prepared.namespace.as_deref().unwrap_or_default(), &prepared.name);
        let manager = &*parts.shared.manager;
        // The cache may be behind what this attempt has written already.
        let cached = parts.shared.caches.object(&self.resource, &key);
        let cached = cached.filter(|(cache, _)| !parts.tracker.with(|unseen| unseen.concerns(*cache, &key)));
        if let Some((_, cached)) = cached
            && let Ok(current) = serde_json::from_slice(&cached.json())
            && changes_nothing(&prepared.value, &current, manager, subresource)
        {
            parts.shared.figures.record(|figures| figures.writes.applies_left_out += 1);
            return Ok(cached.cast());
        }
        let namespace = prepared.namespace.as_deref();
        let target = self.target(namespace);
        let request = target.patch(&prepared.name, subresource, PatchType::Apply, manager, &prepared.value);
        let sending = Sending { operation: "apply", title, namespace, request };
        self.write(sending, |figures| &mut figures.applied).await
    }

    /// Creates an object; see [`Context::create`].
    pub async fn create(&self, object: &(impl Serialize + Sync)) -> Result<Obj<K>, WriteError> {
        let prepared = self.prepare("create", object)?;
        let namespace = prepared.namespace.as_deref();
        let request = self.target(namespace).create(&self.parts().shared.manager, &prepared.value);
        let sending = Sending { operation: "create", title: prepared.title(), namespace, request };
        self.write(sending, |figures| &mut figures.created).await
    }

    /// Patches an object.
    pub async fn patch(&self, key: &ObjectKey, patch: &Patch) -> Result<Obj<K>, WriteError> {
        self.patch_part(key, "", patch).await
    }

    /// Patches the status of an object.
    pub async fn patch_status(&self, key: &ObjectKey, patch: &Patch) -> Result<Obj<K>, WriteError> {
        self.patch_part(key, "status", patch).await
    }

    async fn patch_part(&self, key: &ObjectKey, subresource: &str, patch: &Patch) -> Result<Obj<K>, WriteError> {
        check_segment("name", key.name()).map_err(|reason| self.not_sent("patch", key, &reason))?;
        let patch = self.with_uid(key, patch);
        let (form, body) = match &*patch {
            Patch::Json(body) => (PatchType::Json, body),
            Patch::Merge(body) => (PatchType::Merge, body),
            Patch::Strategic(body) => (PatchType::Strategic, body),
        };
        let target = self.target(key.namespace());
        let request = target.patch(key.name(), subresource, form, &self.parts().shared.manager, body);
        let sending = Sending { operation: "patch", title: key.to_string(), namespace: key.namespace(), request };
        self.write(sending, |figures| &mut figures.patched).await
    }

    /// The uid that a write to this object names, if it is the object that is reconciled and
    /// another process may hold another object of its name.
    fn own_uid(&self, namespace: Option<&str>, name: &str) -> Option<String> {
        let ContextParts { shared, parent, .. } = self.parts();
        let own = &shared.resource;
        let is_own = shared.is_by_uid
            && (&own.group, &own.plural) == (&self.resource.group, &self.resource.plural)
            && (parent.key.namespace(), parent.key.name()) == (namespace, name);
        parent.uid.as_ref().filter(|_| is_own).map(ToString::to_string)
    }

    /// A patch that fails if another object has this name now.
    fn with_uid<'p>(&self, key: &ObjectKey, patch: &'p Patch) -> Cow<'p, Patch> {
        let Some(uid) = self.own_uid(key.namespace(), key.name()) else { return Cow::Borrowed(patch) };
        let mut patch = patch.clone();
        match &mut patch {
            Patch::Json(Value::Array(operations)) => {
                operations.insert(0, json!({"op": "test", "path": "/metadata/uid", "value": uid}));
            }
            Patch::Merge(Value::Object(object)) | Patch::Strategic(Value::Object(object)) => {
                let metadata = object.entry("metadata").or_insert_with(|| json!({}));
                if let Value::Object(metadata) = metadata {
                    metadata.insert("uid".to_owned(), uid.into());
                }
            }
            // The server refuses it.
            Patch::Json(_) | Patch::Merge(_) | Patch::Strategic(_) => {}
        }
        Cow::Owned(patch)
    }

    /// Deletes an object, if it has still this uid. Its dependents are deleted in the background.
    ///
    /// No error if it is gone.
    pub async fn delete<C>(&self, object: &Obj<C>) -> Result<(), WriteError> {
        self.delete_if(object, json!({ "uid": object.uid().map(ToString::to_string) })).await
    }

    /// Deletes an object, if it has still this uid and this version, or else it is a
    /// [conflict](WriteError::is_conflict).
    pub async fn delete_unchanged<C>(&self, object: &Obj<C>) -> Result<(), WriteError> {
        let (uid, version) = (object.uid().map(ToString::to_string), object.version().to_string());
        self.delete_if(object, json!({ "uid": uid, "resourceVersion": version })).await
    }

    async fn delete_if<C>(&self, object: &Obj<C>, preconditions: Value) -> Result<(), WriteError> {
        let key = object.key();
        check_segment("name", key.name()).map_err(|reason| self.not_sent("delete", key, &reason))?;
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background", "preconditions": preconditions,
        });
        let request = self.target(key.namespace()).delete(key.name(), &options);
        let gone = |unseen: &mut Unseen, cache: CacheId| {
            if let Some(uid) = object.uid() {
                unseen.deleted(cache, key.clone(), uid.clone());
            }
        };
        let record = |left: &Option<Obj<K>>, unseen: &mut Unseen, cache: CacheId| match left {
            Some(left) => unseen.wrote(cache, left.key().clone(), left.version().clone()),
            None => gone(unseen, cache),
        };
        let sending = Sending { operation: "delete", title: key.to_string(), namespace: key.namespace(), request };
        match self.send(sending, |figures| &mut figures.deleted, left_after_delete, record).await {
            Err(error) if error.is_not_found() => {
                let caches = self.parts().shared.caches.of(&self.resource);
                self.parts().tracker.with(|unseen| caches.into_iter().for_each(|cache| gone(unseen, cache)));
                Ok(())
            }
            other => other.map(drop),
        }
    }

    fn parts(&self) -> &'a ContextParts {
        &self.context.parts
    }

    fn target<'t>(&'t self, namespace: Option<&'t str>) -> Target<'t> {
        Target { resource: &self.resource, namespace }
    }

    fn not_sent(
        &self,
        operation: &'static str,
        object: &(impl ToString + ?Sized),
        reason: &(impl ToString + ?Sized),
    ) -> WriteError {
        WriteError::not_sent(operation, &self.resource, object.to_string(), reason.to_string())
    }

    fn prepare(&self, operation: &'static str, object: &impl Serialize) -> Result<Prepared, WriteError> {
        let (parts, none) = (self.parts(), "(an object that cannot be read)");
        let value = serde_json::to_value(object).map_err(|error| self.not_sent(operation, none, &error))?;
        let title = value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or(none).to_owned();
        let children = &parts.shared.children;
        let prepared =
            children.prepare(value, &self.resource, self.is_namespaced, &parts.parent, &parts.shared.resource);
        let prepared = prepared.map_err(|reason| self.not_sent(operation, &title, &reason))?;
        if let Some(namespace) = &prepared.namespace {
            check_segment("namespace", namespace).map_err(|reason| self.not_sent(operation, &title, &reason))?;
        }
        Ok(prepared)
    }

    /// Sends a write whose response is the object.
    async fn write(&self, sending: Sending<'_>, counter: Counter) -> Result<Obj<K>, WriteError> {
        let record = |written: &Obj<K>, unseen: &mut Unseen, cache: CacheId| {
            unseen.wrote(cache, written.key().clone(), written.version().clone());
        };
        self.send(sending, counter, |text| Obj::from_json(text).map_err(serde::de::Error::custom), record).await
    }

    /// Sends a write, reads the response and records for each cache what it must have.
    async fn send<T>(
        &self,
        sending: Sending<'_>,
        counter: Counter,
        read: impl Fn(String) -> Result<T, serde_json::Error>,
        record: impl Fn(&T, &mut Unseen, CacheId),
    ) -> Result<T, WriteError> {
        let (parts, Sending { operation, title, namespace, request }) = (self.parts(), sending);
        let request = request.map_err(|error| self.not_sent(operation, &title, &error))?;
        if parts.has_ended.load(Ordering::Acquire) {
            return Err(self.not_sent(operation, &title, "the attempt of its context has ended"));
        }
        let in_flight = parts.tracker.begin(&parts.shared.caches.of(&self.resource), namespace);
        parts.shared.figures.record(|figures| *counter(&mut figures.writes) += 1);
        let answered = parts.shared.writer.client().request_text(request).await;
        let error = match answered.and_then(|text| read(text).map_err(kube::Error::SerdeError)) {
            Ok(answer) => {
                in_flight.answered(|unseen, cache| record(&answer, unseen, cache));
                return Ok(answer);
            }
            Err(error) => error,
        };
        let is_refused = matches!(&error, kube::Error::Api(status) if is_refusal(status));
        if is_refused {
            in_flight.answered(|_, _| ());
        }
        parts.shared.figures.record(|figures| {
            let WriteFigures { refused, unknown, .. } = &mut figures.writes;
            *(if is_refused { refused } else { unknown }) += 1;
        });
        Err(WriteError::of_server(operation, &self.resource, title, error))
    }
}

/// A write that is to be sent.
struct Sending<'a> {
    operation: &'static str,
    /// The name of the object, for errors.
    title: String,
    namespace: Option<&'a str>,
    request: Result<Request<Vec<u8>>, kube::Error>,
}

/// Reads the response to a deletion: the object, if it remains for its finalizers or its grace
/// period.
fn left_after_delete<K>(text: String) -> Result<Option<Obj<K>>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Answer {
        kind: Option<String>,
        #[serde(default)]
        metadata: AnswerMeta,
    }
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase")]
    struct AnswerMeta {
        deletion_timestamp: Option<String>,
        deletion_grace_period_seconds: Option<i64>,
        #[serde(default)]
        finalizers: Vec<String>,
    }
    let Answer { kind, metadata } = serde_json::from_str(&text)?;
    let has_grace = metadata.deletion_grace_period_seconds.is_some_and(|grace| grace > 0);
    let remains = metadata.deletion_timestamp.is_some() && (has_grace || !metadata.finalizers.is_empty());
    if kind.as_deref() == Some("Status") || !remains {
        return Ok(None);
    }
    Obj::from_json(text).map(Some).map_err(serde::de::Error::custom)
}
