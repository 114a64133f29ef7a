//! Runs a controller: its sources, its queue and its workers.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use kube::core::ApiResource;
use kube_informer::shard::ShardKey;
use kube_informer::workqueue::{Item, Priority};
use kube_informer::{Factory, Health, Informer, Obj, Object, ObjectKey, Origin, WorkQueue};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use tracing::Instrument;

use super::builder::{Settings, Source};
use super::follower::{Follower, Seen};
use super::gone::GoneObjects;
use super::ranges::{OpenRanges, Permit};
use super::{Monitor, Rights};
use crate::consistency::{Caches, Disconnection, Gate, Passage, Tracker};
use crate::context::{Children, Context, ControllerContext, Parent, Patch};
use crate::error::Error;
use crate::figures::FiguresRecorder;
use crate::finalizer;
use crate::leadership::Leadership;
use crate::reconcile::{Attempt, AttemptResult, Outcome, attempt};
use crate::sharding::Participant;

/// A function of the user.
pub(super) type Reconcile<K> = Arc<dyn Fn(Context, Obj<K>) -> BoxFuture<'static, Result<Outcome, Error>> + Send + Sync>;

/// The functions of the user.
pub(super) struct UserCode<K> {
    pub(super) reconcile: Reconcile<K>,
    /// The name of the finalizer, and what is called before it is removed.
    pub(super) cleanup: Option<(Arc<str>, Reconcile<K>)>,
    pub(super) gone: Option<(Reconcile<K>, Arc<GoneObjects<K>>)>,
}

/// A controller that does not run yet.
pub(super) struct Runner<K> {
    pub(super) factory: Factory,
    pub(super) informer: Informer<K>,
    pub(super) caches: Arc<Caches>,
    pub(super) children: Children,
    pub(super) settings: Settings,
    pub(super) code: UserCode<K>,
    pub(super) monitor: Monitor,
    pub(super) queue: WorkQueue<ObjectKey>,
}

/// What the workers of a controller share.
struct Shared<K> {
    name: Arc<str>,
    informer: Informer<K>,
    resource: ApiResource,
    figures: FiguresRecorder,
    right: Right,
    gate: Option<Arc<Gate>>,
    disconnection: Option<Disconnection>,
    code: UserCode<K>,
    timeout: Duration,
    monitor: Monitor,
    queue: WorkQueue<ObjectKey>,
}

/// For which objects attempts may run.
enum Right {
    All(Arc<ControllerContext>),
    Ranges(Arc<OpenRanges>),
}

/// The right to run one attempt, until it is dropped.
enum Entered {
    All(Arc<ControllerContext>),
    Range(Permit),
}

impl Right {
    /// `None` if the object is not in a range that this process holds.
    fn enter<K>(&self, object: &Obj<K>) -> Option<Entered> {
        match self {
            Self::All(context) => Some(Entered::All(Arc::clone(context))),
            Self::Ranges(ranges) => ranges.enter(object).map(Entered::Range),
        }
    }
}

impl Entered {
    fn context(&self) -> &Arc<ControllerContext> {
        match self {
            Self::All(context) => context,
            Self::Range(permit) => permit.context(),
        }
    }

    /// Completes when the range is lost.
    async fn lost(&self) {
        match self {
            Self::All(_) => std::future::pending().await,
            Self::Range(permit) => permit.lost().await,
        }
    }
}

impl<K: Object> Runner<K> {
    pub(super) async fn run(
        self,
        sources: Vec<Source>,
        triggers: Vec<BoxStream<'static, ObjectKey>>,
        rights: Rights,
        mut stop: BoxFuture<'static, ()>,
    ) {
        self.factory.start();
        tokio::select! {
            biased;
            () = &mut stop => return,
            () = filled(Arc::clone(&self.settings.name), &self.caches) => {}
        }
        let (queue, resync, workers) = (self.queue.clone(), self.settings.resync, self.settings.workers);
        let informer = self.informer.clone();
        let (shared, following) = self.share(&rights);
        let shared = Arc::new(shared);
        let registrations: Vec<_> = sources.into_iter().map(|add| add(&queue)).collect();
        let mut feeds = JoinSet::new();
        for mut keys in triggers {
            let queue = queue.clone();
            feeds.spawn(async move {
                while let Some(key) = keys.next().await {
                    queue.add(key);
                }
            });
        }
        if let Some(period) = resync {
            feeds.spawn(resync_every(period, informer, queue.clone()));
        }
        let (stopping, has_stopped) = watch::channel(false);
        let mut working = JoinSet::new();
        for _ in 0..workers {
            working.spawn(Arc::clone(&shared).work(has_stopped.clone()));
        }
        let name = Arc::clone(&shared.name);
        drop(shared);
        let working = async move {
            stop.await;
            stopping.send_replace(true);
            drop(registrations);
            feeds.shutdown().await;
            queue.shutdown();
            while let Some(ended) = working.join_next().await {
                if let Err(error) = ended {
                    tracing::error!(controller = &*name, %error, "a worker has ended");
                }
            }
        };
        let Some((follower, mut participant)) = following else { return working.await };
        tokio::select! {
            () = working => {}
            () = follower.run(&mut participant) => {}
        }
        follower.finish(participant).await;
    }

    /// The parts of the workers, and for a member of a group what follows its ranges.
    fn share(self, rights: &Rights) -> (Shared<K>, Option<(Follower<K>, Participant)>) {
        let Self { factory, informer, caches, children, settings, code, monitor, queue } = self;
        let Settings { name, field_manager, timeout, consistency_bound, .. } = settings;
        let (client, figures) = (factory.client().clone(), monitor.recorder().clone());
        let disconnection =
            consistency_bound.map(|bound| Disconnection::new(informer.watch_health(), figures.clone(), bound));
        let gate = consistency_bound.map(|bound| {
            let caches = Arc::clone(&caches);
            Arc::new(Gate::new(Arc::clone(&name), client.clone(), caches, queue.clone(), figures.clone(), bound))
        });
        let manager = field_manager.unwrap_or_else(|| Arc::clone(&name));
        let (resource, own_caches, own_figures) = (informer.resource().clone(), Arc::clone(&caches), figures.clone());
        let is_by_uid = matches!(rights, Rights::Group(group) if group.key() == ShardKey::Uid);
        let writing = client.clone();
        let context = move |leadership: &Leadership| {
            Arc::new(ControllerContext {
                writer: leadership.writer(&writing),
                manager: Arc::clone(&manager),
                resource: resource.clone(),
                caches: Arc::clone(&own_caches),
                children: children.clone(),
                figures: own_figures.clone(),
                is_by_uid,
            })
        };
        let (right, following) = match rights {
            Rights::Leadership(leadership) => (Right::All(context(leadership)), None),
            Rights::Group(group) => {
                let ranges = Arc::new(OpenRanges::new(group.key()));
                monitor.holds(&ranges, &informer);
                let follower = Follower {
                    name: Arc::clone(&name),
                    client,
                    informer: informer.clone(),
                    seen: Seen::new(&caches),
                    caches,
                    gate: gate.clone(),
                    queue: queue.clone(),
                    ranges: Arc::clone(&ranges),
                    context: Box::new(context),
                };
                (Right::Ranges(ranges), Some((follower, group.participate())))
            }
        };
        let resource = informer.resource().clone();
        let shared =
            Shared { name, resource, informer, figures, right, gate, disconnection, code, timeout, monitor, queue };
        (shared, following)
    }
}

/// Completes when all caches are full, however long that takes.
async fn filled(controller: Arc<str>, caches: &Caches) {
    for informer in caches.iter() {
        while let Err(cause) = informer.synced().await {
            let resource = &informer.resource().plural;
            tracing::warn!(controller = &*controller, %resource, %cause, "the controller waits for a cache");
            // `Err` if the informer has stopped: then only `stop` ends the wait.
            if informer.watch_health().wait_for(Health::is_synced).await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// Adds all keys to the queue with each period.
async fn resync_every<K: Object>(period: Duration, informer: Informer<K>, queue: WorkQueue<ObjectKey>) {
    let mut ticks = interval_at(Instant::now() + period, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        informer.lister().keys().into_iter().for_each(|key| queue.add_from(key, Origin::Resync));
    }
}

impl<K: Object> Shared<K> {
    /// Takes one key after another until the controller stops.
    async fn work(self: Arc<Self>, mut stopping: watch::Receiver<bool>) {
        let mut disconnection = self.disconnection.clone();
        loop {
            let item = tokio::select! {
                biased;
                _ = stopping.wait_for(|stopping| *stopping) => return,
                item = self.queue.next() => item,
            };
            let Some(item) = item else { return };
            let span = tracing::info_span!("reconcile", controller = &*self.name, object = %*item);
            if let Some(disconnection) = &mut disconnection {
                tokio::select! {
                    biased;
                    _ = stopping.wait_for(|stopping| *stopping) => return,
                    () = disconnection.ended().instrument(span.clone()) => {}
                }
            }
            self.process(item).instrument(span).await;
        }
    }

    async fn process(&self, item: Item<ObjectKey>) {
        let key = (*item).clone();
        if let Some(gate) = &self.gate
            && matches!(gate.enter(&key, item.priority()), Passage::Closed)
        {
            return item.done();
        }
        let gone = self.code.gone.as_ref().and_then(|(function, gone)| Some((function, gone, gone.first(&key)?)));
        let current = self.informer.lister().get(&key);
        let Some(object) = gone.as_ref().map(|(_, _, last)| last).or(current.as_ref()) else { return item.forget() };
        let Some(entered) = self.right.enter(object) else {
            // The process that holds its range delivers what is gone.
            if let Some((_, gone, last)) = &gone {
                gone.delivered(last);
                self.queue.add_with(key, item.priority());
            }
            return item.forget();
        };
        let attempt = async {
            match &gone {
                Some((function, _, last)) => {
                    self.attempt(&entered, last, |context| function(context, last.clone())).await
                }
                None => self.attempt(&entered, object, |context| self.reconcile(context, object.clone())).await,
            }
        };
        let result = tokio::select! {
            biased;
            result = attempt => result,
            () = entered.lost() => return item.forget(),
        };
        let is_delivered = matches!(result, AttemptResult::Ok(Outcome::Done) | AttemptResult::Terminal(_));
        if let Some((_, gone, last)) = &gone
            && is_delivered
            && (gone.delivered(last) || current.is_some())
        {
            self.queue.add_with(key, item.priority());
        }
        end(item, &result);
    }

    /// Reconciles an object, or cleans it up.
    async fn reconcile(&self, context: Context, object: Obj<K>) -> Result<Outcome, Error> {
        let Some((finalizer, cleanup)) = &self.code.cleanup else {
            return (self.code.reconcile)(context, object).await;
        };
        match finalizer::step(&object, finalizer)? {
            finalizer::Step::Reconcile => (self.code.reconcile)(context, object).await,
            finalizer::Step::Leave => Ok(Outcome::Done),
            finalizer::Step::Add(patch) => {
                let resource = &self.resource;
                let object = context.patch_own::<K>(resource, object.key(), Patch::Json(patch)).await?;
                (self.code.reconcile)(context, object).await
            }
            finalizer::Step::CleanUp(patch) => {
                let outcome = cleanup(context.clone(), object.clone()).await?;
                if outcome == Outcome::Done {
                    let patch = Patch::Json(patch);
                    match context.patch_own::<K>(&self.resource, object.key(), patch).await {
                        Err(error) if !error.is_not_found() => return Err(error.into()),
                        _ => {}
                    }
                }
                Ok(outcome)
            }
        }
    }

    /// Runs one attempt for an object, and records everything about it.
    async fn attempt<F>(&self, entered: &Entered, object: &Obj<K>, start: impl FnOnce(Context) -> F) -> AttemptResult
    where
        F: Future<Output = Result<Outcome, Error>>,
    {
        let tracker = Tracker::default();
        let context = Context::new(Arc::clone(entered.context()), Parent::of(object), tracker.clone());
        // Also if this future is dropped, as after the deadline of a shutdown.
        let running = RunningAttempt { shared: self, key: object.key(), context: &context, tracker };
        self.figures.record(|figures| figures.active += 1);
        let (began, clock) = (SystemTime::now(), Instant::now());
        let result = attempt(self.timeout, || start(context.clone())).await;
        drop(running);
        let took = clock.elapsed();
        self.figures.record(|figures| {
            figures.durations.record(took);
            let attempts = &mut figures.attempts;
            let counter = match &result {
                AttemptResult::Ok(Outcome::Done) => &mut attempts.success,
                AttemptResult::Ok(Outcome::After(_)) => &mut attempts.requeue_after,
                AttemptResult::Ok(Outcome::Requeue) => &mut attempts.requeue,
                _ => &mut attempts.error,
            };
            *counter += 1;
            figures.terminal_errors += u64::from(matches!(result, AttemptResult::Terminal(_)));
            figures.panics += u64::from(matches!(result, AttemptResult::Panicked(_)));
            figures.timeouts += u64::from(matches!(result, AttemptResult::TimedOut));
        });
        log(&result, took);
        self.monitor.record(object.key(), Attempt { began, took, result: result.clone() });
        result
    }
}

/// An attempt that runs, until it is dropped.
struct RunningAttempt<'a, K> {
    shared: &'a Shared<K>,
    key: &'a ObjectKey,
    context: &'a Context,
    tracker: Tracker,
}

impl<K> Drop for RunningAttempt<'_, K> {
    fn drop(&mut self) {
        self.context.end();
        self.shared.figures.record(|figures| figures.active = figures.active.saturating_sub(1));
        if let Some(gate) = &self.shared.gate {
            gate.leave(self.key, self.tracker.clone());
        }
    }
}

/// Gives a key back to the queue.
fn end(item: Item<ObjectKey>, result: &AttemptResult) {
    match result {
        AttemptResult::Ok(Outcome::Done) | AttemptResult::Terminal(_) => item.forget(),
        AttemptResult::Ok(Outcome::After(delay)) => item.with_priority(Priority::Low).revisit_after(*delay),
        AttemptResult::Ok(Outcome::Requeue)
        | AttemptResult::Failed(_)
        | AttemptResult::Panicked(_)
        | AttemptResult::TimedOut => item.with_priority(Priority::Low).retry(),
    }
}

/// Logs a result. The span has the controller and the object.
fn log(result: &AttemptResult, took: Duration) {
    match result {
        AttemptResult::Ok(outcome) => tracing::debug!(?outcome, ?took, "reconciled"),
        AttemptResult::Failed(error) => tracing::warn!(%error, ?took, "reconciling failed; it is tried again"),
        AttemptResult::Terminal(error) => {
            tracing::error!(%error, ?took, "reconciling failed; it is not tried again before the object changes");
        }
        AttemptResult::Panicked(message) => {
            tracing::error!(%message, ?took, "the reconciler panicked; it is tried again");
        }
        AttemptResult::TimedOut => tracing::warn!(?took, "reconciling ran into its timeout; it is tried again"),
    }
}

impl Context {
    async fn patch_own<K>(
        &self,
        resource: &ApiResource,
        key: &ObjectKey,
        patch: Patch,
    ) -> Result<Obj<K>, crate::WriteError> {
        self.writes::<K>(resource, None).patch(key, &patch).await
    }
}
