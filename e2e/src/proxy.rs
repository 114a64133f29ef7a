//! A proxy between a client and a server, to cut connections without touching either.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use crate::Error;

/// Hands bytes on, unless it is told otherwise. Everything ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: SocketAddr,
    line: watch::Sender<Line>,
    serving: AbortHandle,
}

/// Whether connections go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    /// They do; those that were there before this cut do not.
    Open { cuts: u64 },
    /// They are closed as soon as they are opened.
    Closed { cuts: u64 },
}

impl Proxy {
    /// A proxy on a port of its own in front of a server.
    pub(crate) async fn before(server: SocketAddr) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let line = watch::Sender::new(Line::Open { cuts: 0 });
        let serving = tokio::spawn(serve(listener, server, line.subscribe())).abort_handle();
        Ok(Self { address, line, serving })
    }

    /// A proxy in front of the server that a configuration names, and the configuration changed to use it.
    pub(crate) async fn between(config: &kube::Config) -> Result<(Self, kube::Config), Error> {
        let host = config.cluster_url.host().ok_or("the cluster's address has no host")?.to_owned();
        let https = config.cluster_url.scheme_str() == Some("https");
        let port = config.cluster_url.port_u16().unwrap_or(if https { 443 } else { 80 });
        let bare = host.trim_matches(['[', ']']);
        let server = tokio::net::lookup_host((bare, port)).await?.next().ok_or("the cluster's host is not known")?;
        let proxy = Self::before(server).await?;
        let mut config = config.clone();
        let scheme = if https { "https" } else { "http" };
        config.cluster_url = format!("{scheme}://{}", proxy.address).parse()?;
        config.tls_server_name.get_or_insert(bare.to_owned());
        Ok((proxy, config))
    }

    /// Breaks off every connection; new ones go through.
    pub(crate) fn cut(&self) {
        self.line.send_modify(|line| *line = Line::Open { cuts: line.cuts() + 1 });
    }

    /// Breaks off every connection, and all that come, until [`cut`](Self::cut).
    pub(crate) fn close(&self) {
        self.line.send_modify(|line| *line = Line::Closed { cuts: line.cuts() + 1 });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Line {
    fn cuts(self) -> u64 {
        match self {
            Self::Open { cuts } | Self::Closed { cuts } => cuts,
        }
    }
}

async fn serve(listener: TcpListener, server: SocketAddr, line: watch::Receiver<Line>) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (client, _) = accepted?;
                connections.spawn(hand_on(client, server, line.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Hands bytes on until either side ends or the connection is cut. What either side's failure was, the other side sees.
async fn hand_on(mut client: TcpStream, server: SocketAddr, mut line: watch::Receiver<Line>) {
    let began = *line.borrow_and_update();
    if let Line::Closed { .. } = began {
        return;
    }
    let through = async {
        let mut server = TcpStream::connect(server).await?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        copy_bidirectional(&mut client, &mut server).await
    };
    tokio::select! {
        _ = through => {}
        _ = line.wait_for(|line| line.cuts() != began.cuts()) => {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// A server that sends back what it is sent.
    async fn echo() -> Result<SocketAddr, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut from, mut to) = stream.split();
                    tokio::io::copy(&mut from, &mut to).await
                });
            }
        });
        Ok(address)
    }

    async fn is_echoed(stream: &mut TcpStream) -> bool {
        let mut back = [0];
        stream.write_all(b"x").await.is_ok() && stream.read_exact(&mut back).await.is_ok_and(|_| back == *b"x")
    }

    #[tokio::test]
    async fn a_cut_ends_connections_and_lets_new_ones_through() -> Result<(), Error> {
        let proxy = Proxy::before(echo().await?).await?;
        let mut before = TcpStream::connect(proxy.address).await?;
        assert!(is_echoed(&mut before).await);
        proxy.cut();
        assert_eq!(before.read(&mut [0]).await.unwrap_or(0), 0, "the connection goes on");
        assert!(is_echoed(&mut TcpStream::connect(proxy.address).await?).await);
        Ok(())
    }

    #[tokio::test]
    async fn nobody_gets_through_a_closed_proxy_until_it_is_opened() -> Result<(), Error> {
        let proxy = Proxy::before(echo().await?).await?;
        proxy.close();
        assert!(!is_echoed(&mut TcpStream::connect(proxy.address).await?).await);
        proxy.cut();
        assert!(is_echoed(&mut TcpStream::connect(proxy.address).await?).await);
        Ok(())
    }
}
