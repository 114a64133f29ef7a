//! Conversion of objects between the versions of a kind.

mod autoscaler;

use serde_json::{Map, Value};

use super::{Kind, prune};

/// Names of event fields that differ between the core group and `events.k8s.io`.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// Converts an object between two kinds with the same storage table.
pub(crate) fn convert(from: &Kind, to: &Kind, object: &mut Value) {
    if from.group == to.group && from.version == to.version {
        return;
    }
    let Value::Object(map) = object else { return };
    match (&*from.plural, &*to.group, &*to.version) {
        ("events", "events.k8s.io", _) => rename(map, EVENT_FIELDS),
        ("events", "", _) => rename(map, EVENT_FIELDS.map(|(core, new)| (new, core))),
        ("horizontalpodautoscalers", "autoscaling", "v1") => autoscaler::to_v1(object),
        ("horizontalpodautoscalers", "autoscaling", "v2") => autoscaler::to_v2(object),
        // Versions of a custom resource differ only in their apiVersion.
        _ => {
            map.insert("apiVersion".to_owned(), to.api_version().into());
            return;
        }
    }
    // Normalizes empty fields for the new version. Stored objects have been decoded before; an
    // object whose decoding fails stays as it is.
    prune(to, object).ok();
}

/// Converts an `autoscaling/v1` autoscaler to `v2`, in which all metrics are fields.
pub(crate) fn autoscaler_to_newest(object: &mut Value) {
    autoscaler::to_v2(object);
}

fn rename<const N: usize>(object: &mut Map<String, Value>, names: [(&str, &str); N]) {
    for (old, new) in names {
        if let Some(value) = object.remove(old) {
            object.insert(new.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::encoding::json::encode_as_is;
    use crate::kinds::Registry;

    fn kind(group: &str, version: &str, plural: &str) -> Arc<Kind> {
        Registry::new().find(group, version, plural).unwrap()
    }

    fn text(kind: &Kind, object: &Value) -> String {
        String::from_utf8(encode_as_is(kind, object)).unwrap()
    }

    #[test]
    fn an_event_goes_from_group_to_group_and_back() {
        let (core, new) = (kind("", "v1", "events"), kind("events.k8s.io", "v1", "events"));
        let mut event = json!({
            "metadata": {"name": "e", "namespace": "n"}, "involvedObject": {"kind": "Pod", "name": "p"}, "reason": "Started",
            "message": "it did", "source": {"component": "kubelet"}, "firstTimestamp": "2026-01-01T00:00:00Z",
            "lastTimestamp": "2026-01-01T00:00:00Z", "count": 3, "type": "Normal", "eventTime": null,
            "reportingComponent": "", "reportingInstance": ""
        });
        prune(&core, &mut event).unwrap();
        let before = event.clone();
        convert(&core, &new, &mut event);
        let expected = r#"{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{"name":"e","namespace":"n"},"eventTime":null,"reason":"Started","regarding":{"kind":"Pod","name":"p"},"note":"it did","type":"Normal","deprecatedSource":{"component":"kubelet"},"deprecatedFirstTimestamp":"2026-01-01T00:00:00Z","deprecatedLastTimestamp":"2026-01-01T00:00:00Z","deprecatedCount":3}"#;
        assert_eq!(text(&new, &event), expected);
        convert(&new, &core, &mut event);
        assert_eq!(event, before);
    }

    #[test]
    fn an_object_that_cannot_be_decoded_is_converted_as_it_is() {
        let (v1, v2) = (
            kind("autoscaling", "v1", "horizontalpodautoscalers"),
            kind("autoscaling", "v2", "horizontalpodautoscalers"),
        );
        let mut hpa =
            json!({"metadata": {"name": "h", "creationTimestamp": "2026-11-15T1<:36:53Z"}, "spec": {"maxReplicas": 3}});
        convert(&v1, &v2, &mut hpa);
        assert_eq!(hpa["metadata"]["creationTimestamp"], "2026-11-15T1<:36:53Z");
    }

    #[test]
    fn an_autoscaler_of_version_1_carries_the_rest_in_annotations() {
        let (v1, v2) = (
            kind("autoscaling", "v1", "horizontalpodautoscalers"),
            kind("autoscaling", "v2", "horizontalpodautoscalers"),
        );
        let mut hpa = json!({
            "metadata": {"name": "h", "annotations": {"mine": "x"}},
            "spec": {
                "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}, "minReplicas": 1, "maxReplicas": 3,
                "metrics": [
                    {"type": "Pods", "pods": {"metric": {"name": "rps", "selector": {"matchLabels": {"a": "b"}}},
                                              "target": {"type": "AverageValue", "averageValue": "10"}}},
                    {"type": "Object", "object": {"describedObject": {"kind": "Service", "name": "s"}, "metric": {"name": "m"},
                                                  "target": {"type": "Value", "value": "5"}}},
                    {"type": "External", "external": {"metric": {"name": "q"}, "target": {"type": "AverageValue", "averageValue": "30"}}},
                    {"type": "ContainerResource", "containerResource": {"name": "memory", "container": "c",
                                                  "target": {"type": "Utilization", "averageUtilization": 50}}},
                    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
                ],
                "behavior": {"scaleDown": {"stabilizationWindowSeconds": 300,
                                           "policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]}}
            },
            "status": {
                "currentReplicas": 2, "desiredReplicas": 3,
                "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "10m", "averageUtilization": 7}}}],
                "conditions": [{"type": "AbleToScale", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "r"}]
            }
        });
        prune(&v2, &mut hpa).unwrap();
        let before = hpa.clone();
        convert(&v2, &v1, &mut hpa);
        assert_eq!(hpa["spec"]["targetCPUUtilizationPercentage"], 80);
        assert_eq!(
            hpa["status"],
            json!({"currentReplicas": 2, "desiredReplicas": 3, "currentCPUUtilizationPercentage": 7})
        );
        let annotations = &hpa["metadata"]["annotations"];
        assert_eq!(annotations["mine"], "x");
        assert_eq!(
            annotations["autoscaling.alpha.kubernetes.io/metrics"],
            r#"[{"type":"Pods","pods":{"metricName":"rps","targetAverageValue":"10","selector":{"matchLabels":{"a":"b"}}}},{"type":"Object","object":{"target":{"kind":"Service","name":"s"},"metricName":"m","targetValue":"5"}},{"type":"External","external":{"metricName":"q","targetAverageValue":"30"}},{"type":"ContainerResource","containerResource":{"name":"memory","targetAverageUtilization":50,"container":"c"}}]"#
        );
        assert_eq!(
            annotations["autoscaling.alpha.kubernetes.io/current-metrics"],
            r#"[{"type":"Resource","resource":{"name":"cpu","currentAverageUtilization":7,"currentAverageValue":"10m"}}]"#
        );
        assert_eq!(
            annotations["autoscaling.alpha.kubernetes.io/conditions"],
            r#"[{"type":"AbleToScale","status":"True","lastTransitionTime":"2026-01-01T00:00:00Z","reason":"r"}]"#
        );
        assert_eq!(
            annotations["autoscaling.alpha.kubernetes.io/behavior"],
            r#"{"ScaleUp":null,"ScaleDown":{"StabilizationWindowSeconds":300,"SelectPolicy":null,"Policies":[{"Type":"Pods","Value":4,"PeriodSeconds":60}],"Tolerance":null}}"#
        );
        convert(&v1, &v2, &mut hpa);
        assert_eq!(hpa, before);
    }

    #[test]
    fn an_autoscaler_of_version_1_that_names_no_metric_scales_by_cpu() {
        let (v1, v2) = (
            kind("autoscaling", "v1", "horizontalpodautoscalers"),
            kind("autoscaling", "v2", "horizontalpodautoscalers"),
        );
        let mut hpa = json!({"metadata": {"name": "h"}, "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "D", "name": "d"}}});
        prune(&v1, &mut hpa).unwrap();
        convert(&v1, &v2, &mut hpa);
        let cpu = json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]);
        assert_eq!(hpa["spec"]["metrics"], cpu);
        assert_eq!(hpa["apiVersion"], "autoscaling/v2");
    }

    #[test]
    fn annotations_that_cannot_be_read_are_dropped() {
        let (v1, v2) = (
            kind("autoscaling", "v1", "horizontalpodautoscalers"),
            kind("autoscaling", "v2", "horizontalpodautoscalers"),
        );
        let metrics = "autoscaling.alpha.kubernetes.io/metrics";
        for bad in ["", "{", "7", "[7]", "[{\"type\":7}]", "{\"ScaleUp\":7}"] {
            let mut hpa = json!({"metadata": {"annotations": {
                metrics: bad, "autoscaling.alpha.kubernetes.io/behavior": bad, "autoscaling.alpha.kubernetes.io/conditions": bad,
                "autoscaling.alpha.kubernetes.io/current-metrics": bad}}});
            prune(&v1, &mut hpa).unwrap();
            convert(&v1, &v2, &mut hpa);
            assert_eq!(hpa["metadata"].get("annotations"), None, "{bad}");
        }
    }
}
