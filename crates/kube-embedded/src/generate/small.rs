//! Generation of small, numerous objects (events and custom resources) and of large ones (config
//! maps).

use super::layout::{NOW, Owner, PodPlace};
use super::pod::{Pod, template};
use super::rng::{Domain, SampleRng};
use super::rollout::version;
use super::sample::Sample;
use super::words;
use super::writer::Writer;

/// An event about the pod with the same index.
pub(super) fn event(seed: u64, index: u64) -> Sample {
    let mut rng = SampleRng::new(seed, Domain::Event, index);
    let place = PodPlace::of_pod(seed, index);
    let workload = template(seed, place.owner);
    let pod = Pod::new(seed, &workload, index, place, 0);
    let (reason, kind, message) = rng.pick(words::EVENT_REASONS);
    let name = format!("{}.{}", pod.name, rng.hex(16));
    let first = NOW - rng.below(3_600) as i64;
    let count = if kind == "Warning" { rng.within(1, 400) } else { 1 };
    let mut w = Writer::with_capacity(1_536);
    w.object(|w| {
        w.text("kind", "Event");
        w.text("apiVersion", "v1");
        w.object_at("metadata", |w| {
            w.text("name", &name);
            w.text("namespace", &workload.namespace);
            w.given("uid", &rng.uuid());
            w.given("resourceVersion", &version(first).to_string());
            w.time("creationTimestamp", first);
            w.array_at("managedFields", |w| {
                super::managed_fields::entry(w, "kubelet", "v1", first, None, |w| {
                    [
                        "count",
                        "firstTimestamp",
                        "involvedObject",
                        "lastTimestamp",
                        "message",
                        "reason",
                        "source",
                        "type",
                    ]
                    .iter()
                    .for_each(|each| w.owned(each));
                });
            });
        });
        w.object_at("involvedObject", |w| {
            w.text("kind", "Pod");
            w.text("namespace", &workload.namespace);
            w.text("name", &pod.name);
            w.text("uid", &pod.uid);
            w.text("apiVersion", "v1");
            w.joined("fieldPath", &["spec.containers{", &workload.containers[0].name, "}"]);
        });
        w.text("reason", reason);
        w.text("message", message);
        w.object_at("source", |w| {
            w.text("component", "kubelet");
            w.text("host", &pod.node.name);
        });
        w.time("firstTimestamp", first);
        w.time("lastTimestamp", first + count as i64 - 1);
        w.number("count", count);
        w.text("type", kind);
        w.raw("eventTime", "null");
        w.text("reportingComponent", "kubelet");
        w.text("reportingInstance", &pod.node.name);
    });
    Sample::namespaced("/api/v1", "events", &workload.namespace, &name, w)
}

/// A `Certificate` of a fictional group, about 1 KB. All keys are sorted, as in custom resources.
pub(super) fn custom_resource(seed: u64, index: u64) -> Sample {
    let owner = Owner::deployment(index);
    let mut rng = SampleRng::new(seed, Domain::CustomResource, index);
    let (service, namespace) = (owner.name(seed), owner.namespace(seed));
    let name = format!("{service}-tls");
    let issued = NOW - rng.below(60 * 86_400) as i64;
    let mut w = Writer::with_capacity(1_536);
    w.object(|w| {
        w.text("apiVersion", "pki.acme.com/v1");
        w.text("kind", "Certificate");
        w.object_at("metadata", |w| {
            w.time("creationTimestamp", issued - 90 * 86_400);
            w.number("generation", rng.within(1, 5));
            w.texts("labels", [("app.kubernetes.io/managed-by", "pki-operator"), ("app.kubernetes.io/name", &service)]);
            w.text("name", &name);
            w.text("namespace", &namespace);
            w.given("resourceVersion", &version(issued).to_string());
            w.given("uid", &rng.uuid());
        });
        w.object_at("spec", |w| {
            w.array_at("dnsNames", |w| {
                for suffix in ["", ".svc", ".svc.cluster.local"] {
                    w.item(&format!("{service}.{namespace}{suffix}"));
                }
            });
            w.text("duration", "2160h0m0s");
            w.text("issuer", rng.pick(&["internal-ca", "letsencrypt", "vault"]));
            w.text("privateKey", rng.pick(&["ECDSA-256", "RSA-2048", "Ed25519"]));
            w.joined("secretName", &[&name, "-", &rng.suffix(5)]);
        });
        w.object_at("status", |w| {
            w.array_at("conditions", |w| {
                w.object(|w| {
                    w.time("lastTransitionTime", issued);
                    w.text("message", "Certificate is up to date and has not expired");
                    w.text("reason", "Ready");
                    w.text("status", "True");
                    w.text("type", "Ready");
                });
            });
            w.text("fingerprint", &rng.sha256());
            w.time("notAfter", issued + 90 * 86_400);
            w.time("notBefore", issued);
            w.number("revision", rng.within(1, 30));
            w.text("serialNumber", &rng.hex(32));
        });
    });
    Sample::namespaced("/apis/pki.acme.com/v1", "certificates", &namespace, &name, w)
}

/// A config map of about `bytes` bytes, containing configuration files like those of charts and
/// dashboards.
pub(super) fn config_map(seed: u64, index: u64, bytes: usize) -> Sample {
    let owner = Owner::deployment(index);
    let mut rng = SampleRng::new(seed, Domain::ConfigMap, index);
    let namespace = owner.namespace(seed);
    let name = format!("{}-config", owner.name(seed));
    let mut w = Writer::with_capacity(bytes + 1_024);
    w.object(|w| {
        w.text("kind", "ConfigMap");
        w.text("apiVersion", "v1");
        w.object_at("metadata", |w| {
            w.text("name", &name);
            w.text("namespace", &namespace);
            w.given("uid", &rng.uuid());
            let written = NOW - rng.below(28 * 86_400) as i64;
            w.given("resourceVersion", &version(written).to_string());
            w.time("creationTimestamp", written);
        });
        w.object_at("data", |w| {
            let files = bytes.div_ceil(32_768).max(1);
            for file in 0..files {
                w.text(&format!("rules-{file:03}.yaml"), &rules(&mut rng, bytes / files));
            }
        });
    });
    Sample::namespaced("/api/v1", "configmaps", &namespace, &name, w)
}

fn rules(rng: &mut SampleRng, bytes: usize) -> String {
    let mut out = String::with_capacity(bytes + 256);
    out.push_str("groups:\n");
    while out.len() < bytes {
        let service = rng.pick(&words::COMPONENTS);
        let role = rng.pick(words::DEPLOYMENT_ROLES);
        let (flag, largest) = rng.pick(words::FLAGS);
        out.push_str(&format!(
            "  - service: {service}-{role}\n    route: /v{}/{service}/{}\n    {flag}: {}\n    owner: {}\n",
            rng.within(1, 4),
            rng.suffix(8),
            rng.within(1, largest),
            rng.pick(words::TEAMS),
        ));
    }
    out
}
