//! Webhooks for admission and conversion, called at their URL.

use crate::harness::{Answer, Api, Case, Definition, Namespace, case};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

pub(crate) const CASES: &[Case] = &[
    case!(
        objects_are_changed_and_checked,
        "mutating webhooks first, then validating ones, which see the result; warnings"
    ),
    case!(
        requests_are_described,
        "what a webhook receives about a create, an update, a status, a deletion and a dry run"
    ),
    case!(refusals_have_their_status, "code, reason and message of a refusal, with and without explanation"),
    case!(failures_follow_the_policy, "no server, errors, timeouts and wrong answers: 500, or ignored"),
    case!(conditions_and_selectors_choose, "matchConditions in CEL, objectSelector, namespaceSelector, rules"),
    case!(
        configurations_are_validated,
        "side effects, timeout, policies, client, rules and names of a webhook are checked"
    ),
    case!(objects_are_converted, "a conversion webhook is called for reads, writes and watches in another version"),
    case!(conversions_that_fail_are_errors, "500 if a conversion webhook fails, and nothing is written"),
    case!(conversions_are_validated, "strategy, client and review versions of a conversion are checked"),
    case!(custom_kinds_are_admitted_in_the_version_asked_for, "a webhook for v1 receives v1, also for a request in v2"),
];

/// A server of webhooks. What it answers depends on the path.
struct Hooks {
    url: String,
    authority: String,
    received: Arc<Mutex<Vec<(String, Value)>>>,
    _tasks: JoinSet<()>,
}

impl Hooks {
    async fn start() -> Self {
        let certified = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(certified.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let received = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), Arc::clone(&received)));
        Self { url, authority: STANDARD.encode(certified.cert.pem()), received, _tasks: tasks }
    }

    fn client(&self, path: &str) -> Value {
        json!({"url": format!("{}{path}", self.url), "caBundle": self.authority})
    }

    /// The requests that a path received, oldest first.
    fn received(&self, path: &str) -> Vec<Value> {
        let received = self.received.lock().unwrap();
        received.iter().filter(|(at, _)| at == path).map(|(_, request)| request.clone()).collect()
    }

    fn forget(&self) {
        self.received.lock().unwrap().clear();
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, received: Arc<Mutex<Vec<(String, Value)>>>) {
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        let (acceptor, received) = (acceptor.clone(), Arc::clone(&received));
        connections.spawn(async move {
            let Ok(socket) = acceptor.accept(socket).await else { return };
            let answer = service_fn(|request| answer(request, Arc::clone(&received)));
            http1::Builder::new().serve_connection(TokioIo::new(socket), answer).await.ok();
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    received: Arc<Mutex<Vec<(String, Value)>>>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let review: Value = serde_json::from_slice(&body).unwrap();
    if review["kind"] == "ConversionReview" {
        let mut response = Response::new(Full::from(conversion(&review["request"]).to_string()));
        response.headers_mut().insert("content-type", "application/json".parse().unwrap());
        return Ok(response);
    }
    assert_eq!((&review["kind"], &review["apiVersion"]), (&json!("AdmissionReview"), &json!("admission.k8s.io/v1")));
    let request = review["request"].clone();
    let mut response = json!({"uid": request["uid"], "allowed": true});
    received.lock().unwrap().push((path.clone(), request));
    match path.as_str() {
        "/mutate" => {
            let patch = json!([{"op": "add", "path": "/data", "value": {"from": "webhook"}}]).to_string();
            response["patchType"] = json!("JSONPatch");
            response["patch"] = json!(STANDARD.encode(patch));
            response["warnings"] = json!(["it was changed"]);
        }
        "/deny" => {
            response["allowed"] = json!(false);
            response["status"] = json!({"message": "not today", "reason": "Forbidden", "code": 403});
        }
        "/silent" => response["allowed"] = json!(false),
        "/wrong" => response["uid"] = json!("x"),
        "/slow" => sleep(Duration::from_secs(3)).await,
        _ => {}
    }
    let review = json!({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response});
    let (code, kind, body) = match path.as_str() {
        "/error" => (StatusCode::INTERNAL_SERVER_ERROR, "text/plain", "boom".to_owned()),
        "/absent" => (StatusCode::NOT_FOUND, "text/plain", "no".to_owned()),
        _ => (StatusCode::OK, "application/json", review.to_string()),
    };
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = code;
    response.headers_mut().insert("content-type", kind.parse().unwrap());
    Ok(response)
}

/// A webhook for objects with the label `hook: NAME` in a namespace.
fn webhook(ns: &Namespace, name: &str, client: &Value) -> Value {
    json!({
        "name": format!("{name}.example.com"),
        "clientConfig": client,
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns.name}},
        "objectSelector": {"matchLabels": {"hook": name}},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    })
}

/// Creates a configuration and waits until it is in force: its last webhook then denies requests.
async fn configure(api: &Api, ns: &Namespace, hooks: &Hooks, kind: &str, mut webhooks: Vec<Value>) {
    let ready = api.unique("ready");
    webhooks.push(webhook(ns, &ready, &hooks.client("/deny")));
    let plural = format!("{}s", kind.to_lowercase());
    let collection = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
    let name = api.unique(&plural);
    api.leave_to_clean_up(&format!("{collection}/{name}"));
    api.post(&collection, json!({"metadata": {"name": name}, "webhooks": webhooks})).await.is(201);
    let deadline = Instant::now() + Duration::from_secs(60);
    while post(api, ns, "ready", &ready, "?dryRun=All").await.code != 403 {
        assert!(Instant::now() < deadline, "the configuration is in force soon");
        sleep(Duration::from_millis(20)).await;
    }
    hooks.forget();
}

async fn post(api: &Api, ns: &Namespace, name: &str, hook: &str, query: &str) -> Answer {
    let map = json!({"metadata": {"name": name, "labels": {"hook": hook}}});
    api.post(&format!("{}{query}", ns.path("configmaps")), map).await
}

async fn objects_are_changed_and_checked(api: Api) {
    let (ns, hooks) = (api.namespace().await, Hooks::start().await);
    configure(&api, &ns, &hooks, "ValidatingWebhookConfiguration", vec![webhook(&ns, "a", &hooks.client("/allow"))])
        .await;
    configure(&api, &ns, &hooks, "MutatingWebhookConfiguration", vec![webhook(&ns, "a", &hooks.client("/mutate"))])
        .await;
    let answer = post(&api, &ns, "m", "a", "").await;
    let made = answer.is(201).json();
    assert_eq!(made["data"], json!({"from": "webhook"}));
    assert_eq!(answer.header("warning"), Some("299 - \"it was changed\""));
    assert_eq!(hooks.received("/allow")[0]["object"]["data"], made["data"]);
    assert_eq!(hooks.received("/allow")[0]["object"]["metadata"]["uid"], made["metadata"]["uid"]);
    // What a webhook set belongs to no manager.
    let owned = &made["metadata"]["managedFields"][0]["fieldsV1"];
    assert_eq!(owned, &json!({"f:metadata": {"f:labels": {".": {}, "f:hook": {}}}}));
    // In an update and a patch, too.
    let path = ns.path("configmaps/m");
    let patched = api.patch(&path, "merge-patch", json!({"data": {"from": "client"}})).await.is(200).json();
    assert_eq!(patched["data"], made["data"]);
    let read = api.get(&path).await.is(200).json();
    assert_eq!(read["data"], made["data"]);
}

async fn requests_are_described(api: Api) {
    let (ns, hooks) = (api.namespace().await, Hooks::start().await);
    configure(&api, &ns, &hooks, "ValidatingWebhookConfiguration", vec![webhook(&ns, "a", &hooks.client("/allow"))])
        .await;
    let path = ns.path("configmaps/m");
    post(&api, &ns, "m", "a", "?fieldManager=me").await.is(201);
    let mut stored = api.get(&path).await.is(200).json();
    stored["data"] = json!({"a": "b"});
    let updated = api.put(&path, &stored).await.is(200).json();
    api.delete(&format!("{path}?dryRun=All")).await.is(200);
    api.delete(&path).await.is(200);
    let received = hooks.received("/allow");
    let kind = json!({"group": "", "version": "v1", "kind": "ConfigMap"});
    let resource = json!({"group": "", "version": "v1", "resource": "configmaps"});
    for (request, operation) in received.iter().zip(["CREATE", "UPDATE", "DELETE", "DELETE"]) {
        assert_eq!((&request["kind"], &request["requestKind"]), (&kind, &kind));
        assert_eq!((&request["resource"], &request["requestResource"]), (&resource, &resource));
        assert_eq!((&request["name"], &request["namespace"]), (&json!("m"), &json!(ns.name)));
        assert_eq!(request["operation"], operation);
        assert_eq!(request["userInfo"]["username"], "admin");
        assert_eq!(request["userInfo"]["groups"], json!(["system:masters", "system:authenticated"]));
    }
    assert_eq!(received.len(), 4);
    let dry: Vec<&Value> = received.iter().map(|request| &request["dryRun"]).collect();
    assert_eq!(dry, [false, false, true, false]);
    let objects: Vec<bool> = received.iter().map(|request| request["object"].is_object()).collect();
    let old: Vec<bool> = received.iter().map(|request| request["oldObject"].is_object()).collect();
    assert_eq!((objects, old), (vec![true, true, false, false], vec![false, true, true, true]));
    assert_eq!(received[1]["object"]["data"], json!({"a": "b"}));
    assert_eq!(received[1]["oldObject"].get("data"), None);
    assert_eq!(received[2]["oldObject"]["metadata"]["uid"], updated["metadata"]["uid"]);
    assert_eq!(received[0]["object"]["kind"], "ConfigMap");
    assert_eq!(received[0]["options"]["kind"], "CreateOptions");
    assert_eq!(received[3]["options"]["kind"], "DeleteOptions");
}

async fn refusals_have_their_status(api: Api) {
    let (ns, hooks) = (api.namespace().await, Hooks::start().await);
    let webhooks = vec![webhook(&ns, "a", &hooks.client("/deny")), webhook(&ns, "b", &hooks.client("/silent"))];
    configure(&api, &ns, &hooks, "ValidatingWebhookConfiguration", webhooks).await;
    post(&api, &ns, "m", "a", "").await.says(
        403,
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"admission webhook \"a.example.com\" denied the request: not today","reason":"Forbidden","code":403}
"#,
    );
    post(&api, &ns, "m", "b", "").await.says(
        400,
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"admission webhook \"b.example.com\" denied the request without explanation","code":400}
"#,
    );
    api.get(&ns.path("configmaps/m")).await.is(404);
    // A deletion is refused, too, also of a collection.
    ns.create(json!({"metadata": {"name": "n"}})).await;
    let patch = json!([{"op": "add", "path": "/metadata/labels", "value": {"hook": "a"}}]);
    api.patch(&ns.path("configmaps/n"), "json-patch", patch).await.is(403);
    api.delete(&ns.path("configmaps/n")).await.is(200);
}

async fn failures_follow_the_policy(api: Api) {
    let (ns, hooks) = (api.namespace().await, Hooks::start().await);
    let mut webhooks: Vec<Value> = ["wrong", "error", "absent", "slow"]
        .map(|name| {
            let mut webhook = webhook(&ns, name, &hooks.client(&format!("/{name}")));
            webhook["timeoutSeconds"] = json!(if name == "slow" { 1 } else { 10 });
            webhook
        })
        .into();
    // Nothing listens there.
    let closed = json!({"url": "https://127.0.0.1:1/closed", "caBundle": hooks.authority});
    webhooks.push(webhook(&ns, "closed", &closed));
    let mut ignored = webhook(&ns, "ignored", &closed);
    ignored["failurePolicy"] = json!("Ignore");
    webhooks.push(ignored);
    configure(&api, &ns, &hooks, "ValidatingWebhookConfiguration", webhooks).await;
    for (name, why) in [
        ("wrong", r#"received invalid webhook response: expected response.uid="<*>", got "x""#),
        (
            "error",
            r#"failed to call webhook: an error on the server ("boom") has prevented the request from succeeding"#,
        ),
        ("absent", "failed to call webhook: the server could not find the requested resource"),
        ("slow", r#"failed to call webhook: Post "<*>/slow?timeout=1s": context deadline exceeded"#),
        (
            "closed",
            r#"failed to call webhook: Post "https://127.0.0.1:1/closed?timeout=10s": dial tcp 127.0.0.1:1: connect: connection refused"#,
        ),
    ] {
        let why = format!(r#"failed calling webhook "{name}.example.com": {why}"#).replace('"', "\\\"");
        let expected = format!(
            r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"Internal error occurred: {why}","reason":"InternalError","details":{{"causes":[{{"message":"{why}"}}]}},"code":500}}
"#
        );
        post(&api, &ns, "m", name, "").await.says(500, &expected);
    }
    post(&api, &ns, "m", "ignored", "").await.is(201);
}

async fn conditions_and_selectors_choose(api: Api) {
    let (ns, hooks) = (api.namespace().await, Hooks::start().await);
    let mut conditional = webhook(&ns, "a", &hooks.client("/deny"));
    conditional["matchConditions"] = json!([
        {"name": "not-free", "expression": "!object.metadata.name.startsWith('free')"},
        {"name": "by-admin", "expression": "request.userInfo.username == 'admin'"},
    ]);
    let mut created = webhook(&ns, "b", &hooks.client("/deny"));
    created["rules"][0]["operations"] = json!(["UPDATE"]);
    let mut failing = webhook(&ns, "c", &hooks.client("/deny"));
    failing["matchConditions"] = json!([{"name": "fails", "expression": "object.data.missing == 'x'"}]);
    configure(&api, &ns, &hooks, "ValidatingWebhookConfiguration", vec![conditional, created, failing]).await;
    post(&api, &ns, "m", "a", "").await.is(403);
    post(&api, &ns, "free", "a", "").await.is(201);
    post(&api, &ns, "m", "b", "").await.is(201);
    let change = json!({"data": {"a": "b"}});
    api.patch(&ns.path("configmaps/m"), "merge-patch", change).await.is(403);
    // A condition that cannot be evaluated is a failure.
    post(&api, &ns, "n", "c", "").await.is(403);
    assert_eq!(hooks.received("/deny").len(), 2);
    // In another namespace nobody asks.
    let other = api.namespace_called("other").await;
    post(&api, &other, "m", "a", "").await.is(201);
}

async fn custom_kinds_are_admitted_in_the_version_asked_for(api: Api) {
    let hooks = Hooks::start().await;
    let kind = api
        .definition(|body| {
            let mut second = body["spec"]["versions"][0].clone();
            second["name"] = json!("v2");
            second["storage"] = json!(false);
            body["spec"]["versions"].as_array_mut().unwrap().push(second);
        })
        .await;
    let ns = api.namespace().await;
    let mut webhook = webhook(&ns, "a", &hooks.client("/allow"));
    webhook["rules"][0] =
        json!({"apiGroups": [kind.group], "apiVersions": ["v1"], "operations": ["*"], "resources": ["things"]});
    configure(&api, &ns, &hooks, "ValidatingWebhookConfiguration", vec![webhook]).await;
    let things = format!("/apis/{}/v2/namespaces/{}/things", kind.group, ns.name);
    let thing = json!({
        "apiVersion": format!("{}/v2", kind.group), "kind": "Thing", "metadata": {"name": "x", "labels": {"hook": "a"}},
    });
    api.eventually(&things, |answer| answer.code == 200).await;
    let made = api.post(&things, &thing).await.is(201).json();
    assert_eq!(made["apiVersion"], thing["apiVersion"]);
    let received = &hooks.received("/allow")[0];
    assert_eq!((&received["kind"]["version"], &received["requestKind"]["version"]), (&json!("v1"), &json!("v2")));
    assert_eq!(received["object"]["apiVersion"], json!(format!("{}/v1", kind.group)));
}

/// Defines a kind with versions v1, which is stored and has `spec.size`, and v2, which has
/// `spec.width` instead.
async fn converted(api: &Api, client: &Value) -> Definition {
    let client = client.clone();
    api.definition(move |body| {
        let mut second = body["spec"]["versions"][0].clone();
        second["name"] = json!("v2");
        second["storage"] = json!(false);
        body["spec"]["versions"].as_array_mut().unwrap().push(second);
        let webhook = json!({"clientConfig": client, "conversionReviewVersions": ["v1"]});
        body["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": webhook});
    })
    .await
}

/// What the webhook answers: the name or a label says how it fails.
fn conversion(request: &Value) -> Value {
    let objects = request["objects"].as_array().unwrap();
    let mut converted: Vec<Value> =
        objects.iter().map(|object| convert(object, &request["desiredAPIVersion"])).collect();
    let mut result = json!({"status": "Success"});
    let metadata = &objects[0]["metadata"];
    match metadata["labels"]["failure"].as_str().or(metadata["name"].as_str()) {
        Some("refused") => result = json!({"status": "Failure", "message": "no way"}),
        Some("lost") => converted.clear(),
        Some("renamed") => converted[0]["metadata"]["name"] = json!("z"),
        _ => {}
    }
    let response = json!({"uid": request["uid"], "convertedObjects": converted, "result": result});
    json!({"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "response": response})
}

/// Converts an object as the webhook of the test does.
fn convert(object: &Value, version: &Value) -> Value {
    let mut converted = object.clone();
    converted["apiVersion"] = version.clone();
    let (from, to) = if version.as_str().unwrap().ends_with("/v2") { ("size", "width") } else { ("width", "size") };
    if let Some(spec) = converted["spec"].as_object_mut()
        && let Some(value) = spec.remove(from)
    {
        spec.insert(to.to_owned(), value);
    }
    converted["metadata"]["annotations"]["converted"] = json!(to);
    // Only labels and annotations may change.
    converted["metadata"]["generation"] = json!(77);
    converted
}

async fn objects_are_converted(api: Api) {
    let (ns, hooks) = (api.namespace().await, Hooks::start().await);
    let kind = converted(&api, &hooks.client("/convert")).await;
    let base = |version: &str| format!("/apis/{}/{version}/namespaces/{}/things", kind.group, ns.name);
    let (first, second) = (base("v1"), base("v2"));
    api.eventually(&second, |answer| answer.code == 200).await;
    let mut watched = api.eventually_watch(&format!("{second}?watch=true&resourceVersion=0")).await;
    let thing = |version: &str, name: &str, spec: Value| {
        let api_version = format!("{}/{version}", kind.group);
        json!({"apiVersion": api_version, "kind": "Thing", "metadata": {"name": name}, "spec": spec})
    };
    // A write in the other version is converted, and so is the answer.
    let made = api.post(&second, thing("v2", "a", json!({"width": 1}))).await.is(201).json();
    assert_eq!((&made["spec"], &made["metadata"]["generation"]), (&json!({"width": 1}), &json!(1)));
    assert_eq!(made["apiVersion"], format!("{}/v2", kind.group));
    let stored = api.get(&format!("{first}/a")).await.is(200).json();
    assert_eq!(stored["spec"], json!({"size": 1}));
    assert_eq!(stored["metadata"]["annotations"], json!({"converted": "size"}));
    assert_eq!(stored["metadata"]["uid"], made["metadata"]["uid"]);
    // So are reads, updates, patches and deletions.
    let read = api.get(&format!("{second}/a")).await.is(200).json();
    assert_eq!((&read["spec"], &read["metadata"]["generation"]), (&json!({"width": 1}), &json!(1)));
    assert_eq!(read["metadata"]["annotations"], json!({"converted": "width"}));
    let patch = json!({"spec": {"width": 2}});
    let patched = api.patch(&format!("{second}/a"), "merge-patch", patch).await.is(200).json();
    assert_eq!((&patched["spec"], &patched["metadata"]["generation"]), (&json!({"width": 2}), &json!(2)));
    assert_eq!(api.get(&format!("{first}/a")).await.json()["spec"], json!({"size": 2}));
    let mut changed = patched.clone();
    changed["spec"]["width"] = json!(3);
    assert_eq!(api.put(&format!("{second}/a"), &changed).await.is(200).json()["spec"], json!({"width": 3}));
    api.post(&first, thing("v1", "b", json!({"size": 4}))).await.is(201);
    let listed = api.get(&second).await.is(200).json();
    let sizes: Vec<&Value> = listed["items"].as_array().unwrap().iter().map(|item| &item["spec"]["width"]).collect();
    assert_eq!(sizes, [3, 4]);
    assert_eq!(listed["apiVersion"], format!("{}/v2", kind.group));
    api.delete(&format!("{second}/a")).await.is(200);
    api.get(&format!("{first}/a")).await.is(404);
    // And watches.
    for expected in [("ADDED", 1), ("MODIFIED", 2), ("MODIFIED", 3), ("ADDED", 4), ("DELETED", 3)] {
        let event = watched.next_within(Duration::from_secs(30)).await;
        assert_eq!((event.kind(), &event.json["object"]["spec"]), (expected.0, &json!({"width": expected.1})));
    }
}

async fn conversions_that_fail_are_errors(api: Api) {
    let (ns, hooks) = (api.namespace().await, Hooks::start().await);
    let kind = converted(&api, &hooks.client("/convert")).await;
    let base = |version: &str| format!("/apis/{}/{version}/namespaces/{}/things", kind.group, ns.name);
    api.eventually(&base("v2"), |answer| answer.code == 200).await;
    for (failure, why) in [
        ("refused", "failed: no way"),
        ("lost", "returned 0 objects, expected 1"),
        ("renamed", "returned invalid object: must have the same name: renamed != z"),
    ] {
        let thing = |version: &str| {
            let (api_version, metadata) = (format!("{}/{version}", kind.group), json!({"name": failure}));
            json!({"apiVersion": api_version, "kind": "Thing", "metadata": metadata, "spec": {"size": 1}})
        };
        api.post(&base("v1"), thing("v1")).await.is(201);
        let failed = |version: &str| format!("conversion webhook for {}/{version}, Kind=Thing {why}", kind.group);
        let (group, name) = (&kind.group, &ns.name);
        let refused = api.get(&format!("{}/{failure}", base("v2"))).await.is(500).json();
        let message = refused["message"].as_str().unwrap();
        let start = format!(
            "Internal error occurred: StorageError: corrupt object, Code: 7, Key: /{group}/things/{name}/{failure}, \
             ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision="
        );
        assert!(message.starts_with(&start) && message.ends_with(&failed("v1")), "{message}");
        let mut another = thing("v2");
        another["metadata"] = json!({"generateName": failure, "labels": {"failure": failure}});
        let refused = api.post(&base("v2"), another).await.is(500).json();
        let message = refused["message"].as_str().unwrap();
        assert!(message.starts_with("conversion webhook for ") && refused.get("reason").is_none(), "{refused}");
        let patch = json!({"spec": {"size": 2}});
        let refused = api.patch(&format!("{}/{failure}", base("v2")), "merge-patch", patch).await.is(500).json();
        let message = refused["message"].as_str().unwrap();
        assert!(message.starts_with("object not decodable revision=") && message.ends_with(&failed("v1")), "{message}");
        let kept = api.get(&format!("{}/{failure}", base("v1"))).await.is(200).json();
        assert_eq!(kept["spec"], json!({"size": 1}));
    }
    assert_eq!(api.get(&base("v1")).await.is(200).names(), ["lost", "refused", "renamed"]);
    api.delete(&base("v1")).await.is(200);
}

async fn conversions_are_validated(api: Api) {
    let refused = async |conversion: Value| {
        let group = format!("{}.example.com", api.unique("g"));
        let schema = json!({"openAPIV3Schema": {"type": "object"}});
        let body = json!({
            "metadata": {"name": format!("things.{group}")},
            "spec": {
                "group": group, "scope": "Namespaced", "names": {"plural": "things", "kind": "Thing"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}], "conversion": conversion,
            },
        });
        let answer = api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body).await.is(422).json();
        answer["message"].as_str().unwrap().split_once("is invalid: ").unwrap().1.to_owned()
    };
    let client = json!({"url": "https://127.0.0.1:1/c"});
    assert_eq!(
        refused(json!({"strategy": "Webhook"})).await,
        "[spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook, \
         spec.conversion.conversionReviewVersions: Required value]"
    );
    assert_eq!(
        refused(json!({"strategy": "Rock"})).await,
        r#"spec.conversion.strategy: Unsupported value: "Rock": supported values: "None", "Webhook""#
    );
    let with = |client: &Value, versions: Value| json!({"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": versions}});
    assert_eq!(
        refused(with(&json!({}), json!(["v1"]))).await,
        "spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required"
    );
    assert_eq!(
        refused(with(&json!({"url": "http://a"}), json!(["v1"]))).await,
        r#"spec.conversion.webhookClientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]"#
    );
    assert_eq!(
        refused(with(&client, json!(["x"]))).await,
        r#"spec.conversion.conversionReviewVersions: Invalid value: ["x"]: must include at least one of v1, v1beta1"#
    );
    let mut none = with(&client, json!(["v1"]));
    none["strategy"] = json!("None");
    assert_eq!(
        refused(none).await,
        "[spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook, \
         spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook]"
    );
}

async fn configurations_are_validated(api: Api) {
    let refused = async |changes: Value| {
        let mut webhook = json!({
            "name": "a.example.com", "clientConfig": {"url": "https://127.0.0.1:1/x"}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
        });
        for (path, value) in changes.as_object().unwrap() {
            *webhook.pointer_mut(path).unwrap_or_else(|| panic!("no {path}")) = value.clone();
        }
        let body = json!({"metadata": {"name": api.unique("x")}, "webhooks": [webhook]});
        let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations?dryRun=All";
        let answer = api.post(path, body).await.is(422).json();
        answer["message"].as_str().unwrap().split_once("is invalid: webhooks[0].").unwrap().1.to_owned()
    };
    for (changes, why) in [
        (
            json!({"/sideEffects": "Some"}),
            r#"sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun""#,
        ),
        (json!({"/sideEffects": null}), "sideEffects: Required value: must specify one of None, NoneOnDryRun"),
        (
            json!({"/admissionReviewVersions": []}),
            "admissionReviewVersions: Required value: must specify one of v1, v1beta1",
        ),
        (
            json!({"/admissionReviewVersions": ["v2"]}),
            r#"admissionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1"#,
        ),
        (
            json!({"": with_timeout(31)}),
            "timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
        ),
        (
            json!({"/name": "a"}),
            r#"name: Invalid value: "a": should be a domain with at least three segments separated by dots"#,
        ),
        (json!({"/clientConfig": {}}), "clientConfig: Required value: exactly one of url or service is required"),
        (
            json!({"/clientConfig/url": "http://a"}),
            r#"clientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]"#,
        ),
        (json!({"/rules/0/apiGroups": []}), "rules[0].apiGroups: Required value"),
        (json!({"/rules/0/resources": []}), "rules[0].resources: Required value"),
        (
            json!({"/rules/0/operations": ["FLY"]}),
            r#"rules[0].operations[0]: Unsupported value: "FLY": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE""#,
        ),
    ] {
        assert_eq!(refused(changes).await, why);
    }
}

fn with_timeout(seconds: i64) -> Value {
    json!({
        "name": "a.example.com", "clientConfig": {"url": "https://127.0.0.1:1/x"}, "sideEffects": "None",
        "admissionReviewVersions": ["v1"], "timeoutSeconds": seconds,
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}],
    })
}
