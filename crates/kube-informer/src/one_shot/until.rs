//! Waiting for a state of one object, without a cache.

use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
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

/// Completes when an object, or its absence, passes a test, with the object: one list, then one watch, and nothing kept.
///
/// The source should have little else than the object: [`ApiListWatch::object`](crate::ApiListWatch::object) asks for it alone. The
/// test sees the newest state first, whatever it is, and then every further one; it is `None` while there is no such object. It is
/// asked once about each state. To give up when the object goes, let the test pass for `None` too.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use serde_json::json;
/// # let server = kube_embedded::Server::builder().in_process().start().await?;
/// # let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"done": "yes"}});
/// # server.create(&map)?;
/// # let client = kube::Client::new(server.service(), "default");
/// use std::time::Duration;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{ApiListWatch, ObjectKey, until};
///
/// let key = ObjectKey::namespaced("default", "a");
/// let source = ApiListWatch::of::<ConfigMap>(client).object(&key);
/// let done = until(source, key, |map: Option<&kube_informer::Obj<ConfigMap>>| {
///     let data = map.and_then(|map| map.get().ok()?.data.as_ref());
///     data.is_some_and(|data| data.contains_key("done"))
/// });
/// let map = tokio::time::timeout(Duration::from_secs(10), done).await??;
/// assert!(map.is_some());
/// # Ok(())
/// # }
/// ```
///
/// Failures that may pass are waited out, with waits that grow; a version that expired leads to a new list. What cannot pass, such as
/// a missing permission, ends it. It waits for as long as it takes: put `tokio::time::timeout` around it. Dropping it closes its
/// connection.
///
/// Where there is an informer anyway, [`Informer::wait_until`](crate::Informer::wait_until) asks nothing of the server.
#[doc(alias = "UntilWithoutRetry")]
#[doc(alias = "ListWatchUntil")]
#[must_use]
#[doc(alias("ConditionFunc", "Until"))]
pub fn until<K: Object>(
    source: impl ListWatch,
    key: ObjectKey,
    test: impl FnMut(Option<&Obj<K>>) -> bool + Send + 'static,
) -> BoxFuture<'static, Result<Option<Obj<K>>, ServerError>> {
    let mut waiting = Waiting { key, test, seen: Seen::Nothing };
    let source = Source::new(source);
    Box::pin(async move {
        let mut patience = Patience::new();
        loop {
            let list: List<K> = list(&source, &mut patience).await?;
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
                    Err(error) if error.is_expired() => patience.wait(&error).await,
                    Err(error) => return Err(error),
                }
            }
        }
    })
}

async fn list<K: Object>(source: &Source, patience: &mut Patience) -> Result<List<K>, ServerError> {
    loop {
        match Pager::of_source(source.clone()).list().await {
            Err(error) if error.may_pass() => {
                tracing::debug!(%error, "a list met a failure");
                patience.wait(&error).await;
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

/// The state that was last tested.
#[derive(PartialEq)]
enum Seen {
    Nothing,
    Absent,
    /// The uid too: versions of a server that went back mean little.
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

/// Waits that grow.
struct Patience {
    backoff: Backoff,
    rng: Rng,
    begun: Instant,
    longest_retry_after: Duration,
}

impl Patience {
    fn new() -> Self {
        let ReflectorSettings { backoff, longest_retry_after, .. } = ReflectorSettings::default();
        Self { backoff: Backoff::new(backoff), rng: Rng::random(), begun: Instant::now(), longest_retry_after }
    }

    async fn wait(&mut self, error: &ServerError) {
        let wait = self.backoff.after(error, self.begun.elapsed(), self.rng.roll(), self.longest_retry_after);
        sleep(wait).await;
    }
}
