//! Metrics of informers.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::informer_name::InformerName;
use super::processor::MailboxStats;
use crate::reflector::Counters;
use crate::shard::ShardSupport;
use crate::store::guarded;

#[cfg(feature = "metrics")]
mod facade;

#[cfg(feature = "metrics")]
pub use self::facade::Facade;

/// Receives the figures of informers: at the start, every ten seconds, and at the end.
///
/// The feature `metrics` adds an implementation for the crate of that name, to which all informers
/// report that have no other.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Informer;
/// use kube_informer::pipeline::{Figures, InformerName, Metrics};
///
/// struct Lines;
///
/// impl Metrics for Lines {
///     fn report(&self, informer: &InformerName, figures: &Figures) {
///         println!("{informer}: {} objects in {} bytes", figures.objects, figures.bytes);
///     }
///     fn ended(&self, informer: &InformerName) {
///         println!("{informer} has ended");
///     }
/// }
/// let maps = Informer::<ConfigMap>::builder(client).metrics(Lines).start();
/// maps.synced().await?;
/// # Ok(()) });
/// ```
#[doc(alias("InformerMetricsProvider", "SetInformerMetricsProvider"))]
pub trait Metrics: Send + Sync + 'static {
    /// Called before the first report of an informer.
    fn begun(&self, informer: &InformerName) {
        let _ = informer;
    }

    /// Called with the figures of an informer.
    fn report(&self, informer: &InformerName, figures: &Figures);

    /// Called when a handler has ended: its figures must no longer be shown.
    fn handler_ended(&self, informer: &InformerName, handler: usize) {
        let _ = (informer, handler);
    }

    /// Called when the informer has ended, after its handlers: its figures must no longer be shown.
    fn ended(&self, informer: &InformerName);
}

/// The figures of an informer. Totals never decrease.
///
/// ```
/// use kube_informer::pipeline::Figures;
///
/// fn backlog(figures: &Figures) -> usize {
///     figures.handlers.iter().map(|handler| handler.backlog).sum()
/// }
/// assert_eq!(backlog(&Figures::default()), 0);
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Figures {
    /// Objects in the cache.
    pub objects: usize,
    /// Approximate size of the cached objects in bytes.
    pub bytes: usize,
    /// Bodies decoded so far.
    pub decodes: u64,
    /// Deltas applied so far.
    pub deltas: u64,
    /// Events produced so far, regardless of the number of handlers.
    pub events: u64,
    /// Deltas waiting to be applied.
    pub queue_deltas: usize,
    /// Their approximate size in bytes.
    pub queue_bytes: usize,
    /// The figures of each current handler, in the order in which they were added.
    pub handlers: Vec<HandlerFigures>,
    /// Totals over all reflectors: lists, watches, relists by reason, stalls, errors.
    pub reflector: Counters,
    /// How long ago the informer last received anything from the server.
    pub last_contact_age: Option<Duration>,
    /// Whether the server obeys the selector of the shard; none without a shard.
    pub shard: Option<ShardSupport>,
}

/// The figures of a handler.
///
/// ```
/// use std::time::Duration;
/// use kube_informer::pipeline::HandlerFigures;
///
/// fn is_stuck(handler: &HandlerFigures) -> bool {
///     handler.backlog > 0 && handler.lag > Duration::from_secs(60)
/// }
/// assert!(!is_stuck(&HandlerFigures::default()));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HandlerFigures {
    /// The number of the handler: counted from 0 in the order of addition, never reused.
    pub handler: usize,
    /// Events waiting in its queue.
    pub backlog: usize,
    /// How long its queue has been continuously non-empty.
    pub lag: Duration,
    /// How often its queue overflowed.
    pub overflows: u64,
    /// How often it panicked.
    pub panics: u64,
}

impl From<(usize, MailboxStats)> for HandlerFigures {
    fn from((handler, stats): (usize, MailboxStats)) -> Self {
        let MailboxStats { waiting, lag, overflows, panics } = stats;
        Self { handler, backlog: waiting, lag, overflows, panics }
    }
}

/// The metrics of informers without their own.
#[cfg(feature = "metrics")]
pub(crate) fn default_metrics() -> Option<Arc<dyn Metrics>> {
    Some(Arc::new(Facade))
}

#[cfg(not(feature = "metrics"))]
pub(crate) fn default_metrics() -> Option<Arc<dyn Metrics>> {
    None
}

/// The interval between reports.
const PERIOD: Duration = Duration::from_secs(10);

/// Reports the figures of one informer.
pub(crate) struct Reporter {
    metrics: Arc<dyn Metrics>,
    informer: Arc<InformerName>,
    next: Option<Instant>,
    /// The handlers in the last report.
    handlers: Vec<usize>,
}

impl Reporter {
    pub(crate) fn new(metrics: Arc<dyn Metrics>, informer: Arc<InformerName>) -> Self {
        Self { metrics, informer, next: None, handlers: Vec::new() }
    }

    pub(crate) fn due(&self) -> Instant {
        self.next.unwrap_or_else(Instant::now)
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.next.is_none_or(|next| next <= now)
    }

    pub(crate) fn report(&mut self, now: Instant, figures: &Figures) {
        if self.next.replace(now + PERIOD).is_none() {
            guarded("metrics", || self.metrics.begun(&self.informer));
        }
        let handlers: Vec<usize> = figures.handlers.iter().map(|handler| handler.handler).collect();
        let before = std::mem::replace(&mut self.handlers, handlers);
        self.handlers_ended(before.into_iter().filter(|handler| !self.handlers.contains(handler)));
        guarded("metrics", || self.metrics.report(&self.informer, figures));
    }

    fn handlers_ended(&self, handlers: impl Iterator<Item = usize>) {
        for handler in handlers {
            guarded("metrics", || self.metrics.handler_ended(&self.informer, handler));
        }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        if self.next.is_some() {
            self.handlers_ended(self.handlers.iter().copied());
            guarded("metrics", || self.metrics.ended(&self.informer));
        }
    }
}

/// Adds the counters of two reflectors.
pub(crate) fn sum(one: Counters, other: &Counters) -> Counters {
    let (mut all, relists) = (one, &other.relists);
    all.lists += other.lists;
    all.streaming_lists += other.streaming_lists;
    all.watches += other.watches;
    all.listed += other.listed;
    all.changes += other.changes;
    all.bookmarks += other.bookmarks;
    all.outside += other.outside;
    all.errors += other.errors;
    all.decode_errors += other.decode_errors;
    all.probes += other.probes;
    all.stalls += other.stalls;
    all.relists.expired += relists.expired;
    all.relists.too_large += relists.too_large;
    all.relists.went_back += relists.went_back;
    all.relists.server_error += relists.server_error;
    all.relists.refused += relists.refused;
    all.relists.short_watches += relists.short_watches;
    all.relists.undecodable += relists.undecodable;
    all.relists.grown += relists.grown;
    all
}
