//! The managedFields of a pod, as `fieldsV1` trees.

use super::life::{Life, Phase};
use super::pod::Pod;
use super::workload::{Check, Container, EnvValue, MountAccess, Probe, Spread, Token, VolumeSource};
use super::writer::Writer;

/// The label that an operator sets manually.
pub(super) const STAGE: &str = "stage";
/// The annotation that a log shipper sets on finished pods.
pub(super) const SHIPPED: &str = "logs.acme.com/shipped-bytes";

const CALICO: [&str; 3] =
    ["cni.projectcalico.org/containerID", "cni.projectcalico.org/podIP", "cni.projectcalico.org/podIPs"];

pub(super) fn write(w: &mut Writer, pod: &Pod<'_>) {
    let life = &pod.life;
    w.array_at("managedFields", |w| {
        entry(w, "kube-controller-manager", "v1", life.created, None, |w| controller(w, pod));
        if !pod.workload.host_network() {
            entry(w, "calico", "v1", life.sandboxed, Some("status"), |w| {
                metadata_part(w, "f:annotations", CALICO);
            });
        }
        if life.shipped.is_some() {
            entry(w, "log-shipper", "v1", life.touched, None, |w| metadata_part(w, "f:annotations", [SHIPPED]));
        }
        if life.stage.is_some() {
            entry(w, "kubectl-label", "v1", life.touched, None, |w| metadata_part(w, "f:labels", [STAGE]));
        }
        entry(w, "kubelet", "v1", kubelet_time(life), Some("status"), |w| {
            w.object_at("f:status", |w| status(w, pod));
        });
    });
}

fn kubelet_time(life: &Life) -> i64 {
    if life.phase == Phase::Succeeded { life.finished + 1 } else { life.touched }
}

/// Writes the entry of one field manager.
pub(super) fn entry(
    w: &mut Writer,
    manager: &str,
    api_version: &str,
    time: i64,
    subresource: Option<&str>,
    fields: impl FnOnce(&mut Writer),
) {
    w.object(|w| {
        w.text("manager", manager);
        w.text("operation", "Update");
        w.text("apiVersion", api_version);
        w.time("time", time);
        w.text("fieldsType", "FieldsV1");
        w.object_at("fieldsV1", fields);
        if let Some(subresource) = subresource {
            w.text("subresource", subresource);
        }
    });
}

fn metadata_part<'a>(w: &mut Writer, map: &str, keys: impl IntoIterator<Item = &'a str>) {
    w.object_at("f:metadata", |w| {
        w.object_at(map, |w| keys.into_iter().for_each(|key| field(w, key)));
    });
}

fn controller(w: &mut Writer, pod: &Pod<'_>) {
    let workload = pod.workload;
    w.object_at("f:metadata", |w| {
        whole(w, "f:annotations", |w| workload.annotations.iter().for_each(|(key, _)| field(w, key)));
        field(w, "generateName");
        whole(w, "f:labels", |w| {
            let own = pod.labels().into_iter().filter(|(key, _)| *key != STAGE);
            own.for_each(|(key, _)| field(w, key));
        });
        whole(w, "f:ownerReferences", |w| {
            leaf(w, &format!(r#"k:{{\"uid\":\"{}\"}}"#, workload.controller_uid));
        });
    });
    w.object_at("f:spec", |w| {
        if matches!(workload.spread, Spread::OneNode | Spread::PreferOtherNodes) {
            w.object_at("f:affinity", |w| affinity(w, workload.spread));
        }
        if workload.token == Token::Withheld {
            field(w, "automountServiceAccountToken");
        }
        w.object_at("f:containers", |w| {
            sorted(&workload.containers, |each| &each.name).for_each(|each| container(w, each));
        });
        field(w, "dnsPolicy");
        field(w, "enableServiceLinks");
        if workload.host_network() {
            field(w, "hostNetwork");
        }
        if let Some(secret) = workload.pull_secret {
            whole(w, "f:imagePullSecrets", |w| leaf(w, &format!(r#"k:{{\"name\":\"{secret}\"}}"#)));
        }
        if !workload.init.is_empty() {
            whole(w, "f:initContainers", |w| workload.init.iter().for_each(|each| container(w, each)));
        }
        if workload.node_selector.is_some() {
            field(w, "nodeSelector");
        }
        if workload.priority.is_some() {
            field(w, "priorityClassName");
        }
        field(w, "restartPolicy");
        field(w, "schedulerName");
        if workload.security.is_some() {
            whole(w, "f:securityContext", |w| {
                fields(w, &["fsGroup", "runAsNonRoot", "runAsUser"]);
            });
        } else {
            field(w, "securityContext");
        }
        field(w, "serviceAccount");
        field(w, "serviceAccountName");
        field(w, "terminationGracePeriodSeconds");
        if workload.tolerated.is_some() || workload.spread == Spread::OneNode {
            field(w, "tolerations");
        }
        if workload.spread == Spread::EvenOverZones {
            whole(w, "f:topologySpreadConstraints", |w| {
                let key =
                    r#"k:{\"topologyKey\":\"topology.kubernetes.io/zone\",\"whenUnsatisfiable\":\"ScheduleAnyway\"}"#;
                whole(w, key, |w| {
                    fields(w, &["labelSelector", "maxSkew", "topologyKey", "whenUnsatisfiable"]);
                });
            });
        }
        if !workload.volumes.is_empty() {
            whole(w, "f:volumes", |w| {
                for volume in sorted(&workload.volumes, |each| each.name) {
                    keyed(w, "name", volume.name, |w| volume_source(w, &volume.source));
                }
            });
        }
    });
}

fn affinity(w: &mut Writer, spread: Spread) {
    let (kind, rule) = match spread {
        Spread::OneNode => ("f:nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
        _ => ("f:podAntiAffinity", "preferredDuringSchedulingIgnoredDuringExecution"),
    };
    leaf(w, ".");
    whole(w, kind, |w| field(w, rule));
}

fn container(w: &mut Writer, container: &Container) {
    keyed(w, "name", &container.name, |w| {
        for (key, present) in [("args", !container.args.is_empty()), ("command", !container.command.is_empty())] {
            if present {
                field(w, key);
            }
        }
        if !container.env.is_empty() {
            whole(w, "f:env", |w| {
                for env in sorted(&container.env, |each| &each.name) {
                    keyed(w, "name", &env.name, |w| {
                        field(w, "name");
                        match &env.value {
                            EnvValue::Plain(_) => field(w, "value"),
                            EnvValue::Field(_) => whole(w, "f:valueFrom", |w| field(w, "fieldRef")),
                            EnvValue::Secret { .. } => whole(w, "f:valueFrom", |w| field(w, "secretKeyRef")),
                        }
                    });
                }
            });
        }
        field(w, "image");
        field(w, "imagePullPolicy");
        if let Some(each) = &container.liveness {
            probe(w, "f:livenessProbe", each);
        }
        field(w, "name");
        if !container.ports.is_empty() {
            whole(w, "f:ports", |w| {
                for (_, port) in &container.ports {
                    whole(w, &format!(r#"k:{{\"containerPort\":{port},\"protocol\":\"TCP\"}}"#), |w| {
                        fields(w, &["containerPort", "name", "protocol"]);
                    });
                }
            });
        }
        if let Some(each) = &container.readiness {
            probe(w, "f:readinessProbe", each);
        }
        if let Some(resources) = &container.resources {
            whole(w, "f:resources", |w| {
                for (key, present) in [("f:limits", resources.limit.is_some()), ("f:requests", true)] {
                    if present {
                        whole(w, key, |w| fields(w, &["cpu", "memory"]));
                    }
                }
            });
        } else {
            field(w, "resources");
        }
        if container.hardened {
            whole(w, "f:securityContext", |w| {
                field(w, "allowPrivilegeEscalation");
                whole(w, "f:capabilities", |w| field(w, "drop"));
                field(w, "readOnlyRootFilesystem");
            });
        }
        field(w, "terminationMessagePath");
        field(w, "terminationMessagePolicy");
        if !container.mounts.is_empty() {
            whole(w, "f:volumeMounts", |w| {
                for mount in sorted(&container.mounts, |each| &each.path) {
                    keyed(w, "mountPath", &mount.path, |w| {
                        field(w, "mountPath");
                        field(w, "name");
                        if mount.access == MountAccess::ReadOnly {
                            field(w, "readOnly");
                        }
                    });
                }
            });
        }
    });
}

fn probe(w: &mut Writer, key: &str, probe: &Probe) {
    whole(w, key, |w| {
        if matches!(probe.check, Check::Exec { .. }) {
            whole(w, "f:exec", |w| field(w, "command"));
        }
        field(w, "failureThreshold");
        if matches!(probe.check, Check::Http { .. }) {
            whole(w, "f:httpGet", |w| fields(w, &["path", "port", "scheme"]));
        }
        fields(w, &["initialDelaySeconds", "periodSeconds", "successThreshold"]);
        if matches!(probe.check, Check::Tcp { .. }) {
            whole(w, "f:tcpSocket", |w| field(w, "port"));
        }
        field(w, "timeoutSeconds");
    });
}

fn volume_source(w: &mut Writer, source: &VolumeSource) {
    match source {
        VolumeSource::ConfigMap { .. } => whole(w, "f:configMap", |w| fields(w, &["defaultMode", "name"])),
        VolumeSource::EmptyDir { memory_limit: Some(_) } => {
            whole(w, "f:emptyDir", |w| fields(w, &["medium", "sizeLimit"]));
        }
        VolumeSource::EmptyDir { memory_limit: None } => field(w, "emptyDir"),
        VolumeSource::HostPath { .. } => whole(w, "f:hostPath", |w| fields(w, &["path", "type"])),
        VolumeSource::Claim | VolumeSource::Secret { .. } => {}
    }
    field(w, "name");
    match source {
        VolumeSource::Claim => whole(w, "f:persistentVolumeClaim", |w| field(w, "claimName")),
        VolumeSource::Secret { .. } => whole(w, "f:secret", |w| fields(w, &["defaultMode", "secretName"])),
        VolumeSource::ConfigMap { .. } | VolumeSource::EmptyDir { .. } | VolumeSource::HostPath { .. } => {}
    }
}

fn status(w: &mut Writer, pod: &Pod<'_>) {
    w.object_at("f:conditions", |w| {
        let explained = pod.life.phase == Phase::Succeeded || pod.life.readiness == super::life::Readiness::Unready;
        for kind in ["ContainersReady", "Initialized", "PodReadyToStartContainers", "Ready"] {
            keyed(w, "type", kind, |w| {
                field(w, "lastProbeTime");
                field(w, "lastTransitionTime");
                let ready = kind == "Ready" || kind == "ContainersReady";
                if ready && explained && pod.life.phase != Phase::Succeeded {
                    field(w, "message");
                }
                if explained && (ready || kind == "Initialized" && pod.life.phase == Phase::Succeeded) {
                    field(w, "reason");
                }
                field(w, "status");
                field(w, "type");
            });
        }
    });
    field(w, "containerStatuses");
    field(w, "hostIP");
    field(w, "hostIPs");
    if !pod.workload.init.is_empty() {
        field(w, "initContainerStatuses");
    }
    field(w, "phase");
    if pod.life.phase != Phase::Pending {
        field(w, "podIP");
        whole(w, "f:podIPs", |w| keyed(w, "ip", &pod.ip, |w| field(w, "ip")));
    }
    field(w, "startTime");
}

/// Sorts list items by key: managedFields orders them by key, not by list position.
pub(super) fn sorted<T>(items: &[T], key: impl Fn(&T) -> &str) -> impl Iterator<Item = &T> {
    let mut items: Vec<_> = items.iter().collect();
    items.sort_unstable_by(|one, other| key(one).cmp(key(other)));
    items.into_iter()
}

fn field(w: &mut Writer, name: &str) {
    w.owned(name);
}

fn fields(w: &mut Writer, names: &[&str]) {
    for name in names {
        field(w, name);
    }
}

fn leaf(w: &mut Writer, key: &str) {
    w.object_at(key, |_| ());
}

/// Writes a node that is owned itself (`.`) and its owned children.
fn whole(w: &mut Writer, key: &str, below: impl FnOnce(&mut Writer)) {
    w.object_at(key, |w| {
        leaf(w, ".");
        below(w);
    });
}

/// Writes a list item identified by one of its fields.
fn keyed(w: &mut Writer, by: &str, value: &str, below: impl FnOnce(&mut Writer)) {
    w.keyed_at(by, value, |w| {
        leaf(w, ".");
        below(w);
    });
}
