//! Subresources of pods, service accounts and certificate signing requests.

use crate::harness::{Answer, Api, Case, Namespace, case, failure};
use base64::Engine as _;
use serde_json::{Value, json};

pub(crate) const CASES: &[Case] = &[
    case!(the_requester_of_a_certificate_is_the_user, "spec.username, uid and groups are those of the client"),
    case!(certificates_are_approved_by_a_subresource, "only `approval` sets and keeps the conditions of an approval"),
    case!(signing_requests_are_checked, "a request, its usages, signer and lifetime are checked"),
    case!(ephemeral_containers_are_added, "`pods/ephemeralcontainers` adds containers, and changes nothing else"),
    case!(ephemeral_containers_are_checked, "they have no ports, probes or resources, and are never removed"),
    case!(pods_are_resized, "`pods/resize` changes resources, and nothing else"),
    case!(a_resize_is_checked, "a resize changes neither the class of a pod nor anything but cpu and memory"),
    case!(pods_are_bound, "`pods/binding` sets the node once, and the condition PodScheduled"),
    case!(bindings_are_checked, "a binding names its pod and a node, and may have preconditions"),
    case!(bindings_have_a_path_of_their_own, "`bindings` binds the pod that the body names"),
    case!(pods_are_evicted, "`pods/eviction` deletes a pod, after marking it"),
    case!(
        evictions_follow_the_budget,
        "a budget without disruptions refuses with 429; otherwise it counts the eviction"
    ),
    case!(evictions_of_unready_pods, "a pod that is not ready is evicted as the policy of its budget says"),
    case!(evictions_have_options, "an eviction may be a dry run and have preconditions"),
    case!(service_accounts_get_tokens, "`serviceaccounts/token` issues a token, which authenticates"),
    case!(tokens_are_bound, "a token is bound to a pod or a secret, and ends with it"),
    case!(token_requests_are_checked, "lifetime, names and bound objects are checked"),
    case!(the_issuer_of_tokens_is_described, "the OpenID configuration names the issuer, and the keys of its tokens"),
    case!(tokens_are_reviewed, "a TokenReview names the user of a token and its audiences, or what is wrong"),
];

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

fn signing_request(name: &str) -> Value {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    json!({
        "metadata": {"name": name},
        "spec": {
            "request": base64::engine::general_purpose::STANDARD.encode(pem),
            "signerName": "example.com/signer", "usages": ["client auth"],
        },
    })
}

async fn the_requester_of_a_certificate_is_the_user(api: Api) {
    let name = api.unique("a");
    let mut request = signing_request(&name);
    request["spec"]["username"] = json!("somebody");
    request["spec"]["groups"] = json!(["them"]);
    request["status"] = json!({"conditions": [{"type": "Approved", "status": "True"}]});
    api.leave_to_clean_up(&format!("{REQUESTS}/{name}"));
    let made = api.post(REQUESTS, &request).await.is(201).json();
    assert_eq!(made["spec"]["username"], "admin");
    assert_eq!(made["spec"]["uid"], "1");
    assert_eq!(made["spec"]["groups"], json!(["system:masters", "system:authenticated"]));
    assert_eq!(made["spec"].get("extra"), None);
    assert_eq!(made["status"], json!({}));
    let owned = &made["metadata"]["managedFields"];
    assert!(!owned.to_string().contains("f:spec"), "the server resets the spec: {owned}");
    // Neither spec nor status are changed by an update.
    let mut changed = made.clone();
    changed["spec"]["usages"] = json!(["any"]);
    changed["metadata"]["labels"] = json!({"a": "b"});
    let updated = api.put(&format!("{REQUESTS}/{name}"), &changed).await.is(200).json();
    assert_eq!(updated["spec"], made["spec"]);
    assert_eq!(updated["metadata"]["labels"], json!({"a": "b"}));
}

async fn certificates_are_approved_by_a_subresource(api: Api) {
    let name = api.unique("a");
    let path = format!("{REQUESTS}/{name}");
    api.leave_to_clean_up(&path);
    let made = api.post(REQUESTS, signing_request(&name)).await.is(201).json();
    let (approval, status) = (format!("{path}/approval"), format!("{path}/status"));
    let mut wanted = made.clone();
    wanted["status"] = json!({"conditions": [{"type": "Approved", "status": "True", "reason": "r"}]});
    let forbidden = |why: &str| {
        failure(&format!(
            r#""message":"CertificateSigningRequest.certificates.k8s.io \"{name}\" is invalid: status.conditions: Forbidden: {why}","reason":"Invalid","details":{{"name":"{name}","group":"certificates.k8s.io","kind":"CertificateSigningRequest","causes":[{{"reason":"FieldValueForbidden","message":"Forbidden: {why}","field":"status.conditions"}}]}},"code":422"#
        ))
    };
    let refused = api.put(&status, &wanted).await;
    refused.says(422, &forbidden(r#"updates may not add a condition of type \"Approved\""#));
    wanted["spec"]["usages"] = json!(["any"]);
    wanted["status"]["certificate"] = json!("AAAA");
    wanted["metadata"]["labels"] = json!({"a": "b"});
    let approved = api.put(&approval, &wanted).await.is(200).json();
    let condition = &approved["status"]["conditions"][0];
    assert_eq!((&condition["type"], &condition["reason"]), (&json!("Approved"), &json!("r")));
    assert!(condition["lastUpdateTime"].is_string() && condition["lastTransitionTime"].is_string(), "{condition}");
    assert_eq!(approved["status"].get("certificate"), None);
    assert_eq!(approved["spec"], made["spec"]);
    assert_eq!(api.get(&approval).await.is(200).json(), approved);
    // It stays.
    let mut without = approved.clone();
    without["status"] = json!({});
    let refused = api.put(&approval, &without).await;
    refused.says(422, &forbidden(r#"updates may not remove a condition of type \"Approved\""#));
    let mut both = approved.clone();
    let denied = json!({"type": "Denied", "status": "True"});
    both["status"]["conditions"].as_array_mut().unwrap().push(denied);
    let refused = api.put(&approval, &both).await.is(422).json();
    let why = r#"Invalid value: "{conditions[{\"type\": \"Approved\"}], conditions[{\"type\": \"Denied\"}]}": must specify at most one of: `conditions[{"type": "Approved"}]`, `conditions[{"type": "Denied"}]`"#;
    assert_eq!(refused["details"]["causes"][0]["message"], why);
    // The status keeps the approval, and has the certificate.
    let mut issued = approved.clone();
    issued["status"]["conditions"][0]["reason"] = json!("other");
    let failed = json!({"type": "Failed", "status": "True"});
    issued["status"]["conditions"].as_array_mut().unwrap().push(failed);
    let issued = api.put(&status, &issued).await.is(200).json();
    let conditions = issued["status"]["conditions"].as_array().unwrap();
    assert_eq!((&conditions[0]["reason"], &conditions[1]["type"]), (&json!("r"), &json!("Failed")));
    let patch = json!({"status": {"certificate": "AAAA"}});
    let refused = api.patch(&status, "merge-patch", patch).await.is(422).json();
    let why =
        "status.certificate: Invalid value: \"<certificate data>\": must contain at least one CERTIFICATE PEM block";
    assert!(refused["message"].as_str().unwrap().ends_with(why), "{refused}");
}

async fn signing_requests_are_checked(api: Api) {
    let name = api.unique("a");
    let refused = async |field: &str, value: Value| {
        let mut request = signing_request(&name);
        request["spec"][field] = value;
        let answer = api.post(REQUESTS, &request).await.is(422).json();
        let message = answer["message"].as_str().unwrap().to_owned();
        message.split_once("is invalid: ").unwrap().1.to_owned()
    };
    let why = refused("request", json!("AAAA")).await;
    assert_eq!(why, r#"spec.request: Invalid value: "AAAA": PEM block type must be CERTIFICATE REQUEST"#);
    let why = refused("usages", json!([])).await;
    assert_eq!(why, "spec.usages: Required value");
    let why = refused("usages", json!(["client auth", "client auth"])).await;
    assert_eq!(why, r#"spec.usages[1]: Duplicate value: "client auth""#);
    let why = refused("usages", json!(["flying"])).await;
    assert!(
        why.starts_with(r#"spec.usages[0]: Unsupported value: "flying": supported values: "any", "cert sign","#),
        "{why}"
    );
    let why = refused("signerName", json!("a")).await;
    assert_eq!(
        why,
        r#"spec.signerName: Invalid value: "a": must be a fully qualified domain and path of the form 'example.com/signer-name'"#
    );
    let why = refused("signerName", json!("a/b")).await;
    assert_eq!(
        why,
        r#"spec.signerName: Invalid value: "a": should be a domain with at least two segments separated by dots"#
    );
    let why = refused("expirationSeconds", json!(60)).await;
    assert_eq!(
        why,
        "spec.expirationSeconds: Invalid value: 60: may not specify a duration less than 600 seconds (10 minutes)"
    );
}

/// Creates a pod with one container.
async fn pod(api: &Api, ns: &Namespace, name: &str, resources: Value) -> Value {
    let container = json!({"name": "c", "image": "i", "resources": resources});
    let body = json!({"metadata": {"name": name, "labels": {"app": "x"}}, "spec": {"containers": [container]}});
    api.post(&ns.path("pods"), body).await.is(201).json()
}

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

const DONE: &str = "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},\"status\":\"Success\",\"code\":201}\n";

fn binding(pod: &str, node: &str) -> Value {
    json!({"metadata": {"name": pod}, "target": {"kind": "Node", "name": node}})
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

async fn account(api: &Api, ns: &Namespace, name: &str) -> Value {
    api.post(&ns.path("serviceaccounts"), json!({"metadata": {"name": name}})).await.is(201).json()
}

async fn who_is(api: &Api, token: &str) -> Answer {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    api.request("POST", path).token(Some(token)).body("application/json", body).send().await
}

fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).expect("a token has three parts");
    serde_json::from_slice(&base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

async fn service_accounts_get_tokens(api: Api) {
    let ns = api.namespace().await;
    let account = account(&api, &ns, "robot").await;
    let path = ns.path("serviceaccounts/robot/token");
    let answer = api.post(&path, json!({"spec": {"audiences": []}})).await;
    answer.says(
        201,
        &format!(
            r#"{{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","metadata":{{"name":"robot","namespace":"{}","uid":"<uid>","creationTimestamp":"<time>"}},"spec":{{"audiences":["https://kubernetes.default.svc"],"expirationSeconds":3600,"boundObjectRef":null}},"status":{{"token":"<*>","expirationTimestamp":"<time>"}}}}
"#,
            ns.name
        ),
    );
    let token = answer.json()["status"]["token"].as_str().unwrap().to_owned();
    let claims = claims(&token);
    assert_eq!(claims["iss"], "https://kubernetes.default.svc");
    assert_eq!(claims["sub"], format!("system:serviceaccount:{}:robot", ns.name));
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 3600);
    let scope = json!({"namespace": ns.name, "serviceaccount": {"name": "robot", "uid": account["metadata"]["uid"]}});
    assert_eq!(claims["kubernetes.io"], scope);
    // It authenticates.
    let said = who_is(&api, &token).await.is(201).json();
    let user = json!({
        "username": format!("system:serviceaccount:{}:robot", ns.name), "uid": account["metadata"]["uid"],
        "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{}", ns.name), "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": [format!("JTI={}", claims["jti"].as_str().unwrap())]},
    });
    assert_eq!(said["status"]["userInfo"], user);
    let refused = api.request("GET", &ns.path("configmaps")).token(Some(&token)).send().await;
    assert!(refused.is(403).text().contains("system:serviceaccount"), "{}", refused.text());
    // Not with another signature, not for others, and not after the account.
    let (text, signature) = token.rsplit_once('.').unwrap();
    let mut forged: Vec<char> = signature.chars().collect();
    forged[0] = if forged[0] == 'A' { 'B' } else { 'A' };
    who_is(&api, &format!("{text}.{}", forged.iter().collect::<String>())).await.is(401);
    let other = api.post(&path, json!({"spec": {"audiences": ["others"]}})).await.is(201).json();
    who_is(&api, other["status"]["token"].as_str().unwrap()).await.is(401);
    api.delete(&ns.path("serviceaccounts/robot")).await.is(200);
    eventually_refused(&api, &token).await;
}

/// Waits until a token is refused: the real server remembers tokens for ten seconds.
async fn eventually_refused(api: &Api, token: &str) {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    while who_is(api, token).await.code != 401 {
        assert!(tokio::time::Instant::now() < deadline, "the token is refused soon");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

async fn tokens_are_bound(api: Api) {
    let ns = api.namespace().await;
    account(&api, &ns, "robot").await;
    let body = json!({
        "metadata": {"name": "p"},
        "spec": {"serviceAccountName": "robot", "nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    });
    let pod = api.post(&ns.path("pods"), body).await.is(201).json();
    let path = ns.path("serviceaccounts/robot/token");
    let bound = |kind: &str, name: &str| json!({"spec": {"audiences": [], "boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name}}});
    let made = api.post(&path, bound("Pod", "p")).await.is(201).json();
    let token = made["status"]["token"].as_str().unwrap();
    let scope = &claims(token)["kubernetes.io"];
    assert_eq!(scope["pod"], json!({"name": "p", "uid": pod["metadata"]["uid"]}));
    assert_eq!(scope["node"]["name"], "n");
    let said = who_is(&api, token).await.is(201).json();
    let extra = &said["status"]["userInfo"]["extra"];
    assert_eq!(extra["authentication.kubernetes.io/pod-name"], json!(["p"]));
    assert_eq!(extra["authentication.kubernetes.io/node-name"], json!(["n"]));
    api.delete(&ns.path("pods/p?gracePeriodSeconds=0")).await.is(200);
    eventually_refused(&api, token).await;
    api.post(&path, bound("Secret", "none")).await.is(404);
    api.post(&path, bound("ConfigMap", "c")).await.says(
        400,
        &failure(
            r#""message":"cannot bind token to object of type /v1, Kind=ConfigMap","reason":"BadRequest","code":400"#,
        ),
    );
    let other = json!({"metadata": {"name": "q"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    api.post(&ns.path("pods"), other).await.is(201);
    api.post(&path, bound("Pod", "q")).await.says(400, &failure(
        r#""message":"cannot bind token for serviceaccount \"robot\" to pod running with different serviceaccount name.","reason":"BadRequest","code":400"#,
    ));
}

async fn token_requests_are_checked(api: Api) {
    let ns = api.namespace().await;
    account(&api, &ns, "robot").await;
    let path = ns.path("serviceaccounts/robot/token");
    api.post(&path, json!({"spec": {"audiences": [], "expirationSeconds": 60}})).await.says(422, &failure(
        r#""message":"TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes","reason":"Invalid","details":{"group":"authentication.k8s.io","kind":"TokenRequest","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: 60: may not specify a duration less than 10 minutes","field":"spec.expirationSeconds"}]},"code":422"#,
    ));
    api.post(&path, json!({"metadata": {"name": "other"}, "spec": {"audiences": []}})).await.says(422, &failure(
        r#""message":"TokenRequest.authentication.k8s.io \"robot\" is invalid: metadata.name: Invalid value: \"other\": must match the service account name if specified","reason":"Invalid","details":{"name":"robot","group":"authentication.k8s.io","kind":"TokenRequest","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: \"other\": must match the service account name if specified","field":"metadata.name"}]},"code":422"#,
    ));
    api.post(&ns.path("serviceaccounts/none/token"), json!({"spec": {"audiences": []}})).await.says(404, &failure(
        r#""message":"serviceaccounts \"none\" not found","reason":"NotFound","details":{"name":"none","kind":"serviceaccounts"},"code":404"#,
    ));
    api.get(&path).await.is(405);
}

async fn tokens_are_reviewed(api: Api) {
    let ns = api.namespace().await;
    let account = account(&api, &ns, "robot").await;
    let review =
        async |spec: Value| api.post("/apis/authentication.k8s.io/v1/tokenreviews", json!({"spec": spec})).await;
    let asked = json!({"spec": {"audiences": ["a", "https://kubernetes.default.svc"]}});
    let made = api.post(&ns.path("serviceaccounts/robot/token"), asked).await.is(201).json();
    let token = &made["status"]["token"];
    let said = review(json!({"token": token})).await.is(201).json();
    assert_eq!((&said["kind"], &said["spec"]), (&json!("TokenReview"), &json!({"token": token})));
    assert_eq!(said["status"]["authenticated"], true);
    assert_eq!(said["status"]["audiences"], json!(["https://kubernetes.default.svc"]));
    assert_eq!(said["status"]["user"]["username"], format!("system:serviceaccount:{}:robot", ns.name));
    assert_eq!(said["status"]["user"]["uid"], account["metadata"]["uid"]);
    let said = review(json!({"token": token, "audiences": ["a", "b"]})).await.is(201).json();
    assert_eq!((&said["status"]["authenticated"], &said["status"]["audiences"]), (&json!(true), &json!(["a"])));
    let said = review(json!({"token": token, "audiences": ["b"]})).await.is(201).json();
    let why = r#"token audiences ["a" "https://kubernetes.default.svc"] is invalid for the target audiences ["b"]"#;
    assert_eq!(said["status"]["authenticated"], Value::Null);
    assert!(said["status"]["error"].as_str().unwrap().contains(why), "{said}");
    // Other tokens.
    let said = review(json!({"token": api.nobody_token()})).await.is(201).json();
    let user = json!({"username": "nobody", "uid": "2", "groups": ["system:authenticated"]});
    let audiences = json!(["https://kubernetes.default.svc"]);
    assert_eq!(said["status"], json!({"authenticated": true, "user": user, "audiences": audiences}));
    let said = review(json!({"token": "unknown"})).await.is(201).json();
    assert_eq!(said["status"]["user"], json!({}));
    assert!(said["status"]["error"].as_str().unwrap().contains("invalid bearer token"), "{said}");
    review(json!({})).await.says(
        400,
        &failure(r#""message":"token is required for TokenReview in authentication","reason":"BadRequest","code":400"#),
    );
}

async fn the_issuer_of_tokens_is_described(api: Api) {
    let answer = api.get("/.well-known/openid-configuration").await;
    assert_eq!(answer.is(200).header("cache-control"), Some("public, max-age=3600"));
    let configuration = answer.json();
    assert_eq!(configuration["issuer"], "https://kubernetes.default.svc");
    assert!(configuration["jwks_uri"].as_str().unwrap().ends_with("/openid/v1/jwks"), "{configuration}");
    assert_eq!(configuration["id_token_signing_alg_values_supported"], json!(["ES256"]));
    let answer = api.get("/openid/v1/jwks").await;
    assert_eq!(answer.is(200).header("content-type"), Some("application/jwk-set+json"));
    let key = &answer.json()["keys"][0];
    assert_eq!((&key["kty"], &key["crv"], &key["alg"]), (&json!("EC"), &json!("P-256"), &json!("ES256")));
    // The key signs the tokens.
    let ns = api.namespace().await;
    account(&api, &ns, "robot").await;
    let made = api.post(&ns.path("serviceaccounts/robot/token"), json!({"spec": {"audiences": []}})).await.json();
    let token = made["status"]["token"].as_str().unwrap().to_owned();
    let decode = |text: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text).unwrap();
    let header: Value = serde_json::from_slice(&decode(token.split('.').next().unwrap())).unwrap();
    assert_eq!((&header["kid"], &header["alg"]), (&key["kid"], &json!("ES256")));
    let mut point = vec![4];
    point.extend(decode(key["x"].as_str().unwrap()));
    point.extend(decode(key["y"].as_str().unwrap()));
    let (text, signature) = token.rsplit_once('.').unwrap();
    let key = ring::signature::UnparsedPublicKey::new(&ring::signature::ECDSA_P256_SHA256_FIXED, point);
    key.verify(text.as_bytes(), &decode(signature)).unwrap();
}
