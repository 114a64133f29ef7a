//! `HorizontalPodAutoscaler`s: version 1 has one metric and stores the rest of version 2 in
//! annotations.

use serde_json::{Map, Value, json};

use crate::encoding::json::{encode_list, encode_ordered};
use crate::encoding::value::items;
use crate::kinds::prune_struct;
use crate::kinds::schema::{Struct, Structs};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CARRIED: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];
const DEFAULT_CPU_UTILIZATION: i32 = 80;

/// Field names of a metric in version 1, which correspond to `metric` and `target` (or `current`)
/// in version 2.
struct Names {
    /// The metric type, which is the field name in both versions.
    metric: &'static str,
    identifier: Identifier,
    value: Option<&'static str>,
    average_value: &'static str,
    utilization: Option<&'static str>,
}

/// How version 1 identifies the metric.
#[derive(Clone, Copy, PartialEq)]
enum Identifier {
    /// By resource name, as in version 2.
    Resource,
    /// By `metricName` and a selector in this field.
    Metric(&'static str),
}

const SPEC: [Names; 5] = [
    names("object", Identifier::Metric("selector"), Some("targetValue"), "averageValue", None),
    names("pods", Identifier::Metric("selector"), None, "targetAverageValue", None),
    names("resource", Identifier::Resource, None, "targetAverageValue", Some("targetAverageUtilization")),
    names("containerResource", Identifier::Resource, None, "targetAverageValue", Some("targetAverageUtilization")),
    names("external", Identifier::Metric("metricSelector"), Some("targetValue"), "targetAverageValue", None),
];
const STATUS: [Names; 5] = [
    names("object", Identifier::Metric("selector"), Some("currentValue"), "averageValue", None),
    names("pods", Identifier::Metric("selector"), None, "currentAverageValue", None),
    names("resource", Identifier::Resource, None, "currentAverageValue", Some("currentAverageUtilization")),
    names("containerResource", Identifier::Resource, None, "currentAverageValue", Some("currentAverageUtilization")),
    names("external", Identifier::Metric("metricSelector"), Some("currentValue"), "currentAverageValue", None),
];

const fn names(
    metric: &'static str,
    identifier: Identifier,
    value: Option<&'static str>,
    average_value: &'static str,
    utilization: Option<&'static str>,
) -> Names {
    Names { metric, identifier, value, average_value, utilization }
}

/// Which half of a metric is converted.
#[derive(Clone, Copy)]
enum Side {
    Spec,
    Status,
}

impl Side {
    fn names(self) -> &'static [Names] {
        match self {
            Side::Spec => &SPEC,
            Side::Status => &STATUS,
        }
    }

    /// The field name in version 2 of the target or current values.
    fn values(self) -> &'static str {
        match self {
            Side::Spec => "target",
            Side::Status => "current",
        }
    }
}

pub(super) fn to_v1(object: &mut Value) {
    drop_carried(object);
    let metrics = take(&mut object["spec"], "metrics");
    let behavior = take(&mut object["spec"], "behavior");
    let current = take(&mut object["status"], "currentMetrics");
    let conditions = take(&mut object["status"], "conditions");

    let utilization = |metric: &Value, values: &str| {
        let resource = &metric["resource"];
        let cpu = metric["type"] == "Resource" && resource["name"] == "cpu";
        cpu.then(|| resource[values]["averageUtilization"].clone()).filter(|percent| !percent.is_null())
    };
    let (cpu, others): (Vec<&Value>, Vec<&Value>) =
        items(&metrics).iter().partition(|metric| utilization(metric, "target").is_some());
    if let Some(percent) = cpu.first().and_then(|metric| utilization(metric, "target")) {
        object["spec"]["targetCPUUtilizationPercentage"] = percent;
    }
    if let Some(percent) = items(&current).iter().filter_map(|metric| utilization(metric, "current")).next_back() {
        object["status"]["currentCPUUtilizationPercentage"] = percent;
    }

    let others: Vec<Value> = others.into_iter().map(|metric| metric_to_v1(metric, Side::Spec)).collect();
    carry(object, METRICS, "autoscaling/v1/MetricSpec", others);
    let current = items(&current).iter().map(|metric| metric_to_v1(metric, Side::Status)).collect();
    carry(object, CURRENT_METRICS, "autoscaling/v1/MetricStatus", current);
    carry(object, CONDITIONS, "autoscaling/v1/HorizontalPodAutoscalerCondition", items(&conditions).to_vec());
    if behavior.is_object() {
        annotate(object, BEHAVIOR, behavior_to_text(&behavior));
    }
}

pub(super) fn to_v2(object: &mut Value) {
    let carried = |name: &str| -> Option<Value> {
        serde_json::from_str(object["metadata"]["annotations"].get(name)?.as_str()?).ok()
    };
    let list = |name: &str, of: &str| -> Option<Vec<Value>> {
        let Value::Array(mut list) = carried(name)? else { return None };
        let of = Structs::get().of_kind(of)?;
        list.iter_mut().all(|item| prune_struct(of, item).is_ok()).then_some(list)
    };
    let others = list(METRICS, "autoscaling/v1/MetricSpec");
    let current = list(CURRENT_METRICS, "autoscaling/v1/MetricStatus");
    let conditions = list(CONDITIONS, "autoscaling/v1/HorizontalPodAutoscalerCondition");
    let behavior = carried(BEHAVIOR).and_then(|behavior| behavior_from_carried(&behavior));
    drop_carried(object);

    let mut metrics: Vec<Value> = others.iter().flatten().map(|metric| metric_to_v2(metric, Side::Spec)).collect();
    let wanted = take(&mut object["spec"], "targetCPUUtilizationPercentage");
    if !wanted.is_null() {
        metrics.push(cpu_metric("target", &json!({"type": "Utilization", "averageUtilization": wanted})));
    } else if metrics.is_empty() {
        let target = json!({"type": "Utilization", "averageUtilization": DEFAULT_CPU_UTILIZATION});
        metrics.push(cpu_metric("target", &target));
    }
    set(&mut object["spec"], "metrics", Value::Array(metrics));
    if let Some(behavior) = behavior {
        set(&mut object["spec"], "behavior", behavior);
    }
    let measured = take(&mut object["status"], "currentCPUUtilizationPercentage");
    if let Some(current) = current {
        let current = current.iter().map(|metric| metric_to_v2(metric, Side::Status)).collect();
        set(&mut object["status"], "currentMetrics", Value::Array(current));
    } else if !measured.is_null() {
        let current = json!([cpu_metric("current", &json!({"averageUtilization": measured}))]);
        set(&mut object["status"], "currentMetrics", current);
    }
    if let Some(conditions) = conditions {
        set(&mut object["status"], "conditions", Value::Array(conditions));
    }
}

fn cpu_metric(values: &str, content: &Value) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu", values: content}})
}

fn metric_to_v1(metric: &Value, side: Side) -> Value {
    let mut converted = json!({"type": metric["type"]});
    for names in side.names() {
        let Some(from) = metric.get(names.metric).filter(|from| from.is_object()) else { continue };
        let values = &from[side.values()];
        let mut to = Map::new();
        let mut put = |name: &str, value: &Value| {
            if !value.is_null() {
                to.insert(name.to_owned(), value.clone());
            }
        };
        match names.identifier {
            Identifier::Resource => {
                put("name", &from["name"]);
                put("container", &from["container"]);
            }
            Identifier::Metric(selector) => {
                put("metricName", &from["metric"]["name"]);
                put(selector, &from["metric"]["selector"]);
                put("target", &from["describedObject"]);
            }
        }
        if let Some(value) = names.value {
            put(value, &values["value"]);
        }
        put(names.average_value, &values["averageValue"]);
        if let Some(utilization) = names.utilization {
            put(utilization, &values["averageUtilization"]);
        }
        converted[names.metric] = Value::Object(to);
    }
    converted
}

fn metric_to_v2(metric: &Value, side: Side) -> Value {
    let mut converted = json!({"type": metric["type"]});
    for names in side.names() {
        let Some(from) = metric.get(names.metric).filter(|from| from.is_object()) else { continue };
        let field = |name: Option<&str>| name.map_or(Value::Null, |name| from[name].clone());
        let (mut value, average) = (field(names.value), field(Some(names.average_value)));
        let utilization = field(names.utilization);
        let mut values = match side {
            Side::Status => json!({}),
            Side::Spec if names.metric == "object" && average.is_null() => json!({"type": "Value"}),
            Side::Spec if names.metric == "external" && !value.is_null() => json!({"type": "Value"}),
            Side::Spec if !utilization.is_null() => json!({"type": "Utilization"}),
            Side::Spec => json!({"type": "AverageValue"}),
        };
        // Version 1 requires an object metric's value and writes 0 if there is none.
        if matches!(side, Side::Spec) && names.metric == "object" && !average.is_null() && value == "0" {
            value = Value::Null;
        }
        for (name, value) in [("value", value), ("averageValue", average), ("averageUtilization", utilization)] {
            set(&mut values, name, value);
        }
        let mut to = json!({side.values(): values});
        match names.identifier {
            Identifier::Resource => {
                set(&mut to, "name", from["name"].clone());
                set(&mut to, "container", from["container"].clone());
            }
            Identifier::Metric(selector) => {
                to["metric"] = json!({"name": from["metricName"]});
                set(&mut to["metric"], "selector", from[selector].clone());
                set(&mut to, "describedObject", from["target"].clone());
            }
        }
        converted[names.metric] = to;
    }
    converted
}

/// Encodes the behavior with the field names of the server's internal type, which the annotation
/// contains.
fn behavior_to_text(behavior: &Value) -> String {
    let rules = |rules: &Value| match rules {
        Value::Object(_) => {
            let policies = match &rules["policies"] {
                Value::Array(policies) => {
                    let policies: Vec<String> = policies
                        .iter()
                        .map(|policy| {
                            encode_ordered(&[
                                ("Type", &policy["type"]),
                                ("Value", &policy["value"]),
                                ("PeriodSeconds", &policy["periodSeconds"]),
                            ])
                        })
                        .collect();
                    format!("[{}]", policies.join(","))
                }
                _ => "null".to_owned(),
            };
            let head = encode_ordered(&[
                ("StabilizationWindowSeconds", &rules["stabilizationWindowSeconds"]),
                ("SelectPolicy", &rules["selectPolicy"]),
            ]);
            let tail = encode_ordered(&[("Tolerance", &rules["tolerance"])]);
            format!("{},\"Policies\":{policies},{}", head.trim_end_matches('}'), tail.trim_start_matches('{'))
        }
        _ => "null".to_owned(),
    };
    format!("{{\"ScaleUp\":{},\"ScaleDown\":{}}}", rules(&behavior["scaleUp"]), rules(&behavior["scaleDown"]))
}

fn behavior_from_carried(carried: &Value) -> Option<Value> {
    let mut behavior = lower_first(carried);
    let map = behavior.as_object_mut()?;
    map.retain(|_, rules| !rules.is_null());
    if map.is_empty() {
        return None;
    }
    let of = Structs::get().of_kind("autoscaling/v2/HorizontalPodAutoscaler")?;
    let mut whole = json!({"spec": {"behavior": behavior}});
    prune_struct(of, &mut whole).ok()?;
    Some(whole["spec"]["behavior"].take())
}

/// Lowercases the first letter of keys: Go decodes keys case-insensitively.
fn lower_first(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let lower = |key: &str| {
                let mut chars = key.chars();
                chars.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(chars).collect::<String>()
            };
            Value::Object(map.iter().map(|(key, value)| (lower(key), lower_first(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(lower_first).collect()),
        other => other.clone(),
    }
}

fn carry(object: &mut Value, name: &str, of: &str, mut list: Vec<Value>) {
    let Some(of) = Structs::get().of_kind(of) else { return };
    if list.is_empty() || list.iter_mut().any(|item| prune_struct(of, item).is_err()) {
        return;
    }
    annotate(object, name, text_of(of, &list));
}

fn text_of(of: &'static Struct, list: &[Value]) -> String {
    String::from_utf8_lossy(&encode_list(of, list)).into_owned()
}

fn annotate(object: &mut Value, name: &str, text: String) {
    let Some(metadata) = object.get_mut("metadata").filter(|metadata| metadata.is_object()) else { return };
    if !metadata["annotations"].is_object() {
        metadata["annotations"] = json!({});
    }
    metadata["annotations"][name] = text.into();
}

fn drop_carried(object: &mut Value) {
    if let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        for name in CARRIED {
            annotations.remove(name);
        }
    }
}

fn take(object: &mut Value, name: &str) -> Value {
    object.as_object_mut().and_then(|map| map.remove(name)).unwrap_or_default()
}

fn set(object: &mut Value, name: &str, value: Value) {
    if let (Some(map), false) = (object.as_object_mut(), value.is_null()) {
        map.insert(name.to_owned(), value);
    }
}
