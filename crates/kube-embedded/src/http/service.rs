//! The server as a tower service.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{AUTHORIZATION, DATE};
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use parking_lot::RwLock;
use tokio::time::Instant;

use super::body::Body;
use super::gzip::GzipMembers;
use super::lifecycle::Lifecycle;
use super::negotiate::{Negotiated, Served};
use super::query::Query;
use super::reply::{self, Filter};
use super::request::{Head, Target};
use super::status::Status;
use crate::api::access::{self, Access, Attributes, RequestAction, User};
use crate::api::route::{Compression, Refusal, route};
use crate::api::tokens::ISSUER;
use crate::cluster::{Cluster, ClusterSettings};
use crate::faults::request_log::{LoggedRequest, RequestLog};
use crate::faults::{self, Faults, FaultyBody};
use crate::webhooks::Handlers;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// The state that all connections share.
#[derive(Debug)]
pub(crate) struct ServerShared {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) log: RequestLog,
    /// Whether connections are refused; in process, requests fail instead.
    pub(crate) refusing: AtomicBool,
    pub(crate) access: RwLock<Arc<Access>>,
    pub(crate) faults: Faults,
    /// The handlers of webhooks in the process.
    pub(crate) webhooks: Handlers,
    /// The host and port of the socket, if there is one.
    pub(crate) address: OnceLock<String>,
}

impl ServerShared {
    pub(crate) fn new(settings: ClusterSettings, access: Access) -> Arc<Self> {
        Arc::new(Self {
            cluster: Arc::new(Cluster::new(settings)),
            lifecycle: Lifecycle::new(),
            log: RequestLog::default(),
            refusing: AtomicBool::new(false),
            access: RwLock::new(Arc::new(access)),
            faults: Faults::new(),
            webhooks: Handlers::default(),
            address: OnceLock::new(),
        })
    }

    /// The server address that clients receive in discovery.
    pub(crate) fn address(&self) -> String {
        self.address.get().cloned().unwrap_or_else(|| "kube-embedded.invalid".to_owned())
    }
}

/// The server without a socket: a [`tower::Service`] from which a `kube::Client` can be built.
///
/// Cheap to clone. It waits only through tokio's clock, so tests can pause time.
#[derive(Debug, Clone)]
pub struct Service {
    shared: Arc<ServerShared>,
}

impl Service {
    pub(crate) fn new(shared: Arc<ServerShared>) -> Self {
        Self { shared }
    }
}

impl<B> tower::Service<Request<B>> for Service
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = BoxFuture<Result<Response<Body>, io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = self.shared.clone();
        Box::pin(async move { handle(&shared, request).await })
    }
}

async fn handle<B>(shared: &Arc<ServerShared>, request: Request<B>) -> io::Result<Response<Body>>
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    if shared.refusing.load(Ordering::Relaxed) {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    let (parts, body) = request.into_parts();
    let query = Query::parse(parts.uri.query().unwrap_or_default());
    let (wish, form) = Negotiated::read(&parts.headers, &query, Served::BuiltIn);
    let target = Target::parse(parts.uri.path());
    let head = Head { method: parts.method, uri: parts.uri, headers: parts.headers, query, target, wish, form };
    let access = shared.access.read().clone();
    let authorization = head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let action = RequestAction::read(&head);
    let user = identified(shared, &access, authorization, &action, &head);
    let seen = LoggedRequest {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        verb: head.verb(),
        user: user.as_ref().map(|user| user.name().to_owned()).unwrap_or_default(),
        code: None,
        at: Instant::now(),
    };
    let verdict = shared.faults.decide(&faults::Request::new(&head, &seen.user));
    if !verdict.delay.is_zero() {
        tokio::time::sleep(verdict.delay).await;
    }
    if let Some(answer) = verdict.answer {
        let Some(response) = answer.respond(&head.wish) else {
            shared.log.add(seen);
            return Err(io::ErrorKind::ConnectionReset.into());
        };
        return Ok(finish(shared, seen, response));
    }
    // Authorization comes before the lookup of the resource.
    let permitted = user.and_then(|user| {
        let checked = access.check(&Attributes { user: &user, action: action.action(&head) });
        checked.map(|()| user).map_err(|status| (Filter::Authorization, status))
    });
    let answer = match permitted {
        Ok(user) => match read(body, &shared.cluster.settings).await {
            Ok(body) => route(shared, &head, &user, body).await,
            Err(status) => Err(status.into()),
        },
        Err((filter, status)) => Ok(reply::denial(filter, &status, &head.wish).into()),
    };
    if verdict.loses_response {
        shared.log.add(seen);
        return Err(io::ErrorKind::ConnectionReset.into());
    }
    let (response, compression) = match answer {
        Ok(answer) => (answer.response, answer.compression),
        Err(Refusal::Status(status)) => (reply::failure(&status, &head.wish), Compression::AsIs),
        Err(Refusal::Text(code, text)) => (reply::text_response(code, text), Compression::AsIs),
    };
    let encoding = reply::encoding_of(&response);
    let response = response.map(|body| {
        // Faults apply to the uncompressed stream.
        let body = match verdict.stream {
            faults if faults.is_empty() => body,
            faults => Body::stream(FaultyBody::new(body, faults, encoding, shared.lifecycle.lifetime())),
        };
        match compression {
            Compression::AsIs => body,
            Compression::PerFlush => Body::stream(GzipMembers::new(body)),
        }
    });
    Ok(finish(shared, seen, response))
}

/// Sets the audit id and the date of a response, and logs the request.
fn finish(shared: &ServerShared, seen: LoggedRequest, mut response: Response<Body>) -> Response<Body> {
    let audit_id = HeaderValue::try_from(shared.cluster.rng.uid()).expect("a uuid is a header value");
    response.headers_mut().insert(AUDIT_ID, audit_id);
    response.headers_mut().insert(DATE, shared.cluster.clock.http_date());
    if seen.method == "HEAD" {
        *response.body_mut() = Body::empty();
    }
    shared.log.add(LoggedRequest { code: Some(response.status().as_u16()), ..seen });
    response
}

/// The user of a request: that of its token, or the one it impersonates.
fn identified(
    shared: &ServerShared,
    access: &Access,
    authorization: Option<&str>,
    action: &RequestAction,
    head: &Head,
) -> Result<User, (Filter, Status)> {
    // A token of a service account is its user's, even where nobody needs a token.
    let account = authorization.and_then(access::bearer).and_then(|token| {
        let read = shared.cluster.tokens.read(&shared.cluster, token, &[ISSUER])?;
        read.ok().map(|identity| identity.user)
    });
    let user = match account {
        Some(user) => user,
        None => access.authenticate(authorization).map_err(|status| (Filter::Authentication, status))?,
    };
    let impersonated = access::requested(&head.headers).and_then(|wanted| {
        wanted.map(|wanted| access::impersonate(access, &user, &wanted, &action.action(head))).transpose()
    });
    let impersonated = impersonated.map_err(|status| (Filter::Impersonation, status))?;
    Ok(impersonated.unwrap_or(user))
}

/// Reads a request's body, up to the server's limits of size and time.
async fn read<B>(body: B, settings: &ClusterSettings) -> Result<Bytes, Status>
where
    B: http_body::Body,
    B::Error: Into<BoxError>,
{
    let limit = settings.max_request_bytes;
    match tokio::time::timeout(settings.body_timeout, Limited::new(body, limit).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Status::body_too_large(limit)),
        Ok(Err(error)) => Err(Status::bad_request(error.to_string())),
        Err(_) => Err(Status::request_timeout()),
    }
}

#[cfg(test)]
mod fuzz {
    use std::time::Duration;

    use http_body_util::Full;
    use serde_json::{Value, json};
    use tower::ServiceExt as _;

    use super::*;
    use crate::fuzzing::{Source, fuzz, recorded};
    use crate::server::Server;

    const METHODS: [&str; 8] = ["GET", "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

    const PLACES: [&str; 22] = [
        "/api/v1/namespaces/default/configmaps",
        "/api/v1/namespaces/default/pods",
        "/api/v1/namespaces/default/services",
        "/api/v1/namespaces",
        "/api/v1/nodes",
        "/apis/apps/v1/namespaces/default/deployments",
        "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers",
        "/apis/example.com/v1/namespaces/default/widgets",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews",
        "/apis/authentication.k8s.io/v1/tokenreviews",
        "/apis/coordination.k8s.io/v1/leases",
        "/openapi/v2",
        "/openapi/v3",
        "/api",
        "/apis",
        "/apis/apps",
        "/version",
        "/metrics",
        "",
    ];

    const PARTS: [&str; 18] = [
        "/a",
        "/status",
        "/scale",
        "/binding",
        "/eviction",
        "/log",
        "/exec",
        "/finalize",
        "/token",
        "/..",
        "//",
        "/%2F",
        "/%00",
        "/%c3%a9",
        "/api",
        "/v1",
        "/watch",
        "/",
    ];

    const QUERIES: [&str; 27] = [
        "watch=true",
        "timeoutSeconds=1",
        "timeoutSeconds=9223372036854775807",
        "limit=1",
        "limit=-1",
        "continue=x",
        "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhXHUwMDAwIn0",
        "labelSelector=a%3Db",
        "labelSelector=a%20in%20(",
        "fieldSelector=metadata.name%3Da",
        "fieldSelector=spec.x%3Da",
        "shardSelector=shardRange(object.metadata.uid,%270x0%27,%270x8%27)",
        "dryRun=All",
        "dryRun=x",
        "fieldManager=m",
        "fieldManager=",
        "force=true",
        "resourceVersion=0",
        "resourceVersion=1",
        "resourceVersion=99999",
        "resourceVersion=x",
        "resourceVersionMatch=Exact",
        "sendInitialEvents=true",
        "allowWatchBookmarks=true",
        "fieldValidation=Strict",
        "propagationPolicy=Orphan",
        "includeObject=None",
    ];

    const HEADERS: [(&str, &str); 24] = [
        ("accept", "application/json"),
        ("accept", "application/vnd.kubernetes.protobuf"),
        ("accept", "application/json;as=Table;v=v1;g=meta.k8s.io"),
        ("accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"),
        ("accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),
        ("accept", "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"),
        ("accept", "application/yaml, */*;q=0.1"),
        ("accept", "text/html"),
        ("accept", ";;,=,;q="),
        ("accept-encoding", "gzip"),
        ("content-type", "application/json"),
        ("content-type", "application/yaml"),
        ("content-type", "application/vnd.kubernetes.protobuf"),
        ("content-type", "application/json-patch+json"),
        ("content-type", "application/merge-patch+json"),
        ("content-type", "application/strategic-merge-patch+json"),
        ("content-type", "application/apply-patch+yaml"),
        ("content-type", "/"),
        ("authorization", "Bearer x"),
        ("authorization", "Basic eDp5"),
        ("impersonate-user", "system:serviceaccount:default:a"),
        ("impersonate-user", "system:node:a"),
        ("impersonate-group", "g"),
        ("impersonate-extra-%61.b%2Fc", "v"),
    ];

    fn request(source: &mut Source, bodies: &(Vec<Vec<u8>>, Vec<Vec<u8>>)) -> Option<Request<Full<Bytes>>> {
        let mut uri = (*source.choose(&PLACES)).to_owned();
        if source.one_in(2) {
            uri.push_str("/a");
        }
        uri.push_str(&source.text(&PARTS, 2));
        if uri.is_empty() {
            uri.push('/');
        }
        let queries: Vec<&str> = (0..source.below(4)).map(|_| *source.choose(&QUERIES)).collect();
        let uri = format!("{uri}?{}", queries.join("&"));
        let mut request = Request::builder().method(*source.choose(&METHODS)).uri(uri);
        for _ in 0..source.below(4) {
            let (name, value) = *source.choose(&HEADERS);
            request = request.header(name, value);
        }
        let body = match source.below(5) {
            0 => source.nested(150),
            1 => source.mutated(&bodies.1),
            2 => source.choose(&bodies.0).clone(),
            3 => named(source, &bodies.0),
            _ => source.mutated(&bodies.0),
        };
        request.body(Full::new(body.into())).ok()
    }

    /// An object named `a`, so that later requests find it.
    fn named(source: &mut Source, bodies: &[Vec<u8>]) -> Vec<u8> {
        let mut object: Value = serde_json::from_slice(source.choose::<Vec<u8>>(bodies)).unwrap_or_default();
        if let Some(fields) = object.as_object_mut() {
            fields.insert("metadata".to_owned(), json!({"name": "a", "namespace": "default"}));
        }
        object.to_string().into_bytes()
    }

    fn definition() -> Value {
        let rule = json!({"rule": "self.spec == oldSelf.spec"});
        let schema =
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": [rule]});
        let versions = json!([{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]);
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}, "versions": versions},
        })
    }

    /// In the process, on one thread with little stack; the status of an answer is one of HTTP, and
    /// none is a panic.
    #[test]
    fn any_request_is_answered() {
        let bodies = recorded();
        fuzz(40, |source| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
            runtime.expect("a runtime").block_on(async {
                let server = Server::builder().in_process().seed(1).start().await.expect("a server");
                if source.one_in(2) {
                    server.create(&definition()).expect("a definition");
                }
                for _ in 0..10 {
                    let Some(request) = request(source, &bodies) else { continue };
                    let about = format!("{} {}", request.method(), request.uri());
                    let answer =
                        server.service().oneshot(request).await.unwrap_or_else(|error| panic!("{about}: {error}"));
                    // A watch lasts for up to an hour, of paused time.
                    let body = tokio::time::timeout(Duration::from_secs(7_200), answer.into_body().collect()).await;
                    body.unwrap_or_else(|_| panic!("{about} is never answered")).expect("a body");
                }
            });
        });
    }
}
