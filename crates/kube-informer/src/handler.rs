//! Handlers: how they are to be told, and the task that calls them.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;

use crate::event::Event;
use crate::informer::Core;
use crate::object::Obj;
use crate::processor::{Backlog, Mailbox, Newcomer, Settle, Sieve, Wish};
use crate::subscription::{Registration, Subscription};

/// A handler to be: what it is told of, how much may wait for it, and how often it hears everything again.
///
/// Made by [`Informer::handler`](crate::Informer::handler); ends in one of [`on_event`](Self::on_event),
/// [`on_event_async`](Self::on_event_async) and [`subscribe`](Self::subscribe).
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # use serde_json::json;
/// # let server = kube_embedded::Server::builder().in_process().start().await?;
/// # for (name, tier) in [("a", "gold"), ("b", "tin")] {
/// #     let metadata = json!({"name": name, "labels": {"tier": tier}});
/// #     server.create(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))?;
/// # }
/// # let client = kube::Client::new(server.service(), "default");
/// # let maps = kube_informer::Informer::<ConfigMap>::builder(client).start();
/// use kube_informer::Backlog;
///
/// // Of gold alone, and of each object only the latest state, however slow we are.
/// let gold = maps
///     .handler()
///     .filter(|map| map.label("tier") == Some("gold"))
///     .backlog(Backlog::Latest)
///     .on_event(|event| assert_eq!(event.key().name(), "a"));
/// gold.synced().await?;
/// gold.remove().await;
/// # Ok(())
/// # }
/// ```
#[must_use = "a handler is told only once it is given something to call"]
pub struct HandlerBuilder<K> {
    core: Arc<Core>,
    sieve: Option<Sieve<K>>,
    backlog: Backlog,
    resync: Wish,
}

impl<K: Send + 'static> HandlerBuilder<K> {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core, sieve: None, backlog: Backlog::default(), resync: Wish::default() }
    }

    /// Tells only of objects that pass a test, which must depend on nothing but the object.
    ///
    /// An object that begins to pass is [`Added`](Event::Added); one that ceases to is [`Deleted`](Event::Deleted), with
    /// [`FinalState::Filtered`](crate::FinalState::Filtered). The test runs on the handler's own task.
    #[doc(alias = "FilteringResourceEventHandler")]
    #[doc(alias("TypedFilteringResourceEventHandler"))]
    pub fn filter(mut self, test: impl Fn(&Obj<K>) -> bool + Send + Sync + 'static) -> Self {
        self.sieve = Some(Sieve::new(test));
        self
    }

    /// How much may wait for the handler.
    pub fn backlog(mut self, backlog: Backlog) -> Self {
        self.backlog = backlog;
        self
    }

    /// Tells the handler everything again this often, instead of [as often as the informer does](crate::Informer#resync); zero for
    /// never.
    #[doc(alias("ResyncPeriod"))]
    pub fn resync(mut self, period: Duration) -> Self {
        self.resync = if period.is_zero() { Wish::Never } else { Wish::Every(period) };
        self
    }

    /// Calls a function with every event, one after the other, on a task of its own.
    ///
    /// A function that panics has heard the event; the panic is counted, and the next event comes. One that blocks blocks a thread
    /// of the runtime: use [`on_event_async`](Self::on_event_async) to wait for something.
    pub fn on_event(self, mut handle: impl FnMut(Event<K>) + Send + 'static) -> Registration {
        self.spawn(|mut events, mailbox| async move {
            while let Some(event) = events.next().await {
                if catch_unwind(AssertUnwindSafe(|| handle(event))).is_err() {
                    mailbox.panicked();
                }
                tokio::task::coop::consume_budget().await;
            }
        })
    }

    /// Calls an asynchronous function with every event, and waits for it before the next.
    pub fn on_event_async<F>(self, mut handle: impl FnMut(Event<K>) -> F + Send + 'static) -> Registration
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.spawn(|mut events, mailbox| async move {
            while let Some(event) = events.next().await {
                let handled = match catch_unwind(AssertUnwindSafe(|| handle(event))) {
                    Ok(handling) => AssertUnwindSafe(handling).catch_unwind().await,
                    Err(panic) => Err(panic),
                };
                if handled.is_err() {
                    mailbox.panicked();
                }
                tokio::task::coop::consume_budget().await;
            }
        })
    }

    /// The events as a stream.
    pub fn subscribe(self) -> Subscription<K> {
        let mailbox = Arc::new(Mailbox::new(self.backlog, Settle::AtOnce));
        self.core.admit(Newcomer { mailbox: Arc::clone(&mailbox), resync: self.resync });
        Subscription::new(mailbox, self.sieve, Some(self.core))
    }

    fn spawn<F>(self, run: impl FnOnce(Subscription<K>, Arc<Mailbox>) -> F) -> Registration
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mailbox = Arc::new(Mailbox::new(self.backlog, Settle::OnReturn));
        // The task does not keep the informer alive: whoever holds the registration does.
        let events = Subscription::new(Arc::clone(&mailbox), self.sieve, None);
        let running = run(events, Arc::clone(&mailbox));
        let handled = Arc::clone(&mailbox);
        self.core.spawn_handler(Arc::clone(&mailbox), async move {
            handled.handled_here();
            running.await;
        });
        self.core.admit(Newcomer { mailbox: Arc::clone(&mailbox), resync: self.resync });
        Registration::new(mailbox, self.core)
    }
}

impl<K> fmt::Debug for HandlerBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerBuilder")
            .field("backlog", &self.backlog)
            .field("resync", &self.resync)
            .field("filter", &self.sieve.is_some())
            .finish_non_exhaustive()
    }
}
