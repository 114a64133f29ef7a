//! The listening socket: accepts, refuses and breaks connections, and joins them at shutdown.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use super::lifecycle::{Ending, Lifetime};
use super::service::{ServerShared, Service};

/// How long connections may take to finish when the server shuts down.
const GRACE: Duration = Duration::from_secs(2);

/// The backlog of the listening socket.
const LISTEN_BACKLOG: u32 = 1024;

/// Whether the socket listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    Open,
    Closed,
}

/// A listening socket and the task that serves it.
#[derive(Debug)]
pub(crate) struct Listener {
    address: SocketAddr,
    gate: watch::Sender<Gate>,
    /// The state that the task has reached; follows `gate`.
    state: watch::Receiver<Gate>,
    task: JoinHandle<()>,
}

impl Listener {
    pub(crate) fn start(address: SocketAddr, tls: Option<TlsAcceptor>, shared: Arc<ServerShared>) -> io::Result<Self> {
        let socket = bind(address)?;
        let address = socket.local_addr()?;
        let (gate, wanted) = watch::channel(Gate::Open);
        let (done, state) = watch::channel(Gate::Open);
        let task = tokio::spawn(serve(socket, address, tls, shared, wanted, done));
        Ok(Self { address, gate, state, task })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Opens or closes the socket, and waits until that is done.
    pub(crate) async fn set(&self, gate: Gate) {
        self.gate.send_replace(gate);
        let mut state = self.state.clone();
        // An error means that the task has ended, and the socket is closed with it.
        drop(state.wait_for(|state| *state == gate).await);
    }

    /// Waits until all connections have ended. The lifecycle must have been closed before.
    pub(crate) async fn join(&mut self) {
        // The task ends by itself. It panics only because of a bug, and the panic prints its own
        // message.
        drop((&mut self.task).await);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // Required to bind the same port again after `Gate::Closed`.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(LISTEN_BACKLOG)
}

async fn serve(
    socket: TcpListener,
    address: SocketAddr,
    tls: Option<TlsAcceptor>,
    shared: Arc<ServerShared>,
    mut wanted: watch::Receiver<Gate>,
    done: watch::Sender<Gate>,
) {
    let mut socket = Some(socket);
    let mut connections = JoinSet::new();
    let mut closing = shared.lifecycle.closing();
    loop {
        tokio::select! {
            biased;
            () = closing.ended() => break,
            changed = wanted.changed() => {
                if changed.is_err() {
                    break;
                }
                let gate = *wanted.borrow_and_update();
                match gate {
                    Gate::Closed => socket = None,
                    Gate::Open if socket.is_none() => match bind(address) {
                        Ok(bound) => socket = Some(bound),
                        Err(error) => tracing::error!(%address, %error, "cannot listen again"),
                    },
                    Gate::Open => {}
                }
                done.send_replace(gate);
            }
            accepted = accept(socket.as_ref()) => match accepted {
                Ok(stream) => {
                    let connection = connection(stream, tls.clone(), shared.clone(), shared.lifecycle.lifetime());
                    connections.spawn(connection);
                }
                // For example too many open files: temporary, so the loop continues.
                Err(error) => tracing::warn!(%error, "accepting a connection failed"),
            },
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
    drop(socket);
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, all).await.is_err() {
        connections.shutdown().await;
    }
}

async fn accept(socket: Option<&TcpListener>) -> io::Result<TcpStream> {
    match socket {
        Some(socket) => socket.accept().await.map(|(stream, _)| stream),
        None => std::future::pending().await,
    }
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, shared: Arc<ServerShared>, mut lifetime: Lifetime) {
    // Watch events are small and must be sent immediately: disable Nagle's algorithm.
    drop(stream.set_nodelay(true));
    match tls {
        None => http(stream, shared, lifetime).await,
        Some(tls) => {
            let accepted = tokio::select! {
                accepted = tls.accept(stream) => accepted,
                _ = lifetime.ended() => return,
            };
            match accepted {
                Ok(stream) => http(stream, shared, lifetime).await,
                Err(error) => tracing::debug!(%error, "TLS handshake failed"),
            }
        }
    }
}

async fn http<S>(stream: S, shared: Arc<ServerShared>, mut lifetime: Lifetime)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).half_close(false);
    server
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(100)
        .initial_stream_window_size(256 * 1024)
        .initial_connection_window_size(1024 * 1024)
        .max_frame_size(256 * 1024);
    let service = TowerToHyperService::new(Service::new(shared));
    let serving = server.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        ending = lifetime.ended() => match ending {
            Ending::Cut => return,
            Ending::Closed => {
                serving.as_mut().graceful_shutdown();
                serving.await
            }
        },
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}
