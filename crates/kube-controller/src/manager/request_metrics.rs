//! Counts the requests of a client.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;
use tower::service_fn;

/// Counts the requests of clients for `/metrics`: `rest_client_requests_total`. Cheap to clone.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use kube_controller::manager::{Manager, RequestMetrics};
/// use kube_informer::Factory;
///
/// let requests = RequestMetrics::default();
/// let client = requests.counted(client); // for the factory, the election and everything else
/// let factory = Factory::new(client);
/// let manager = Manager::builder(&factory).request_metrics(&requests).build()?;
/// # drop(manager);
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, Default)]
pub struct RequestMetrics(Arc<Mutex<BTreeMap<RequestKind, u64>>>);

/// Requests that are counted together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RequestKind {
    pub(super) method: &'static str,
    pub(super) code: Code,
}

/// The status of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Code {
    Http(u16),
    /// There was no response.
    Error,
}

impl RequestMetrics {
    /// Returns a client whose requests are counted when their response begins.
    ///
    /// Must be called within a tokio runtime.
    #[must_use]
    pub fn counted(&self, client: Client) -> Client {
        let (counts, namespace) = (self.clone(), client.default_namespace().to_owned());
        let service = service_fn(move |request: Request<Body>| {
            let (client, counts, method) = (client.clone(), counts.clone(), name(request.method()));
            async move {
                let response = client.send(request).await;
                let code = response.as_ref().map_or(Code::Error, |response| Code::Http(response.status().as_u16()));
                *counts.0.lock().entry(RequestKind { method, code }).or_default() += 1;
                response
            }
        });
        Client::new(service, namespace)
    }

    pub(super) fn counts(&self) -> Vec<(RequestKind, u64)> {
        self.0.lock().iter().map(|(kind, count)| (kind.clone(), *count)).collect()
    }
}

/// A bounded set of names.
fn name(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "other",
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(code) => write!(f, "{code}"),
            // As client-go has it.
            Self::Error => f.write_str("<error>"),
        }
    }
}
