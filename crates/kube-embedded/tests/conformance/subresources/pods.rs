//! `pods/ephemeralcontainers`, `pods/resize`, `pods/binding` and `bindings`.

use super::{DONE, binding, pod};
use crate::harness::{Answer, Api, Case, case, failure};
use serde_json::{Value, json};

pub(crate) const CASES: &[Case] = &[
    case!(ephemeral_containers_are_added, "`pods/ephemeralcontainers` adds containers, and changes nothing else"),
    case!(ephemeral_containers_are_checked, "they have no ports, probes or resources, and are never removed"),
    case!(pods_are_resized, "`pods/resize` changes resources, and nothing else"),
    case!(a_resize_is_checked, "a resize changes neither the class of a pod nor anything but cpu and memory"),
    case!(pods_are_bound, "`pods/binding` sets the node once, and the condition PodScheduled"),
    case!(bindings_are_checked, "a binding names its pod and a node, and may have preconditions"),
    case!(bindings_have_a_path_of_their_own, "`bindings` binds the pod that the body names"),
];

/// What is wrong, according to a 422.
fn problem(answer: &Answer) -> String {
    let message = answer.is(422).json()["message"].as_str().unwrap().to_owned();
    message.split_once("is invalid: ").unwrap().1.to_owned()
}

async fn ephemeral_containers_are_added(api: Api) {
    let ns = api.namespace().await;
    let made = pod(&api, &ns, "p", json!({})).await;
    let path = ns.path("pods/p/ephemeralcontainers");
    let patch = json!({
        "metadata": {"labels": {"app": "y"}},
        "spec": {"nodeName": "n", "ephemeralContainers": [{"name": "debug", "image": "d", "targetContainerName": "c"}]},
    });
    let added = api.patch(&path, "strategic-merge-patch", &patch).await.is(200).json();
    let expected = json!({
        "name": "debug", "image": "d", "targetContainerName": "c", "resources": {}, "imagePullPolicy": "Always",
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
    });
    assert_eq!(added["spec"]["ephemeralContainers"], json!([expected]));
    assert_eq!(added["spec"].get("nodeName"), None);
    assert_eq!(added["metadata"]["labels"], made["metadata"]["labels"]);
    assert_eq!(added["metadata"]["generation"], 2);
    let managers = added["metadata"]["managedFields"].as_array().unwrap();
    assert!(managers.iter().any(|entry| entry["subresource"] == "ephemeralcontainers"), "{added}");
    assert_eq!(api.get(&path).await.is(200).json(), added);
    let mut second = added.clone();
    second["spec"]["ephemeralContainers"].as_array_mut().unwrap().push(json!({"name": "more", "image": "d"}));
    assert_eq!(api.put(&path, second).await.is(200).json()["spec"]["ephemeralContainers"][1]["name"], "more");
    api.delete(&path).await.is(405);
}

async fn ephemeral_containers_are_checked(api: Api) {
    let ns = api.namespace().await;
    pod(&api, &ns, "p", json!({})).await;
    let path = ns.path("pods/p/ephemeralcontainers");
    let add = async |container: Value| {
        let patch = json!({"spec": {"ephemeralContainers": [container]}});
        api.patch(&path, "strategic-merge-patch", patch).await
    };
    let field = |field: &str, why: &str| format!("spec.ephemeralContainers[0].{field}: {why}");
    let never = "Forbidden: cannot be set for an Ephemeral Container";
    let answer = add(json!({"name": "c", "image": "i"})).await;
    assert_eq!(problem(&answer), field("name", r#"Duplicate value: "c""#));
    let answer = add(json!({"name": "d", "image": "i", "targetContainerName": "e"})).await;
    assert_eq!(problem(&answer), field("targetContainerName", r#"Not found: "e""#));
    let answer = add(json!({"name": "d", "image": "i", "ports": [{"containerPort": 80}]})).await;
    assert_eq!(problem(&answer), field("ports", never));
    let answer = add(json!({"name": "d", "image": "i", "resources": {"limits": {"cpu": "1"}}})).await;
    assert_eq!(problem(&answer), field("resources", never));
    let answer = add(json!({"name": "d"})).await;
    assert_eq!(problem(&answer), field("image", "Required value"));
    add(json!({"name": "d", "image": "i"})).await.is(200);
    let gone = json!([{"op": "remove", "path": "/spec/ephemeralContainers"}]);
    let why = "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"d\" may not be removed\n";
    assert_eq!(problem(&api.patch(&path, "json-patch", gone).await), why);
    let changed = json!([{"op": "replace", "path": "/spec/ephemeralContainers/0/image", "value": "j"}]);
    let why = "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"d\" may not be changed\n";
    let refused = api.patch(&path, "json-patch", changed).await;
    assert!(problem(&refused).starts_with(why), "{}", refused.text());
    // Not through the pod.
    let patch = json!({"spec": {"ephemeralContainers": [{"name": "e", "image": "i"}]}});
    api.patch(&ns.path("pods/p"), "strategic-merge-patch", patch).await.is(422);
    api.patch(&ns.path("pods/none/ephemeralcontainers"), "merge-patch", json!({})).await.is(404);
}

async fn pods_are_resized(api: Api) {
    let ns = api.namespace().await;
    let made = pod(&api, &ns, "p", json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "200m"}})).await;
    let path = ns.path("pods/p/resize");
    let resources = json!({"requests": {"cpu": "150m"}, "limits": {"cpu": "300m"}});
    let patch = json!({
        "metadata": {"labels": {"app": "y"}},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "other", "resources": resources}]},
    });
    let resized = api.patch(&path, "strategic-merge-patch", patch).await.is(200).json();
    let container = &resized["spec"]["containers"][0];
    assert_eq!((&container["resources"], &container["image"]), (&resources, &json!("i")));
    assert_eq!(resized["metadata"]["labels"], made["metadata"]["labels"]);
    assert_eq!(resized["spec"].get("nodeName"), None);
    assert_eq!(resized["metadata"]["generation"], 2);
    let managers = resized["metadata"]["managedFields"].as_array().unwrap();
    assert!(managers.iter().any(|entry| entry["subresource"] == "resize"), "{resized}");
    assert_eq!(api.get(&path).await.is(200).json(), resized);
}

async fn a_resize_is_checked(api: Api) {
    let ns = api.namespace().await;
    pod(&api, &ns, "p", json!({"requests": {"cpu": "100m"}})).await;
    let path = ns.path("pods/p/resize");
    let resize = async |resources: Value| {
        let patch = json!([{"op": "replace", "path": "/spec/containers/0/resources", "value": resources}]);
        api.patch(&path, "json-patch", patch).await
    };
    let full = json!({"cpu": "1", "memory": "1Gi"});
    let answer = resize(json!({"requests": full, "limits": full})).await;
    assert_eq!(
        problem(&answer),
        r#"spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing"#
    );
    let answer = resize(json!({"requests": {"cpu": "100m", "ephemeral-storage": "1Gi"}})).await;
    assert_eq!(problem(&answer), "spec: Forbidden: only cpu and memory resources are mutable");
    let answer = resize(json!({"requests": {"memory": "1Gi"}})).await;
    assert_eq!(
        problem(&answer),
        "spec.containers[0].resources.requests: Forbidden: resource requests cannot be removed"
    );
    let answer = resize(json!({"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})).await;
    assert_eq!(
        problem(&answer),
        r#"spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1"#
    );
    let renamed = json!([{"op": "replace", "path": "/spec/containers/0/name", "value": "d"}]);
    let answer = api.patch(&path, "json-patch", renamed).await;
    let why = "spec.containers[0].name: Forbidden: containers may not be renamed or reordered on resize";
    assert_eq!(problem(&answer), why);
}

async fn pods_are_bound(api: Api) {
    let ns = api.namespace().await;
    let made = pod(&api, &ns, "p", json!({})).await;
    let path = ns.path("pods/p/binding");
    let mut body = binding("p", "n1");
    body["metadata"]["annotations"] = json!({"a": "b"});
    api.post(&format!("{path}?dryRun=All"), &body).await.says(201, DONE);
    assert_eq!(api.get(&ns.path("pods/p")).await.json(), made);
    api.post(&path, &body).await.says(201, DONE);
    let bound = api.get(&ns.path("pods/p")).await.is(200).json();
    assert_eq!(bound["spec"]["nodeName"], "n1");
    assert_eq!(bound["metadata"]["annotations"], json!({"a": "b"}));
    assert_eq!(bound["metadata"]["generation"], made["metadata"]["generation"]);
    let condition = &bound["status"]["conditions"][0];
    assert_eq!((&condition["type"], &condition["status"]), (&json!("PodScheduled"), &json!("True")));
    assert!(condition["lastProbeTime"].is_null() && condition["lastTransitionTime"].is_string(), "{condition}");
    assert_eq!(bound["metadata"]["managedFields"], made["metadata"]["managedFields"]);
    api.post(&path, binding("p", "n2")).await.says(409, &failure(
        r#""message":"Operation cannot be fulfilled on pods/binding \"p\": pod p is already assigned to node \"n1\"","reason":"Conflict","details":{"name":"p","kind":"pods/binding"},"code":409"#,
    ));
    api.get(&path).await.is(405);
}

async fn bindings_are_checked(api: Api) {
    let ns = api.namespace().await;
    pod(&api, &ns, "p", json!({})).await;
    let path = ns.path("pods/p/binding");
    api.post(&path, binding("q", "n")).await.says(
        400,
        &failure(r#""message":"name in URL does not match name in Binding object","reason":"BadRequest","code":400"#),
    );
    let refused = api.post(&path, json!({"metadata": {"name": "p"}, "target": {}})).await;
    refused.says(500, &failure(r#""message":"target.name: Required value","code":500"#));
    let refused = api.post(&path, json!({"metadata": {"name": "p"}, "target": {"kind": "Rock", "name": "n"}})).await;
    refused.says(
        500,
        &failure(
            r#""message":"target.kind: Unsupported value: \"Rock\": supported values: \"Node\", \"<*>\"","code":500"#,
        ),
    );
    api.post(&ns.path("pods/none/binding"), binding("none", "n")).await.says(404, &failure(
        r#""message":"pods \"none\" not found","reason":"NotFound","details":{"name":"none","kind":"pods"},"code":404"#,
    ));
    let mut other = binding("p", "n");
    other["metadata"]["uid"] = json!("other");
    let refused = api.post(&path, &other).await.is(409).json();
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("Precondition failed: UID in precondition: other, UID in object meta: "), "{message}");
    let mut old = binding("p", "n");
    old["metadata"]["resourceVersion"] = json!("1");
    let refused = api.post(&path, &old).await.is(409).json();
    let message = refused["message"].as_str().unwrap();
    let why = "Precondition failed: ResourceVersion in precondition: 1, ResourceVersion in object meta: ";
    assert!(message.contains(why), "{message}");
    let mut elsewhere = binding("p", "n");
    elsewhere["metadata"]["namespace"] = json!("elsewhere");
    api.post(&path, elsewhere).await.is(400);
}

async fn bindings_have_a_path_of_their_own(api: Api) {
    let ns = api.namespace().await;
    pod(&api, &ns, "p", json!({})).await;
    api.post(&ns.path("bindings"), binding("p", "n1")).await.says(201, DONE);
    assert_eq!(api.get(&ns.path("pods/p")).await.json()["spec"]["nodeName"], "n1");
    api.get(&ns.path("bindings")).await.is(405);
}
