//! `pods/eviction`: disruption budgets, conditions and options.

use super::{DONE, binding, pod};
use crate::harness::{Api, Case, Namespace, case, failure};
use serde_json::{Value, json};

pub(crate) const CASES: &[Case] = &[
    case!(pods_are_evicted, "`pods/eviction` deletes a pod, after marking it"),
    case!(
        evictions_follow_the_budget,
        "a budget without disruptions refuses with 429; otherwise it counts the eviction"
    ),
    case!(evictions_of_unready_pods, "a pod that is not ready is evicted as the policy of its budget says"),
    case!(evictions_have_options, "an eviction may be a dry run and have preconditions"),
];

fn eviction(pod: &str) -> Value {
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod}})
}

async fn pods_are_evicted(api: Api) {
    let ns = api.namespace().await;
    pod(&api, &ns, "p", json!({})).await;
    let path = ns.path("pods/p/eviction");
    api.post(&path, eviction("q")).await.says(
        400,
        &failure(r#""message":"name in URL does not match name in Eviction object","reason":"BadRequest","code":400"#),
    );
    api.post(&path, eviction("p")).await.says(201, DONE);
    api.get(&ns.path("pods/p")).await.is(404);
    api.post(&path, eviction("p")).await.is(404);
    // A pod on a node gets its grace period.
    pod(&api, &ns, "q", json!({})).await;
    api.post(&ns.path("pods/q/binding"), binding("q", "n")).await.is(201);
    api.post(&ns.path("pods/q/eviction"), eviction("q")).await.says(201, DONE);
    let leaving = api.get(&ns.path("pods/q")).await.is(200).json();
    assert!(leaving["metadata"]["deletionTimestamp"].is_string());
    let condition = &leaving["status"]["conditions"][1];
    assert_eq!(
        (&condition["type"], &condition["reason"]),
        (&json!("DisruptionTarget"), &json!("EvictionByEvictionAPI"))
    );
    assert_eq!(condition["message"], "Eviction API: evicting");
}

/// Creates a budget with this status for the pods of the case.
async fn budget(api: &Api, ns: &Namespace, name: &str, status: Value) -> String {
    let budgets = ns.group_path("policy/v1", "poddisruptionbudgets");
    let spec = json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "x"}}});
    api.post(&budgets, json!({"metadata": {"name": name}, "spec": spec})).await.is(201);
    let path = format!("{budgets}/{name}");
    api.patch(&format!("{path}/status"), "merge-patch", json!({"status": status})).await.is(200);
    path
}

/// Makes a pod run.
async fn run(api: &Api, ns: &Namespace, name: &str, ready: bool) {
    pod(api, ns, name, json!({})).await;
    let condition = json!({"type": "Ready", "status": if ready { "True" } else { "False" }});
    let status = json!({"status": {"phase": "Running", "conditions": [condition]}});
    api.patch(&ns.path(&format!("pods/{name}/status")), "merge-patch", status).await.is(200);
}

async fn evictions_follow_the_budget(api: Api) {
    let ns = api.namespace().await;
    run(&api, &ns, "p", true).await;
    let path = ns.path("pods/p/eviction");
    let refused = |why: &str, retry: &str| {
        failure(&format!(
            r#""message":"Cannot evict pod as it would violate the pod's disruption budget.","reason":"TooManyRequests","details":{{"causes":[{{"reason":"DisruptionBudget","message":"{why}"}}]{retry}}},"code":429"#
        ))
    };
    let none = json!({
        "observedGeneration": 0, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1,
    });
    let budget = budget(&api, &ns, "b", none).await;
    let answer = api.post(&path, eviction("p")).await;
    answer.says(
        429,
        &refused("The disruption budget b is still being processed by the server.", r#","retryAfterSeconds":10"#),
    );
    assert_eq!(answer.header("retry-after"), Some("10"));
    let status = async |status: Value| {
        api.patch(&format!("{budget}/status"), "merge-patch", json!({"status": status})).await.is(200);
    };
    status(json!({"observedGeneration": 1})).await;
    let answer = api.post(&path, eviction("p")).await;
    answer.says(429, &refused("The disruption budget b needs 1 healthy pods and has 1 currently", ""));
    assert_eq!(answer.header("retry-after"), None);
    api.post(&format!("{path}?dryRun=All"), eviction("p")).await.is(429);
    status(json!({"disruptionsAllowed": 1, "currentHealthy": 2})).await;
    api.post(&format!("{path}?dryRun=All"), eviction("p")).await.says(201, DONE);
    assert_eq!(api.get(&budget).await.json()["status"]["disruptionsAllowed"], 1);
    api.post(&path, eviction("p")).await.says(201, DONE);
    let counted = api.get(&budget).await.json();
    assert_eq!(counted["status"]["disruptionsAllowed"], 0);
    assert!(counted["status"]["disruptedPods"]["p"].is_string(), "{counted}");
    let condition = &counted["status"]["conditions"][0];
    assert_eq!((&condition["type"], &condition["status"]), (&json!("DisruptionAllowed"), &json!("False")));
    assert_eq!(condition["reason"], "InsufficientPods");
    api.get(&ns.path("pods/p")).await.is(404);
}

async fn evictions_of_unready_pods(api: Api) {
    let ns = api.namespace().await;
    run(&api, &ns, "p", false).await;
    run(&api, &ns, "q", false).await;
    let status = json!({
        "observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 1, "expectedPods": 2,
    });
    let path = budget(&api, &ns, "b", status).await;
    api.post(&ns.path("pods/p/eviction"), eviction("p")).await.is(429);
    // The application is not disrupted.
    let healthy = json!({"status": {"currentHealthy": 1}});
    api.patch(&format!("{path}/status"), "merge-patch", healthy).await.is(200);
    api.post(&ns.path("pods/p/eviction"), eviction("p")).await.says(201, DONE);
    // Two budgets are a failure.
    budget(&api, &ns, "c", json!({"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 2})).await;
    api.post(&ns.path("pods/q/eviction"), eviction("q")).await.says(
        500,
        &failure(
            r#""message":"This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.","code":500"#,
        ),
    );
}

async fn evictions_have_options(api: Api) {
    let ns = api.namespace().await;
    let made = pod(&api, &ns, "p", json!({})).await;
    let path = ns.path("pods/p/eviction");
    let with = |options: Value| {
        let mut eviction = eviction("p");
        eviction["deleteOptions"] = options;
        eviction
    };
    api.post(&path, with(json!({"dryRun": ["All"]}))).await.says(201, DONE);
    assert_eq!(api.get(&ns.path("pods/p")).await.json(), made);
    let refused = api.post(&path, with(json!({"preconditions": {"uid": "other"}}))).await.is(409).json();
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("the UID in the precondition (other) does not match the UID in record ("), "{message}");
    assert_eq!(refused["details"], json!({"name": "p", "kind": "Pod"}));
    let refused = api.post(&path, with(json!({"preconditions": {"resourceVersion": "1"}}))).await;
    refused.is(409);
    let version = json!({"preconditions": {"resourceVersion": made["metadata"]["resourceVersion"]}});
    api.post(&path, with(version)).await.says(201, DONE);
    api.get(&ns.path("pods/p")).await.is(404);
}
