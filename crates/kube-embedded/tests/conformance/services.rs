//! Services: the server's own, addresses and node ports.

use crate::harness::{Api, Case, Namespace, case, failure};
use serde_json::{Value, json};
use std::collections::BTreeSet;

pub(crate) const CASES: &[Case] = &[
    case!(the_server_has_a_service, "default/kubernetes is there from the start, at the first address"),
    case!(addresses_are_checked, "a clusterIP that is taken or outside of the network is a 422"),
    case!(node_ports_are_allocated, "NodePort: a port for each number, which goes with the type"),
    case!(node_ports_are_checked, "a node port that is taken, out of range or of the wrong type is a 422"),
    case!(
        health_checks_have_a_port,
        "a load balancer of local endpoints: healthCheckNodePort, allocated and immutable"
    ),
    case!(
        no_two_services_get_one_port,
        "services that are created at the same time have different ports and addresses"
    ),
];

async fn the_server_has_a_service(api: Api) {
    let service = api.get("/api/v1/namespaces/default/services/kubernetes").await.is(200).json();
    assert_eq!(service["metadata"]["labels"], json!({"component": "apiserver", "provider": "kubernetes"}));
    let mut spec = service["spec"].clone();
    assert!(spec["ports"][0]["targetPort"].as_i64() > Some(0), "{spec}");
    spec["ports"][0]["targetPort"] = json!(6443);
    let port = json!({"name": "https", "protocol": "TCP", "port": 443, "targetPort": 6443});
    assert_eq!(
        spec,
        json!({
            "type": "ClusterIP", "clusterIP": "10.96.0.1", "clusterIPs": ["10.96.0.1"], "ports": [port],
            "internalTrafficPolicy": "Cluster", "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack",
            "sessionAffinity": "None",
        })
    );
}

async fn addresses_are_checked(api: Api) {
    let ns = api.namespace().await;
    for (address, why) in [
        ("10.96.0.1", "provided IP is already allocated"),
        ("192.0.2.7", "the provided network does not match the current range"),
    ] {
        let answer = create(&api, &ns, "a", json!({"clusterIP": address, "ports": [{"port": 80}]})).await;
        answer.says(
            422,
            &invalid(
                "a",
                "spec.clusterIPs",
                &format!(r#"Invalid value: ["{address}"]: failed to allocate IP {address}: {why}"#),
            ),
        );
    }
    create(&api, &ns, "none", json!({"clusterIP": "None", "ports": [{"port": 80}]})).await.is(201);
}

async fn node_ports_are_allocated(api: Api) {
    let ns = api.namespace().await;
    let ports = json!([
        {"name": "tcp", "port": 53, "protocol": "TCP"}, {"name": "udp", "port": 53, "protocol": "UDP"},
        {"name": "other", "port": 80},
    ]);
    let made = create(&api, &ns, "a", json!({"type": "NodePort", "ports": ports})).await.is(201).json();
    let node_ports = |service: &Value| -> Vec<Option<i64>> {
        service["spec"]["ports"].as_array().unwrap().iter().map(|port| port["nodePort"].as_i64()).collect()
    };
    let allocated = node_ports(&made);
    assert!(allocated.iter().all(|port| port.is_some_and(|port| (30_000..=32_767).contains(&port))), "{made}");
    assert_eq!(allocated[0], allocated[1]);
    assert_ne!(allocated[0], allocated[2]);
    // What an update leaves out is kept.
    let mut sent = made.clone();
    for port in sent["spec"]["ports"].as_array_mut().unwrap() {
        port.as_object_mut().unwrap().remove("nodePort");
    }
    let path = ns.path("services/a");
    assert_eq!(node_ports(&api.put(&path, &sent).await.is(200).json()), allocated);
    let patch = json!({"spec": {"type": "ClusterIP"}});
    let changed = api.patch(&path, "merge-patch", patch).await.is(200).json();
    assert_eq!(node_ports(&changed), [None, None, None]);
    assert_eq!(changed["spec"].get("externalTrafficPolicy"), None);
}

async fn node_ports_are_checked(api: Api) {
    let ns = api.namespace().await;
    let with = |kind: &str, node_port: i64| json!({"type": kind, "ports": [{"port": 80, "nodePort": node_port}]});
    create(&api, &ns, "a", with("NodePort", 80)).await.says(
        422,
        &invalid(
            "a",
            "spec.ports[0].nodePort",
            "Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767",
        ),
    );
    let made = create(&api, &ns, "a", json!({"type": "LoadBalancer", "ports": [{"port": 80}]})).await.is(201).json();
    let taken = made["spec"]["ports"][0]["nodePort"].as_i64().expect("a load balancer has node ports");
    create(&api, &ns, "b", with("NodePort", taken)).await.says(
        422,
        &invalid("b", "spec.ports[0].nodePort", &format!("Invalid value: {taken}: provided port is already allocated")),
    );
    let refused = create(&api, &ns, "b", with("ClusterIP", taken)).await;
    let forbidden = "Forbidden: may not be used when `type` is 'ClusterIP'";
    refused.says(422, &failed("b", "FieldValueForbidden", "spec.ports[0].nodePort", forbidden));
    // The port of a deleted service is free again.
    api.delete(&ns.path("services/a")).await.is(200);
    create(&api, &ns, "b", with("NodePort", taken)).await.is(201);
}

async fn health_checks_have_a_port(api: Api) {
    let ns = api.namespace().await;
    let spec = json!({"type": "LoadBalancer", "externalTrafficPolicy": "Local", "ports": [{"port": 80}]});
    let made = create(&api, &ns, "a", spec.clone()).await.is(201).json();
    let port = made["spec"]["healthCheckNodePort"].as_i64().expect("a port for health checks");
    assert!((30_000..=32_767).contains(&port) && made["spec"]["ports"][0]["nodePort"] != port, "{made}");
    let with = |number: i64| {
        let mut spec = spec.clone();
        spec["healthCheckNodePort"] = number.into();
        spec
    };
    for (number, why) in [
        (40_000, "provided port is not in the valid range. The range of valid ports is 30000-32767"),
        (port, "provided port is already allocated"),
    ] {
        let why = format!("failed to allocate requested HealthCheck NodePort {number}: {why}");
        let message = format!(
            r#""message":"Internal error occurred: {why}","reason":"InternalError","details":{{"causes":[{{"message":"{why}"}}]}},"code":500"#
        );
        create(&api, &ns, "b", with(number)).await.says(500, &failure(&message));
    }
    // It is kept when left out, must not change, and goes with the policy.
    let path = ns.path("services/a");
    let patch = async |spec: Value| api.patch(&path, "merge-patch", json!({"spec": spec})).await;
    let kept = patch(json!({"healthCheckNodePort": null})).await.is(200).json();
    assert_eq!(kept["spec"]["healthCheckNodePort"], port);
    let other = if port == 30_000 { 30_001 } else { 30_000 };
    let refused = patch(json!({"healthCheckNodePort": other})).await;
    refused.says(422, &failed("a", "FieldValueForbidden", "spec.healthCheckNodePort", "Forbidden: field is immutable"));
    let changed = patch(json!({"externalTrafficPolicy": "Cluster"})).await.is(200).json();
    assert_eq!(changed["spec"].get("healthCheckNodePort"), None);
}

async fn no_two_services_get_one_port(api: Api) {
    let ns = api.namespace().await;
    let names: Vec<String> = (0..12).map(|number| format!("a{number}")).collect();
    let spec = json!({"type": "NodePort", "ports": [{"port": 80}]});
    let created = names.iter().map(|name| create(&api, &ns, name, spec.clone()));
    let made = futures_util::future::join_all(created).await;
    let (mut ports, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    for made in made {
        let spec = made.is(201).json()["spec"].clone();
        ports.insert(spec["ports"][0]["nodePort"].as_i64());
        addresses.insert(spec["clusterIP"].to_string());
    }
    assert_eq!((ports.len(), addresses.len()), (names.len(), names.len()));
}

async fn create(api: &Api, ns: &Namespace, name: &str, spec: Value) -> crate::harness::Answer {
    api.post(&ns.path("services"), json!({"metadata": {"name": name}, "spec": spec})).await
}

fn invalid(name: &str, field: &str, message: &str) -> String {
    failed(name, "FieldValueInvalid", field, message)
}

fn failed(name: &str, reason: &str, field: &str, message: &str) -> String {
    let message = message.replace('"', "\\\"");
    failure(&format!(
        r#""message":"Service \"{name}\" is invalid: {field}: {message}","reason":"Invalid","details":{{"name":"{name}","kind":"Service","causes":[{{"reason":"{reason}","message":"{message}","field":"{field}"}}]}},"code":422"#
    ))
}
