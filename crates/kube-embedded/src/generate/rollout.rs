//! Generation of deployments and their replica sets, which own the generated pods.

use super::layout::{Block, Owner};
use super::managed_fields::{entry, sorted};
use super::pod::{container, template, volumes};
use super::sample::Sample;
use super::workload::Workload;
use super::writer::Writer;

const APPS: &str = "/apis/apps/v1";
const HASH: &str = "pod-template-hash";

pub(super) fn deployment(seed: u64, index: u64) -> Sample {
    let owner = Owner::deployment(index);
    deployment_of(&template(seed, owner), replicas(seed, owner))
}

/// The deployment of a template.
pub(super) fn deployment_of(workload: &Workload, replicas: u64) -> Sample {
    let mut w = Writer::with_capacity(6_144);
    w.object(|w| {
        w.text("kind", "Deployment");
        w.text("apiVersion", "apps/v1");
        w.object_at("metadata", |w| {
            w.text("name", &workload.name);
            w.text("namespace", &workload.namespace);
            w.given("uid", &workload.parent_uid);
            w.given("resourceVersion", &version(workload.rolled_out + 70).to_string());
            w.number("generation", 1 + replicas);
            w.time("creationTimestamp", workload.created);
            w.texts("labels", labels(workload));
            w.texts("annotations", [("deployment.kubernetes.io/revision", "7")]);
            w.array_at("managedFields", |w| {
                let status = r#"{"f:metadata":{"f:annotations":{"f:deployment.kubernetes.io/revision":{}}},"f:status":{"f:availableReplicas":{},"f:conditions":{".":{},"k:{\"type\":\"Available\"}":{".":{},"f:lastTransitionTime":{},"f:lastUpdateTime":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}},"k:{\"type\":\"Progressing\"}":{".":{},"f:lastTransitionTime":{},"f:lastUpdateTime":{},"f:message":{},"f:reason":{},"f:status":{},"f:type":{}}},"f:observedGeneration":{},"f:readyReplicas":{},"f:replicas":{},"f:updatedReplicas":{}}}"#;
                entry(w, "argocd-controller", "apps/v1", workload.rolled_out, None, |w| spec_fields(w, workload));
                entry_raw(w, "kube-controller-manager", workload.rolled_out + 70, status);
            });
        });
        w.object_at("spec", |w| {
            w.number("replicas", replicas);
            selector(w, [workload.selector()]);
            w.object_at("template", |w| pod_template(w, workload, labels(workload)));
            w.raw("strategy", r#"{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}}"#);
            w.number("revisionHistoryLimit", 10);
            w.number("progressDeadlineSeconds", 600);
        });
        w.object_at("status", |w| {
            w.number("observedGeneration", 1 + replicas);
            for key in ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"] {
                w.number(key, replicas);
            }
            w.array_at("conditions", |w| {
                let progressed = format!("ReplicaSet \"{}\" has successfully progressed.", workload.controller_name);
                let available = "Deployment has minimum availability.";
                condition(w, "Available", workload.created + 90, ("MinimumReplicasAvailable", available));
                condition(w, "Progressing", workload.rolled_out + 70, ("NewReplicaSetAvailable", &progressed));
            });
        });
    });
    Sample::namespaced(APPS, "deployments", &workload.namespace, &workload.name, w)
}

pub(super) fn replica_set(seed: u64, index: u64) -> Sample {
    let owner = Owner::deployment(index);
    replica_set_of(&template(seed, owner), replicas(seed, owner))
}

/// The replica set of a template.
pub(super) fn replica_set_of(workload: &Workload, replicas: u64) -> Sample {
    let all_labels = || workload.labels.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let mut w = Writer::with_capacity(6_144);
    w.object(|w| {
        w.text("kind", "ReplicaSet");
        w.text("apiVersion", "apps/v1");
        w.object_at("metadata", |w| {
            w.text("name", &workload.controller_name);
            w.text("namespace", &workload.namespace);
            w.given("uid", &workload.controller_uid);
            w.given("resourceVersion", &version(workload.rolled_out + 69).to_string());
            w.number("generation", 2);
            w.time("creationTimestamp", workload.rolled_out);
            w.texts("labels", all_labels());
            let wanted = replicas.to_string();
            w.texts(
                "annotations",
                [
                    ("deployment.kubernetes.io/desired-replicas", wanted.as_str()),
                    ("deployment.kubernetes.io/max-replicas", &(replicas + replicas.div_ceil(4)).to_string()),
                    ("deployment.kubernetes.io/revision", "7"),
                ],
            );
            w.array_at("ownerReferences", |w| {
                w.object(|w| {
                    w.text("apiVersion", "apps/v1");
                    w.text("kind", "Deployment");
                    w.text("name", &workload.name);
                    w.text("uid", &workload.parent_uid);
                    w.truth("controller", true);
                    w.truth("blockOwnerDeletion", true);
                });
            });
            w.array_at("managedFields", |w| {
                let manager = "kube-controller-manager";
                entry(w, manager, "apps/v1", workload.rolled_out, None, |w| spec_fields(w, workload));
                let status = r#"{"f:status":{"f:availableReplicas":{},"f:fullyLabeledReplicas":{},"f:observedGeneration":{},"f:readyReplicas":{},"f:replicas":{}}}"#;
                entry_raw(w, manager, workload.rolled_out + 69, status);
            });
        });
        w.object_at("spec", |w| {
            w.number("replicas", replicas);
            selector(w, [workload.selector(), (HASH, &workload.hash)]);
            w.object_at("template", |w| pod_template(w, workload, all_labels()));
        });
        w.object_at("status", |w| {
            for key in ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"] {
                w.number(key, replicas);
            }
            w.number("observedGeneration", 2);
        });
    });
    Sample::namespaced(APPS, "replicasets", &workload.namespace, &workload.controller_name, w)
}

/// The resource version at a time: a busy cluster makes about forty writes per second.
pub(super) fn version(time: i64) -> u64 {
    (time - 1_700_000_000).unsigned_abs() * 120
}

/// Number of pods that the generator creates for an owner.
pub(super) fn replicas(seed: u64, owner: Owner) -> u64 {
    match owner {
        Owner::Deployment { block, role } => {
            let pods = Block::of(seed, block).pods_of_deployment(role);
            pods.end - pods.start
        }
        _ => 1,
    }
}

/// The template's labels without `pod-template-hash`, which differs between revisions.
fn labels(workload: &Workload) -> impl Iterator<Item = (&str, &str)> {
    workload.labels.iter().filter(|(key, _)| key != HASH).map(|(key, value)| (key.as_str(), value.as_str()))
}

fn selector<'a>(w: &mut Writer, labels: impl IntoIterator<Item = (&'a str, &'a str)>) {
    w.object_at("selector", |w| w.texts("matchLabels", labels));
}

fn pod_template<'a>(w: &mut Writer, workload: &Workload, labels: impl IntoIterator<Item = (&'a str, &'a str)>) {
    w.object_at("metadata", |w| {
        w.texts("labels", labels);
        w.texts("annotations", workload.annotations.iter().map(|(key, value)| (key.as_str(), value.as_str())));
    });
    w.object_at("spec", |w| {
        if !workload.volumes.is_empty() {
            w.array_at("volumes", |w| volumes(w, workload, &workload.name));
        }
        w.array_at("containers", |w| workload.containers.iter().for_each(|each| container(w, each, None)));
        w.text("restartPolicy", workload.restart_policy());
        w.number("terminationGracePeriodSeconds", workload.grace);
        w.text("dnsPolicy", "ClusterFirst");
        w.text("serviceAccountName", &workload.name);
        w.text("serviceAccount", &workload.name);
        w.raw("securityContext", "{}");
        w.text("schedulerName", "default-scheduler");
    });
}

fn spec_fields(w: &mut Writer, workload: &Workload) {
    w.object_at("f:metadata", |w| {
        w.object_at("f:labels", |w| labels(workload).for_each(|(key, _)| w.owned(key)));
    });
    w.object_at("f:spec", |w| {
        w.owned("replicas");
        w.owned("selector");
        w.object_at("f:template", |w| {
            w.object_at("f:spec", |w| {
                w.object_at("f:containers", |w| {
                    for container in sorted(&workload.containers, |each| &each.name) {
                        w.keyed_at("name", &container.name, |w| {
                            ["args", "command", "env", "image", "name", "resources"]
                                .iter()
                                .for_each(|each| w.owned(each));
                        });
                    }
                });
            });
        });
    });
}

fn entry_raw(w: &mut Writer, manager: &str, time: i64, fields: &str) {
    w.object(|w| {
        w.text("manager", manager);
        w.text("operation", "Update");
        w.text("apiVersion", "apps/v1");
        w.time("time", time);
        w.text("fieldsType", "FieldsV1");
        w.raw("fieldsV1", fields);
        w.text("subresource", "status");
    });
}

fn condition(w: &mut Writer, kind: &str, since: i64, (reason, message): (&str, &str)) {
    w.object(|w| {
        w.text("type", kind);
        w.text("status", "True");
        w.time("lastUpdateTime", since);
        w.time("lastTransitionTime", since);
        w.text("reason", reason);
        w.text("message", message);
    });
}
