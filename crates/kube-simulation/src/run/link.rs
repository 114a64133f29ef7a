//! The connection between the controller's client and the server, where the faults of a plan
//! happen.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_LENGTH};
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::client::Body;
use kube_embedded::Status;
use kube_embedded::faults::{Fault, Rule};
use tokio::time::{advance, sleep};
use tower::Service;

use super::JUMP;
use super::call::Call;
use super::conductor::{Arrival, Conductor, Session};
use super::earlier::{exact_list, initial_events, only_item, watch_from};
use super::replica::Pace;
use super::watch_body;
use crate::plan::FaultKind;
use crate::trace::RequestKind;

/// How long a late request takes.
const LATE: Duration = Duration::from_secs(20);

/// How long a view stays slow, and how late it shows a revision.
const SLOW: [Duration; 2] = [Duration::from_secs(120), Duration::from_secs(2)];

type Reply = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// The service of one process of the controller.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    conductor: Arc<Conductor>,
    session: Arc<Session>,
}

impl Link {
    pub(crate) fn new(conductor: Arc<Conductor>, session: Arc<Session>) -> Self {
        Self { conductor, session }
    }
}

impl Service<Request<Body>> for Link {
    type Response = Reply;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Reply>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let link = self.clone();
        Box::pin(async move { link.handle(request).await })
    }
}

/// Counts a request as on its way until it is dropped.
struct Pending<'a>(Option<&'a Conductor>);

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if let Some(conductor) = self.0 {
            conductor.leave();
        }
    }
}

impl Link {
    async fn handle(&self, request: Request<Body>) -> io::Result<Reply> {
        tokio::select! {
            biased;
            // A process that is gone sends nothing and receives nothing.
            () = self.session.severed() => std::future::pending().await,
            answered = self.exchange(request) => answered,
        }
    }

    async fn exchange(&self, request: Request<Body>) -> io::Result<Reply> {
        let (mut parts, body) = request.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        // Events are read on their way, as JSON without compression.
        plain(&mut parts);
        let call = Call::new(&parts.method, &parts.uri, &body);
        let arrival = self.conductor.arrive(&self.session, &call);
        let _pending = Pending((call.kind != RequestKind::Watch).then_some(&self.conductor));
        sleep(arrival.latency[0]).await;
        let answered = self.carry_out(parts, body, &call, &arrival).await;
        self.conductor.answered(&arrival, answered.as_ref().ok().map(|response| response.status().as_u16()));
        answered
    }

    /// Ends the process in the middle of a request.
    async fn crash(&self) -> ! {
        self.session.sever();
        std::future::pending::<()>().await;
        unreachable!("a future that never completes has completed")
    }

    async fn carry_out(&self, mut parts: Parts, body: Bytes, call: &Call, arrival: &Arrival) -> io::Result<Reply> {
        if self.conductor.is_disconnected() {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let request = parts.clone();
        let fail = |fault| self.fail(fault, request.clone());
        if call.is_lease && call.kind.is_write() && self.conductor.has_lost_lease() {
            return fail(Fault::status(500)).await;
        }
        if call.kind == RequestKind::Watch && self.session.is_gone(&call.signature) {
            return fail(Fault::GoneAtOpen).await;
        }
        let mut cut_after = None;
        for &(position, kind) in &arrival.faults {
            self.conductor.reached(position, format!("{kind} at {}", call.signature));
            match kind {
                FaultKind::CrashBefore => self.crash().await,
                FaultKind::Status(code) => return fail(status(code)).await,
                FaultKind::Disconnect => return Err(io::ErrorKind::ConnectionReset.into()),
                FaultKind::Late => sleep(LATE).await,
                FaultKind::WatchCut => cut_after = Some(1),
                FaultKind::LeadershipLost => self.conductor.lose_lease(),
                FaultKind::SlowView => self.session.replica().set_pace_for(Pace::Slow(SLOW[1]), SLOW[0]),
                _ => {}
            }
        }
        let mut initial = Vec::new();
        let mut is_behind = false;
        if let Some(view) = self.view_behind(&parts, call) {
            match call.kind {
                RequestKind::Watch => initial = self.begin_behind(&mut parts, call, view).await?,
                _ => is_behind = list_at(&mut parts, call, view),
            }
        }
        let before = self.conductor.server().revision();
        let response = self.forward(Request::from_parts(parts, body)).await?;
        if call.kind == RequestKind::Watch {
            let code = response.status();
            return Ok(response.map(|body| {
                let frames = watch_body::frames(body, &self.session, cut_after.filter(|_| code.is_success()), initial);
                StreamBody::new(frames).boxed_unsync()
            }));
        }
        let (mut parts, body) = response.into_parts();
        let mut body = body.collect().await?.to_bytes();
        if is_behind && call.is_single && parts.status.is_success() {
            (parts.status, body) = match only_item(&body) {
                Some(object) => (StatusCode::OK, object.to_string().into()),
                None => (StatusCode::NOT_FOUND, not_found(call).to_json().into()),
            };
            parts.headers.remove(CONTENT_LENGTH);
        }
        if call.kind.is_write() {
            self.conductor.carried_out(arrival, (before, self.conductor.server().revision()));
        }
        for &(_, kind) in &arrival.faults {
            match kind {
                FaultKind::CrashDuring => self.crash().await,
                FaultKind::StaleRestart(behind) => {
                    self.conductor.start_behind(behind);
                    self.crash().await;
                }
                FaultKind::StaleRelist(behind) => self.conductor.move_behind(&self.session, behind),
                FaultKind::LoseResponse => return Err(io::ErrorKind::ConnectionReset.into()),
                FaultKind::TimeoutAfter => return fail(Fault::status(504)).await,
                FaultKind::ClockJump => advance(JUMP).await,
                FaultKind::CrashAfter => {
                    let (session, wait) = (self.session.clone(), arrival.latency[1] + Duration::from_millis(1));
                    tokio::spawn(async move {
                        sleep(wait).await;
                        session.sever();
                    });
                }
                _ => {}
            }
        }
        sleep(arrival.latency[1]).await;
        Ok(Response::from_parts(parts, Full::new(body).map_err(|never| match never {}).boxed_unsync()))
    }

    /// The view of the replica, if it is behind and the request may show it.
    fn view_behind(&self, parts: &Parts, call: &Call) -> Option<u64> {
        let view = self.session.replica().view().max(call.oldest?);
        let is_table = accepted(parts).contains("as=Table");
        let is_kept = self.conductor.server().changes_after(view).is_ok();
        (view < self.conductor.server().revision() && is_kept && !is_table).then_some(view)
    }

    /// Lets a watch begin with the state of this view. Returns the events of that state.
    async fn begin_behind(&self, parts: &mut Parts, call: &Call, view: u64) -> io::Result<Vec<Bytes>> {
        let Some(rest) = watch_from(&parts.uri, view) else { return Ok(Vec::new()) };
        let mut list = parts.clone();
        if !list_at(&mut list, call, view) {
            return Ok(Vec::new());
        }
        let response = self.forward(Request::from_parts(list, Bytes::new())).await?;
        // What is refused is refused to the watch, too.
        if !response.status().is_success() {
            return Ok(Vec::new());
        }
        let state = response.into_body().collect().await?.to_bytes();
        parts.uri = rest;
        Ok(initial_events(&state, call.wants_initial_events))
    }

    async fn forward(&self, request: Request<Bytes>) -> io::Result<Response<kube_embedded::Body>> {
        self.conductor.server().service().call(request.map(Full::new)).await
    }

    /// Answers a request with a fault of the server, without carrying it out.
    async fn fail(&self, fault: Fault, parts: Parts) -> io::Result<Reply> {
        // No other request comes in between: the server decides when it is first polled.
        self.conductor.server().faults().inject(Rule::new(fault).once());
        let response = self.forward(Request::from_parts(parts, Bytes::new())).await?;
        Ok(response.map(BodyExt::boxed_unsync))
    }
}

/// Makes a request one for the list at this version. Returns whether that is possible.
fn list_at(parts: &mut Parts, call: &Call, version: u64) -> bool {
    let is_watch = call.kind == RequestKind::Watch;
    let Some(uri) = exact_list(&parts.uri, version, call.is_single && !is_watch) else { return false };
    parts.uri = uri;
    // Metadata alone has another name in a list.
    let accept = accepted(parts).replace("as=PartialObjectMetadata;", "as=PartialObjectMetadataList;");
    if let (false, Ok(accept)) = (accept.is_empty(), HeaderValue::from_str(&accept)) {
        parts.headers.insert(ACCEPT, accept);
    }
    true
}

fn accepted(parts: &Parts) -> &str {
    parts.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default()
}

/// What the server answers if the object is not there.
fn not_found(call: &Call) -> Status {
    let path = call.signature.split_once(':').map_or("", |(_, path)| path);
    let resource = path.split('/').next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    Status::new(404, "NotFound", format!("{resource} {name:?} not found"))
}

fn status(code: u16) -> Fault {
    let fault = Fault::status(code);
    if code == 429 { fault.retry_after(1) } else { fault }
}

/// Asks for JSON without compression.
fn plain(parts: &mut Parts) {
    parts.headers.remove(ACCEPT_ENCODING);
    if let Some(accept) = parts.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()) {
        let kept: Vec<&str> = accept.split(',').filter(|form| !form.contains("protobuf")).collect();
        let accept = HeaderValue::from_str(&kept.join(",")).ok().filter(|_| !kept.is_empty());
        parts.headers.insert(ACCEPT, accept.unwrap_or(HeaderValue::from_static("application/json")));
    }
}
