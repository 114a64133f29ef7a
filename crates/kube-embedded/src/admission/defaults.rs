//! Defaulting: fills in the fields that the real server defaults, for the kinds that programs
//! commonly write.

mod pod;

pub(crate) use self::pod::quality_of_service;

use serde_json::{Map, Value, json};

use crate::kinds::Kind;

/// An object or a nested object in it.
type Part = Map<String, Value>;

/// Fills in the defaults of a built-in kind.
pub(crate) fn fill(kind: &Kind, object: &mut Value) {
    let Some(object) = object.as_object_mut() else { return };
    match (&*kind.group, &*kind.kind) {
        ("", "Pod") => {
            within(object, "spec", |spec| {
                pod::fill_spec(spec);
                pod::fill_own(spec);
            });
        }
        ("", "PodTemplate") => fill_template(object),
        ("", "ReplicationController") => {
            let labels = template_labels(object);
            within(object, "spec", |spec| {
                set(spec, "replicas", 1);
                if let Some(labels) = &labels {
                    set(spec, "selector", labels.clone());
                }
                fill_template(spec);
            });
            fill_labels(object, labels);
        }
        ("", "Service") => within(object, "spec", fill_service),
        ("", "Secret") => set(object, "type", "Opaque"),
        ("", "PersistentVolumeClaim") => within(object, "spec", |spec| set(spec, "volumeMode", "Filesystem")),
        ("", "PersistentVolume") => within(object, "spec", |spec| {
            set(spec, "persistentVolumeReclaimPolicy", "Retain");
            set(spec, "volumeMode", "Filesystem");
            within(spec, "hostPath", |path| set(path, "type", ""));
        }),
        ("", "Endpoints") => each(object, "subsets", |subset| each(subset, "ports", fill_protocol)),
        ("apps", workload) => within(object, "spec", |spec| {
            fill_workload(workload, spec);
            fill_template(spec);
        }),
        ("batch", "Job") => {
            let labels = template_labels(object);
            within(object, "spec", |spec| {
                fill_job(spec);
                fill_template(spec);
            });
            fill_labels(object, labels);
        }
        ("batch", "CronJob") => within(object, "spec", |spec| {
            set(spec, "concurrencyPolicy", "Allow");
            set(spec, "suspend", false);
            set(spec, "successfulJobsHistoryLimit", 3);
            set(spec, "failedJobsHistoryLimit", 1);
            within(spec, "jobTemplate", |job| within(job, "spec", fill_template));
        }),
        ("autoscaling", "HorizontalPodAutoscaler") => within(object, "spec", |spec| {
            set(spec, "minReplicas", 1);
            if kind.version == "v2" {
                let target = json!({"type": "Utilization", "averageUtilization": 80});
                set(spec, "metrics", json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]));
            }
        }),
        ("discovery.k8s.io", "EndpointSlice") => each(object, "ports", |port| {
            set(port, "name", "");
            fill_protocol(port);
        }),
        ("networking.k8s.io", "NetworkPolicy") => within(object, "spec", fill_network_policy),
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => fill_binding(object),
        ("scheduling.k8s.io", "PriorityClass") => set(object, "preemptionPolicy", "PreemptLowerPriority"),
        ("storage.k8s.io", "StorageClass") => {
            set(object, "reclaimPolicy", "Delete");
            set(object, "volumeBindingMode", "Immediate");
        }
        ("storage.k8s.io", "CSIDriver") => within(object, "spec", fill_csi_driver),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration") => each(object, "webhooks", |webhook| {
            fill_webhook(webhook);
            set(webhook, "reinvocationPolicy", "Never");
        }),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration") => each(object, "webhooks", fill_webhook),
        ("apiregistration.k8s.io", "APIService") => {
            within(object, "spec", |spec| within(spec, "service", |service| set(service, "port", 443)));
        }
        _ => {}
    }
}

fn fill_template(spec: &mut Part) {
    within(spec, "template", |template| within(template, "spec", pod::fill_spec));
}

/// The labels of the pod template.
fn template_labels(object: &Part) -> Option<Value> {
    let labels = object.get("spec")?.get("template")?.get("metadata")?.get("labels")?;
    labels.as_object().is_some_and(|labels| !labels.is_empty()).then(|| labels.clone())
}

/// An object without labels gets the labels of its pod template.
fn fill_labels(object: &mut Part, labels: Option<Value>) {
    if let Some(labels) = labels {
        within(object, "metadata", |metadata| set(metadata, "labels", labels));
    }
}

fn fill_workload(kind: &str, spec: &mut Part) {
    match kind {
        "Deployment" => {
            set(spec, "replicas", 1);
            set(spec, "revisionHistoryLimit", 10);
            set(spec, "progressDeadlineSeconds", 600);
            fill_strategy(spec, "strategy", &json!({"maxUnavailable": "25%", "maxSurge": "25%"}));
        }
        "ReplicaSet" => set(spec, "replicas", 1),
        "StatefulSet" => {
            set(spec, "replicas", 1);
            set(spec, "revisionHistoryLimit", 10);
            set(spec, "podManagementPolicy", "OrderedReady");
            set(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
            within(spec, "persistentVolumeClaimRetentionPolicy", |policy| {
                set(policy, "whenDeleted", "Retain");
                set(policy, "whenScaled", "Retain");
            });
            fill_strategy(spec, "updateStrategy", &json!({"partition": 0, "maxUnavailable": 1}));
            each(spec, "volumeClaimTemplates", |claim| {
                within(claim, "spec", |spec| set(spec, "volumeMode", "Filesystem"));
                within(claim, "status", |status| set(status, "phase", "Pending"));
            });
        }
        "DaemonSet" => {
            set(spec, "revisionHistoryLimit", 10);
            fill_strategy(spec, "updateStrategy", &json!({"maxUnavailable": 1, "maxSurge": 0}));
        }
        _ => {}
    }
}

/// Defaults to a rolling update with these parameters, unless another strategy is set.
fn fill_strategy(spec: &mut Part, name: &str, rolling: &Value) {
    set(spec, name, json!({}));
    within(spec, name, |strategy| {
        set(strategy, "type", "RollingUpdate");
        if strategy["type"] != "RollingUpdate" {
            return;
        }
        set(strategy, "rollingUpdate", json!({}));
        within(strategy, "rollingUpdate", |own| {
            for (name, value) in rolling.as_object().into_iter().flatten() {
                set(own, name, value.clone());
            }
        });
    });
}

fn fill_job(spec: &mut Part) {
    let given = |spec: &Part, name: &str| spec.get(name).is_some_and(|value| !value.is_null());
    if !given(spec, "completions") && !given(spec, "parallelism") {
        set(spec, "completions", 1);
    }
    set(spec, "parallelism", 1);
    set(spec, "backoffLimit", 6);
    set(spec, "completionMode", "NonIndexed");
    set(spec, "suspend", false);
    set(spec, "manualSelector", false);
    let replacement = if given(spec, "podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    set(spec, "podReplacementPolicy", replacement);
}

fn fill_service(spec: &mut Part) {
    set(spec, "type", "ClusterIP");
    set(spec, "sessionAffinity", "None");
    if spec["type"] != "ExternalName" {
        set(spec, "internalTrafficPolicy", "Cluster");
    }
    if matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer")) {
        set(spec, "externalTrafficPolicy", "Cluster");
    }
    if spec["type"] == "LoadBalancer" {
        set(spec, "allocateLoadBalancerNodePorts", true);
    }
    each(spec, "ports", |port| {
        fill_protocol(port);
        let number = port.get("port").cloned().unwrap_or(Value::Null);
        if matches!(port.get("targetPort"), Some(target) if *target == 0 || *target == "") {
            port.remove("targetPort");
        }
        set(port, "targetPort", number);
    });
}

fn fill_network_policy(spec: &mut Part) {
    for direction in ["ingress", "egress"] {
        each(spec, direction, |rule| each(rule, "ports", fill_protocol));
    }
    let types = if spec.contains_key("egress") { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    set(spec, "policyTypes", types);
}

fn fill_binding(binding: &mut Part) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    within(binding, "roleRef", |role| set(role, "apiGroup", GROUP));
    each(binding, "subjects", |subject| {
        if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
            set(subject, "apiGroup", GROUP);
        }
    });
}

fn fill_csi_driver(spec: &mut Part) {
    set(spec, "attachRequired", true);
    set(spec, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    set(spec, "volumeLifecycleModes", json!(["Persistent"]));
    for name in
        ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount", "preventPodSchedulingIfMissing"]
    {
        set(spec, name, false);
    }
}

fn fill_webhook(webhook: &mut Part) {
    set(webhook, "failurePolicy", "Fail");
    set(webhook, "matchPolicy", "Equivalent");
    set(webhook, "namespaceSelector", json!({}));
    set(webhook, "objectSelector", json!({}));
    set(webhook, "timeoutSeconds", 10);
    each(webhook, "rules", |rule| set(rule, "scope", "*"));
    within(webhook, "clientConfig", |client| within(client, "service", |service| set(service, "port", 443)));
}

fn fill_protocol(port: &mut Part) {
    set(port, "protocol", "TCP");
}

/// Sets a field that is missing, null or an empty string.
fn set(part: &mut Part, name: &str, value: impl Into<Value>) {
    let there = part.get(name).is_some_and(|value| !value.is_null() && *value != "");
    if !there {
        part.insert(name.to_owned(), value.into());
    }
}

/// Applies `fill` to a nested object, if it exists.
fn within(part: &mut Part, name: &str, fill: impl FnOnce(&mut Part)) {
    if let Some(Value::Object(inner)) = part.get_mut(name) {
        fill(inner);
    }
}

/// Applies `fill` to each element of a list.
fn each(part: &mut Part, name: &str, fill: impl Fn(&mut Part)) {
    let items = part.get_mut(name).and_then(Value::as_array_mut);
    for item in items.into_iter().flatten().filter_map(Value::as_object_mut) {
        fill(item);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::json::encode_as_is;
    use crate::kinds::{Registry, prune};

    /// Objects recorded from a real server already have all defaults.
    #[test]
    fn recorded_objects_have_nothing_to_fill_in() {
        let recorded = include_str!("../encoding/json/recorded-objects.jsonl");
        let mut seen = 0;
        for line in recorded.lines() {
            let Ok(mut object) = serde_json::from_str::<Value>(line) else { continue };
            let text = |name: &str| object[name].as_str().unwrap_or_default().to_owned();
            let (api_version, kind) = (text("apiVersion"), text("kind"));
            let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
            let Some(kind) = Registry::new().by_kind(group, version, &kind) else { continue };
            prune(&kind, &mut object).unwrap();
            let before = String::from_utf8(encode_as_is(&kind, &object)).unwrap();
            fill(&kind, &mut object);
            assert_eq!(String::from_utf8(encode_as_is(&kind, &object)).unwrap(), before);
            seen += 1;
        }
        assert!(seen > 50, "only {seen} objects");
    }

    #[test]
    fn a_deployment_is_filled_in_down_to_its_containers() {
        let kind = Registry::new().find("apps", "v1", "deployments").unwrap();
        let mut object = json!({"metadata": {"name": "a"}, "spec": {
            "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        }});
        prune(&kind, &mut object).unwrap();
        fill(&kind, &mut object);
        let expected = json!({
            "replicas": 1, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
                "containers": [{"name": "c", "image": "i", "resources": {}, "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File", "imagePullPolicy": "Always"}],
                "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst", "securityContext": {},
                "schedulerName": "default-scheduler"
            }},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
            "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600
        });
        assert_eq!(object["spec"], expected);
    }
}
