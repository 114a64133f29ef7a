//! Generation of pods, in the form the API server sends.

use super::fit::Fit;
use super::layout::{NodeNames, Owner, PodPlace};
use super::life::{Life, Phase};
use super::rng::{Domain, SampleRng, mix};
use super::sample::Sample;
use super::workload::{
    Check, Container, Env, EnvValue, MountAccess, Probe, Resources, Spread, Token, VolumeSource, Workload,
};
use super::writer::Writer;
use super::{managed_fields, pod_status};

pub(super) struct Pod<'a> {
    pub(super) workload: &'a Workload,
    pub(super) name: String,
    pub(super) generate_name: Option<String>,
    pub(super) uid: String,
    pub(super) node: NodeNames,
    pub(super) ip: String,
    /// The service account token's volume, whose name is different in every pod.
    pub(super) token_volume: Option<String>,
    pub(super) annotations: Vec<(&'a str, String)>,
    pub(super) life: Life,
    version: u64,
}

/// The template of an owner, adjusted to a realistic pod size.
pub(super) fn template(seed: u64, owner: Owner) -> Workload {
    let mut workload = Workload::new(seed, owner);
    for _ in 0..MOST_FITTINGS {
        let mut settled = Pod::new(seed, &workload, 0, PodPlace { owner, replica: 0, node: 0 }, 0);
        settled.life.settle();
        let bytes = settled.to_sample().bytes().len();
        if workload.fit(seed, bytes) == Fit::Good {
            break;
        }
    }
    workload
}

const MOST_FITTINGS: usize = 4;

impl<'a> Pod<'a> {
    pub(super) fn new(seed: u64, workload: &'a Workload, index: u64, place: PodPlace, step: u64) -> Self {
        let mut rng = SampleRng::new(seed, Domain::Pod, index);
        let controller = &workload.controller_name;
        let name = match workload.owner {
            Owner::StatefulSet { .. } => format!("{controller}-{}", place.replica),
            _ => format!("{controller}-{}", replica_suffix(seed, workload, place.replica)),
        };
        let uid = rng.uuid();
        let node = NodeNames::of(seed, place.node);
        let ip = if workload.host_network() { node.ip.clone() } else { pod_ip(seed, index) };
        let token_volume = (workload.token == Token::Mounted).then(|| format!("kube-api-access-{}", rng.suffix(5)));
        let sandbox = rng.sha256();
        let life = Life::new(seed, workload, index, place.replica, step, &mut rng);
        // Resource versions grow with time: a busy cluster makes about forty writes per second.
        let version = ((life.touched - 1_700_000_000) as u64 * 40 + mix(index) % 40) * 3;

        let mut annotations: Vec<_> =
            workload.annotations.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
        if !workload.host_network() {
            let network = if life.phase == Phase::Succeeded { String::new() } else { format!("{ip}/32") };
            annotations.push(("cni.projectcalico.org/containerID", sandbox));
            annotations.push(("cni.projectcalico.org/podIP", network.clone()));
            annotations.push(("cni.projectcalico.org/podIPs", network));
        }
        if let Some(shipped) = life.shipped {
            annotations.push((managed_fields::SHIPPED, shipped.to_string()));
        }
        annotations.sort_unstable();
        Self {
            workload,
            name,
            generate_name: Some(format!("{controller}-")),
            uid,
            node,
            ip,
            token_volume,
            annotations,
            life,
            version,
        }
    }

    pub(super) fn to_sample(&self) -> Sample {
        let mut w = Writer::with_capacity(9_216);
        w.object(|w| {
            w.text("kind", "Pod");
            w.text("apiVersion", "v1");
            w.object_at("metadata", |w| self.metadata(w));
            w.object_at("spec", |w| self.spec(w));
            w.object_at("status", |w| pod_status::write(w, self));
        });
        Sample::namespaced("/api/v1", "pods", &self.workload.namespace, &self.name, w)
    }

    /// All labels, sorted: those of the template and those that the controller adds.
    pub(super) fn labels(&self) -> Vec<(&str, &str)> {
        let mut labels: Vec<_> =
            self.workload.labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        if let Some(stage) = self.life.stage {
            labels.push((managed_fields::STAGE, stage));
        }
        if matches!(self.workload.owner, Owner::StatefulSet { .. }) {
            labels.push(("statefulset.kubernetes.io/pod-name", &self.name));
        }
        labels.sort_unstable();
        labels
    }

    fn metadata(&self, w: &mut Writer) {
        w.text("name", &self.name);
        if let Some(generate_name) = &self.generate_name {
            w.text("generateName", generate_name);
        }
        w.text("namespace", &self.workload.namespace);
        w.given("uid", &self.uid);
        w.given("resourceVersion", &self.version.to_string());
        w.number("generation", 1);
        w.time("creationTimestamp", self.life.created);
        w.texts("labels", self.labels());
        w.texts("annotations", self.annotations.iter().map(|(key, value)| (*key, value.as_str())));
        w.array_at("ownerReferences", |w| {
            w.object(|w| {
                let (api_version, kind) = self.workload.controller_kind();
                w.text("apiVersion", api_version);
                w.text("kind", kind);
                w.text("name", &self.workload.controller_name);
                w.text("uid", &self.workload.controller_uid);
                w.truth("controller", true);
                w.truth("blockOwnerDeletion", true);
            });
        });
        managed_fields::write(w, self);
    }

    fn spec(&self, w: &mut Writer) {
        let workload = self.workload;
        let token_volume = self.token_volume.as_deref();
        if !workload.volumes.is_empty() || token_volume.is_some() {
            w.array_at("volumes", |w| {
                volumes(w, workload, &self.name);
                if let Some(name) = token_volume {
                    w.object(|w| {
                        w.text("name", name);
                        w.raw("projected", TOKEN_SOURCES);
                    });
                }
            });
        }
        if !workload.init.is_empty() {
            w.array_at("initContainers", |w| workload.init.iter().for_each(|each| container(w, each, token_volume)));
        }
        w.array_at("containers", |w| workload.containers.iter().for_each(|each| container(w, each, token_volume)));
        w.text("restartPolicy", workload.restart_policy());
        w.number("terminationGracePeriodSeconds", workload.grace);
        w.text("dnsPolicy", "ClusterFirst");
        if let Some(selector) = workload.node_selector {
            w.texts("nodeSelector", [selector]);
        }
        w.text("serviceAccountName", &workload.name);
        w.text("serviceAccount", &workload.name);
        if token_volume.is_none() {
            w.truth("automountServiceAccountToken", false);
        }
        w.text("nodeName", &self.node.name);
        if workload.host_network() {
            w.truth("hostNetwork", true);
        }
        w.object_at("securityContext", |w| {
            if let Some(user) = workload.security {
                w.number("runAsUser", user);
                w.truth("runAsNonRoot", true);
                w.number("fsGroup", user);
            }
        });
        if let Some(secret) = workload.pull_secret {
            w.array_at("imagePullSecrets", |w| w.object(|w| w.text("name", secret)));
        }
        self.affinity(w);
        w.text("schedulerName", "default-scheduler");
        w.array_at("tolerations", |w| self.tolerations(w));
        if let Some(class) = workload.priority {
            w.text("priorityClassName", class);
        }
        w.number("priority", workload.priority_value());
        w.truth("enableServiceLinks", true);
        w.text("preemptionPolicy", "PreemptLowerPriority");
        if workload.spread == Spread::EvenOverZones {
            w.array_at("topologySpreadConstraints", |w| {
                w.object(|w| {
                    w.number("maxSkew", 1);
                    w.text("topologyKey", "topology.kubernetes.io/zone");
                    w.text("whenUnsatisfiable", "ScheduleAnyway");
                    w.object_at("labelSelector", |w| w.texts("matchLabels", [workload.selector()]));
                });
            });
        }
    }

    fn affinity(&self, w: &mut Writer) {
        match self.workload.spread {
            Spread::Anywhere | Spread::EvenOverZones => {}
            Spread::PreferOtherNodes => w.object_at("affinity", |w| {
                w.object_at("podAntiAffinity", |w| {
                    w.array_at("preferredDuringSchedulingIgnoredDuringExecution", |w| {
                        w.object(|w| {
                            w.number("weight", 100);
                            w.object_at("podAffinityTerm", |w| {
                                w.object_at("labelSelector", |w| w.texts("matchLabels", [self.workload.selector()]));
                                w.text("topologyKey", "kubernetes.io/hostname");
                            });
                        });
                    });
                });
            }),
            Spread::OneNode => w.object_at("affinity", |w| {
                w.object_at("nodeAffinity", |w| {
                    w.object_at("requiredDuringSchedulingIgnoredDuringExecution", |w| {
                        w.array_at("nodeSelectorTerms", |w| {
                            w.object(|w| {
                                w.array_at("matchFields", |w| {
                                    w.object(|w| {
                                        w.text("key", "metadata.name");
                                        w.text("operator", "In");
                                        w.array_at("values", |w| w.item(&self.node.name));
                                    });
                                });
                            });
                        });
                    });
                });
            }),
        }
    }

    fn tolerations(&self, w: &mut Writer) {
        if let Some((key, value)) = self.workload.tolerated {
            w.object(|w| {
                w.text("key", key);
                w.text("operator", "Equal");
                w.text("value", value);
                w.text("effect", "NoSchedule");
            });
        }
        if self.workload.spread == Spread::OneNode {
            w.object(|w| w.text("operator", "Exists"));
        }
        for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
            w.object(|w| {
                w.text("key", key);
                w.text("operator", "Exists");
                w.text("effect", "NoExecute");
                if self.workload.spread != Spread::OneNode {
                    w.number("tolerationSeconds", 300);
                }
            });
        }
    }
}

const TOKEN_SOURCES: &str = concat!(
    r#"{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},"#,
    r#"{"configMap":{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}},"#,
    r#"{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1","fieldPath":"metadata.namespace"}}]}}],"#,
    r#""defaultMode":420}"#
);

impl Workload {
    pub(super) fn host_network(&self) -> bool {
        matches!(self.owner, Owner::DaemonSet { which } if which < 3)
    }

    pub(super) fn restart_policy(&self) -> &'static str {
        if matches!(self.owner, Owner::Job { .. }) { "OnFailure" } else { "Always" }
    }

    fn priority_value(&self) -> u64 {
        match self.priority {
            Some("system-node-critical") => 2_000_001_000,
            Some("business-critical") => 100_000,
            Some(_) => 1_000,
            None => 0,
        }
    }

    /// The label that identifies the pods of this workload.
    pub(super) fn selector(&self) -> (&str, &str) {
        let own = |(key, _): &&(String, String)| {
            matches!(key.as_str(), "app" | "app.kubernetes.io/name" | "k8s-app" | "job-name")
        };
        self.labels.iter().find(own).map_or(("app", ""), |(key, value)| (key, value))
    }
}

/// The volumes of a workload, for the pod of this name or for a template.
pub(super) fn volumes(w: &mut Writer, workload: &Workload, name: &str) {
    for volume in &workload.volumes {
        w.object(|w| {
            w.text("name", volume.name);
            match &volume.source {
                VolumeSource::HostPath { path } => w.object_at("hostPath", |w| {
                    w.text("path", path);
                    w.text("type", "");
                }),
                VolumeSource::EmptyDir { memory_limit } => w.object_at("emptyDir", |w| {
                    if let Some(limit) = memory_limit {
                        w.text("medium", "Memory");
                        w.text("sizeLimit", limit);
                    }
                }),
                VolumeSource::Secret { name } => w.object_at("secret", |w| {
                    w.text("secretName", name);
                    w.number("defaultMode", 420);
                }),
                VolumeSource::ConfigMap { name } => w.object_at("configMap", |w| {
                    w.text("name", name);
                    w.number("defaultMode", 420);
                }),
                VolumeSource::Claim => {
                    w.object_at("persistentVolumeClaim", |w| w.joined("claimName", &["data-", name]));
                }
            }
        });
    }
}

pub(super) fn container(w: &mut Writer, container: &Container, token_volume: Option<&str>) {
    w.object(|w| {
        w.text("name", &container.name);
        w.text("image", &container.image);
        for (key, words) in [("command", &container.command), ("args", &container.args)] {
            if !words.is_empty() {
                w.array_at(key, |w| words.iter().for_each(|word| w.item(word)));
            }
        }
        if !container.ports.is_empty() {
            w.array_at("ports", |w| {
                for &(name, port) in &container.ports {
                    w.object(|w| {
                        w.text("name", name);
                        w.number("containerPort", port);
                        w.text("protocol", "TCP");
                    });
                }
            });
        }
        if !container.env.is_empty() {
            w.array_at("env", |w| container.env.iter().for_each(|each| env(w, each)));
        }
        w.object_at("resources", |w| container.resources.iter().for_each(|each| resources(w, each)));
        if !container.mounts.is_empty() || token_volume.is_some() {
            w.array_at("volumeMounts", |w| mounts(w, container, token_volume));
        }
        for (key, each) in [("livenessProbe", &container.liveness), ("readinessProbe", &container.readiness)] {
            if let Some(each) = each {
                w.object_at(key, |w| probe(w, each));
            }
        }
        w.text("terminationMessagePath", "/dev/termination-log");
        w.text("terminationMessagePolicy", "File");
        w.text("imagePullPolicy", "IfNotPresent");
        if container.hardened {
            w.raw(
                "securityContext",
                r#"{"capabilities":{"drop":["ALL"]},"readOnlyRootFilesystem":true,"allowPrivilegeEscalation":false}"#,
            );
        }
    });
}

fn mounts(w: &mut Writer, container: &Container, token_volume: Option<&str>) {
    for mount in &container.mounts {
        w.object(|w| {
            w.text("name", mount.name);
            if mount.access == MountAccess::ReadOnly {
                w.truth("readOnly", true);
            }
            w.text("mountPath", &mount.path);
        });
    }
    if let Some(volume) = token_volume {
        w.object(|w| {
            w.text("name", volume);
            w.truth("readOnly", true);
            w.text("mountPath", "/var/run/secrets/kubernetes.io/serviceaccount");
        });
    }
}

fn env(w: &mut Writer, env: &Env) {
    w.object(|w| {
        w.text("name", &env.name);
        match &env.value {
            EnvValue::Plain(value) => w.text("value", value),
            EnvValue::Field(path) => w.object_at("valueFrom", |w| {
                w.object_at("fieldRef", |w| {
                    w.text("apiVersion", "v1");
                    w.text("fieldPath", path);
                });
            }),
            EnvValue::Secret { name, key } => w.object_at("valueFrom", |w| {
                w.object_at("secretKeyRef", |w| {
                    w.text("name", name);
                    w.text("key", key);
                });
            }),
        }
    });
}

fn resources(w: &mut Writer, resources: &Resources) {
    if let Some((cpu, memory)) = &resources.limit {
        w.texts("limits", [("cpu", cpu.as_str()), ("memory", memory.as_str())]);
    }
    w.texts("requests", [("cpu", resources.cpu.as_str()), ("memory", resources.memory.as_str())]);
}

fn probe(w: &mut Writer, probe: &Probe) {
    match &probe.check {
        Check::Exec { command } => {
            w.object_at("exec", |w| w.array_at("command", |w| command.iter().for_each(|word| w.item(word))));
        }
        Check::Http { path, port } => w.object_at("httpGet", |w| {
            w.text("path", path);
            w.text("port", port);
            w.text("scheme", "HTTP");
        }),
        Check::Tcp { port } => w.object_at("tcpSocket", |w| w.number("port", *port)),
    }
    w.number("initialDelaySeconds", probe.initial_delay);
    w.number("timeoutSeconds", probe.timeout);
    w.number("periodSeconds", probe.period);
    w.number("successThreshold", 1);
    w.number("failureThreshold", probe.failures);
}

/// The five-letter suffix of a pod's name, guaranteed to be unique per replica.
fn replica_suffix(seed: u64, workload: &Workload, replica: u64) -> String {
    const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    const ALL: u64 = 27_u64.pow(5);
    let mut rng = workload.owner.rng(seed ^ 0x7375_6666);
    let offset = rng.below(ALL);
    // The factor is coprime to `ALL`, so the mapping from replica to suffix is a bijection.
    let factor = rng.below(ALL / 3) * 3 + 1;
    let mut number = (offset + replica % ALL * factor) % ALL;
    (0..5)
        .map(|_| {
            let letter = LETTERS[(number % 27) as usize];
            number /= 27;
            char::from(letter)
        })
        .collect()
}

pub(crate) fn pod_ip(seed: u64, index: u64) -> String {
    let scattered = (index.wrapping_mul(mix(seed ^ 2) | 1) ^ mix(seed ^ 3)) & 0x3f_ffff;
    format!("10.{}.{}.{}", 192 + (scattered >> 16), scattered >> 8 & 0xff, scattered & 0xff)
}
