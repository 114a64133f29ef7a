//! A client whose watches are slow and cut, and whose writes are lost before or after they are
//! executed.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, BodyStream, StreamBody};
use kube::Client;
use kube::client::Body;
use kube_embedded::Server;
use parking_lot::Mutex;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;
use tokio::time::sleep;
use tower::{Service, service_fn};

/// The source of all that goes wrong.
#[derive(Clone)]
pub(crate) struct Chaos(Arc<Mutex<Pcg64>>);

impl Chaos {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(Pcg64::seed_from_u64(seed))))
    }

    pub(crate) fn up_to(&self, most: u64) -> u64 {
        self.0.lock().random_range(0..=most)
    }

    fn one_in(&self, number: u64) -> bool {
        self.up_to(number - 1) == 0
    }

    async fn delay(&self, most: u64) {
        sleep(Duration::from_millis(self.up_to(most))).await;
    }

    pub(crate) fn client(&self, server: &Server) -> Client {
        let (service, chaos) = (server.service(), self.clone());
        let service = service_fn(move |request: Request<Body>| {
            let (mut service, chaos) = (service.clone(), chaos.clone());
            async move {
                let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
                let is_write = request.method() != Method::GET;
                chaos.delay(20).await;
                if is_write && chaos.one_in(8) {
                    return Err(io::Error::from(io::ErrorKind::ConnectionReset));
                }
                let (parts, body) = service.call(request).await?.into_parts();
                chaos.delay(20).await;
                if is_write && chaos.one_in(4) {
                    return Err(io::Error::from(io::ErrorKind::ConnectionReset));
                }
                let body = if is_watch { chaos.watch(body) } else { body.map_err(io::Error::other).boxed_unsync() };
                Ok(Response::from_parts(parts, body))
            }
        });
        Client::new(service, "default")
    }

    /// A watch that is slow for as long as it is open, and cut sooner or later.
    fn watch<B>(&self, body: B) -> UnsyncBoxBody<Bytes, io::Error>
    where
        B: http_body::Body<Data = Bytes, Error: Send> + Send + Unpin + 'static,
    {
        let slowness = [0, 100, 3_000, 30_000][self.up_to(3) as usize];
        let frames = if self.one_in(3) { usize::MAX } else { self.up_to(6) as usize };
        let chaos = self.clone();
        let slow = BodyStream::new(body).take(frames).then(move |frame| {
            let chaos = chaos.clone();
            async move {
                chaos.delay(slowness).await;
                frame.map_err(|_| io::Error::from(io::ErrorKind::ConnectionReset))
            }
        });
        let cut = stream::once(async { Err::<Frame<Bytes>, _>(io::Error::from(io::ErrorKind::ConnectionReset)) });
        StreamBody::new(slow.chain(cut)).boxed_unsync()
    }
}
