//! Waiting for a state of one object, without a cache.

use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::{Instant, sleep};

use super::pager::{List, Pager};
use super::retry_watch::RetryWatch;
use crate::body::Obj;
use crate::client::ServerError;
use crate::client::{ListWatch, Source};
use crate::object::ObjectKey;
use crate::object::Version;
use crate::object::{Object, Uid};
use crate::reflector::ReflectorSettings;
use crate::reflector::backoff::Backoff;
use crate::reflector::rng::Rng;

/// Completes with an object when the object, or its absence, passes a test.
///
/// It sends one list and one watch, and caches nothing.
///
/// The source should contain little more than the object:
/// [`ApiListWatch::object`](crate::client::ApiListWatch::object) requests only this object. The
/// test is called once per state: first with the latest one, then with every later one, and with
/// `None` while the object does not exist. To stop waiting when the object is deleted, let the test
/// pass for `None` too.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # use serde_json::json;
/// # let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"done": "yes"}});
/// # server.create(&map)?;
/// # let client = kube::Client::new(server.service(), "default");
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::ObjectKey;
/// use kube_informer::client::ApiListWatch;
/// use kube_informer::one_shot::until;
///
/// let key = ObjectKey::namespaced("default", "a");
/// let source = ApiListWatch::of::<ConfigMap>(client).object(&key);
/// let done = until(source, key, |map: Option<&kube_informer::Obj<ConfigMap>>| {
///     let data = map.and_then(|map| map.get().ok()?.data.as_ref());
///     data.is_some_and(|data| data.contains_key("done"))
/// });
/// let map = tokio::time::timeout(Duration::from_secs(10), done).await??;
/// assert!(map.is_some());
/// # Ok(()) });
/// ```
///
/// Transient failures are retried with backoff; an expired version leads to a new list. A permanent
/// failure, such as a missing permission, ends the wait. There is no timeout: use
/// `tokio::time::timeout`. Dropping the future closes its connection.
///
/// With an existing informer, [`Informer::wait_until`](crate::Informer::wait_until) sends no
/// request to the server.
#[doc(alias = "UntilWithoutRetry")]
#[doc(alias = "ListWatchUntil")]
#[doc(alias("ConditionFunc", "Until"))]
pub fn until<K: Object>(
    source: impl ListWatch,
    key: ObjectKey,
    test: impl FnMut(Option<&Obj<K>>) -> bool + Send + 'static,
) -> impl Future<Output = Result<Option<Obj<K>>, ServerError>> + Send {
    let mut waiting = Waiting { key, test, seen: Seen::Nothing };
    let source = Source::new(source);
    async move {
        let mut retries = Retries::new();
        loop {
            let list: List<K> = list(&source, &mut retries).await?;
            let object = list.objects.into_iter().find(|object| *object.key() == waiting.key);
            if waiting.passes(object.as_ref()) {
                return Ok(object);
            }
            let mut events = RetryWatch::<K>::of_source(source.clone(), list.version).stream();
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) if *event.object().key() != waiting.key => {}
                    Ok(event) => {
                        let object = (!event.is_deleted()).then(|| event.object().clone());
                        if waiting.passes(object.as_ref()) {
                            return Ok(object);
                        }
                    }
                    Err(error) if error.is_expired() => retries.wait(&error).await,
                    Err(error) => return Err(error),
                }
            }
        }
    }
}

async fn list<K: Object>(source: &Source, retries: &mut Retries) -> Result<List<K>, ServerError> {
    loop {
        match Pager::of_source(source.clone()).list().await {
            Err(error) if error.is_retryable() => {
                tracing::debug!(%error, "a list met a failure");
                retries.wait(&error).await;
            }
            answer => return answer,
        }
    }
}

struct Waiting<T> {
    key: ObjectKey,
    test: T,
    seen: Seen,
}

/// The last tested state.
#[derive(PartialEq)]
enum Seen {
    Nothing,
    Absent,
    /// Includes the uid, because versions may repeat after the server went back in time.
    Present(Option<Uid>, Version),
}

impl<T> Waiting<T> {
    fn passes<K>(&mut self, object: Option<&Obj<K>>) -> bool
    where
        T: FnMut(Option<&Obj<K>>) -> bool,
    {
        let present = |object: &Obj<K>| Seen::Present(object.uid().cloned(), object.version().clone());
        let state = object.map_or(Seen::Absent, present);
        if self.seen == state {
            return false;
        }
        self.seen = state;
        (self.test)(object)
    }
}

/// Backoff between retries.
struct Retries {
    backoff: Backoff,
    rng: Rng,
    begun: Instant,
    longest_retry_after: Duration,
}

impl Retries {
    fn new() -> Self {
        let ReflectorSettings { backoff, longest_retry_after, .. } = ReflectorSettings::default();
        Self { backoff: Backoff::new(backoff), rng: Rng::random(), begun: Instant::now(), longest_retry_after }
    }

    async fn wait(&mut self, error: &ServerError) {
        let wait = self.backoff.after(error, self.begun.elapsed(), self.rng.next_fraction(), self.longest_retry_after);
        sleep(wait).await;
    }
}
