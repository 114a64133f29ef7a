//! Generation of nodes, as the kubelet reports them.

use super::layout::{NOW, NodeNames};
use super::rng::{Domain, SampleRng};
use super::rollout::version;
use super::sample::Sample;
use super::words;
use super::writer::Writer;

pub(super) fn write(seed: u64, index: u64) -> Sample {
    let names = NodeNames::of(seed, index);
    let mut rng = SampleRng::new(seed ^ 0x6e6f_6465, Domain::Node, index);
    let rng = &mut rng;
    let created = NOW - rng.within(86_400, 90 * 86_400) as i64;
    let heartbeat = NOW - rng.below(300) as i64;
    let zone = format!("eu-central-1{}", rng.pick(words::ZONES));
    let size = rng.pick(&["m7i.4xlarge", "m7i.8xlarge", "r7g.4xlarge", "c7i.8xlarge"]);
    let mut w = Writer::with_capacity(8_192);
    w.object(|w| {
        w.text("kind", "Node");
        w.text("apiVersion", "v1");
        w.object_at("metadata", |w| {
            w.text("name", &names.name);
            w.given("uid", &rng.uuid());
            w.given("resourceVersion", &version(heartbeat).to_string());
            w.time("creationTimestamp", created);
            w.texts(
                "labels",
                [
                    ("beta.kubernetes.io/arch", "amd64"),
                    ("beta.kubernetes.io/os", "linux"),
                    ("kubernetes.io/arch", "amd64"),
                    ("kubernetes.io/hostname", names.name.as_str()),
                    ("kubernetes.io/os", "linux"),
                    ("node.acme.com/pool", rng.pick(&["general", "memory-optimised"])),
                    ("node.kubernetes.io/instance-type", size),
                    ("topology.kubernetes.io/region", "eu-central-1"),
                    ("topology.kubernetes.io/zone", zone.as_str()),
                ],
            );
            w.texts(
                "annotations",
                [
                    ("node.alpha.kubernetes.io/ttl", "0"),
                    ("projectcalico.org/IPv4Address", format!("{}/20", names.ip).as_str()),
                    ("volumes.kubernetes.io/controller-managed-attach-detach", "true"),
                ],
            );
            w.array_at("managedFields", |w| {
                super::managed_fields::entry(w, "kubelet", "v1", heartbeat, Some("status"), |w| {
                    w.object_at("f:status", |w| {
                        w.owned("allocatable");
                        w.owned("capacity");
                        w.object_at("f:conditions", |w| {
                            for kind in ["DiskPressure", "MemoryPressure", "PIDPressure", "Ready"] {
                                w.keyed_at("type", kind, |w| {
                                    w.owned("lastHeartbeatTime");
                                    w.owned("status");
                                });
                            }
                        });
                        w.owned("images");
                        w.owned("nodeInfo");
                    });
                });
            });
        });
        w.object_at("spec", |w| {
            w.joined("providerID", &["aws:///", &zone, "/i-0", &rng.hex(16)]);
        });
        w.object_at("status", |w| status(w, rng, &names, created, heartbeat));
    });
    Sample::cluster("/api/v1", "nodes", &names.name, w)
}

const CONDITIONS: [(&str, &str, &str, &str); 4] = [
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
];

fn status(w: &mut Writer, rng: &mut SampleRng, names: &NodeNames, created: i64, heartbeat: i64) {
    let memory = rng.within(62_000_000, 130_000_000);
    for (key, reserved) in [("capacity", 0), ("allocatable", 1_400_000)] {
        w.object_at(key, |w| {
            w.text("cpu", if reserved == 0 { "16" } else { "15890m" });
            w.text("ephemeral-storage", "104845292Ki");
            w.text("hugepages-2Mi", "0");
            w.joined("memory", &[&(memory - reserved).to_string(), "Ki"]);
            w.text("pods", "110");
        });
    }
    w.array_at("conditions", |w| {
        for (kind, status, reason, message) in CONDITIONS {
            w.object(|w| {
                w.text("type", kind);
                w.text("status", status);
                w.time("lastHeartbeatTime", heartbeat);
                w.time("lastTransitionTime", created + 12);
                w.text("reason", reason);
                w.text("message", message);
            });
        }
    });
    w.array_at("addresses", |w| {
        for (kind, address) in [("InternalIP", &names.ip), ("Hostname", &names.name), ("InternalDNS", &names.name)] {
            w.object(|w| {
                w.text("type", kind);
                w.text("address", address);
            });
        }
    });
    w.raw("daemonEndpoints", r#"{"kubeletEndpoint":{"Port":10250}}"#);
    w.object_at("nodeInfo", |w| {
        w.text("machineID", &rng.hex(32));
        w.text("systemUUID", &rng.uuid());
        w.text("bootID", &rng.uuid());
        w.text("kernelVersion", "6.12.40-63.114.amzn2023.x86_64");
        w.text("osImage", "Amazon Linux 2023.9.20260511");
        w.text("containerRuntimeVersion", "containerd://2.1.4");
        w.text("kubeletVersion", "v1.34.7");
        w.text("kubeProxyVersion", "");
        w.text("operatingSystem", "linux");
        w.text("architecture", "amd64");
    });
    w.array_at("images", |w| {
        for _ in 0..rng.within(12, 30) {
            let component = rng.pick(&words::COMPONENTS);
            let repository = format!("{}/{}/{component}", rng.pick(words::REGISTRIES), rng.pick(words::TEAMS));
            w.object(|w| {
                w.array_at("names", |w| w.item(&format!("{repository}@sha256:{}", rng.sha256())));
                w.number("sizeBytes", rng.within(4_000_000, 900_000_000));
            });
        }
    });
}
