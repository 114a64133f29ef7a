//! Cells of role bindings, certificates, webhooks and admission policies.

use serde_json::Value;

use super::cells;
use super::words::{NONE, UNSET, age, count, items, labels, name, text, text_or};
use crate::kinds::table::age::{self, Moment};

pub(super) fn role_binding(object: &Value, now: Moment) -> Vec<Value> {
    let role = &object["roleRef"];
    let of = |kind: &str| -> String {
        let subjects = items(&object["subjects"]).iter().filter(|subject| subject["kind"] == kind);
        let names = subjects.map(|subject| match kind {
            "ServiceAccount" => format!("{}/{}", text(&subject["namespace"]), text(&subject["name"])),
            _ => text(&subject["name"]).to_owned(),
        });
        names.collect::<Vec<_>>().join(", ")
    };
    cells![
        name(object),
        format!("{}/{}", text(&role["kind"]), text(&role["name"])),
        age(object, now),
        of("User"),
        of("Group"),
        of("ServiceAccount"),
    ]
}

pub(super) fn signing_request(object: &Value, now: Moment) -> Vec<Value> {
    let (spec, status) = (&object["spec"], &object["status"]);
    let has = |kind: &str| items(&status["conditions"]).iter().any(|condition| condition["type"] == kind);
    let mut state = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        state += ",Failed";
    }
    if !text(&status["certificate"]).is_empty() {
        state += ",Issued";
    }
    cells![
        name(object),
        age(object, now),
        text_or(&spec["signerName"], NONE),
        text(&spec["username"]),
        spec["expirationSeconds"].as_i64().map_or_else(|| NONE.to_owned(), age::seconds),
        state,
    ]
}

pub(super) fn trust_bundle(object: &Value, _: Moment) -> Vec<Value> {
    cells![name(object), text_or(&object["spec"]["signerName"], NONE)]
}

pub(super) fn pod_certificate_request(object: &Value, _: Moment) -> Vec<Value> {
    let spec = &object["spec"];
    let states = items(&object["status"]["conditions"]).iter().map(|condition| text(&condition["type"]));
    let state = states.rev().find(|state| matches!(*state, "Issued" | "Denied" | "Failed")).unwrap_or("Pending");
    cells![
        name(object),
        text(&spec["podName"]),
        text(&spec["serviceAccountName"]),
        text(&spec["nodeName"]),
        text(&spec["signerName"]),
        state,
        labels(&spec["unverifiedUserAnnotations"]),
    ]
}

pub(super) fn webhooks(object: &Value, now: Moment) -> Vec<Value> {
    cells![name(object), count(&object["webhooks"]), age(object, now)]
}

pub(super) fn mutating_policy(object: &Value, now: Moment) -> Vec<Value> {
    policy(object, now, "mutations")
}

pub(super) fn validating_policy(object: &Value, now: Moment) -> Vec<Value> {
    policy(object, now, "validations")
}

fn policy(object: &Value, now: Moment, rules: &str) -> Vec<Value> {
    let spec = &object["spec"];
    let parameters = match &spec["paramKind"] {
        Value::Null => UNSET.to_owned(),
        kind => format!("{}/{}", text(&kind["apiVersion"]), text(&kind["kind"])),
    };
    cells![name(object), count(&spec[rules]), parameters, age(object, now)]
}

pub(super) fn policy_binding(object: &Value, now: Moment) -> Vec<Value> {
    let spec = &object["spec"];
    let reference = &spec["paramRef"];
    let parameters = match (text(&reference["name"]), text(&reference["namespace"])) {
        ("", _) if reference["selector"].is_object() => go_selector(&reference["selector"]),
        ("", _) => UNSET.to_owned(),
        (name, "") => format!("*/{name}"),
        (name, namespace) => format!("{namespace}/{name}"),
    };
    cells![name(object), text(&spec["policyName"]), parameters, age(object, now)]
}

/// Formats a label selector as Go prints the struct.
fn go_selector(selector: &Value) -> String {
    let mut labels: Vec<String> = selector["matchLabels"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(label, value)| format!("{label}: {},", text(value)))
        .collect();
    labels.sort_unstable();
    let expressions: String = items(&selector["matchExpressions"])
        .iter()
        .map(|each| {
            let values = super::words::texts(&each["values"]).join(" ");
            let (key, operator) = (text(&each["key"]), text(&each["operator"]));
            format!("LabelSelectorRequirement{{Key:{key},Operator:{operator},Values:[{values}],}},")
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{}}},MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}",
        labels.concat()
    )
}
