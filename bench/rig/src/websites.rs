//! The work of the controllers that are compared: a website has a deployment and a service, and its
//! status says what was reconciled. `go/websites` does the same.

use k8s_openapi::api::apps::v1::Deployment;
use kube::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The field manager of all controllers.
pub const MANAGER: &str = "websites";

/// The number of objects that every controller reconciles at the same time.
pub const WORKERS: usize = 4;

/// What a website is to be.
#[derive(CustomResource, Serialize, Deserialize, Debug, Clone)]
#[kube(
    group = "example.com",
    version = "v1",
    kind = "Website",
    namespaced,
    status = "WebsiteStatus",
    schema = "disabled"
)]
pub struct WebsiteSpec {
    pub image: String,
    pub replicas: i32,
    pub host: String,
}

/// What has become of it.
#[derive(Serialize, Deserialize, Debug, Clone)]
#[serde(rename_all = "camelCase")]
pub struct WebsiteStatus {
    pub observed_generation: i64,
    #[serde(default)]
    pub ready_replicas: i32,
    pub url: String,
}

/// The definition of the kind.
pub fn definition() -> Value {
    let status = json!({
        "observedGeneration": {"type": "integer"}, "readyReplicas": {"type": "integer"}, "url": {"type": "string"},
    });
    let spec = json!({"image": {"type": "string"}, "replicas": {"type": "integer"}, "host": {"type": "string"}});
    let schema = json!({
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": spec},
            "status": {"type": "object", "properties": status},
        },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "websites.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "websites", "kind": "Website"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}},
            }],
        },
    })
}

/// The website with this number.
pub fn website(nth: u64) -> Value {
    json!({
        "apiVersion": "example.com/v1", "kind": "Website",
        "metadata": {"name": format!("site-{nth:06}"), "namespace": namespace(nth)},
        "spec": {"image": image(1), "replicas": 1 + nth % 3, "host": format!("site-{nth}.example.com")},
    })
}

/// The namespace of the website with this number.
pub fn namespace(nth: u64) -> String {
    format!("customer-{:02}", nth % 50)
}

/// The image of a website in this generation.
pub fn image(generation: i64) -> String {
    format!("registry.example.com/web:{generation}")
}

/// The deployment of a website, without its owner.
pub fn deployment(name: &str, spec: &WebsiteSpec) -> Value {
    let WebsiteSpec { image, replicas, host } = spec;
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{
                    "name": "web", "image": image,
                    "env": [{"name": "HOST", "value": host}],
                    "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
                    "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
                }]},
            },
        },
    })
}

/// The service of a website, without its owner.
pub fn service(name: &str) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "labels": labels},
        "spec": {
            "selector": labels, "ports": [{"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}],
        },
    })
}

/// The status of a website of this generation with this deployment.
pub fn status(spec: &WebsiteSpec, generation: i64, deployment: &Deployment) -> WebsiteStatus {
    WebsiteStatus {
        observed_generation: generation,
        ready_replicas: deployment.status.as_ref().and_then(|status| status.ready_replicas).unwrap_or(0),
        url: format!("https://{}", spec.host),
    }
}
