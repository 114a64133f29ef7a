//! A server on loopback that answers as no API server does, until it is to behave.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// The version of everything on the server once it behaves.
const VERSION: &str = "1000";

/// The only object on the server once it behaves.
pub(crate) const HONEST: &str = r#"{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"honest","namespace":"default","uid":"1","resourceVersion":"900"}}"#;

pub(crate) struct HostileServer {
    url: String,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

struct Shared {
    behaves: AtomicBool,
    /// How many requests have been answered, or are being, before it behaves.
    attacks: AtomicUsize,
    attacked: Notify,
    /// The highest value of `sample`, which is called whenever bytes are sent.
    peak: AtomicIsize,
    sample: fn() -> isize,
    queries: Mutex<Vec<String>>,
}

/// One request, and the connection to answer it on, which is closed afterwards.
pub(crate) struct Exchange {
    query: String,
    stream: TcpStream,
    shared: Arc<Shared>,
}

impl HostileServer {
    /// Starts a server that answers each request with `attack`. `sample` measures the process.
    pub(crate) async fn start<F>(sample: fn() -> isize, attack: impl Fn(Exchange) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            behaves: AtomicBool::new(false),
            attacks: AtomicUsize::new(0),
            attacked: Notify::new(),
            peak: AtomicIsize::new(isize::MIN),
            sample,
            queries: Mutex::default(),
        });
        let (attack, all) = (Arc::new(attack), Arc::clone(&shared));
        let accepting = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (shared, attack) = (Arc::clone(&all), Arc::clone(&attack));
                // A client that hangs up is an error here, and its right.
                tokio::spawn(async move {
                    let exchange = Exchange::read(stream, shared).await?;
                    if exchange.shared.behaves.load(Ordering::Relaxed) {
                        return exchange.honest().await;
                    }
                    exchange.shared.attacks.fetch_add(1, Ordering::Relaxed);
                    exchange.shared.attacked.notify_one();
                    attack(exchange).await
                });
            }
        });
        Self { url, shared, accepting }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Waits until this many requests have arrived.
    pub(crate) async fn attacked(&self, times: usize) {
        while self.shared.attacks.load(Ordering::Relaxed) < times {
            self.shared.attacked.notified().await;
        }
    }

    /// From now on answers as an API server does. Endless answers end.
    pub(crate) fn behave(&self) {
        self.shared.behaves.store(true, Ordering::Relaxed);
    }

    pub(crate) fn peak(&self) -> isize {
        self.shared.peak.load(Ordering::Relaxed)
    }

    /// The queries of all requests so far.
    pub(crate) fn queries(&self) -> Vec<String> {
        self.shared.queries.lock().unwrap().clone()
    }
}

impl Drop for HostileServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Exchange {
    async fn read(mut stream: TcpStream, shared: Arc<Shared>) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if stream.read_buf(&mut head).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let head = String::from_utf8_lossy(&head);
        let uri = head.split(' ').nth(1).unwrap_or_default();
        let query = uri.split_once('?').map_or("", |(_, query)| query).to_owned();
        shared.queries.lock().unwrap().push(query.clone());
        Ok(Self { query, stream, shared })
    }

    pub(crate) fn query(&self) -> &str {
        &self.query
    }

    /// Whether a watch is requested, which a streaming list is not.
    pub(crate) fn is_watch(&self) -> bool {
        self.query.contains("watch=true") && !self.is_streaming_list()
    }

    pub(crate) fn is_streaming_list(&self) -> bool {
        self.query.contains("sendInitialEvents=true")
    }

    /// Sends bytes as they are.
    pub(crate) async fn raw(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.shared.peak.fetch_max((self.shared.sample)(), Ordering::Relaxed);
        self.stream.write_all(bytes.as_ref()).await
    }

    /// Begins an answer with these headers.
    pub(crate) async fn begin(&mut self, headers: &str) -> io::Result<()> {
        let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n{headers}\r\n\r\n");
        self.raw(head).await
    }

    /// Begins an answer in JSON.
    pub(crate) async fn json(&mut self) -> io::Result<()> {
        self.begin("Content-Type: application/json").await
    }

    /// Sends a part of the body.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        let bytes = bytes.as_ref();
        self.raw(format!("{:x}\r\n", bytes.len())).await?;
        self.raw(bytes).await?;
        self.raw("\r\n").await
    }

    /// Sends the same again and again, until the client hangs up or the server is to behave.
    pub(crate) async fn repeat(self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.generate(|_| bytes.as_ref().to_vec()).await
    }

    /// Sends part after part, until the client hangs up or the server is to behave.
    pub(crate) async fn generate(mut self, part: impl Fn(u64) -> Vec<u8>) -> io::Result<()> {
        for nth in 0.. {
            if self.shared.behaves.load(Ordering::Relaxed) {
                break;
            }
            self.send(part(nth)).await?;
            tokio::task::yield_now().await;
        }
        self.end().await
    }

    /// Ends the body.
    pub(crate) async fn end(mut self) -> io::Result<()> {
        self.raw("0\r\n\r\n").await
    }

    /// Sends nothing more, and keeps the connection open until the client hangs up.
    pub(crate) async fn hang(mut self) -> io::Result<()> {
        while self.stream.read_u8().await.is_ok() {}
        Ok(())
    }

    /// Answers as an API server does.
    pub(crate) async fn honest(mut self) -> io::Result<()> {
        if self.is_streaming_list() {
            self.json().await?;
            self.send(format!("{{\"type\":\"ADDED\",\"object\":{HONEST}}}\n")).await?;
            self.send(bookmark(VERSION, r#","annotations":{"k8s.io/initial-events-end":"true"}"#)).await?;
            return self.hang().await;
        }
        if self.is_watch() {
            self.json().await?;
            if self.query.split('&').any(|parameter| parameter.strip_prefix("resourceVersion=") == Some(VERSION)) {
                return self.hang().await;
            }
            self.send("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}}\n")
                .await?;
            return self.end().await;
        }
        self.json().await?;
        self.send(list(VERSION, "", HONEST)).await?;
        self.end().await
    }
}

/// A list of config maps. `further` is put into its metadata.
pub(crate) fn list(version: &str, further: &str, items: &str) -> String {
    format!(
        r#"{{"kind":"ConfigMapList","apiVersion":"v1","metadata":{{"resourceVersion":"{version}"{further}}},"items":[{items}]}}"#
    )
}

/// A bookmark. `further` is put into its metadata.
pub(crate) fn bookmark(version: &str, further: &str) -> String {
    format!(
        "{{\"type\":\"BOOKMARK\",\"object\":{{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"{version}\"{further}}}}}}}\n"
    )
}
