//! A plain HTTP/1.1 client without retries or decoding.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use kube_embedded::Service;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tower::ServiceExt as _;

pub(crate) enum Client {
    /// Over a socket.
    Socket(Socket),
    /// In process: the embedded server's service.
    InProcess(Service),
}

pub(crate) struct Socket {
    authority: String,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    idle: Mutex<Vec<SendRequest<Full<Bytes>>>>,
}

/// The connection, which must live until the response is read.
pub(crate) type Connection = Option<SendRequest<Full<Bytes>>>;

/// The body of a response over either transport.
pub(crate) type Body = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

impl Client {
    /// Creates a client of the server at `url`, which must not have a path; `ca` is the CA
    /// certificate (PEM) of an `https` server.
    pub(crate) fn new(url: &str, ca: Option<&str>) -> Self {
        let (scheme, authority) = url.trim_end_matches('/').split_once("://").expect("the base URL has a scheme");
        let tls = match scheme {
            "http" => None,
            "https" => Some(connector(authority, ca.expect("an https server needs KUBE_CONFORMANCE_CA"))),
            other => panic!("cannot speak {other}"),
        };
        Self::Socket(Socket { authority: authority.to_owned(), tls, idle: Mutex::default() })
    }

    /// Sends a request and returns the response head with the connection, which is to be returned
    /// once the body is read.
    pub(crate) async fn send(&self, request: http::Request<Full<Bytes>>) -> (http::Response<Body>, Connection) {
        match self {
            Self::Socket(socket) => {
                let (answer, connection) = socket.send(request).await;
                (answer.map(|body| body.map_err(Into::into).boxed_unsync()), Some(connection))
            }
            Self::InProcess(service) => {
                let answer = service.clone().oneshot(request).await.expect("the server answers");
                (answer.map(|body| body.map_err(Into::into).boxed_unsync()), None)
            }
        }
    }

    pub(crate) fn give_back(&self, connection: Connection) {
        if let (Self::Socket(socket), Some(connection)) = (self, connection) {
            socket.idle.lock().unwrap().push(connection);
        }
    }
}

impl Socket {
    async fn send(
        &self,
        mut request: http::Request<Full<Bytes>>,
    ) -> (http::Response<Incoming>, SendRequest<Full<Bytes>>) {
        let host = self.authority.parse().expect("the authority is a header value");
        request.headers_mut().insert(http::header::HOST, host);
        let mut connection = self.connection().await;
        let answer = connection.send_request(request).await.expect("the server answers");
        (answer, connection)
    }

    async fn connection(&self) -> SendRequest<Full<Bytes>> {
        loop {
            let idle = self.idle.lock().unwrap().pop();
            match idle {
                Some(mut connection) => {
                    if connection.ready().await.is_ok() {
                        return connection;
                    }
                }
                None => return self.connect().await,
            }
        }
    }

    async fn connect(&self) -> SendRequest<Full<Bytes>> {
        let socket = TcpStream::connect(&self.authority).await.expect("the server accepts connections");
        socket.set_nodelay(true).expect("a TCP socket has this option");
        let io: Box<dyn Io> = match &self.tls {
            None => Box::new(socket),
            Some((tls, name)) => Box::new(tls.connect(name.clone(), socket).await.expect("the server speaks TLS")),
        };
        let (sender, connection) =
            handshake(TokioIo::new(io)).await.expect("HTTP/1.1 has no handshake that could fail");
        tokio::spawn(connection);
        sender
    }
}

trait Io: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

fn connector(authority: &str, ca: &str) -> (TlsConnector, ServerName<'static>) {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(ca.as_bytes()) {
        roots.add(certificate.expect("the CA file is PEM")).expect("the CA file holds certificates");
    }
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    let name = ServerName::try_from(host.to_owned()).expect("the URL's host is a name or an address");
    (TlsConnector::from(Arc::new(config)), name)
}
