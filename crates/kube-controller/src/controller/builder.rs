//! The builder of controllers.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, Stream, StreamExt};
use kube_informer::workqueue::RateLimit;
use kube_informer::{Event, Factory, FinalState, Informer, Kind, Obj, Object, ObjectKey, Registration, WorkQueue};

use super::gone::GoneObjects;
use super::handles::{Owned, Watched};
use super::mapping::{self, OwnerKind};
use super::run::{Reconcile, Runner, UserCode};
use super::watch::Watch;
use super::{Controller, Monitor, NotSynced, plural_name};
use crate::consistency::Caches;
use crate::context::{Children, Context};
use crate::error::Error;
use crate::filter::Filter;
use crate::reconcile::Outcome;

/// Declares what a controller watches and how it reconciles; see [`Controller::builder`].
///
/// Every kind that the controller reads is declared here: [`owns`](Self::owns) and
/// [`watches`](Self::watches) return what reads it.
#[must_use = "a builder does nothing until it is given a reconciler"]
#[doc(alias("Builder", "ControllerManagedBy"))]
pub struct ControllerBuilder<K> {
    factory: Factory,
    informer: Informer<K>,
    filter: Option<Filter<K>>,
    caches: Caches,
    sources: Vec<Source>,
    triggers: Vec<BoxStream<'static, ObjectKey>>,
    children: Children,
    settings: Settings,
    code: Handlers<K>,
}

/// Adds a handler that feeds the queue.
pub(super) type Source = Box<dyn FnOnce(&WorkQueue<ObjectKey>) -> Registration + Send>;

/// The settings of a controller.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) name: Arc<str>,
    pub(super) field_manager: Option<Arc<str>>,
    pub(super) workers: usize,
    pub(super) timeout: Duration,
    pub(super) consistency_bound: Option<Duration>,
    pub(super) rate_limit: RateLimit,
    pub(super) resync: Option<Duration>,
}

/// The functions of the user, besides the reconciler.
struct Handlers<K> {
    cleanup: Option<(Arc<str>, Reconcile<K>)>,
    gone: Option<Reconcile<K>>,
}

impl<K: Object> ControllerBuilder<K> {
    pub(super) fn new(factory: &Factory, watch: Watch<K>) -> Self {
        let (informer, filter) = watch.open(factory);
        let mut caches = Caches::default();
        caches.add(&informer);
        let settings = Settings {
            name: plural_name(informer.resource()).into(),
            field_manager: None,
            workers: 4,
            timeout: Duration::from_secs(120),
            consistency_bound: Some(Duration::from_secs(30)),
            rate_limit: RateLimit::default(),
            resync: None,
        };
        Self {
            factory: factory.clone(),
            informer,
            filter,
            caches,
            sources: Vec::new(),
            triggers: Vec::new(),
            children: Children::default(),
            settings,
            code: Handlers { cleanup: None, gone: None },
        }
    }

    /// Sets the name of the controller in logs and metrics, and the field manager of its writes.
    ///
    /// The plural of its kind with the group by default: `websites.example.com`. Field managers
    /// belong to the state of the cluster, so a name stays the same for good.
    pub fn name(&mut self, name: impl Into<Arc<str>>) -> &mut Self {
        self.settings.name = name.into();
        self
    }

    /// Sets the field manager of the controller's writes, if it is not the [name](Self::name).
    pub fn field_manager(&mut self, manager: impl Into<Arc<str>>) -> &mut Self {
        self.settings.field_manager = Some(manager.into());
        self
    }

    /// Sets the number of workers: how many objects are reconciled at the same time. 4 by default.
    #[doc(alias("MaxConcurrentReconciles", "concurrency"))]
    pub fn workers(&mut self, workers: usize) -> &mut Self {
        self.settings.workers = workers.max(1);
        self
    }

    /// Sets how long an attempt may take before it is cancelled and counts as failed. Two minutes
    /// by default.
    #[doc(alias = "ReconciliationTimeout")]
    pub fn timeout(&mut self, timeout: Duration) -> &mut Self {
        self.settings.timeout = timeout;
        self
    }

    /// Sets the backoff of objects whose attempts fail. [`RateLimit::default`] by default.
    ///
    /// Only the failures of an object itself advance its backoff.
    pub fn rate_limit(&mut self, limit: RateLimit) -> &mut Self {
        self.settings.rate_limit = limit;
        self
    }

    /// Reconciles every object again with this period, with low priority. Never by default.
    #[doc(alias = "SyncPeriod")]
    pub fn resync(&mut self, period: Duration) -> &mut Self {
        self.settings.resync = Some(period).filter(|period| !period.is_zero());
        self
    }

    /// Sets how long an object waits for the caches to have what it wrote, before that is reported
    /// and it is tried again with backoff. 30 s by default.
    ///
    /// An object is never reconciled while the caches are known to be without its own writes. It
    /// also waits that long while the connection of its own kind's watch is lost, and is reconciled
    /// after that.
    pub fn consistency_bound(&mut self, bound: Duration) -> &mut Self {
        self.settings.consistency_bound = Some(bound);
        self
    }

    /// Reconciles objects also while the caches do not have what the last attempt wrote.
    ///
    /// For reconcilers that neither create objects under names that the server chooses nor count
    /// what they find.
    pub fn without_read_your_writes(&mut self) -> &mut Self {
        self.settings.consistency_bound = None;
        self
    }

    /// Sets labels of all children: the objects of [owned](Self::owns) kinds that are written.
    pub fn labels(&mut self, labels: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>) -> &mut Self {
        self.children.labels.extend(labels.into_iter().map(|(label, value)| (label.into(), value.into())));
        self
    }

    /// Watches a kind whose objects belong to the objects of this controller, and are its children.
    ///
    /// A change of a child concerns its controlling owner, before and after the change. Written
    /// children get the owner reference; see [`Context`].
    #[doc(alias = "Owns")]
    pub fn owns<C: Kind>(&mut self) -> Owned<C> {
        self.owns_with(Watch::kind())
    }

    /// Watches some objects of an owned kind, or one that is known only at run time.
    pub fn owns_with<C: Object>(&mut self, watch: Watch<C>) -> Owned<C> {
        let (informer, filter) = watch.open(&self.factory);
        self.caches.add(&informer);
        let resource = informer.resource();
        self.children.kinds.push((resource.group.clone(), resource.plural.clone()));
        let owner = OwnerKind::new(self.informer.resource(), self.informer.is_namespaced());
        let by_owner = informer.index({
            let owner = owner.clone();
            move |child| owner.owner_uid::<C>(child)
        });
        let lister = informer.lister();
        self.add_source(informer, filter, move |child| owner.owner_key(child));
        Owned::new(lister, by_owner)
    }

    /// Watches another kind, and maps each of its objects to the keys of the objects that it
    /// concerns.
    ///
    /// On a change, both states of the object are mapped.
    #[doc(alias("Watches", "EnqueueRequestsFromMapFunc"))]
    pub fn watches<C: Kind, I>(&mut self, map: impl Fn(&Obj<C>) -> I + Send + 'static) -> Watched<C>
    where
        I: IntoIterator<Item = ObjectKey>,
    {
        self.watches_with(Watch::kind(), map)
    }

    /// Watches some objects of another kind, or one that is known only at run time.
    pub fn watches_with<C: Object, I>(
        &mut self,
        watch: Watch<C>,
        map: impl Fn(&Obj<C>) -> I + Send + 'static,
    ) -> Watched<C>
    where
        I: IntoIterator<Item = ObjectKey>,
    {
        let (informer, filter) = watch.open(&self.factory);
        self.caches.add(&informer);
        let lister = informer.lister();
        self.add_source(informer, filter, map);
        Watched::new(lister)
    }

    /// Returns what reads the controller's own kind.
    #[must_use]
    pub fn own(&self) -> Watched<K> {
        Watched::new(self.informer.lister())
    }

    /// Adds an index of the controller's own kind, as [`Informer::index`] does.
    pub fn index<I, V>(&self, function: impl Fn(&Obj<K>) -> I + Send + Sync + 'static) -> kube_informer::Index<K, V>
    where
        I: IntoIterator<Item = V>,
        V: std::hash::Hash + Eq + Send + Sync + 'static,
    {
        self.informer.index(function)
    }

    /// Reconciles the objects whose keys a stream yields.
    #[doc(alias("WatchesRawSource", "reconcile_on"))]
    pub fn trigger(&mut self, keys: impl Stream<Item = ObjectKey> + Send + 'static) -> &mut Self {
        self.triggers.push(keys.boxed());
        self
    }

    /// Cleans up before objects go: each object gets this finalizer before it is first reconciled,
    /// and keeps it until `cleanup` has returned [`Outcome::Done`] for it.
    ///
    /// An object that is being deleted is not reconciled any more. `cleanup` may run more than
    /// once, and also if the object was never reconciled.
    pub fn finalizer<F, E>(
        &mut self,
        name: impl Into<Arc<str>>,
        cleanup: impl Fn(Context, Obj<K>) -> F + Send + Sync + 'static,
    ) -> &mut Self
    where
        F: Future<Output = Result<Outcome, E>> + Send + 'static,
        E: Into<Error>,
    {
        self.code.cleanup = Some((name.into(), boxed(cleanup)));
        self
    }

    /// Calls a function once for each object that is gone, with its last known state.
    ///
    /// A failed call is repeated as an attempt to reconcile is. Objects that go while no controller
    /// runs are not delivered: what must not be missed needs a [finalizer](Self::finalizer).
    pub fn gone<F, E>(&mut self, gone: impl Fn(Context, Obj<K>) -> F + Send + Sync + 'static) -> &mut Self
    where
        F: Future<Output = Result<Outcome, E>> + Send + 'static,
        E: Into<Error>,
    {
        self.code.gone = Some(boxed(gone));
        self
    }

    /// Finishes the controller with its reconciler.
    ///
    /// Called with the current state of an object after each change that concerns it, never
    /// concurrently for the same object. It has to work from any state, as nothing says what has
    /// changed, and may be cancelled at any await.
    pub fn reconcile<F, E>(self, reconcile: impl Fn(Context, Obj<K>) -> F + Send + Sync + 'static) -> Controller
    where
        F: Future<Output = Result<Outcome, E>> + Send + 'static,
        E: Into<Error>,
    {
        let Self { factory, informer, filter, caches, mut sources, triggers, children, settings, code } = self;
        let caches = Arc::new(caches);
        let gone = code.gone.map(|function| (function, Arc::new(GoneObjects::default())));
        let (monitor, queue) = Monitor::new(&settings, &caches);
        sources.push(primary(informer.clone(), filter, gone.as_ref().map(|(_, objects)| Arc::clone(objects))));
        let code = UserCode { reconcile: boxed(reconcile), cleanup: code.cleanup, gone };
        let runner = Runner { factory, informer, caches, children, settings, code, monitor: monitor.clone(), queue };
        let (starting, awaited) = (runner.factory.clone(), Arc::clone(&runner.caches));
        let name: Arc<str> = monitor.name().into();
        Controller {
            monitor,
            synced: Box::new(move || {
                starting.start();
                synced(Arc::clone(&name), Arc::clone(&awaited)).boxed()
            }),
            group: None,
            run: Box::new(move |rights, stop| runner.run(sources, triggers, rights, stop).boxed()),
        }
    }

    fn add_source<C: Object, I>(
        &mut self,
        informer: Informer<C>,
        filter: Option<Filter<C>>,
        map: impl Fn(&Obj<C>) -> I + Send + 'static,
    ) where
        I: IntoIterator<Item = ObjectKey>,
    {
        self.sources.push(Box::new(move |queue| {
            let queue = queue.clone();
            informer.on_event(move |event| {
                let keys = mapping::keys(&event, filter.as_ref(), &map);
                keys.into_iter().for_each(|key| queue.add_from(key, event.origin()));
            })
        }));
    }
}

/// The source of the controller's own kind.
fn primary<K: Object>(informer: Informer<K>, filter: Option<Filter<K>>, gone: Option<Arc<GoneObjects<K>>>) -> Source {
    Box::new(move |queue| {
        let queue = queue.clone();
        informer.on_event(move |event| {
            let is_kept = match (&gone, &event) {
                (Some(gone), Event::Deleted { last, state, .. }) if *state != FinalState::Filtered => {
                    gone.push(last.clone());
                    true
                }
                _ => false,
            };
            if is_kept || filter.as_ref().is_none_or(|filter| filter.passes_event(&event)) {
                queue.add_from(event.key().clone(), event.origin());
            }
        })
    })
}

async fn synced(controller: Arc<str>, caches: Arc<Caches>) -> Result<(), NotSynced> {
    for informer in caches.iter() {
        informer.synced().await.map_err(|cause| NotSynced {
            controller: Arc::clone(&controller),
            resource: informer.resource().clone(),
            cause,
        })?;
    }
    Ok(())
}

fn boxed<K, F, E>(function: impl Fn(Context, Obj<K>) -> F + Send + Sync + 'static) -> Reconcile<K>
where
    F: Future<Output = Result<Outcome, E>> + Send + 'static,
    E: Into<Error>,
{
    Arc::new(move |context, object| -> BoxFuture<'static, Result<Outcome, Error>> {
        function(context, object).map(|result| result.map_err(Into::into)).boxed()
    })
}

impl<K> fmt::Debug for ControllerBuilder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerBuilder")
            .field("caches", &self.caches)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}
