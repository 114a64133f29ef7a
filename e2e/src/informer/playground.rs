//! Unique namespaces and kinds of a run.

use std::collections::BTreeMap;

use http::Request;
use http::header::ACCEPT;
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use serde_json::{Value, json};

use super::deadline::eventually;
use crate::Error;
use crate::target::Target;

/// The label of all cluster-scoped objects of a run.
const LABEL: &str = "kube-e2e-run";

/// A cluster and the objects of this run.
#[derive(Clone)]
pub(crate) struct Playground {
    pub(super) target: Target,
    /// A client with all permissions.
    pub(crate) client: Client,
    /// Distinguishes the names of this run from those of other runs.
    pub(super) run: String,
}

impl Playground {
    pub(crate) fn new(target: &Target) -> Result<Self, Error> {
        let mut name = [0; 4];
        ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut name)
            .map_err(|error| format!("a random name: {error}"))?;
        let run = format!("e2e-{:08x}", u32::from_be_bytes(name));
        Ok(Self { client: target.client()?, target: target.clone(), run })
    }

    /// Creates a namespace.
    pub(crate) async fn namespace(&self, stem: &str) -> Result<String, Error> {
        let name = format!("{}-{stem}", self.run);
        self.make(&builtin("", "v1", "Namespace", "namespaces"), json!({"metadata": {"name": name}})).await?;
        Ok(name)
    }

    /// Creates several namespaces.
    pub(super) async fn namespaces(&self, stem: &str, count: usize) -> Result<Vec<String>, Error> {
        let mut all = Vec::new();
        for nth in 0..count {
            all.push(self.namespace(&format!("{stem}-{nth}")).await?);
        }
        Ok(all)
    }

    /// Creates a cluster-scoped object, which is deleted at the end.
    pub(super) async fn make(&self, resource: &ApiResource, mut body: Value) -> Result<Value, Error> {
        body["apiVersion"] = json!(resource.api_version);
        body["kind"] = json!(resource.kind);
        body["metadata"]["labels"][LABEL] = json!(self.run);
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), resource);
        let made = api.create(&PostParams::default(), &serde_json::from_value(body)?).await?;
        Ok(serde_json::to_value(made)?)
    }

    /// Defines a kind `Widget` in a group of this run, and waits until it is served.
    pub(super) async fn define(&self, stem: &str) -> Result<ApiResource, Error> {
        let group = format!("{stem}.{}.example.com", self.run);
        let definition = json!({
            "metadata": {"name": format!("widgets.{group}")},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        });
        self.make(&definitions(), definition).await?;
        let widgets = builtin(&group, "v1", "Widget", "widgets");
        eventually("a new kind is served", async || self.list(&widgets, &Query::default()).await).await?;
        Ok(widgets)
    }

    /// Creates a role for reading config maps.
    pub(super) async fn reader_role(&self, name: &str) -> Result<(), Error> {
        let role = json!({
            "metadata": {"name": name},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch"]}],
        });
        self.make(&builtin(RBAC, "v1", "ClusterRole", "clusterroles"), role).await?;
        Ok(())
    }

    /// Binds a role to a subject.
    pub(super) async fn bind(&self, name: &str, mut subject: Value) -> Result<(), Error> {
        if subject["kind"] != "ServiceAccount" {
            subject["apiGroup"] = json!(RBAC);
        }
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [subject],
        });
        self.make(&bindings(), binding).await?;
        Ok(())
    }

    /// Lists the latest state of all objects of a resource.
    pub(super) async fn list(&self, resource: &ApiResource, query: &Query) -> Result<Vec<Value>, String> {
        match &query.namespaces {
            None => self.list_in(resource, None, query).await,
            Some(namespaces) => {
                let mut all = Vec::new();
                for namespace in namespaces {
                    all.extend(self.list_in(resource, Some(namespace), query).await?);
                }
                Ok(all)
            }
        }
    }

    async fn list_in(
        &self,
        resource: &ApiResource,
        namespace: Option<&str>,
        query: &Query,
    ) -> Result<Vec<Value>, String> {
        let path = <DynamicObject as kube::Resource>::url_path(resource, namespace);
        let parameters = ListParams {
            label_selector: query.labels.map(str::to_owned),
            field_selector: query.fields.map(str::to_owned),
            ..ListParams::default()
        };
        let mut request = kube::core::Request::new(path).list(&parameters).map_err(|error| error.to_string())?;
        let accept = match query.content {
            Content::Everything => "application/json",
            Content::Metadata => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
        };
        request.headers_mut().insert(ACCEPT, http::HeaderValue::from_static(accept));
        let text = self.client.request_text(request).await.map_err(|error| error.to_string())?;
        let mut list: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        match list["items"].take() {
            Value::Array(items) => Ok(items),
            _ => Ok(Vec::new()),
        }
    }

    /// Sends a request and returns the JSON response.
    pub(super) async fn ask(&self, method: &str, path: &str, body: &Value) -> Result<Value, Error> {
        let mut request = Request::builder().method(method).uri(path);
        request = request.header(
            "content-type",
            match method {
                "PATCH" => "application/merge-patch+json",
                _ => "application/json",
            },
        );
        let body = if body.is_null() { Vec::new() } else { serde_json::to_vec(body)? };
        Ok(serde_json::from_str(&self.client.request_text(request.body(body)?).await?)?)
    }

    /// Deletes the cluster-scoped objects of this run, as far as possible.
    pub(crate) async fn clean_up(&self) {
        let ours = ListParams::default().labels(&format!("{LABEL}={}", self.run));
        for resource in [
            builtin("", "v1", "Namespace", "namespaces"),
            definitions(),
            bindings(),
            builtin(RBAC, "v1", "ClusterRole", "clusterroles"),
        ] {
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
            for object in api.list(&ours).await.map(|list| list.items).unwrap_or_default() {
                let name = object.metadata.name.unwrap_or_default();
                if let Err(error) = api.delete(&name, &DeleteParams::default()).await {
                    eprintln!("e2e: {} {name} could not be deleted: {error}", resource.plural);
                }
            }
        }
    }
}

const RBAC: &str = "rbac.authorization.k8s.io";

/// Which objects of a resource are selected.
#[derive(Debug, Clone, Default)]
pub(super) struct Query {
    /// The namespaces. `None` for all.
    pub(super) namespaces: Option<Vec<String>>,
    pub(super) labels: Option<&'static str>,
    pub(super) fields: Option<&'static str>,
    pub(super) content: Content,
}

/// Which part of each object is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Content {
    #[default]
    Everything,
    Metadata,
}

/// The API resource of a built-in or defined kind.
pub(super) fn builtin(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

pub(super) fn definitions() -> ApiResource {
    builtin("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
}

pub(super) fn bindings() -> ApiResource {
    builtin(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings")
}

pub(super) fn config_maps() -> ApiResource {
    builtin("", "v1", "ConfigMap", "configmaps")
}

/// Objects by key, each [bare].
pub(super) fn by_key(objects: Vec<Value>) -> BTreeMap<String, Value> {
    objects.into_iter().map(|object| (key_of(&object), bare(object))).collect()
}

/// Removes the type fields, which list items omit, and null creation timestamps, which older
/// servers write into the JSON of templates but which cannot be distinguished in protobuf.
pub(super) fn bare(mut object: Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.remove("kind");
        fields.remove("apiVersion");
    }
    drop_null_times(&mut object);
    object
}

fn drop_null_times(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| name != "creationTimestamp" || !value.is_null());
            fields.values_mut().for_each(drop_null_times);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_null_times),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn key_of(object: &Value) -> String {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    match text("namespace") {
        "" => text("name").to_owned(),
        namespace => format!("{namespace}/{}", text("name")),
    }
}

pub(super) fn version_of(object: &Value) -> String {
    object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned()
}
