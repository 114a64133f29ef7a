//! Handles of event consumers: subscriptions (streams) and registrations (handlers).

use std::fmt;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use tokio::task::coop;

use super::Core;
use super::SyncError;
use crate::pipeline::platform::watch;
use crate::pipeline::processor::{EventFilter, Mailbox, Stage};
use crate::store::Event;

/// A stream of events.
///
/// The stream begins with the current state, as events with
/// [`Origin::Initial`](crate::Origin::Initial), followed by every later change. It ends when the
/// informer stops. Dropping the subscription ends it. A subscription keeps its informer alive.
///
/// Events that are not taken are queued as configured with [`Backlog`](crate::pipeline::Backlog). A
/// slow subscription never delays other consumers.
///
/// ```
/// # kube_embedded::doctest(["a", "b"], async |server| {
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # let client = kube::Client::new(server.service(), "default");
/// # let maps = kube_informer::Informer::<ConfigMap>::builder(client).start();
/// let mut events = maps.subscribe();
/// let mut names = Vec::new();
/// while let Some(event) = events.next().await {
///     names.push(event.key().name().to_owned());
///     if names.len() == 2 {
///         maps.shutdown().await; // ends the stream
///     }
/// }
/// names.sort();
/// assert_eq!(names, ["a", "b"]);
/// # Ok(()) });
/// ```
#[must_use = "dropping a subscription ends it"]
pub struct Subscription<K> {
    mailbox: Arc<Mailbox>,
    filter: Option<EventFilter<K>>,
    core: Option<Arc<Core>>,
    kind: PhantomData<fn() -> K>,
}

impl<K> Subscription<K> {
    /// `core` is the informer that the subscription keeps alive.
    pub(crate) fn new(mailbox: Arc<Mailbox>, filter: Option<EventFilter<K>>, core: Option<Arc<Core>>) -> Self {
        Self { mailbox, filter, core, kind: PhantomData }
    }

    /// Returns the next event; `None` when the informer has stopped.
    ///
    /// Cancel safe: dropping the future loses no event.
    ///
    /// ```
    /// # kube_embedded::doctest(["a"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let mut events = maps.subscribe();
    /// assert_eq!(events.next().await.unwrap().key().name(), "a");
    /// maps.shutdown().await;
    /// assert!(events.next().await.is_none());
    /// # Ok(()) });
    /// ```
    pub async fn next(&mut self) -> Option<Event<K>> {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// Completes when every object of the initial state has been taken from the stream.
    ///
    /// Fails if the informer stops first, or if [waiting does not help](SyncError).
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let mut events = maps.subscribe();
    /// let synced = events.synced();
    /// let reader = tokio::spawn(async move {
    ///     while let Some(event) = events.next().await {
    ///         println!("{}", event.key());
    ///     }
    /// });
    /// synced.await?; // the reader has taken both
    /// # reader.abort();
    /// # Ok(()) });
    /// ```
    #[doc(alias("HasSyncedChecker"))]
    pub fn synced(&self) -> impl Future<Output = Result<(), SyncError>> + Send + use<K> {
        delivered(&self.mailbox, self.core.clone())
    }

    /// Returns the number of queued events.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let mut events = maps.subscribe();
    /// assert!(events.next().await.is_some());
    /// assert_eq!(events.backlog(), 1);
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.mailbox.waiting()
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Event<K>>> {
        loop {
            // Yields to the scheduler: a mailbox that never runs empty, or a filter that passes
            // nothing, must not starve other tasks.
            let budget = ready!(coop::poll_proceed(cx));
            let taken = ready!(self.mailbox.poll_take(cx));
            budget.made_progress();
            let Some(event) = taken else { return Poll::Ready(None) };
            let event = event.cast();
            let passed = match &mut self.filter {
                Some(filter) => filter.pass(event),
                None => Some(event),
            };
            if passed.is_some() {
                return Poll::Ready(passed);
            }
        }
    }
}

impl<K> Stream for Subscription<K> {
    type Item = Event<K>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event<K>>> {
        self.get_mut().poll(cx)
    }
}

impl<K> Drop for Subscription<K> {
    fn drop(&mut self) {
        self.mailbox.end();
    }
}

impl<K> fmt::Debug for Subscription<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").field("backlog", &self.backlog()).finish_non_exhaustive()
    }
}

/// The registration of a handler. Dropping it removes the handler.
///
/// `let _ = informer.on_event(…)` drops it immediately: keep it in a variable, or
/// [`detach`](Self::detach) it. A registration keeps its informer alive.
///
/// ```
/// # kube_embedded::doctest(["a", "b"], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Informer;
///
/// let maps = Informer::<ConfigMap>::builder(client).start();
/// let watcher = maps.on_event(|event| println!("{}", event.key()));
/// watcher.synced().await?;
/// watcher.remove().await; // its last call has returned
/// maps.on_event(|_| println!("something changed")).detach();
/// # Ok(()) });
/// ```
#[must_use = "dropping a registration removes the handler: keep it, or detach() it"]
#[doc(alias = "ResourceEventHandlerRegistration")]
#[doc(alias("RemoveEventHandler", "ShutDownEventHandler"))]
pub struct Registration {
    mailbox: Arc<Mailbox>,
    core: Option<Arc<Core>>,
    on_drop: OnDrop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OnDrop {
    Remove,
    Keep,
}

impl Registration {
    pub(crate) fn new(mailbox: Arc<Mailbox>, core: Arc<Core>) -> Self {
        Self { mailbox, core: Some(core), on_drop: OnDrop::Remove }
    }

    /// Completes when the cache is full and the handler has handled every object of the initial
    /// state.
    ///
    /// Fails if the handler is removed or the informer stops first, or if [waiting does not
    /// help](SyncError). An event on which the handler panicked counts as handled.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// maps.synced().await?; // the cache is full, but no handler has received it
    /// let handler = maps.on_event(move |event| sender.send(event.key().clone()).unwrap_or_default());
    /// handler.synced().await?;
    /// assert_eq!(receiver.try_iter().count(), 2);
    /// # Ok(()) });
    /// ```
    pub fn synced(&self) -> impl Future<Output = Result<(), SyncError>> + Send + use<> {
        delivered(&self.mailbox, self.core.clone())
    }

    /// Returns the number of events that are queued for the handler.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b", "c"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let (begin, begun) = tokio::sync::watch::channel(false);
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let slow = maps.on_event_async(move |_| {
    ///     let mut begun = begun.clone();
    ///     async move { drop(begun.wait_for(|begun| *begun).await) }
    /// });
    /// while slow.backlog() != 2 {
    ///     tokio::task::yield_now().await; // the first is being handled, two are queued
    /// }
    /// begin.send(true)?;
    /// slow.synced().await?;
    /// assert_eq!(slow.backlog(), 0);
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn backlog(&self) -> usize {
        self.mailbox.waiting()
    }

    /// Returns how often the handler has panicked.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// # std::panic::set_hook(Box::new(|_| ()));
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let clumsy = maps.on_event(|_| panic!("always"));
    /// clumsy.synced().await?;
    /// assert_eq!(clumsy.panics(), 2);
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn panics(&self) -> u64 {
        self.mailbox.panics()
    }

    /// Removes the handler and waits until a running call has returned. Queued events are not
    /// delivered.
    ///
    /// Called from within the handler itself it does not wait, because that would deadlock.
    ///
    /// ```
    /// # kube_embedded::doctest(["a"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// use std::sync::Arc;
    ///
    /// let seen = Arc::new(());
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let handler = maps.on_event({
    ///     let seen = Arc::clone(&seen);
    ///     move |_| assert!(Arc::strong_count(&seen) > 1)
    /// });
    /// handler.synced().await?;
    /// handler.remove().await;
    /// assert_eq!(Arc::strong_count(&seen), 1, "it is called no more, and what it held is free");
    /// # Ok(()) });
    /// ```
    pub async fn remove(self) {
        let mailbox = Arc::clone(&self.mailbox);
        drop(self);
        if mailbox.is_handled_here() {
            return;
        }
        let mut stage = mailbox.stage();
        // Cannot fail: the mailbox owns the sender, and this function holds the mailbox.
        drop(stage.wait_for(|stage| *stage == Stage::Ended).await);
    }

    /// Keeps the handler registered until the informer stops.
    ///
    /// The handler does not keep the informer alive: something else has to, such as a handle of the
    /// informer. An informer of a [`Factory`](crate::Factory) is kept by the factory, from this
    /// call until the factory is [shut down](crate::Factory::shutdown) or its last clone is
    /// dropped, or until the informer is [shut down](crate::Informer::shutdown). So is its cache.
    ///
    /// A handler that captures a [`Lister`](crate::Lister) or an [`Index`](crate::Index) of its own
    /// informer, or the informer itself, keeps it running for ever. Let it capture a
    /// [`WeakLister`](super::WeakLister) or a [`WeakIndex`](super::WeakIndex).
    ///
    /// ```
    /// # kube_embedded::doctest(["a"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// maps.on_event(move |event| sender.send(event.key().clone()).unwrap_or_default()).detach();
    /// assert!(receiver.recv().await.is_some());
    /// drop(maps); // the last handle: the informer stops, and the handler is dropped
    /// assert!(receiver.recv().await.is_none());
    /// # Ok(()) });
    /// ```
    pub fn detach(mut self) {
        self.on_drop = OnDrop::Keep;
        self.mailbox.detach();
        if let Some(core) = &self.core {
            core.handler_detached();
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if self.on_drop == OnDrop::Keep {
            return;
        }
        if !self.mailbox.has_delivered_any() && !self.mailbox.is_closed() {
            tracing::warn!(
                "a handler is removed before its first event: was its registration meant to be kept, or detached?"
            );
        }
        self.mailbox.close();
        if let Some(core) = &self.core {
            core.forget_unstarted();
        }
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("backlog", &self.backlog()).finish_non_exhaustive()
    }
}

/// Waits until the initial state has been delivered, or cannot be delivered any more.
fn delivered(
    mailbox: &Arc<Mailbox>,
    core: Option<Arc<Core>>,
) -> impl Future<Output = Result<(), SyncError>> + Send + use<> {
    let mut stage = mailbox.stage();
    let invalid = core.as_ref().and_then(|core| core.invalid().cloned());
    let informer = core.map(|core| core.synced());
    async move {
        if let Some(invalid) = invalid {
            return Err(SyncError::Invalid(invalid));
        }
        let failed = async {
            match informer {
                Some(synced) => synced.await,
                None => Ok(()),
            }
        };
        tokio::select! {
            biased;
            delivered = initial_delivered(&mut stage) => delivered,
            // `Ok` only means that the cache is full, not that the handler has handled its objects.
            Err(error) = failed => Err(error),
        }
    }
}

async fn initial_delivered(stage: &mut watch::Receiver<Stage>) -> Result<(), SyncError> {
    match stage.wait_for(|stage| *stage != Stage::Initial).await.as_deref() {
        Ok(Stage::Synced) => Ok(()),
        Ok(Stage::Initial | Stage::Ended) | Err(_) => Err(SyncError::Stopped),
    }
}
