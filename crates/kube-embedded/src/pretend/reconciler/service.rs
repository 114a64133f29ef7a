//! The endpoint slice controller: maintains the addresses of the pods of a service.

use serde_json::{Value, json};

use super::book::{Book, MANAGER};
use super::part::{is_ending, is_over, is_ready, items, name, text};
use crate::pretend::write::Verb;

pub(super) const SERVICE: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const CONTROLLER: &str = "endpointslice-controller.k8s.io";

/// The pod selector of a service. `None` if it has none.
pub(super) fn selector(service: &Value) -> Option<Vec<(&str, &str)>> {
    let selector = service.pointer("/spec/selector")?.as_object().filter(|selector| !selector.is_empty())?;
    let external = text(service, "/spec/type") == "ExternalName";
    (!external).then(|| selector.iter().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))).collect())
}

/// Updates the endpoint slice of a service, given its pods and its existing slices.
pub(super) fn reconcile(service: &Value, pods: &[Value], slices: &[Value], book: &mut Book<'_>) {
    if is_ending(service) {
        return;
    }
    let own = slices.iter().find(|slice| slice["metadata"]["labels"][MANAGED_BY] == CONTROLLER && !is_ending(slice));
    let mut pods: Vec<&Value> =
        pods.iter().filter(|pod| !text(pod, "/status/podIP").is_empty() && !is_over(pod)).collect();
    pods.sort_by_key(|pod| name(pod));
    let endpoints: Vec<Value> = pods.iter().map(|pod| endpoint(pod)).collect();
    let ports: Vec<Value> = items(service, "/spec/ports").iter().filter_map(|port| slice_port(port, &pods)).collect();
    let verb = match own {
        Some(own) => {
            if items(own, "/endpoints") == endpoints && items(own, "/ports") == ports {
                return;
            }
            let mut slice = own.clone();
            slice["endpoints"] = json!(endpoints);
            slice["ports"] = json!(ports);
            Verb::Update(slice)
        }
        None => Verb::Create(json!({
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": format!("{}-{}", name(service), book.suffix()),
                "generateName": format!("{}-", name(service)),
                "namespace": service["metadata"]["namespace"],
                "labels": {MANAGED_BY: CONTROLLER, SERVICE: name(service)},
                "ownerReferences": [{
                    "apiVersion": "v1", "kind": "Service", "name": name(service), "uid": service["metadata"]["uid"],
                    "controller": true, "blockOwnerDeletion": true,
                }],
            },
            "addressType": "IPv4",
            "endpoints": endpoints,
            "ports": ports,
        })),
    };
    book.write(MANAGER, verb);
}

fn endpoint(pod: &Value) -> Value {
    let (serving, terminating) = (is_ready(pod), is_ending(pod));
    let metadata = &pod["metadata"];
    json!({
        "addresses": [text(pod, "/status/podIP")],
        "conditions": {"ready": serving && !terminating, "serving": serving, "terminating": terminating},
        "nodeName": text(pod, "/spec/nodeName"),
        "targetRef": {"kind": "Pod", "namespace": metadata["namespace"], "name": metadata["name"], "uid": metadata["uid"]},
    })
}

/// Resolves a service port to a pod port. `None` if its name is unknown to all pods.
fn slice_port(port: &Value, pods: &[&Value]) -> Option<Value> {
    let number = match &port["targetPort"] {
        Value::Null => port["port"].clone(),
        Value::String(wanted) => {
            let containers = pods.iter().flat_map(|pod| items(pod, "/spec/containers"));
            let mut ports = containers.flat_map(|container| items(container, "/ports"));
            ports.find(|known| known["name"] == wanted.as_str())?["containerPort"].clone()
        }
        number => number.clone(),
    };
    let protocol = port["protocol"].as_str().unwrap_or("TCP");
    Some(json!({"name": port["name"].as_str().unwrap_or_default(), "port": number, "protocol": protocol}))
}
