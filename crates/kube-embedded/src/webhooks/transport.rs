//! Calls of webhooks: over a socket, or of a handler in the process.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::http::body::Body;

/// The timeout of a webhook that sets none.
const DEFAULT_TIMEOUT_SECONDS: u64 = 10;

/// The maximum size of an answer.
const MAX_ANSWER_BYTES: usize = 3 * 1024 * 1024;

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;
type Handler = Arc<dyn Fn(Request<Body>) -> BoxFuture<Result<Response<Bytes>, String>> + Send + Sync>;

/// The handlers of webhooks in the process, by the host of their service.
#[derive(Clone, Default)]
pub(crate) struct Handlers(Arc<RwLock<HashMap<String, Handler>>>);

impl fmt::Debug for Handlers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.read().keys()).finish()
    }
}

impl Handlers {
    /// Sets the handler of a service.
    pub(crate) fn set<S, B>(&self, namespace: &str, name: &str, service: S)
    where
        S: tower::Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
        S::Error: fmt::Display,
        S::Future: Send,
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: fmt::Display,
    {
        let service = Mutex::new(service);
        let handler: Handler = Arc::new(move |request| {
            let mut service = service.lock().clone();
            Box::pin(async move {
                std::future::poll_fn(|context| service.poll_ready(context)).await.map_err(|why| why.to_string())?;
                let response = service.call(request).await.map_err(|why| why.to_string())?;
                let (head, body) = response.into_parts();
                let body = body.collect().await.map_err(|why| why.to_string())?.to_bytes();
                Ok(Response::from_parts(head, body))
            })
        });
        self.0.write().insert(host_of(namespace, name), handler);
    }

    /// Sends a review to a webhook, as its specification says, and returns the answer.
    pub(super) async fn call(&self, webhook: &Value, review: &Value) -> Result<Value, String> {
        let seconds = webhook["timeoutSeconds"].as_u64().unwrap_or(DEFAULT_TIMEOUT_SECONDS);
        let endpoint = Endpoint::of(&webhook["clientConfig"], seconds)?;
        let post = |why: &str| format!("Post \"{}\": {why}", endpoint.uri);
        let request = Request::post(endpoint.uri.clone())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, */*")
            .header(HOST, endpoint.uri.authority().map_or("", |authority| authority.as_str()))
            .body(Body::whole(review.to_string()))
            .map_err(|why| post(&why.to_string()))?;
        let handler = self.0.read().get(endpoint.uri.host().unwrap_or_default()).cloned();
        let call = async {
            match handler {
                Some(handler) => handler(request).await,
                None => endpoint.send(request).await,
            }
        };
        let answer = tokio::time::timeout(Duration::from_secs(seconds), call).await;
        let answer = answer.map_err(|_| post("context deadline exceeded"))?.map_err(|why| post(&why))?;
        if !answer.status().is_success() {
            return Err(failure(&answer));
        }
        serde_json::from_slice(answer.body())
            .map_err(|why| format!("couldn't get version/kind; json parse error: {why}"))
    }
}

/// A response with another status in the words of Kubernetes' clients.
fn failure(answer: &Response<Bytes>) -> String {
    let is_text = answer.headers().get(CONTENT_TYPE).is_some_and(|value| value.as_bytes().starts_with(b"text/"));
    let text = String::from_utf8_lossy(answer.body());
    let said = if is_text { text.trim() } else { "unknown" };
    match answer.status().as_u16() {
        404 => "the server could not find the requested resource".to_owned(),
        500.. => format!("an error on the server ({said:?}) has prevented the request from succeeding"),
        code => format!("the server rejected our request for an unknown reason ({code})"),
    }
}

/// The host of a service.
fn host_of(namespace: &str, name: &str) -> String {
    format!("{name}.{namespace}.svc")
}

/// Where a webhook is.
struct Endpoint {
    uri: Uri,
    /// The service, if it is one.
    service: Option<String>,
    /// The certificates that the webhook's must be signed by, in PEM.
    authorities: Vec<u8>,
}

impl Endpoint {
    fn of(client: &Value, seconds: u64) -> Result<Endpoint, String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (service, url) = (&client["service"], text(&client["url"]));
        let url = match service.is_object() {
            true => {
                let host = host_of(&text(&service["namespace"]), &text(&service["name"]));
                let path = text(&service["path"]);
                let port = service["port"].as_i64().unwrap_or(443);
                format!("https://{host}:{port}{}{path}", if path.starts_with('/') { "" } else { "/" })
            }
            false => url,
        };
        let mark = if url.contains('?') { '&' } else { '?' };
        let uri = format!("{url}{mark}timeout={seconds}s").parse().map_err(|why| format!("{url}: {why}"))?;
        let engine = base64::engine::general_purpose::STANDARD;
        Ok(Endpoint {
            uri,
            service: service.is_object().then(|| text(&service["name"])),
            authorities: engine.decode(text(&client["caBundle"])).unwrap_or_default(),
        })
    }

    async fn send(&self, request: Request<Body>) -> Result<Response<Bytes>, String> {
        if let Some(service) = &self.service {
            return Err(format!("service \"{service}\" not found"));
        }
        let host = self.uri.host().unwrap_or_default();
        let is_plain = self.uri.scheme_str() == Some("http");
        let port = self.uri.port_u16().unwrap_or(if is_plain { 80 } else { 443 });
        let address = (host.trim_matches(['[', ']']), port);
        let socket = TcpStream::connect(address).await.map_err(|why| match why.kind() {
            io::ErrorKind::ConnectionRefused => format!("dial tcp {host}:{port}: connect: connection refused"),
            _ => format!("dial tcp {host}:{port}: {why}"),
        })?;
        if is_plain {
            return exchange(socket, request).await;
        }
        let name = ServerName::try_from(address.0.to_owned()).map_err(|why| why.to_string())?;
        let failure = |why: io::Error| format!("tls: failed to verify certificate: {why}");
        let socket = self.connector()?.connect(name, socket).await.map_err(failure)?;
        exchange(socket, request).await
    }

    fn connector(&self) -> Result<TlsConnector, String> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&self.authorities).flatten() {
            roots.add(certificate).map_err(|why| why.to_string())?;
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|why| why.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Arc::new(config).into())
    }
}

/// Sends one request over a connection and reads the response. The connection ends with this
/// future.
async fn exchange<T>(socket: T, request: Request<Body>) -> Result<Response<Bytes>, String>
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket)).await.map_err(|why| why.to_string())?;
    let mut request = request;
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
    *request.uri_mut() = path.parse().map_err(|why: http::uri::InvalidUri| why.to_string())?;
    let response = async {
        let response = sender.send_request(request).await.map_err(|why| why.to_string())?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await.map_err(|why| why.to_string())?;
        Ok(Response::from_parts(head, body.to_bytes()))
    };
    let connection = async {
        // If the connection fails, so does the response.
        connection.await.ok();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        response = response => response,
        () = connection => Err("EOF".to_owned()),
    }
}
