//! What a [`Writer`] sends, at every point at which a request may wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::{Method, Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::client::Body;
use kube_controller::Leadership;
use kube_controller::leadership::{LeadershipLost, LossCause, WriteTimedOut};
use kube_embedded::Server;
use serde_json::json;
use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tower::Service;

use crate::support::{HandClock, candidate, client, server};
use kube_controller::leadership::LeaderElection;

const PAST_THE_DEADLINE: Duration = Duration::from_secs(10);

/// A point below the writer at which a request waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    /// In the queue of the client, for a service that is not ready.
    Queue,
    /// Within the service: for a token, a name, a connection, a handshake.
    Connection,
    /// For the response.
    Response,
}

/// A connection whose requests wait at one point until they are let go.
#[derive(Clone)]
struct Connection {
    at: Wait,
    gate: Arc<Semaphore>,
    waiting: watch::Sender<usize>,
    /// The number of requests whose body was read, and which have thus left the process.
    left: Arc<AtomicUsize>,
}

impl Connection {
    fn new(at: Wait) -> Self {
        let gate = Arc::new(Semaphore::new(0));
        Self { at, gate, waiting: watch::Sender::new(0), left: Arc::default() }
    }

    async fn pass(&self, point: Wait) {
        if self.at == point {
            self.waiting.send_modify(|waiting| *waiting += 1);
            self.gate.acquire().await.unwrap().forget();
        }
    }

    async fn waits(&self) {
        self.waiting.subscribe().wait_for(|waiting| *waiting > 0).await.unwrap();
    }

    fn left(&self) -> usize {
        self.left.load(Ordering::SeqCst)
    }
}

struct ConnectionService {
    connection: Connection,
    readiness: BoxFuture<'static, ()>,
    is_ready: bool,
}

impl ConnectionService {
    fn new(connection: &Connection) -> Self {
        let waited = connection.clone();
        let readiness = async move { waited.pass(Wait::Queue).await }.boxed();
        Self { connection: connection.clone(), readiness, is_ready: false }
    }
}

impl Service<Request<Body>> for ConnectionService {
    type Response = Response<Body>;
    type Error = kube::Error;
    type Future = BoxFuture<'static, Result<Response<Body>, kube::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), kube::Error>> {
        if !self.is_ready {
            std::task::ready!(self.readiness.poll_unpin(cx));
            self.is_ready = true;
        }
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let connection = self.connection.clone();
        async move {
            connection.pass(Wait::Connection).await;
            request.into_body().collect_bytes().await?;
            connection.left.fetch_add(1, Ordering::SeqCst);
            connection.pass(Wait::Response).await;
            Ok(Response::new(Body::from(b"{}".to_vec())))
        }
        .boxed()
    }
}

/// An elected leadership by a clock that stands still, and the election that it ends with.
async fn elected(hands: &HandClock) -> (LeaderElection, Leadership) {
    let server = server().await;
    let builder = LeaderElection::builder(client(&server), "default", "lease").identity("a");
    let mut election = builder.clock(hands.clock()).build().unwrap();
    let leadership = election.acquire().await;
    (election, leadership)
}

fn requests() -> Vec<Request<Body>> {
    let with_body =
        |method: Method| Request::builder().method(method).uri("/a").body(Body::from(b"{}".to_vec())).unwrap();
    let without = |method: Method| Request::builder().method(method).uri("/a").body(Body::empty()).unwrap();
    let mut exec = without(Method::GET);
    exec.headers_mut().insert(http::header::UPGRADE, "websocket".parse().unwrap());
    vec![
        with_body(Method::POST),
        with_body(Method::PUT),
        with_body(Method::PATCH),
        with_body(Method::DELETE),
        without(Method::DELETE),
        without(Method::POST),
        exec,
    ]
}

fn is_lost(error: &kube::Error) -> bool {
    LeadershipLost::is_cause_of(error)
}

#[tokio::test(start_paused = true)]
async fn what_waits_when_the_leadership_is_lost_never_leaves() {
    for wait in [Wait::Queue, Wait::Connection] {
        for how in ["expired", "dropped"] {
            for request in requests() {
                let text = format!("{wait:?}, {how}: {request:?}");
                let (hands, connection) = (HandClock::default(), Connection::new(wait));
                let (election, leadership) = elected(&hands).await;
                let writer = leadership.writer(&Client::new(ConnectionService::new(&connection), "default"));
                let sent = tokio::spawn(async move { writer.client().send(request).await });
                connection.waits().await;
                match how {
                    "expired" => hands.advance(PAST_THE_DEADLINE),
                    _ => drop(election),
                }
                connection.gate.add_permits(1);
                let error = sent.await.unwrap().map(drop).unwrap_err();
                assert!(is_lost(&error), "{text}: {error:?}");
                assert_eq!(connection.left(), 0, "{text}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_waits_while_the_leadership_is_held_leaves() {
    for wait in [Wait::Queue, Wait::Connection, Wait::Response] {
        for request in requests() {
            let (hands, connection) = (HandClock::default(), Connection::new(wait));
            let (_election, leadership) = elected(&hands).await;
            let writer = leadership.writer(&Client::new(ConnectionService::new(&connection), "default"));
            let sent = tokio::spawn(async move { writer.client().send(request).await });
            connection.waits().await;
            hands.advance(PAST_THE_DEADLINE - Duration::from_millis(1));
            connection.gate.add_permits(1);
            sent.await.unwrap().unwrap();
            assert_eq!(connection.left(), 1, "{wait:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_polled_after_the_loss_is_not_even_queued() {
    let (hands, connection) = (HandClock::default(), Connection::new(Wait::Connection));
    let (_election, leadership) = elected(&hands).await;
    let writer = leadership.writer(&Client::new(ConnectionService::new(&connection), "default"));
    let futures: Vec<_> = requests().into_iter().map(|request| writer.client().send(request)).collect();
    hands.advance(PAST_THE_DEADLINE);
    for future in futures {
        assert!(is_lost(&future.await.map(drop).unwrap_err()));
    }
    assert_eq!(*connection.waiting.borrow(), 0);
    // The clock of a leadership that was lost may show anything: it does not return.
    let error = writer.leadership().check().unwrap_err();
    assert_eq!(error.cause(), &LossCause::Expired(PAST_THE_DEADLINE));
}

#[tokio::test(start_paused = true)]
async fn a_response_is_not_waited_for_until_the_lease_has_expired() {
    let (hands, connection) = (HandClock::default(), Connection::new(Wait::Response));
    let (_election, leadership) = elected(&hands).await;
    let writer = leadership.writer(&Client::new(ConnectionService::new(&connection), "default"));
    let request = requests().remove(0);
    let sent = tokio::spawn(async move { writer.client().send(request).await });
    connection.waits().await;
    hands.advance(Duration::from_millis(12_500)); // the lease is over after 15 s
    let error = sent.await.unwrap().map(drop).unwrap_err();
    let kube::Error::Service(error) = error else { panic!("{error:?}") };
    assert!(error.is::<WriteTimedOut>(), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn reads_are_passed_on_after_a_loss() {
    let server = server().await;
    let mut election = candidate(&server, "a");
    let writer = election.acquire().await.writer(&client(&server));
    drop(election);
    let maps = Api::<ConfigMap>::default_namespaced(writer.client().clone());
    maps.list(&Default::default()).await.unwrap();
    assert!(is_lost(&maps.create(&PostParams::default(), &map("a")).await.unwrap_err()));
    assert!(server.objects("v1", "ConfigMap").unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn every_verb_of_an_api_works_through_a_writer() {
    let server = server().await;
    let mut election = candidate(&server, "a");
    let elected = election.acquire().await;
    for leadership in [Leadership::unelected(), elected] {
        let writer = leadership.writer(&client(&server));
        let maps = Api::<ConfigMap>::default_namespaced(writer.client().clone());
        let made = maps.create(&PostParams::default(), &map("a")).await.unwrap();
        maps.replace("a", &PostParams::default(), &made).await.unwrap();
        let apply = PatchParams::apply("test").force();
        maps.patch("a", &apply, &Patch::Apply(map("a"))).await.unwrap();
        maps.delete("a", &DeleteParams::default()).await.unwrap();
        assert!(server.objects("v1", "ConfigMap").unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_release_waits_for_the_writes_that_were_sent() {
    let server = server().await;
    let mut election = candidate(&server, "a");
    let leadership = election.acquire().await;
    let connection = Connection::new(Wait::Response);
    let writer = leadership.writer(&Client::new(ConnectionService::new(&connection), "default"));
    let request = requests().remove(0);
    let sent = tokio::spawn(async move { writer.client().send(request).await });
    connection.waits().await;
    let holder = || {
        server.objects("coordination.k8s.io/v1", "Lease").unwrap().get("lease").unwrap()["spec"]["holderIdentity"]
            .clone()
    };
    {
        let release = election.release();
        tokio::pin!(release);
        tokio::select! {
            _ = &mut release => panic!("released"),
            () = tokio::time::sleep(Duration::from_secs(5)) => {}
        }
        assert_eq!(holder(), "a");
        connection.gate.add_permits(1);
        release.await.unwrap();
    }
    assert_eq!(holder(), "");
    sent.await.unwrap().unwrap();
}

/// With a real connection, over TLS: the handshake waits until the leadership is lost.
#[tokio::test]
async fn a_request_that_waits_for_a_handshake_never_reaches_the_socket() {
    let server = Server::builder().tls().start().await.unwrap();
    let proxy = Proxy::start(&server).await;
    let mut kubeconfig: kube::config::Kubeconfig = kube::config::Kubeconfig::from_yaml(&server.kubeconfig()).unwrap();
    for cluster in &mut kubeconfig.clusters {
        cluster.cluster.as_mut().unwrap().server = Some(format!("https://127.0.0.1:{}", proxy.port));
    }
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &Default::default()).await.unwrap();
    for is_lost_meanwhile in [true, false] {
        let hands = HandClock::default();
        let (_election, leadership) = elected(&hands).await;
        // A client with kube's retries, and a connection of its own.
        let client = kube_informer::client::client_with_retries(config.clone()).unwrap();
        let writer = leadership.writer(&client);
        let maps = Api::<ConfigMap>::namespaced(writer.client().clone(), "default");
        let name = if is_lost_meanwhile { "a" } else { "b" };
        let before = proxy.accepted.borrow().to_owned();
        let sent = tokio::spawn(async move { maps.create(&PostParams::default(), &map(name)).await });
        proxy.accepted.subscribe().wait_for(|accepted| *accepted > before).await.unwrap();
        if is_lost_meanwhile {
            hands.advance(PAST_THE_DEADLINE);
        }
        proxy.gate.add_permits(1);
        let outcome = sent.await.unwrap();
        assert_eq!(outcome.as_ref().err().is_some_and(is_lost), is_lost_meanwhile, "{outcome:?}");
    }
    let made: Vec<_> = server.requests().into_iter().filter(|request| request.method == "POST").collect();
    assert_eq!(made.len(), 1, "{made:?}");
    server.shutdown().await;
}

/// Forwards connections to the server when they are let go.
struct Proxy {
    port: u16,
    accepted: watch::Sender<usize>,
    gate: Arc<Semaphore>,
}

impl Proxy {
    async fn start(server: &Server) -> Self {
        let url: http::Uri = server.url().parse().unwrap();
        let target = url.authority().unwrap().to_string();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (accepted, gate) = (watch::Sender::new(0), Arc::new(Semaphore::new(0)));
        let (counted, opened) = (accepted.clone(), Arc::clone(&gate));
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                counted.send_modify(|accepted| *accepted += 1);
                opened.acquire().await.unwrap().forget();
                let mut far = TcpStream::connect(&target).await.unwrap();
                tokio::spawn(async move {
                    copy_bidirectional(&mut near, &mut far).await.ok();
                    far.shutdown().await.ok();
                });
            }
        });
        Self { port, accepted, gate }
    }
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})).unwrap()
}
