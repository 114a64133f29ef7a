//! The address of the server behind a client, which `kube::Client` does not reveal: a layer of the
//! client writes it into the requests that ask for it.

use std::sync::{Arc, OnceLock};

use http::{Request, Uri};
use tower::util::MapRequestLayer;

/// A request extension: the address of the server, once a request has passed the layer.
#[derive(Debug, Clone, Default)]
pub(super) struct ServerName(Arc<OnceLock<Arc<str>>>);

impl ServerName {
    pub(super) fn get(&self) -> Option<Arc<str>> {
        self.0.get().cloned()
    }
}

type ClientRequest = Request<kube::client::Body>;

/// The layer of a client of this server.
pub(super) fn layer(
    server: &Uri,
) -> MapRequestLayer<impl Fn(ClientRequest) -> ClientRequest + Clone + Send + 'static + use<>> {
    let address: Arc<str> = address(server).into();
    MapRequestLayer::new(move |request: ClientRequest| {
        if let Some(name) = request.extensions().get::<ServerName>() {
            name.0.get_or_init(|| Arc::clone(&address));
        }
        request
    })
}

/// Scheme, host and port, without user and password.
fn address(server: &Uri) -> String {
    let scheme = server.scheme_str().unwrap_or("https");
    let host = server.host().unwrap_or_default();
    server.port().map_or_else(|| format!("{scheme}://{host}"), |port| format!("{scheme}://{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_contains_no_credentials() {
        assert_eq!(address(&Uri::from_static("https://me:secret@example.com:6443/path")), "https://example.com:6443");
        assert_eq!(address(&Uri::from_static("http://[::1]:80")), "http://[::1]:80");
        assert_eq!(address(&Uri::from_static("https://example.com")), "https://example.com");
    }
}
