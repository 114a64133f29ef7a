//! A TCP proxy between a client and a server, for connection faults.

use std::fmt;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use crate::Error;

/// A port that forwards all bytes to the server unchanged, including TLS, while its mode permits.
/// Closed when dropped.
#[derive(Debug)]
pub(crate) struct Link {
    address: SocketAddr,
    state: watch::Sender<State>,
    counts: Arc<Counts>,
    listening: AbortHandle,
}

/// How connections and bytes are handled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Pass,
    /// New connections are refused. Open ones stay.
    Refuse,
    /// New connections are accepted and closed at once. Open ones stay.
    Slam,
    /// Nothing is forwarded, but nothing is closed either.
    Stall,
}

#[derive(Debug, Clone, Copy)]
struct State {
    mode: Mode,
    /// Number of times that all connections were cut.
    cuts: u64,
}

#[derive(Debug)]
struct Counts {
    accepted: AtomicUsize,
    /// Connections that were cut or closed at once.
    cut: AtomicUsize,
    /// Bytes from the server.
    passed: AtomicUsize,
    /// Number of bytes from the server after which all connections are cut; negative for unlimited.
    allowance: AtomicI64,
    /// The error that ended the listener.
    broken: OnceLock<String>,
}

/// No byte limit.
const UNLIMITED: i64 = i64::MIN;

impl Link {
    /// Opens a port that forwards to the server.
    pub(crate) async fn open(server: SocketAddr) -> io::Result<Self> {
        let listener = bind((Ipv4Addr::LOCALHOST, 0).into())?.listen(BACKLOG)?;
        let address = listener.local_addr()?;
        let (state, _) = watch::channel(State { mode: Mode::Pass, cuts: 0 });
        let counts = Arc::new(Counts {
            accepted: AtomicUsize::new(0),
            cut: AtomicUsize::new(0),
            passed: AtomicUsize::new(0),
            allowance: AtomicI64::new(UNLIMITED),
            broken: OnceLock::new(),
        });
        let (mode, counted) = (state.clone(), Arc::clone(&counts));
        let listening = tokio::spawn(async move {
            if let Err(error) = listen(server, listener, mode, &counted).await {
                counted.broken.get_or_init(|| error.to_string());
            }
        });
        Ok(Self { address, state, counts, listening: listening.abort_handle() })
    }

    /// Opens a link to the server of a configuration, and returns the configuration changed to use
    /// it.
    pub(crate) async fn between(config: &kube::Config) -> Result<(Self, kube::Config), Error> {
        let host = config.cluster_url.host().ok_or("the cluster's address has no host")?.to_owned();
        let https = config.cluster_url.scheme_str() == Some("https");
        let port = config.cluster_url.port_u16().unwrap_or(if https { 443 } else { 80 });
        let bare = host.trim_matches(['[', ']']);
        let server = tokio::net::lookup_host((bare, port)).await?.next().ok_or("the cluster's host is not known")?;
        let link = Self::open(server).await?;
        let mut config = config.clone();
        let scheme = if https { "https" } else { "http" };
        config.cluster_url = format!("{scheme}://{}", link.address).parse()?;
        config.tls_server_name.get_or_insert(bare.to_owned());
        Ok((link, config))
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn set(&self, mode: Mode) {
        self.state.send_modify(|state| state.mode = mode);
    }

    /// Cuts every open connection.
    pub(crate) fn cut(&self) {
        self.counts.allowance.store(UNLIMITED, Ordering::Relaxed);
        self.state.send_modify(|state| state.cuts += 1);
    }

    /// Cuts every open connection after this many more bytes from the server.
    pub(crate) fn cut_after(&self, bytes: u32) {
        self.counts.allowance.store(bytes.into(), Ordering::Relaxed);
    }

    /// Forwards everything again.
    pub(crate) fn heal(&self) {
        self.counts.allowance.store(UNLIMITED, Ordering::Relaxed);
        self.set(Mode::Pass);
    }

    /// Number of connections accepted so far.
    pub(crate) fn accepted(&self) -> usize {
        self.counts.accepted.load(Ordering::Relaxed)
    }

    /// Number of bytes from the server so far.
    pub(crate) fn passed(&self) -> usize {
        self.counts.passed.load(Ordering::Relaxed)
    }

    /// Number of connections cut or closed at once so far.
    pub(crate) fn cuts(&self) -> usize {
        self.counts.cut.load(Ordering::Relaxed)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (accepted, cuts, passed) = (self.accepted(), self.cuts(), self.passed());
        match self.counts.broken.get() {
            Some(error) => write!(f, "its line is broken ({error})")?,
            None => write!(f, "its line is set to {:?}", self.state.borrow().mode)?,
        }
        write!(f, ", {accepted} connections accepted, {cuts} cut, {passed} bytes from the server")
    }
}

/// Length of the accept queue.
const BACKLOG: u32 = 64;

/// A socket that reserves its port, and refuses connections unless it listens. Another socket can
/// be bound to the same port, so that no other process takes the port when sockets are replaced.
fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Accepts or refuses connections, depending on the mode.
async fn listen(
    server: SocketAddr,
    mut listener: TcpListener,
    state: watch::Sender<State>,
    counts: &Arc<Counts>,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    let mut mode = state.subscribe();
    let mut connections = JoinSet::new();
    loop {
        if mode.borrow_and_update().mode == Mode::Refuse {
            let socket = bind(address)?;
            drop(listener);
            if mode.wait_for(|state| state.mode != Mode::Refuse).await.is_err() {
                return Ok(());
            }
            listener = socket.listen(BACKLOG)?;
        }
        let client = tokio::select! {
            changed = mode.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return Ok(()),
            },
            _ = connections.join_next(), if !connections.is_empty() => continue,
            accepted = listener.accept() => accepted?.0,
        };
        counts.accepted.fetch_add(1, Ordering::Relaxed);
        if state.borrow().mode == Mode::Slam {
            counts.cut.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        connections.spawn(pass(client, server, state.clone(), Arc::clone(counts)));
    }
}

/// Forwards bytes until either side closes or the link is cut.
async fn pass(client: TcpStream, server: SocketAddr, state: watch::Sender<State>, counts: Arc<Counts>) {
    let (mut up, mut down, mut cut) = (state.subscribe(), state.subscribe(), state.subscribe());
    let cuts = cut.borrow_and_update().cuts;
    let Ok(server) = TcpStream::connect(server).await else { return };
    if client.set_nodelay(true).and(server.set_nodelay(true)).is_err() {
        return;
    }
    let (client_reads, client_writes) = client.into_split();
    let (server_reads, server_writes) = server.into_split();
    let ended = tokio::select! {
        _ = cut.wait_for(|state| state.cuts > cuts) => Ended::Cut,
        ended = pump(client_reads, server_writes, &mut up, None) => ended,
        ended = pump(server_reads, client_writes, &mut down, Some(&counts)) => ended,
    };
    match ended {
        Ended::Itself => {}
        Ended::Cut => drop(counts.cut.fetch_add(1, Ordering::Relaxed)),
        Ended::Spent => {
            counts.cut.fetch_add(1, Ordering::Relaxed);
            state.send_modify(|state| state.cuts += 1);
        }
    }
}

/// How forwarding ended.
enum Ended {
    Itself,
    Cut,
    /// The byte limit was reached.
    Spent,
}

async fn pump(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    state: &mut watch::Receiver<State>,
    counts: Option<&Counts>,
) -> Ended {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let Ok(count @ 1..) = from.read(&mut buffer).await else { return Ended::Itself };
        if state.wait_for(|state| state.mode != Mode::Stall).await.is_err() {
            return Ended::Itself;
        }
        let allowed = counts.and_then(|counts| spend(&counts.allowance, count));
        if to.write_all(&buffer[..allowed.unwrap_or(count)]).await.is_err() {
            return Ended::Itself;
        }
        if allowed.is_some() {
            return Ended::Spent;
        }
        if let Some(counts) = counts {
            counts.passed.fetch_add(count, Ordering::Relaxed);
        }
    }
}

/// Subtracts bytes from the allowance. If it does not suffice, returns how many are left, and
/// resets it to unlimited.
fn spend(allowance: &AtomicI64, count: usize) -> Option<usize> {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    let take = |left: i64| match left {
        UNLIMITED => None,
        left if left > count => Some(left - count),
        _ => Some(UNLIMITED),
    };
    match allowance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
        Ok(left) if left <= count => Some(usize::try_from(left).unwrap_or(0)),
        Ok(_) | Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn echo() -> io::Result<SocketAddr> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut reads, mut writes) = client.split();
                    drop(tokio::io::copy(&mut reads, &mut writes).await);
                });
            }
        });
        Ok(address)
    }

    async fn answers(stream: &mut TcpStream) -> io::Result<bool> {
        stream.write_all(b"hello").await?;
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).await?;
        Ok(&answer == b"hello")
    }

    #[tokio::test]
    async fn bytes_pass_until_they_are_cut() -> io::Result<()> {
        let link = Link::open(echo().await?).await?;
        let mut stream = TcpStream::connect(link.address()).await?;
        assert!(answers(&mut stream).await?);
        link.cut();
        assert_eq!(stream.read(&mut [0; 5]).await.unwrap_or(0), 0);
        let mut again = TcpStream::connect(link.address()).await?;
        assert!(answers(&mut again).await?);
        assert_eq!((link.accepted(), link.cuts()), (2, 1));
        Ok(())
    }

    #[tokio::test]
    async fn the_line_is_cut_after_the_very_byte() -> io::Result<()> {
        let link = Link::open(echo().await?).await?;
        let mut stream = TcpStream::connect(link.address()).await?;
        assert!(answers(&mut stream).await?);
        link.cut_after(3);
        stream.write_all(b"hello").await?;
        let mut rest = Vec::new();
        // The connection may be reset instead of closed; the received bytes count.
        drop(stream.read_to_end(&mut rest).await);
        assert_eq!(rest, b"hel");
        assert!(answers(&mut TcpStream::connect(link.address()).await?).await?);
        Ok(())
    }

    #[tokio::test]
    async fn a_refusing_port_refuses_and_comes_back() -> io::Result<()> {
        let link = Link::open(echo().await?).await?;
        let mut open = TcpStream::connect(link.address()).await?;
        assert!(answers(&mut open).await?);
        link.set(Mode::Refuse);
        // The mode changes asynchronously: until then connections are accepted.
        while !TcpStream::connect(link.address()).await.is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused) {
            tokio::task::yield_now().await;
        }
        assert!(answers(&mut open).await?, "open connections stay");
        link.heal();
        while TcpStream::connect(link.address()).await.is_err() {
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    #[tokio::test]
    async fn a_slammed_door_is_counted() -> io::Result<()> {
        let link = Link::open(echo().await?).await?;
        link.set(Mode::Slam);
        let mut stream = TcpStream::connect(link.address()).await?;
        assert_eq!(stream.read(&mut [0; 5]).await.unwrap_or(0), 0);
        assert_eq!(link.cuts(), 1);
        Ok(())
    }

    #[tokio::test]
    async fn a_stalled_line_loses_nothing() -> io::Result<()> {
        let link = Link::open(echo().await?).await?;
        let mut stream = TcpStream::connect(link.address()).await?;
        assert!(answers(&mut stream).await?);
        link.set(Mode::Stall);
        stream.write_all(b"later").await?;
        let waiting = tokio::time::timeout(std::time::Duration::from_millis(50), stream.read_u8()).await;
        assert!(waiting.is_err());
        link.heal();
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).await?;
        assert_eq!(&answer, b"later");
        Ok(())
    }
}
