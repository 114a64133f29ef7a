use super::stream::Stream;
use super::target::Target;
use super::{Answer, failure};
use bytes::Bytes;
use http::Method;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The API of the server for one case, with unique names and cleanup.
#[derive(Clone)]
pub(crate) struct Api {
    target: Arc<Target>,
    /// Prefix of all cluster-scoped names of this case.
    prefix: String,
    /// Paths to delete after the case.
    made: Arc<Mutex<Vec<String>>>,
}

impl Api {
    pub(super) fn new(target: Arc<Target>) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self { prefix: format!("conformance-{}-{count}", target.run()), target, made: Arc::default() }
    }

    /// A name that no other case uses.
    pub(crate) fn unique(&self, stem: &str) -> String {
        format!("{}-{stem}", self.prefix)
    }

    pub(crate) fn request(&self, method: &str, path: &str) -> Request<'_> {
        let headers = vec![("user-agent".to_owned(), "conformance/1".to_owned())];
        Request {
            api: self,
            method: method.parse().expect("an HTTP method"),
            path: path.to_owned(),
            token: self.target.admin_token().map(str::to_owned),
            headers,
            body: Bytes::new(),
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.request("GET", path).send().await
    }

    pub(crate) async fn post(&self, path: &str, body: impl ToString) -> Answer {
        self.request("POST", path).body("application/json", body).send().await
    }

    pub(crate) async fn put(&self, path: &str, body: impl ToString) -> Answer {
        self.request("PUT", path).body("application/json", body).send().await
    }

    /// Sends a patch of this type: `json-patch`, `merge-patch`.
    pub(crate) async fn patch(&self, path: &str, kind: &str, body: impl ToString) -> Answer {
        self.request("PATCH", path).body(&format!("application/{kind}+json"), body).send().await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.request("DELETE", path).send().await
    }

    /// Opens a watch, which must be accepted.
    pub(crate) async fn watch(&self, path: &str) -> Stream {
        self.request("GET", path).watch().await
    }

    /// Whether the server obeys shard selectors.
    pub(crate) fn is_sharded(&self) -> bool {
        self.target.is_sharded()
    }

    pub(crate) fn nobody_token(&self) -> &str {
        self.target.nobody_token().expect("this case needs KUBE_CONFORMANCE_NOBODY_TOKEN")
    }

    pub(crate) fn impersonator_token(&self) -> &str {
        self.target.impersonator_token().expect("this case needs KUBE_CONFORMANCE_IMPERSONATOR_TOKEN")
    }

    /// Creates a namespace, which is deleted after the case.
    pub(crate) async fn namespace(&self) -> Namespace {
        self.namespace_called("ns").await
    }

    /// Creates a namespace with this suffix in its unique name.
    pub(crate) async fn namespace_called(&self, stem: &str) -> Namespace {
        let name = self.unique(stem);
        let path = format!("/api/v1/namespaces/{name}");
        self.made.lock().unwrap().push(path.clone());
        self.post("/api/v1/namespaces", json!({"metadata": {"name": name}})).await.is(201);
        Namespace { api: self.clone(), name, path }
    }

    /// Registers a path to be deleted after the case.
    pub(crate) fn leave_to_clean_up(&self, path: &str) {
        self.made.lock().unwrap().push(path.to_owned());
    }

    /// Defines a kind `Thing` and waits until it is served and its watch cache is initialized;
    /// deleted after the case. `change` adapts the definition before it is created.
    pub(crate) async fn definition(&self, change: impl FnOnce(&mut Value)) -> Definition {
        let group = format!("{}.example.com", self.prefix);
        let name = format!("things.{group}");
        let mut body = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": name},
            "spec": {
                "group": group,
                "scope": "Namespaced",
                "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
                }],
            },
        });
        change(&mut body);
        let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
        self.made.lock().unwrap().push(path.clone());
        self.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &body).await.is(201);
        let definition = Definition { api: self.clone(), base: format!("/apis/{group}/v1"), group, path };
        self.eventually(&definition.all(), |answer| answer.code == 200).await;
        definition
    }

    /// Repeats a GET until the response is as wanted; panics after a timeout. For asynchronous
    /// effects.
    pub(crate) async fn eventually(&self, path: &str, wanted: impl Fn(&Answer) -> bool) -> Answer {
        self.eventually_within(Duration::from_secs(10), path, wanted).await
    }

    /// Repeats a GET at version 1 until that version is compacted: a server under test compacts its
    /// history every few seconds.
    pub(crate) async fn once_forgotten(&self, path: &str) -> Answer {
        self.eventually_within(Duration::from_secs(40), path, |answer| answer.code == 410).await
    }

    async fn eventually_within(&self, limit: Duration, path: &str, wanted: impl Fn(&Answer) -> bool) -> Answer {
        let deadline = Instant::now() + limit;
        loop {
            let answer = self.get(path).await;
            if wanted(&answer) {
                return answer;
            }
            assert!(Instant::now() < deadline, "{path}: still {} {}", answer.code, answer.text());
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Opens a watch of a kind whose watch cache may not be initialized yet.
    pub(crate) async fn eventually_watch(&self, path: &str) -> Stream {
        self.eventually(&format!("{path}&timeoutSeconds=-1&resourceVersion=0"), |answer| answer.code == 200).await;
        self.watch(path).await
    }

    pub(super) async fn clean_up(&self) {
        let made = std::mem::take(&mut *self.made.lock().unwrap());
        for path in made.iter().rev() {
            if path.starts_with("/api/v1/namespaces/") && path.matches('/').count() == 4 {
                for kind in ["configmaps", "pods", "secrets", "services", "events"] {
                    self.delete(&format!("{path}/{kind}?gracePeriodSeconds=0")).await;
                }
                self.delete(path).await;
                // A bare API server has no controller that finalizes the namespace.
                let finalize =
                    json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": &path[19..]}, "spec": {}});
                self.put(&format!("{path}/finalize"), finalize).await;
            } else {
                self.delete(path).await;
            }
        }
    }
}

/// A request builder.
pub(crate) struct Request<'a> {
    api: &'a Api,
    method: Method,
    path: String,
    token: Option<String>,
    headers: Vec<(String, String)>,
    body: Bytes,
}

impl Request<'_> {
    /// Sets a header, replacing a previous value.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.retain(|(other, _)| other != name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Adds a header besides previous values of it.
    pub(crate) fn another_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    #[expect(clippy::needless_pass_by_value, reason = "cases hand in literals, which read better without a reference")]
    pub(crate) fn body(mut self, content_type: &str, body: impl ToString) -> Self {
        self.body = body.to_string().into();
        self.header("content-type", content_type)
    }

    /// Sets a body without a content type.
    pub(crate) fn bare_body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    pub(crate) fn token(mut self, token: Option<&str>) -> Self {
        self.token = token.map(str::to_owned);
        self
    }

    pub(crate) async fn send(self) -> Answer {
        let client = self.api.target.client();
        let (asked, request) = self.build();
        let (answer, connection) = client.send(request).await;
        let (head, body) = answer.into_parts();
        let body =
            body.collect().await.unwrap_or_else(|error| panic!("{asked}: the body breaks off: {error}")).to_bytes();
        client.give_back(connection);
        Answer { asked, code: head.status.as_u16(), headers: head.headers, body }
    }

    /// Sends a watch, which must return 200, and reads only the response head.
    pub(crate) async fn watch(self) -> Stream {
        let (asked, request) = self.build();
        let (answer, connection) = self.api.target.client().send(request).await;
        let (head, body) = answer.into_parts();
        if head.status != 200 {
            let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
            panic!("{asked}\n  expected a stream\n  but got  {} {}", head.status, String::from_utf8_lossy(&body));
        }
        Stream::new(asked, head.headers, body, connection)
    }

    fn build(&self) -> (String, http::Request<Full<Bytes>>) {
        let mut request = http::Request::builder().method(&self.method).uri(&self.path);
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(Full::new(self.body.clone())).expect("the case makes a proper request");
        (format!("{} {}", self.method, self.path), request)
    }
}

/// A namespace of a case.
pub(crate) struct Namespace {
    api: Api,
    pub(crate) name: String,
    pub(crate) path: String,
}

impl Namespace {
    /// A path in this namespace: a collection of the core group, or an object, with any suffix.
    pub(crate) fn path(&self, rest: &str) -> String {
        format!("{}/{rest}", self.path)
    }

    /// A path in this namespace of another group.
    pub(crate) fn group_path(&self, group_version: &str, rest: &str) -> String {
        format!("/apis/{group_version}/namespaces/{}/{rest}", self.name)
    }

    /// Creates an empty config map.
    pub(crate) async fn configmap(&self, name: &str) -> Answer {
        self.create(configmap(name)).await
    }

    /// Creates a config map.
    pub(crate) async fn create(&self, body: Value) -> Answer {
        let answer = self.api.post(&self.path("configmaps"), body).await;
        answer.is(201);
        answer
    }

    /// Creates empty config maps, one after the other.
    pub(crate) async fn configmaps(&self, names: &[&str]) {
        for name in names {
            self.configmap(name).await;
        }
    }

    /// Updates the data of a config map, and returns the response.
    pub(crate) async fn change(&self, name: &str, value: &str) -> Answer {
        let answer = self
            .api
            .patch(&self.path(&format!("configmaps/{name}")), "merge-patch", json!({"data": {"value": value}}))
            .await;
        answer.is(200);
        answer
    }

    /// The server's current resource version.
    pub(crate) async fn version(&self) -> u64 {
        self.api.get(&self.path("configmaps?limit=1")).await.version()
    }

    /// The Status of a config map that does not exist.
    pub(crate) fn no_configmap(name: &str) -> String {
        failure(&format!(
            r#""message":"configmaps \"{name}\" not found","reason":"NotFound","details":{{"name":"{name}","kind":"configmaps"}},"code":404"#
        ))
    }
}

/// A config map with only a name.
pub(crate) fn configmap(name: &str) -> Value {
    json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name}})
}

/// The kind `Thing` of a case.
pub(crate) struct Definition {
    api: Api,
    pub(crate) group: String,
    /// The path of the definition.
    pub(crate) path: String,
    /// The base path of the kind.
    base: String,
}

impl Definition {
    /// The path of all things in the cluster.
    pub(crate) fn all(&self) -> String {
        format!("{}/things", self.base)
    }

    /// The path of the things in a namespace.
    pub(crate) fn things(&self, namespace: &Namespace) -> String {
        format!("{}/namespaces/{}/things", self.base, namespace.name)
    }

    /// A thing with a name and the fields of `rest`.
    pub(crate) fn thing(&self, name: &str, rest: Value) -> Value {
        let mut thing =
            json!({"apiVersion": format!("{}/v1", self.group), "kind": "Thing", "metadata": {"name": name}});
        if let Value::Object(rest) = rest {
            thing.as_object_mut().expect("made just above").extend(rest);
        }
        thing
    }

    /// Creates a thing.
    pub(crate) async fn create(&self, collection: &str, name: &str, rest: Value) -> Answer {
        let answer = self.api.post(collection, self.thing(name, rest)).await;
        answer.is(201);
        answer
    }
}
