//! The template shared by all pods of an owner.

use super::layout::{NOW, Owner};
use super::rng::SampleRng;
use super::words;

#[derive(Debug, Clone)]
pub(super) struct Workload {
    pub(super) owner: Owner,
    pub(super) name: String,
    pub(super) namespace: String,
    /// The name in the pods' owner reference: the replica set of a deployment, otherwise the owner
    /// itself.
    pub(super) controller_name: String,
    pub(super) controller_uid: String,
    /// The uid of the replica set's deployment, or of the job's cron job.
    pub(super) parent_uid: String,
    pub(super) hash: String,
    pub(super) created: i64,
    pub(super) rolled_out: i64,
    pub(super) labels: Vec<(String, String)>,
    pub(super) annotations: Vec<(String, String)>,
    pub(super) init: Vec<Container>,
    pub(super) containers: Vec<Container>,
    pub(super) volumes: Vec<Volume>,
    pub(super) spread: Spread,
    pub(super) security: Option<u64>,
    pub(super) grace: u64,
    pub(super) priority: Option<&'static str>,
    pub(super) node_selector: Option<(&'static str, &'static str)>,
    pub(super) tolerated: Option<(&'static str, &'static str)>,
    pub(super) pull_secret: Option<&'static str>,
    pub(super) token: Token,
}

#[derive(Debug, Clone)]
pub(super) struct Container {
    pub(super) name: String,
    pub(super) image: String,
    pub(super) image_id: String,
    pub(super) command: Vec<String>,
    pub(super) args: Vec<String>,
    pub(super) ports: Vec<(&'static str, u64)>,
    pub(super) env: Vec<Env>,
    pub(super) resources: Option<Resources>,
    pub(super) liveness: Option<Probe>,
    pub(super) readiness: Option<Probe>,
    pub(super) mounts: Vec<Mount>,
    pub(super) hardened: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Env {
    pub(super) name: String,
    pub(super) value: EnvValue,
}

#[derive(Debug, Clone)]
pub(super) enum EnvValue {
    Plain(String),
    Field(&'static str),
    Secret { name: String, key: &'static str },
}

#[derive(Debug, Clone)]
pub(super) struct Resources {
    pub(super) cpu: String,
    pub(super) memory: String,
    pub(super) limit: Option<(String, String)>,
}

#[derive(Debug, Clone)]
pub(super) struct Probe {
    pub(super) check: Check,
    pub(super) initial_delay: u64,
    pub(super) timeout: u64,
    pub(super) period: u64,
    pub(super) failures: u64,
}

#[derive(Debug, Clone)]
pub(super) enum Check {
    Http { path: &'static str, port: &'static str },
    Tcp { port: u64 },
    Exec { command: Vec<String> },
}

#[derive(Debug, Clone)]
pub(super) struct Mount {
    pub(super) name: &'static str,
    pub(super) path: String,
    pub(super) access: MountAccess,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MountAccess {
    ReadOnly,
    ReadWrite,
}

#[derive(Debug, Clone)]
pub(super) struct Volume {
    pub(super) name: &'static str,
    pub(super) source: VolumeSource,
}

#[derive(Debug, Clone)]
pub(super) enum VolumeSource {
    EmptyDir {
        memory_limit: Option<&'static str>,
    },
    ConfigMap {
        name: String,
    },
    Secret {
        name: String,
    },
    HostPath {
        path: &'static str,
    },
    /// The persistent volume claim `data-<pod>`, created from a stateful set's claim template.
    Claim,
}

/// Whether the service account token is mounted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    Mounted,
    Withheld,
}

/// Scheduling constraints of the pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spread {
    Anywhere,
    PreferOtherNodes,
    EvenOverZones,
    /// Pinned to one node, as daemon set pods are.
    OneNode,
}

impl Workload {
    pub(super) fn new(seed: u64, owner: Owner) -> Self {
        let mut rng = owner.rng(seed);
        let rng = &mut rng;
        let name = owner.name(seed);
        let created = NOW - rng.within(30 * 86_400, 500 * 86_400) as i64;
        let rolled_out = NOW - rng.within(3_600, 28 * 86_400) as i64;
        let hash = match owner {
            Owner::Deployment { .. } => rng.suffix(10),
            _ => rng.suffix(9),
        };
        let cron_minute = rolled_out / 60 / 60 * 60;
        let controller_name = match owner {
            Owner::Deployment { .. } => format!("{name}-{hash}"),
            Owner::Job { .. } => format!("{name}-{cron_minute}"),
            Owner::StatefulSet { .. } | Owner::DaemonSet { .. } => name.clone(),
        };
        let mut workload = Self {
            owner,
            namespace: owner.namespace(seed),
            controller_name,
            controller_uid: rng.uuid(),
            parent_uid: rng.uuid(),
            hash,
            created,
            rolled_out,
            labels: Vec::new(),
            annotations: Vec::new(),
            init: Vec::new(),
            containers: Vec::new(),
            volumes: Vec::new(),
            spread: match owner {
                Owner::DaemonSet { .. } => Spread::OneNode,
                _ => rng.pick(&[
                    Spread::Anywhere,
                    Spread::Anywhere,
                    Spread::Anywhere,
                    Spread::PreferOtherNodes,
                    Spread::EvenOverZones,
                ]),
            },
            security: rng.percent(30).then(|| rng.pick(&[1000, 1001, 10001, 65532, 65534])),
            grace: rng.pick(&[30, 30, 30, 60, 45, 120]),
            priority: match owner {
                Owner::DaemonSet { .. } => Some("system-node-critical"),
                _ => rng.percent(20).then(|| rng.pick(&["business-critical", "batch-low"])),
            },
            node_selector: rng.percent(20).then(|| {
                rng.pick(&[
                    ("kubernetes.io/os", "linux"),
                    ("node.acme.com/pool", "general"),
                    ("node.acme.com/pool", "memory-optimised"),
                    ("kubernetes.io/arch", "arm64"),
                ])
            }),
            tolerated: rng.percent(10).then(|| rng.pick(&[("dedicated", "batch"), ("spot", "true")])),
            pull_secret: rng.percent(30).then(|| rng.pick(&["regcred", "acme-registry"])),
            token: if rng.percent(40) { Token::Withheld } else { Token::Mounted },
            name,
        };
        workload.add_labels(rng);
        workload.add_annotations(rng);
        workload.add_volumes(rng);
        workload.add_containers(rng);
        workload
    }

    /// The apiVersion and kind of the direct owner: a replica set for a deployment.
    pub(super) fn controller_kind(&self) -> (&'static str, &'static str) {
        match self.owner {
            Owner::Deployment { .. } => ("apps/v1", "ReplicaSet"),
            Owner::StatefulSet { .. } => ("apps/v1", "StatefulSet"),
            Owner::DaemonSet { .. } => ("apps/v1", "DaemonSet"),
            Owner::Job { .. } => ("batch/v1", "Job"),
        }
    }

    fn add_labels(&mut self, rng: &mut SampleRng) {
        let mut labels = Vec::with_capacity(10);
        match self.owner {
            Owner::DaemonSet { .. } => {
                labels.push(("k8s-app".to_owned(), self.name.clone()));
                labels.push(("controller-revision-hash".to_owned(), self.hash.clone()));
                labels.push(("pod-template-generation".to_owned(), rng.within(1, 40).to_string()));
            }
            Owner::Deployment { .. } => labels.push(("pod-template-hash".to_owned(), self.hash.clone())),
            Owner::StatefulSet { .. } => {
                labels.push(("controller-revision-hash".to_owned(), format!("{}-{}", self.name, self.hash)));
            }
            Owner::Job { .. } => {
                labels.push(("batch.kubernetes.io/controller-uid".to_owned(), self.controller_uid.clone()));
                labels.push(("batch.kubernetes.io/job-name".to_owned(), self.controller_name.clone()));
                labels.push(("controller-uid".to_owned(), self.controller_uid.clone()));
                labels.push(("job-name".to_owned(), self.controller_name.clone()));
            }
        }
        if rng.percent(35) {
            labels.push(("app.kubernetes.io/name".to_owned(), self.name.clone()));
            labels.push(("app.kubernetes.io/instance".to_owned(), format!("{}-{}", self.name, self.namespace)));
            labels.push(("app.kubernetes.io/version".to_owned(), version(rng)));
            labels.push(("app.kubernetes.io/managed-by".to_owned(), rng.pick(&["Helm", "argocd", "flux"]).to_owned()));
            if rng.percent(40) {
                labels.push(("helm.sh/chart".to_owned(), format!("{}-{}", self.name, version(rng))));
            }
        } else {
            labels.push(("app".to_owned(), self.name.clone()));
            labels.push(("tier".to_owned(), rng.pick(&["frontend", "backend", "data", "batch"]).to_owned()));
            labels.push(("version".to_owned(), version(rng)));
        }
        if rng.percent(25) {
            labels.push(("team".to_owned(), rng.pick(words::TEAMS).to_owned()));
            labels.push(("cost-center".to_owned(), format!("cc-{}", rng.within(1_000, 9_999))));
        }
        labels.sort();
        self.labels = labels;
    }

    fn add_annotations(&mut self, rng: &mut SampleRng) {
        let mut annotations = Vec::with_capacity(6);
        annotations.push(("acme.com/git-commit".to_owned(), rng.hex(40)));
        if rng.percent(40) {
            let run = rng.within(10_000_000, 99_999_999);
            annotations.push(("acme.com/pipeline".to_owned(), format!("https://ci.acme.com/{}/runs/{run}", self.name)));
        }
        let first = rng.below(words::CHECKSUMS.len() as u64);
        for number in first..first + rng.within(2, 4) {
            let of = words::CHECKSUMS[(number % words::CHECKSUMS.len() as u64) as usize];
            annotations.push((format!("checksum/{of}"), rng.sha256()));
        }
        if rng.percent(25) {
            annotations
                .push(("prometheus.io/path".to_owned(), rng.pick(&["/metrics", "/actuator/prometheus"]).to_owned()));
            annotations.push(("prometheus.io/port".to_owned(), rng.pick(&["9090", "8080", "9102"]).to_owned()));
            annotations.push(("prometheus.io/scrape".to_owned(), "true".to_owned()));
        }
        if rng.percent(30) {
            let time = super::writer::rfc3339(self.rolled_out - rng.within(1, 5) as i64);
            annotations.push((
                "kubectl.kubernetes.io/restartedAt".to_owned(),
                String::from_utf8_lossy(&time).replace('Z', "+02:00"),
            ));
        }
        if rng.percent(25) {
            annotations.push(("kubectl.kubernetes.io/default-container".to_owned(), "app".to_owned()));
        }
        annotations.sort();
        self.annotations = annotations;
    }

    fn add_volumes(&mut self, rng: &mut SampleRng) {
        if let Owner::DaemonSet { which } = self.owner {
            self.volumes.push(Volume { name: "lib-modules", source: VolumeSource::HostPath { path: "/lib/modules" } });
            if which % 2 == 0 {
                self.volumes.push(Volume { name: "var-log", source: VolumeSource::HostPath { path: "/var/log" } });
            }
        }
        if rng.percent(35) {
            let source = VolumeSource::ConfigMap { name: format!("{}-config", self.name) };
            self.volumes.push(Volume { name: "config", source });
        }
        if rng.percent(20) {
            let source = VolumeSource::Secret { name: format!("{}-tls", self.name) };
            self.volumes.push(Volume { name: "tls", source });
        }
        if rng.percent(25) {
            let memory_limit = rng.percent(30).then(|| rng.pick(&["64Mi", "256Mi", "1Gi"]));
            self.volumes.push(Volume { name: "tmp", source: VolumeSource::EmptyDir { memory_limit } });
        }
        if matches!(self.owner, Owner::StatefulSet { .. }) {
            self.volumes.push(Volume { name: "data", source: VolumeSource::Claim });
        }
    }

    fn add_containers(&mut self, rng: &mut SampleRng) {
        let count = rng.pick(&[1, 1, 1, 1, 1, 2, 2, 2, 3, 4]);
        let main = self.main_container(rng);
        self.containers.push(main);
        let first = rng.below(words::SIDECARS.len() as u64);
        for number in 1..count {
            let sidecar = words::SIDECARS[((first + number * 3) % words::SIDECARS.len() as u64) as usize];
            let sidecar = self.sidecar(rng, sidecar);
            self.containers.push(sidecar);
        }
        if count > 3 {
            self.strip();
        }
        if count < 3 && rng.percent(12) {
            let (name, repository) = rng.pick(words::INIT_CONTAINERS);
            let (image, image_id) = image(rng, repository);
            let script = format!("until nc -z {}-db 5432; do sleep {}; done", self.name, rng.within(1, 5));
            self.init.push(Container {
                name: name.to_owned(),
                image,
                image_id,
                command: vec!["sh".to_owned(), "-c".to_owned(), script],
                args: Vec::new(),
                ports: Vec::new(),
                env: Vec::new(),
                resources: Some(resources(rng)),
                liveness: None,
                readiness: None,
                mounts: self.mounts(1),
                hardened: false,
            });
        }
    }

    fn main_container(&self, rng: &mut SampleRng) -> Container {
        let (name, repository, port) = if let Owner::DaemonSet { which } = self.owner {
            let (name, repository, _, port) = words::DAEMON_SETS[which];
            (name.to_owned(), repository.to_owned(), port)
        } else {
            let team = self.namespace.rsplit_once('-').map_or("platform", |(team, _)| team);
            let repository = format!("{}/{team}/{}", rng.pick(words::REGISTRIES), self.name);
            let name = if rng.percent(50) { "app".to_owned() } else { self.name.clone() };
            (name, repository, rng.pick(&[8080, 8000, 3000, 5000, 9000, 8443]))
        };
        let (image, image_id) = image(rng, &repository);
        let mut ports = vec![("http", port)];
        if rng.percent(30) {
            ports.push(("metrics", rng.pick(&[9090, 9102, 9464])));
        }
        let mut env = Vec::new();
        for (name, path) in [("POD_NAME", "metadata.name"), ("POD_IP", "status.podIP")] {
            if rng.percent(25) {
                env.push(Env { name: name.to_owned(), value: EnvValue::Field(path) });
            }
        }
        let command = match rng.pick(words::LANGUAGES) {
            "java" => vec![
                "java".to_owned(),
                format!("-Xmx{}m", rng.within(2, 60) * 64),
                "-jar".to_owned(),
                "/app/app.jar".to_owned(),
            ],
            "node" => vec!["node".to_owned(), "--enable-source-maps".to_owned(), "dist/main.js".to_owned()],
            "python" => vec!["gunicorn".to_owned(), format!("--workers={}", rng.within(1, 16)), "app.wsgi".to_owned()],
            _ => Vec::new(),
        };
        let mut args = vec![format!("--log-level={}", rng.pick(&["info", "debug", "warn"]))];
        let first = rng.below(words::FLAGS.len() as u64);
        for number in 0..rng.within(8, 18) {
            let (flag, largest) = words::FLAGS[((first + number * 7) % words::FLAGS.len() as u64) as usize];
            args.push(format!("--{flag}={}", rng.within(1, largest)));
        }
        let probed = !matches!(self.owner, Owner::Job { .. });
        Container {
            name,
            image,
            image_id,
            command,
            args,
            ports,
            env,
            resources: Some(resources(rng)),
            liveness: (probed && rng.percent(30)).then(|| probe(rng, port)),
            readiness: (probed && rng.percent(50)).then(|| probe(rng, port)),
            mounts: self.mounts(self.volumes.len()),
            hardened: rng.percent(15),
        }
    }

    fn sidecar(&self, rng: &mut SampleRng, (name, repository, port): (&'static str, &'static str, u64)) -> Container {
        let (image, image_id) = image(rng, repository);
        Container {
            name: name.to_owned(),
            image,
            image_id,
            command: Vec::new(),
            args: vec![format!("--upstream=127.0.0.1:{}", rng.within(3_000, 9_000))],
            ports: vec![("sidecar", port)],
            env: Vec::new(),
            resources: Some(resources(rng)),
            liveness: None,
            readiness: None,
            mounts: Vec::new(),
            hardened: false,
        }
    }

    fn mounts(&self, count: usize) -> Vec<Mount> {
        let mount = |volume: &Volume| {
            let (path, access) = match &volume.source {
                VolumeSource::EmptyDir { .. } => ("/tmp".to_owned(), MountAccess::ReadWrite),
                VolumeSource::ConfigMap { .. } => (format!("/etc/{}", self.name), MountAccess::ReadOnly),
                VolumeSource::Secret { .. } => ("/etc/tls".to_owned(), MountAccess::ReadOnly),
                VolumeSource::HostPath { path } => ((*path).to_owned(), MountAccess::ReadOnly),
                VolumeSource::Claim => ("/var/lib/data".to_owned(), MountAccess::ReadWrite),
            };
            Mount { name: volume.name, path, access }
        };
        self.volumes.iter().take(count).map(mount).collect()
    }
}

fn image(rng: &mut SampleRng, repository: &str) -> (String, String) {
    let tag = if rng.percent(50) { version(rng) } else { format!("main-{}", rng.hex(12)) };
    (format!("{repository}:{tag}"), format!("{repository}@sha256:{}", rng.sha256()))
}

fn version(rng: &mut SampleRng) -> String {
    format!("v{}.{}.{}", rng.below(8), rng.below(40), rng.below(20))
}

fn resources(rng: &mut SampleRng) -> Resources {
    let cpu = rng.pick(&["10m", "25m", "50m", "100m", "150m", "200m", "250m", "500m", "750m", "1", "2"]);
    let memory =
        rng.pick(&["32Mi", "64Mi", "100Mi", "128Mi", "192Mi", "256Mi", "384Mi", "512Mi", "768Mi", "1Gi", "2Gi"]);
    let limit = match rng.below(3) {
        0 => None,
        1 => Some((cpu.to_owned(), memory.to_owned())),
        _ => Some((rng.pick(&["1500m", "3", "4"]).to_owned(), rng.pick(&["3Gi", "4Gi", "6000Mi"]).to_owned())),
    };
    Resources { cpu: cpu.to_owned(), memory: memory.to_owned(), limit }
}

fn probe(rng: &mut SampleRng, port: u64) -> Probe {
    let check = match rng.below(10) {
        0 => Check::Exec { command: vec!["/bin/grpc_health_probe".to_owned(), format!("-addr=:{port}")] },
        1 | 2 => Check::Tcp { port },
        _ => Check::Http {
            path: rng.pick(&["/healthz", "/readyz", "/livez", "/health", "/actuator/health"]),
            port: "http",
        },
    };
    Probe {
        check,
        initial_delay: rng.pick(&[5, 10, 15, 20, 30, 60]),
        timeout: rng.within(1, 10),
        period: rng.pick(&[5, 10, 15, 20, 30]),
        failures: rng.within(2, 6),
    }
}
