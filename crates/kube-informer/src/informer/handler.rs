//! Handlers: their configuration, and the task that calls them.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;

use super::Core;
use super::subscription::{Registration, Subscription};
use crate::body::Obj;
use crate::pipeline::processor::{Backlog, EventFilter, Mailbox, NewHandler, ResyncChoice, Settle};
use crate::store::Event;

/// Configures a handler: its filter, its backlog and its resync period.
///
/// Created by [`Informer::handler`](crate::Informer::handler). Finish with
/// [`on_event`](Self::on_event), [`on_event_async`](Self::on_event_async) or
/// [`subscribe`](Self::subscribe).
///
/// ```
/// # kube_embedded::doctest(["a", "b"], async |server| {
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # let client = kube::Client::new(server.service(), "default");
/// # let maps = kube_informer::Informer::<ConfigMap>::builder(client).start();
/// use kube_informer::pipeline::Backlog;
///
/// // Only objects with `tier=gold`; a slow handler receives only the latest state of each object.
/// let gold = maps
///     .handler()
///     .filter(|map| map.label("tier") == Some("gold"))
///     .backlog(Backlog::Latest)
///     .on_event(|event| assert_eq!(event.key().name(), "a"));
/// gold.synced().await?;
/// gold.remove().await;
/// # Ok(()) });
/// ```
#[must_use = "a handler receives nothing until it is given a function to call"]
pub struct HandlerBuilder<K> {
    core: Arc<Core>,
    filter: Option<EventFilter<K>>,
    backlog: Backlog,
    resync: ResyncChoice,
}

impl<K: Send + 'static> HandlerBuilder<K> {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core, filter: None, backlog: Backlog::default(), resync: ResyncChoice::default() }
    }

    /// Delivers only events of objects that pass a test, which must depend on nothing but the
    /// object.
    ///
    /// An object that starts to pass is reported as [`Added`](Event::Added); one that stops passing
    /// as [`Deleted`](Event::Deleted) with [`FinalState::Filtered`](crate::FinalState::Filtered).
    /// The test runs on the handler's own task.
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::{Event, FinalState, Informer};
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let mut events = maps.handler().filter(|map| map.label("app") == Some("web")).subscribe();
    /// assert_eq!(events.next().await.unwrap().key().name(), "a");
    ///
    /// let other = serde_json::json!({"metadata": {"labels": {"app": "cache"}}});
    /// server.objects("v1", "ConfigMap")?.patch("a", &other)?;
    /// assert!(matches!(events.next().await, Some(Event::Deleted { state: FinalState::Filtered, .. })));
    /// assert_eq!(maps.lister().len(), 2, "it is still there");
    /// # Ok(()) });
    /// ```
    #[doc(alias = "FilteringResourceEventHandler")]
    #[doc(alias("TypedFilteringResourceEventHandler"))]
    pub fn filter(mut self, test: impl Fn(&Obj<K>) -> bool + Send + Sync + 'static) -> Self {
        self.filter = Some(EventFilter::new(self.core.kind(), test));
        self
    }

    /// Sets how events are queued while the handler is busy; see [`Backlog`] for the default.
    ///
    /// ```
    /// # kube_embedded::doctest(["a"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::pipeline::Backlog;
    /// use kube_informer::{Informer, Version};
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let mut events = maps.handler().backlog(Backlog::Latest).subscribe();
    /// assert!(events.next().await.is_some());
    /// let mut last = Version::from(0);
    /// for nth in 1..=3 {
    ///     let patched = server.objects("v1", "ConfigMap")?.patch("a", &serde_json::json!({"data": {"nth": nth.to_string()}}))?;
    ///     last = Version::new(patched["metadata"]["resourceVersion"].as_str().unwrap());
    /// }
    /// maps.wait_for(last).await?;
    /// assert_eq!(events.backlog(), 1, "one event for the three changes");
    /// assert_eq!(events.next().await.unwrap().object().value_at("data.nth")?.as_deref(), Some("3"));
    /// # Ok(()) });
    /// ```
    pub fn backlog(mut self, backlog: Backlog) -> Self {
        self.backlog = backlog;
        self
    }

    /// Sets the resync period of this handler, instead of [that of the
    /// informer](crate::Informer#resync); zero disables resyncs.
    ///
    /// ```
    /// # kube_embedded::doctest(["a"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # tokio::time::pause();
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// use std::time::Duration;
    /// use kube_informer::Informer;
    ///
    /// let maps = Informer::<ConfigMap>::builder(client).resync(Duration::from_secs(60)).start();
    /// let mut often = maps.subscribe();
    /// let mut once = maps.handler().resync(Duration::ZERO).subscribe();
    /// for _ in 0..10 {
    ///     assert!(often.next().await.is_some());
    /// }
    /// assert!(once.next().await.is_some());
    /// assert_eq!(once.backlog(), 0);
    /// # Ok(()) });
    /// ```
    #[doc(alias("ResyncPeriod"))]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = if period.is_zero() { ResyncChoice::Never } else { ResyncChoice::Every(period) };
        self
    }

    /// Calls a function with every event, one after the other, on a separate task.
    ///
    /// If the function panics, the panic is counted and logged with the kind and the key of the
    /// object, the event counts as delivered, and the next event follows. A blocking function
    /// blocks a thread of the runtime: to wait for something, use
    /// [`on_event_async`](Self::on_event_async).
    ///
    /// ```
    /// # kube_embedded::doctest(["a", "b"], async |server| {
    /// # let client = kube::Client::new(server.service(), "default");
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # use kube_informer::Informer;
    /// # std::panic::set_hook(Box::new(|_| ()));
    /// let maps = Informer::<ConfigMap>::builder(client).start();
    /// let clumsy = maps.handler().on_event(|event| assert_ne!(event.key().name(), "a"));
    /// clumsy.synced().await?; // both events are delivered
    /// assert_eq!(clumsy.panics(), 1);
    /// # Ok(()) });
    /// ```
    pub fn on_event(self, mut handle: impl FnMut(Event<K>) + Send + 'static) -> Registration {
        let kind = self.core.kind();
        self.spawn(|mut events, mailbox| async move {
            while let Some(event) = events.next().await {
                let key = event.key().clone();
                if catch_unwind(AssertUnwindSafe(|| handle(event))).is_err() {
                    mailbox.panicked(&kind, &key);
                }
            }
        })
    }

    /// Calls an asynchronous function with every event; each call completes before the next one.
    pub fn on_event_async<F>(self, mut handle: impl FnMut(Event<K>) -> F + Send + 'static) -> Registration
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let kind = self.core.kind();
        self.spawn(|mut events, mailbox| async move {
            while let Some(event) = events.next().await {
                let key = event.key().clone();
                let handled = match catch_unwind(AssertUnwindSafe(|| handle(event))) {
                    Ok(handling) => AssertUnwindSafe(handling).catch_unwind().await,
                    Err(panic) => Err(panic),
                };
                if handled.is_err() {
                    mailbox.panicked(&kind, &key);
                }
            }
        })
    }

    /// Returns the events as a stream.
    pub fn subscribe(self) -> Subscription<K> {
        let mailbox = Arc::new(Mailbox::new(self.backlog, Settle::AtOnce));
        self.core.admit(NewHandler { mailbox: Arc::clone(&mailbox), resync: self.resync });
        Subscription::new(mailbox, self.filter, Some(self.core))
    }

    fn spawn<F>(self, run: impl FnOnce(Subscription<K>, Arc<Mailbox>) -> F) -> Registration
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mailbox = Arc::new(Mailbox::new(self.backlog, Settle::OnReturn));
        // The task does not keep the informer alive: the registration does.
        let events = Subscription::new(Arc::clone(&mailbox), self.filter, None);
        let running = run(events, Arc::clone(&mailbox));
        let handled = Arc::clone(&mailbox);
        self.core.spawn_handler(Arc::clone(&mailbox), async move {
            handled.handled_here();
            running.await;
        });
        self.core.admit(NewHandler { mailbox: Arc::clone(&mailbox), resync: self.resync });
        Registration::new(mailbox, self.core)
    }
}

impl<K> fmt::Debug for HandlerBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerBuilder")
            .field("backlog", &self.backlog)
            .field("resync", &self.resync)
            .field("filter", &self.filter.is_some())
            .finish_non_exhaustive()
    }
}
