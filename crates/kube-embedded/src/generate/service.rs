//! Generation of services of deployments and their endpoint slices.

use super::layout::{Block, NodeNames, Owner, PodPlace};
use super::pod::{Pod, template};
use super::rng::mix;
use super::rollout::version;
use super::sample::Sample;
use super::workload::Workload;
use super::writer::Writer;

/// The service of the deployment with this index.
pub(super) fn service(seed: u64, index: u64) -> Sample {
    service_of(seed, index, &template(seed, Owner::deployment(index)))
}

/// The service of the deployment with this index and template.
pub(super) fn service_of(seed: u64, index: u64, workload: &Workload) -> Sample {
    let mut rng = workload.owner.rng(seed ^ 0x7376_6300);
    let address = {
        let scattered = (index.wrapping_mul(mix(seed ^ 5) | 1) ^ mix(seed ^ 6)) & 0xf_ffff;
        format!("172.{}.{}.{}", 16 + (scattered >> 16), scattered >> 8 & 0xff, scattered & 0xff)
    };
    let mut w = Writer::with_capacity(1_536);
    w.object(|w| {
        w.text("kind", "Service");
        w.text("apiVersion", "v1");
        w.object_at("metadata", |w| {
            w.text("name", &workload.name);
            w.text("namespace", &workload.namespace);
            w.given("uid", &service_uid(seed, workload));
            w.given("resourceVersion", &version(workload.created).to_string());
            w.time("creationTimestamp", workload.created);
            w.texts("labels", [workload.selector()]);
            w.array_at("managedFields", |w| {
                w.object(|w| {
                    w.text("manager", "argocd-controller");
                    w.text("operation", "Apply");
                    w.text("apiVersion", "v1");
                    w.time("time", workload.created);
                    w.text("fieldsType", "FieldsV1");
                    w.object_at("fieldsV1", |w| {
                        w.object_at("f:metadata", |w| {
                            w.object_at("f:labels", |w| w.owned(workload.selector().0));
                        });
                        w.raw("f:spec", r#"{"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:name":{},"f:port":{},"f:targetPort":{}}},"f:selector":{}}"#);
                    });
                });
            });
        });
        w.object_at("spec", |w| {
            w.array_at("ports", |w| {
                w.object(|w| {
                    w.text("name", "http");
                    w.text("protocol", "TCP");
                    w.number("port", 80);
                    w.text("targetPort", "http");
                });
            });
            w.texts("selector", [workload.selector()]);
            w.text("clusterIP", &address);
            w.array_at("clusterIPs", |w| w.item(&address));
            w.text("type", "ClusterIP");
            w.text("sessionAffinity", if rng.percent(10) { "ClientIP" } else { "None" });
            w.raw("ipFamilies", r#"["IPv4"]"#);
            w.text("ipFamilyPolicy", "SingleStack");
            w.text("internalTrafficPolicy", "Cluster");
        });
        w.raw("status", r#"{"loadBalancer":{}}"#);
    });
    Sample::namespaced("/api/v1", "services", &workload.namespace, &workload.name, w)
}

/// The endpoint slice of the service with this index, with the addresses of the deployment's pods.
pub(super) fn endpoint_slice(seed: u64, index: u64) -> Sample {
    let owner = Owner::deployment(index);
    let pods = match owner {
        Owner::Deployment { block, role } => Block::of(seed, block).pods_of_deployment(role),
        _ => 0..0,
    };
    let workload = template(seed, owner);
    let pods = pods.map(|pod| Pod::new(seed, &workload, pod, PodPlace::of_pod(seed, pod), 0));
    endpoint_slice_of(seed, &workload, pods)
}

/// The endpoint slice of a template's service, with these pods.
pub(super) fn endpoint_slice_of<'a>(seed: u64, workload: &Workload, pods: impl Iterator<Item = Pod<'a>>) -> Sample {
    let mut rng = workload.owner.rng(seed ^ 0x6570_7300);
    let name = format!("{}-{}", workload.name, rng.suffix(5));
    let mut w = Writer::with_capacity(4_096);
    w.object(|w| {
        w.text("kind", "EndpointSlice");
        w.text("apiVersion", "discovery.k8s.io/v1");
        w.object_at("metadata", |w| {
            w.text("name", &name);
            w.joined("generateName", &[&workload.name, "-"]);
            w.text("namespace", &workload.namespace);
            w.given("uid", &rng.uuid());
            w.given("resourceVersion", &version(workload.rolled_out + 60).to_string());
            w.number("generation", rng.within(3, 900));
            w.time("creationTimestamp", workload.created);
            w.texts(
                "labels",
                [
                    ("endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io"),
                    ("kubernetes.io/service-name", workload.name.as_str()),
                ],
            );
            w.array_at("ownerReferences", |w| {
                w.object(|w| {
                    w.text("apiVersion", "v1");
                    w.text("kind", "Service");
                    w.text("name", &workload.name);
                    w.text("uid", &service_uid(seed, workload));
                    w.truth("controller", true);
                    w.truth("blockOwnerDeletion", true);
                });
            });
        });
        w.text("addressType", "IPv4");
        w.array_at("endpoints", |w| {
            for pod in pods {
                w.object(|w| endpoint(w, &pod, &pod.node));
            }
        });
        w.array_at("ports", |w| {
            w.object(|w| {
                w.text("name", "http");
                w.text("protocol", "TCP");
                w.number("port", workload.containers[0].ports[0].1);
            });
        });
    });
    Sample::namespaced("/apis/discovery.k8s.io/v1", "endpointslices", &workload.namespace, &name, w)
}

fn endpoint(w: &mut Writer, pod: &Pod<'_>, node: &NodeNames) {
    w.array_at("addresses", |w| w.item(&pod.ip));
    w.raw("conditions", r#"{"ready":true,"serving":true,"terminating":false}"#);
    w.object_at("targetRef", |w| {
        w.text("kind", "Pod");
        w.text("namespace", &pod.workload.namespace);
        w.text("name", &pod.name);
        w.text("uid", &pod.uid);
    });
    w.text("nodeName", &node.name);
    w.text("zone", "eu-central-1a");
}

fn service_uid(seed: u64, workload: &Workload) -> String {
    workload.owner.rng(seed ^ 0x7376_6301).uuid()
}
