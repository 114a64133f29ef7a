//! Effects of a custom resource's schema: pruning, defaulting and validation, with the messages of
//! kube-apiserver.

use crate::harness::{Answer, Api, Case, case};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

pub(crate) const CASES: &[Case] = &[
    case!(rules_are_checked, "CEL rules of objects, fields, items and entries; messages, reasons and field paths"),
    case!(values_are_checked, "types, bounds, patterns, formats, enums, lists as sets and maps, anyOf and its like"),
    case!(rules_compare_with_what_was, "rules about oldSelf: of fields, of items with keys, optional ones"),
    case!(rules_may_fail_to_run, "a rule that divides by zero or misses a key is reported with its error"),
    case!(a_status_is_checked_by_itself, "writes of /status are held against the schema of status alone"),
    case!(defaults_and_unknown_fields, "defaults within objects, maps and lists; nulls and unknown fields go"),
    case!(rules_have_functions, "rules over strings, lists, maps, numbers and names that CEL cannot spell"),
    case!(what_was_wrong_before_may_stay, "after a stricter schema: what does not change is not refused"),
    case!(definitions_with_rules_are_no_different, "a definition with rules is served and shown as it was sent"),
];

async fn rules_are_checked(api: Api) {
    follow(&api, 0).await;
}

async fn values_are_checked(api: Api) {
    follow(&api, 1).await;
}

async fn rules_compare_with_what_was(api: Api) {
    follow(&api, 2).await;
}

async fn rules_may_fail_to_run(api: Api) {
    follow(&api, 3).await;
}

async fn a_status_is_checked_by_itself(api: Api) {
    follow(&api, 4).await;
}

async fn defaults_and_unknown_fields(api: Api) {
    follow(&api, 5).await;
}

async fn rules_have_functions(api: Api) {
    follow(&api, 6).await;
}

async fn what_was_wrong_before_may_stay(api: Api) {
    follow(&api, 7).await;
}

async fn definitions_with_rules_are_no_different(api: Api) {
    let schema = json!({
        "type": "object",
        "x-kubernetes-validations": [{"rule": "self.metadata.name.size() < 20", "message": "short", "reason": "FieldValueInvalid"}],
    });
    let kind = api.definition(|body| body["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema.clone()).await;
    let shown = api.get(&kind.path).await.is(200).json();
    assert_eq!(shown["spec"]["versions"][0]["schema"]["openAPIV3Schema"], schema);
    let ns = api.namespace().await;
    kind.create(&kind.things(&ns), "short", Value::Null).await;
    api.post(&kind.things(&ns), kind.thing(&"n".repeat(20), Value::Null)).await.is(422);
}

/// Executes one part of the steps recorded from kube-apiserver: first `{"schema", "subresources"}`,
/// then steps, `{"create": name}` or `{"patch": path}` with `{"body", "code"}` and the object, the
/// causes or the warnings.
async fn follow(api: &Api, part: usize) {
    let steps: Vec<Value> =
        include_str!("schemas.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut parts = steps.split(|step| step.get("schema").is_some()).skip(1);
    let head = steps.iter().filter(|step| step.get("schema").is_some()).nth(part).unwrap();
    let kind = api
        .definition(|body| {
            let version = &mut body["spec"]["versions"][0];
            version["schema"]["openAPIV3Schema"] = head["schema"].clone();
            if head.get("subresources").is_some() {
                version["subresources"] = head["subresources"].clone();
            }
        })
        .await;
    let ns = api.namespace().await;
    let things = kind.things(&ns);
    let steps = parts.nth(part).unwrap();
    assert!(steps.len() > 4, "there is something to follow");
    for step in steps {
        if let Some(schema) = step.get("redefine") {
            let change = json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": schema}]);
            api.patch(&kind.path, "json-patch", change).await.is(200);
            let wrong = kind.thing("wrong", json!({"spec": {"a": "longer"}}));
            let deadline = Instant::now() + Duration::from_secs(120);
            while api.post(&format!("{things}?dryRun=All"), &wrong).await.code != 422 {
                assert!(Instant::now() < deadline, "the new schema counts soon");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            continue;
        }
        let answer = match step["create"].as_str() {
            Some(name) => api.post(&things, kind.thing(name, step["body"].clone())).await,
            None => {
                let path = format!("{things}/{}", step["patch"].as_str().unwrap());
                api.patch(&path, "merge-patch", &step["body"]).await
            }
        };
        assert_eq!(answer.code, step["code"], "{step}\n{}", answer.text());
        let found = answer.json();
        if let Some(expected) = step.get("causes") {
            assert_eq!(&causes(&found), expected, "{step}");
        }
        for (part, value) in step["object"].as_object().into_iter().flatten() {
            assert_eq!(&found[part], value, "{step}");
        }
        let warned: Vec<String> = step["warnings"].as_array().into_iter().flatten().map(text).collect();
        let mut found = warnings(&answer);
        if step.get("patch").is_some() {
            // kube-apiserver may have validated an older state first, and returned warnings for it
            // too.
            found.retain(|warning| warned.contains(warning));
        }
        assert_eq!(found, warned, "{step}");
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The causes of a failure, sorted.
fn causes(status: &Value) -> Value {
    let causes = status["details"]["causes"].as_array().cloned().unwrap_or_default();
    let mut causes: Vec<[String; 3]> = causes
        .iter()
        .map(|cause| ["reason", "message", "field"].map(|part| cause[part].as_str().unwrap_or_default().to_owned()))
        .collect();
    causes.sort();
    json!(causes)
}

/// The warnings in the headers.
fn warnings(answer: &Answer) -> Vec<String> {
    let headers = answer.headers.get_all("warning").iter().filter_map(|header| header.to_str().ok());
    let quoted = headers.filter_map(|header| header.strip_prefix("299 - \"")?.strip_suffix('"'));
    quoted.map(|text| text.replace("\\\"", "\"")).collect()
}
