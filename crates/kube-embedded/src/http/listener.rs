//! The listening socket: accepts, refuses and limits connections, and joins them at shutdown.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until};
use tokio_rustls::TlsAcceptor;

use super::connection::{self, GRACE};
use super::service::ServerShared;

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
    let mut backoff = AcceptBackoff::new();
    let mut connections = JoinSet::new();
    let max_connections = shared.cluster.settings.max_connections;
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
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            // Further connections wait in the backlog of the socket.
            accepted = accept(socket.as_ref(), backoff.retry_at), if connections.len() < max_connections => {
                match accepted {
                    Ok(stream) => {
                        backoff = AcceptBackoff::new();
                        // Watch events are small and must be sent immediately: disable Nagle's
                        // algorithm.
                        drop(stream.set_nodelay(true));
                        let lifetime = shared.lifecycle.lifetime();
                        connections.spawn(connection::serve(stream, tls.clone(), shared.clone(), lifetime));
                    }
                    Err(error) => backoff.failed(&error),
                }
            }
        }
    }
    drop(socket);
    let all = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, all).await.is_err() {
        connections.shutdown().await;
    }
}

/// Accepts a connection, not before `retry_at`. Cancel safe.
async fn accept(socket: Option<&TcpListener>, retry_at: Option<Instant>) -> io::Result<TcpStream> {
    if let Some(at) = retry_at {
        sleep_until(at).await;
    }
    match socket {
        Some(socket) => socket.accept().await.map(|(stream, _)| stream),
        None => std::future::pending().await,
    }
}

/// How long to wait after a failure to accept, doubled after each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Waits between failures to accept a connection: some, such as too many open files, last for a
/// while, and are reported at once each time.
#[derive(Debug)]
struct AcceptBackoff {
    pause: Duration,
    /// When to try again.
    retry_at: Option<Instant>,
}

impl AcceptBackoff {
    fn new() -> Self {
        Self { pause: FIRST_PAUSE, retry_at: None }
    }

    fn failed(&mut self, error: &io::Error) {
        tracing::warn!(%error, retry_after = ?self.pause, "accepting a connection failed");
        self.retry_at = Some(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::api::access::Access;
    use crate::cluster::ClusterSettings;

    #[tokio::test(start_paused = true)]
    async fn failures_to_accept_do_not_spin() {
        let (mut backoff, began, mut failures) = (AcceptBackoff::new(), Instant::now(), 0);
        while began.elapsed() < Duration::from_secs(60) {
            backoff.failed(&io::ErrorKind::OutOfMemory.into());
            failures += 1;
            let socket = bind(([127, 0, 0, 1], 0).into()).expect("a port is free");
            let _client = std::net::TcpStream::connect(socket.local_addr().expect("an address")).expect("it listens");
            accept(Some(&socket), backoff.retry_at).await.expect("a connection");
        }
        assert!((60..80).contains(&failures), "{failures}");
    }

    #[tokio::test]
    async fn connections_beyond_the_limit_wait_for_the_end_of_another() {
        let settings = ClusterSettings { max_connections: 2, ..ClusterSettings::default() };
        let listener = Listener::start(([127, 0, 0, 1], 0).into(), None, ServerShared::new(settings, Access::open()))
            .expect("a port is free");
        let mut clients = Vec::new();
        for _ in 0..3 {
            let mut client = TcpStream::connect(listener.address()).await.expect("the socket listens");
            client.write_all(REQUEST).await.expect("the request is buffered");
            clients.push(client);
        }
        for _ in 0..20 {
            for client in &mut clients[..2] {
                answer(client).await;
                client.write_all(REQUEST).await.expect("the connection is open");
            }
        }
        let mut nothing = [0];
        assert_eq!(clients[2].try_read(&mut nothing).expect_err("not accepted").kind(), io::ErrorKind::WouldBlock);
        drop(clients.remove(0));
        answer(&mut clients[1]).await;
    }

    const REQUEST: &[u8] = b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n";

    /// Reads the response to a [`REQUEST`].
    async fn answer(client: &mut TcpStream) {
        let mut received = Vec::new();
        while !received.ends_with(b"\r\n\r\nok") {
            assert_ne!(client.read_buf(&mut received).await.expect("the connection is open"), 0);
        }
    }
}
