//! Defaults of pods and their containers and volumes.

use serde_json::{Value, json};

use super::{Part, each, fill_protocol, set, within};

/// Fills in the defaults of a pod spec, of a pod or a pod template.
pub(super) fn fill_spec(spec: &mut Part) {
    set(spec, "restartPolicy", "Always");
    set(spec, "terminationGracePeriodSeconds", 30);
    set(spec, "dnsPolicy", "ClusterFirst");
    set(spec, "securityContext", json!({}));
    set(spec, "schedulerName", "default-scheduler");
    for containers in ["initContainers", "containers", "ephemeralContainers"] {
        each(spec, containers, fill_container);
    }
    each(spec, "volumes", fill_volume);
}

/// Fills in the defaults that pods have but pod templates do not.
pub(super) fn fill_own(spec: &mut Part) {
    set(spec, "enableServiceLinks", true);
    if spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
        spec.insert("terminationGracePeriodSeconds".to_owned(), 1.into());
    }
    if spec.get("priorityClassName").and_then(Value::as_str).unwrap_or_default().is_empty() {
        set(spec, "priority", 0);
        set(spec, "preemptionPolicy", "PreemptLowerPriority");
    }
    for containers in ["initContainers", "containers"] {
        each(spec, containers, |container| within(container, "resources", request_limits));
    }
    for taint in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        tolerate(spec, taint);
    }
}

fn fill_container(container: &mut Part) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = if is_latest(image) { "Always" } else { "IfNotPresent" };
    set(container, "imagePullPolicy", policy);
    set(container, "terminationMessagePath", "/dev/termination-log");
    set(container, "terminationMessagePolicy", "File");
    each(container, "ports", fill_protocol);
    each(container, "env", |env| within(env, "valueFrom", |from| within(from, "fieldRef", fill_field_reference)));
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        within(container, probe, |probe| {
            for (name, value) in
                [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
            {
                set_number(probe, name, value);
            }
            within(probe, "httpGet", fill_http);
            within(probe, "grpc", |grpc| set(grpc, "service", ""));
        });
    }
    within(container, "lifecycle", |lifecycle| {
        for hook in ["postStart", "preStop"] {
            within(lifecycle, hook, |hook| within(hook, "httpGet", fill_http));
        }
    });
}

/// Whether an image has no tag or the tag `latest`. An image with a digest never counts as latest.
fn is_latest(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    match image.rsplit('/').next().unwrap_or_default().split_once(':') {
        None => true,
        Some((_, tag)) => tag == "latest",
    }
}

fn fill_http(get: &mut Part) {
    set(get, "path", "/");
    set(get, "scheme", "HTTP");
}

fn fill_field_reference(reference: &mut Part) {
    set(reference, "apiVersion", "v1");
}

fn fill_volume(volume: &mut Part) {
    if volume.keys().all(|name| name == "name") {
        set(volume, "emptyDir", json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        within(volume, source, |source| set(source, "defaultMode", 420));
    }
    within(volume, "hostPath", |path| set(path, "type", ""));
    within(volume, "downwardAPI", fill_downward);
    within(volume, "projected", |projected| {
        each(projected, "sources", |source| {
            within(source, "downwardAPI", fill_downward);
            within(source, "serviceAccountToken", |token| set(token, "expirationSeconds", 3600));
        });
    });
    within(volume, "ephemeral", |ephemeral| {
        within(ephemeral, "volumeClaimTemplate", |claim| {
            within(claim, "spec", |spec| set(spec, "volumeMode", "Filesystem"));
        });
    });
}

fn fill_downward(downward: &mut Part) {
    each(downward, "items", |item| within(item, "fieldRef", fill_field_reference));
}

/// Resources with a limit but no request get the limit as their request.
fn request_limits(resources: &mut Part) {
    let Some(Value::Object(limits)) = resources.get("limits").cloned() else { return };
    set(resources, "requests", json!({}));
    within(resources, "requests", |requests| {
        for (name, limit) in limits {
            set(requests, &name, limit);
        }
    });
}

/// Adds a toleration of 300 seconds for a taint of failing nodes, unless the pod tolerates it
/// already.
fn tolerate(spec: &mut Part, taint: &str) {
    let tolerates = |toleration: &Value| {
        let text = |name: &str| toleration[name].as_str().unwrap_or_default();
        matches!(text("key"), key if key == taint || key.is_empty())
            && matches!(text("effect"), "NoExecute" | "")
            && (text("key") == taint || text("operator") == "Exists")
    };
    let tolerations = spec.get("tolerations").and_then(Value::as_array);
    if tolerations.into_iter().flatten().any(tolerates) {
        return;
    }
    let toleration = json!({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
    match spec.get_mut("tolerations").and_then(Value::as_array_mut) {
        Some(tolerations) => tolerations.push(toleration),
        None => {
            spec.insert("tolerations".to_owned(), json!([toleration]));
        }
    }
}

/// Sets a number of a probe; 0 counts as not set.
fn set_number(part: &mut Part, name: &str, value: i64) {
    if part.get(name).and_then(Value::as_i64).unwrap_or(0) == 0 {
        part.insert(name.to_owned(), value.into());
    }
}

/// The quality-of-service class of a pod, from the requests and limits of its containers.
pub(crate) fn quality_of_service(pod: &Value) -> &'static str {
    let lists = ["initContainers", "containers"];
    let containers = || lists.iter().flat_map(|list| pod["spec"][list].as_array().into_iter().flatten());
    let amount = |container: &Value, kind: &str, name: &str| -> Option<String> {
        container["resources"][kind][name].as_str().filter(|amount| *amount != "0").map(str::to_owned)
    };
    let all = ["cpu", "memory"];
    let best_effort = containers()
        .all(|c| all.iter().all(|name| amount(c, "requests", name).is_none() && amount(c, "limits", name).is_none()));
    if best_effort {
        return "BestEffort";
    }
    let guaranteed = containers().all(|c| {
        all.iter().all(|name| {
            let limit = amount(c, "limits", name);
            limit.is_some() && (limit == amount(c, "requests", name))
        })
    });
    if guaranteed { "Guaranteed" } else { "Burstable" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_a_tag_is_pulled_always() {
        for latest in ["i", "registry:5000/a/b", "a/b:latest"] {
            assert!(is_latest(latest), "{latest}");
        }
        for fixed in ["i:1", "registry:5000/a/b:v2", "i@sha256:0", "i:latest@sha256:0"] {
            assert!(!is_latest(fixed), "{fixed}");
        }
    }

    #[test]
    fn the_class_of_a_pod_follows_from_its_requests() {
        let pod = |resources: Value| json!({"spec": {"containers": [{"resources": resources}]}});
        let full = json!({"cpu": "1", "memory": "1Gi"});
        assert_eq!(quality_of_service(&pod(json!({}))), "BestEffort");
        assert_eq!(quality_of_service(&pod(json!({"requests": {"cpu": "1"}}))), "Burstable");
        assert_eq!(quality_of_service(&pod(json!({"requests": full, "limits": full}))), "Guaranteed");
    }
}
