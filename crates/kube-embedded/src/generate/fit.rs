//! Adjusts the size of a workload's pods to that of real pods.

use super::layout::Owner;
use super::rng::SampleRng;
use super::words;
use super::workload::{Env, EnvValue, Spread, Token, VolumeSource, Workload};

/// Bounds of the JSON size in bytes of a healthy pod of the workload.
const SMALLEST: u64 = 7_850;
const LARGEST: u64 = 8_260;
/// Overhead in bytes of an environment variable, in addition to its value and twice its name,
/// including its entry in managedFields.
const BYTES_AROUND_VARIABLE: usize = 74;

/// Whether the size of a workload's pods is known to be in range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    Good,
    /// Parts were removed, so the size must be measured again.
    Uncertain,
}

/// Parts that are removed from pods with many containers, in this order, until the pod is small
/// enough.
const OPTIONAL_PARTS: [OptionalPart; 14] = [
    OptionalPart::SidecarPorts,
    OptionalPart::Token,
    OptionalPart::Limits,
    OptionalPart::Liveness,
    OptionalPart::Hardening,
    OptionalPart::Spread,
    OptionalPart::SidecarResources,
    OptionalPart::Labels,
    OptionalPart::Annotations,
    OptionalPart::Volumes,
    OptionalPart::InitContainer,
    OptionalPart::Readiness,
    OptionalPart::Arguments,
    OptionalPart::LastSidecar,
];

#[derive(Debug, Clone, Copy)]
enum OptionalPart {
    SidecarPorts,
    Token,
    Limits,
    Liveness,
    Hardening,
    Spread,
    SidecarResources,
    Labels,
    Annotations,
    Volumes,
    InitContainer,
    Readiness,
    Arguments,
    LastSidecar,
}

impl Workload {
    /// Given the current size of a pod, adds environment variables to the main container or removes
    /// optional parts, so that the size is between [`SMALLEST`] and [`LARGEST`]. Returns whether it
    /// is known to be in range.
    pub(super) fn fit(&mut self, seed: u64, bytes: usize) -> Fit {
        // The pod of a finished job is larger than the running one that was measured.
        let more = if matches!(self.owner, Owner::Job { .. }) { 300 } else { 0 };
        let bytes = bytes + more;
        let Some(mut excess) = bytes.checked_sub(LARGEST as usize) else {
            let wanted = self.owner.rng(seed ^ 0x7369_7a65).within(SMALLEST, LARGEST) as usize;
            self.add_env(seed, wanted.saturating_sub(bytes));
            return Fit::Good;
        };
        for part in OPTIONAL_PARTS {
            if excess > 0 {
                excess = excess.saturating_sub(self.remove(part));
            }
        }
        Fit::Uncertain
    }

    /// Removes every optional part except containers.
    pub(super) fn strip(&mut self) {
        for part in OPTIONAL_PARTS.into_iter().filter(|part| !matches!(part, OptionalPart::LastSidecar)) {
            self.remove(part);
        }
    }

    /// Removes a part. Returns the number of bytes saved.
    fn remove(&mut self, part: OptionalPart) -> usize {
        match part {
            OptionalPart::Token if self.token == Token::Mounted => {
                self.token = Token::Withheld;
                300 + 115 * (self.containers.len() + self.init.len())
            }
            OptionalPart::InitContainer => 1_300 * self.init.drain(..).count(),
            OptionalPart::Liveness => self.containers[0].liveness.take().map_or(0, |_| 380),
            OptionalPart::Limits => {
                let all = self.containers.iter_mut().filter_map(|each| each.resources.as_mut());
                85 * all.filter_map(|each| each.limit.take()).count()
            }
            OptionalPart::Hardening => 225 * usize::from(std::mem::take(&mut self.containers[0].hardened)),
            OptionalPart::SidecarResources => {
                let sidecars = self.containers.iter_mut().skip(1);
                95 * sidecars.filter_map(|each| each.resources.take()).count()
            }
            OptionalPart::SidecarPorts => {
                let sidecars = self.containers.iter_mut().skip(1);
                155 * sidecars.map(|each| each.ports.drain(..).count()).sum::<usize>()
            }
            OptionalPart::Spread if matches!(self.spread, Spread::EvenOverZones | Spread::PreferOtherNodes) => {
                self.spread = Spread::Anywhere;
                300
            }
            OptionalPart::Labels => {
                let plain = |key: &str| {
                    !matches!(key, "helm.sh/chart" | "cost-center" | "team" | "app.kubernetes.io/managed-by")
                };
                65 * retain(&mut self.labels, |(key, _)| plain(key))
            }
            OptionalPart::Annotations => {
                let plain = |key: &str| key == "acme.com/git-commit" || key == "checksum/config";
                100 * retain(&mut self.annotations, |(key, _)| plain(key))
            }
            OptionalPart::Volumes => {
                let removed = retain(&mut self.volumes, |volume| matches!(volume.source, VolumeSource::Claim));
                for container in self.containers.iter_mut().chain(&mut self.init) {
                    container.mounts.retain(|mount| mount.name == "data");
                }
                330 * removed
            }
            OptionalPart::Readiness => self.containers[0].readiness.take().map_or(0, |_| 380),
            OptionalPart::Arguments => {
                let arguments = &mut self.containers[0].args;
                let dropped = arguments.len().saturating_sub(3);
                arguments.truncate(3);
                28 * dropped
            }
            OptionalPart::LastSidecar if self.containers.len() > 2 => self.containers.pop().map_or(0, |_| 750),
            OptionalPart::Token | OptionalPart::Spread | OptionalPart::LastSidecar => 0,
        }
    }

    fn add_env(&mut self, seed: u64, bytes: usize) {
        let mut rng = self.owner.rng(seed ^ 0x656e_7600);
        let env = &mut self.containers[0].env;
        let mut left = bytes;
        loop {
            let name = format!("{}_{}", rng.pick(words::ENV_SUBJECTS), rng.pick(words::ENV_PROPERTIES));
            let value = env_value(&mut rng, &self.name, &name);
            let value_bytes = match &value {
                EnvValue::Plain(text) => text.len(),
                EnvValue::Field(_) | EnvValue::Secret { .. } => 90 + self.name.len(),
            };
            let Some(rest) = left.checked_sub(BYTES_AROUND_VARIABLE + 2 * name.len() + value_bytes) else { break };
            if env.iter().all(|known| known.name != name) {
                env.push(Env { name, value });
                left = rest;
            }
        }
    }
}

/// Returns the number of removed items.
fn retain<T>(items: &mut Vec<T>, keep: impl FnMut(&T) -> bool) -> usize {
    let before = items.len();
    items.retain(keep);
    before - items.len()
}

fn env_value(rng: &mut SampleRng, workload: &str, name: &str) -> EnvValue {
    if rng.percent(15) {
        return EnvValue::Secret { name: format!("{workload}-credentials"), key: rng.pick(words::SECRET_KEYS) };
    }
    let service = rng.pick(&words::COMPONENTS);
    let property = words::ENV_PROPERTIES.iter().find(|property| name.ends_with(*property)).copied().unwrap_or("URL");
    EnvValue::Plain(match property {
        "URL" | "ENDPOINT" => format!(
            "https://{service}-{}.{}-{}.svc.cluster.local:{}/v{}",
            rng.pick(words::DEPLOYMENT_ROLES),
            rng.pick(words::TEAMS),
            rng.pick(words::STAGES),
            rng.within(3_000, 9_999),
            rng.within(1, 4)
        ),
        "HOST" => format!("{service}-{}.{}.eu-central-1.rds.amazonaws.com", rng.pick(words::STAGES), rng.suffix(12)),
        "PORT" => rng.within(1_024, 32_767).to_string(),
        "TOPIC" | "GROUP_ID" | "PREFIX" => format!("{service}.{}.v{}", rng.pick(words::STAGES), rng.within(1, 9)),
        "BUCKET" => format!("acme-{service}-{}", rng.hex(8)),
        "ACCOUNT_ID" => rng.within(100_000_000_000, 999_999_999_999).to_string(),
        "BROKERS" => {
            format!("b-1.{service}.{}.c{}.kafka.eu-central-1.amazonaws.com:9094", rng.suffix(6), rng.within(2, 9))
        }
        "CLIENT_ID" | "TENANT_ID" => rng.uuid(),
        "DSN" => format!(
            "https://{}@o{}.ingest.sentry.io/{}",
            rng.hex(32),
            rng.within(100_000, 999_999),
            rng.within(1_000_000, 9_999_999)
        ),
        "ROLE_ARN" => {
            format!("arn:aws:iam::{}:role/{service}-{}", rng.within(100_000_000_000, 999_999_999_999), rng.hex(6))
        }
        "REVISION" => rng.hex(40),
        "CA_PATH" => format!("/etc/tls/{service}-ca.crt"),
        _ => rng.within(1, 60_000).to_string(),
    })
}
