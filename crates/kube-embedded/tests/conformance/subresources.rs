//! Subresources of pods, service accounts and certificate signing requests.

pub(crate) mod certificates;
pub(crate) mod evictions;
pub(crate) mod pods;
pub(crate) mod tokens;

use crate::harness::{Api, Namespace};
use serde_json::{Value, json};

const DONE: &str = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\",\"code\":201}\n";

/// Creates a pod with one container.
async fn pod(api: &Api, ns: &Namespace, name: &str, resources: Value) -> Value {
    let container = json!({"name": "c", "image": "i", "resources": resources});
    let body = json!({"metadata": {"name": name, "labels": {"app": "x"}}, "spec": {"containers": [container]}});
    api.post(&ns.path("pods"), body).await.is(201).json()
}

fn binding(pod: &str, node: &str) -> Value {
    json!({"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}})
}
