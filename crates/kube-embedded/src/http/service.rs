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
