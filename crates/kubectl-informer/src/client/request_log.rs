//! A log of requests on standard error: kubectl's `-v=6`.

use std::time::Instant;

use http::Request;
use kube::Client;
use kube::client::Body;

use crate::terminal::stderr::stderr;

/// Wraps a client so that each request is logged when its response begins.
///
/// No header is logged: they hold credentials.
pub(super) fn logged(client: Client, namespace: &str, address: &str) -> Client {
    let address = address.to_owned();
    let send = tower::service_fn(move |request: Request<Body>| {
        let (client, began) = (client.clone(), Instant::now());
        let line = format!("{} {address}{}", request.method(), request.uri());
        async move {
            let response = client.send(request).await;
            let result = match &response {
                Ok(response) => response.status().to_string(),
                Err(error) => error.to_string(),
            };
            stderr(&format!("{line} {result} in {} ms", began.elapsed().as_millis()));
            response
        }
    });
    Client::new(send, namespace)
}
