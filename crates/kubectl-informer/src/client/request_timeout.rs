//! Request timeout: kubectl's `--request-timeout`.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use kube::Client;
use kube::client::Body;
use tokio::time::{Instant, Sleep};
use tower::Service;

type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Wraps a client so that each request must complete within `limit`.
///
/// For a watch, the limit covers only the time until the response begins.
pub(crate) fn limited(client: Client, namespace: &str, limit: Duration) -> Client {
    let send = tower::service_fn(move |request: Request<Body>| {
        let client = client.clone();
        async move { client.send(request).await }
    });
    Client::new(WithTimeout { inner: send, limit }, namespace)
}

#[derive(Clone)]
struct WithTimeout<S> {
    inner: S,
    limit: Duration,
}

/// The request timeout expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TooLong(Duration);

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no full answer within {:?}, the --request-timeout", self.0)
    }
}

impl std::error::Error for TooLong {}

impl<S, B> Service<Request<Body>> for WithTimeout<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<Cause>,
{
    type Response = Response<BodyWithDeadline<B>>;
    type Error = Cause;
    type Future = BoxFuture<'static, Result<Response<BodyWithDeadline<B>>, Cause>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Cause>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (limit, is_watch_request) = (self.limit, is_watch(&request));
        let deadline = Instant::now() + limit;
        let answer = self.inner.call(request);
        async move {
            let answer = tokio::time::timeout_at(deadline, answer).await.map_err(|_| TooLong(limit))?;
            let answer = answer.map_err(Into::into)?;
            let deadline = (!is_watch_request).then(|| Box::pin(tokio::time::sleep_until(deadline)));
            Ok(answer.map(|body| BodyWithDeadline { body, deadline, limit }))
        }
        .boxed()
    }
}

fn is_watch(request: &Request<Body>) -> bool {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').any(|part| matches!(part, "watch=true" | "watch=1"))
}

/// A response body with an optional deadline.
struct BodyWithDeadline<B> {
    body: B,
    deadline: Option<Pin<Box<Sleep>>>,
    limit: Duration,
}

impl<B> http_body::Body for BodyWithDeadline<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<Cause>,
{
    type Data = Bytes;
    type Error = Cause;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cause>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let limit = self.limit;
        let Some(deadline) = &mut self.deadline else { return Poll::Pending };
        ready!(deadline.as_mut().poll(cx));
        Poll::Ready(Some(Err(TooLong(limit).into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::{StreamExt as _, stream};
    use http_body_util::{BodyExt as _, StreamBody};
    use tower::ServiceExt as _;

    const LIMIT: Duration = Duration::from_secs(2);

    /// Sends a request to a service that starts its response after `begins` seconds and completes
    /// it `ends` seconds later. Returns the body's length.
    async fn send(path: &str, begins: u64, ends: u64) -> Result<usize, String> {
        let slow = tower::service_fn(move |_: Request<Body>| async move {
            tokio::time::sleep(Duration::from_secs(begins)).await;
            let part = |bytes: &'static str| Ok::<_, Cause>(Frame::data(Bytes::from(bytes)));
            let parts = stream::iter([part("be")]).chain(stream::once(async move {
                tokio::time::sleep(Duration::from_secs(ends)).await;
                part("gun")
            }));
            Ok::<_, Cause>(Response::new(StreamBody::new(parts.boxed())))
        });
        let request = Request::get(path).body(Body::empty()).unwrap();
        let answer =
            WithTimeout { inner: slow, limit: LIMIT }.oneshot(request).await.map_err(|error| error.to_string())?;
        let body = answer.into_body().collect().await.map_err(|error| error.to_string())?;
        Ok(body.to_bytes().len())
    }

    #[tokio::test(start_paused = true)]
    async fn every_request_has_to_be_answered_in_time_and_a_watch_has_to_begin_in_time() {
        let late = Err("no full answer within 2s, the --request-timeout".to_owned());
        assert_eq!(send("/api/v1/pods?limit=500", 1, 0).await, Ok(5));
        assert_eq!(send("/api/v1/pods", 3, 0).await, late);
        let cut = send("/api/v1/pods?watching=true", 1, 60).await.unwrap_err();
        assert!(cut.contains("--request-timeout"), "{cut}");
        assert_eq!(send("/api/v1/pods?resourceVersion=7&watch=true", 1, 3_600).await, Ok(5));
        assert_eq!(send("/api/v1/pods?watch=1", 3, 0).await, late);
    }
}
