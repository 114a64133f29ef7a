//! The manager: [`Manager`] runs controllers and tasks in one process, from its start to its end.
//!
//! ```
//! # kube_embedded::doctest([], async |server| {
//! # let client = kube::Client::new(server.service(), "default");
//! use std::time::Duration;
//! use kube_controller::leadership::LeaderElection;
//! use kube_controller::manager::Manager;
//! use kube_informer::Factory;
//! use tokio::net::TcpListener;
//!
//! let factory = Factory::new(client.clone());
//! let election = LeaderElection::builder(client, "default", "websites").build()?;
//! let manager = Manager::builder(&factory)
//!     // .controller(websites)
//!     .task("report", |leadership, stop| async move {
//!         leadership.check()?; // only the leader runs this
//!         stop.requested().await;
//!         Ok(())
//!     })
//!     .leader_election(election)
//!     .serve(TcpListener::bind("127.0.0.1:0").await?) // /healthz, /readyz, /metrics
//!     .build()?;
//! // In a program: manager.run().await, which ends on SIGTERM and SIGINT.
//! manager.run_until(tokio::time::sleep(Duration::from_millis(10))).await?;
//! # Ok(()) });
//! ```
//!
//! # Start
//!
//! 1. The HTTP server answers. `/readyz` fails, and names what is not ready.
//! 2. All informers of the factory start, and their caches are filled: also those of a process that
//!    does not lead, so that it works at once when it does. A cache that the server refuses to fill
//!    ends the manager with an error.
//! 3. `/readyz` succeeds, and [standby tasks](ManagerBuilder::standby_task) start. So do
//!    [sharded](crate::Controller::sharded) controllers, and this process becomes a member of their
//!    groups.
//! 4. Leadership is acquired, if there is an election.
//! 5. Controllers, tasks and event recorders start.
//!
//! # End
//!
//! On SIGTERM, SIGINT, the end of [`run_until`](Manager::run_until)'s future, or a task that fails:
//!
//! 1. `/readyz` fails. Controllers take no more keys, and tasks are asked to stop.
//! 2. Running attempts and tasks end, at the latest after the
//!    [shutdown deadline](ManagerBuilder::shutdown_deadline); what runs then is cancelled. The lease
//!    is renewed meanwhile.
//! 3. Within five more seconds: ranges of groups are released, recorders publish what is queued,
//!    the lease is released, informers stop, and the HTTP server ends.
//!
//! If leadership is lost, controllers and tasks are cancelled at once, and [`run`](Manager::run)
//! returns an error: return it from `main`, so that the process ends with a failure and is started
//! again. Their writes fail already, before the manager notices.

// Uses every other part of the crate. `page`, `metrics` and `status` are pure.

use std::collections::HashMap;
use std::fmt;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{self, BoxFuture};
use kube_informer::Factory;
use tokio::sync::watch;
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};
use tower::BoxError;
use tracing::{error, info, warn};

pub use self::builder::{InvalidManager, ManagerBuilder};
pub use self::error::ManagerError;
pub use self::informer_metrics::InformerMetrics;
pub use self::request_metrics::RequestMetrics;
pub use self::stop::Stop;

use self::http::HttpServer;
use self::signals::Signals;
use self::status::{Phase, Status};
use self::task::{Task, Work};
use crate::leadership::{LeaderElection, Leadership, LeadershipLost};
use crate::panic_text::panic_text;
use crate::recorder::Recorder;
use crate::sharding::ShardGroup;

mod builder;
mod error;
mod http;
mod informer_metrics;
mod metrics;
mod page;
mod request_metrics;
mod signals;
mod status;
mod stop;
mod task;

/// How long recorders, the lease, informers and the HTTP server have to end.
const CLEAN_UP: Duration = Duration::from_secs(5);

/// Runs the controllers and tasks of a process. See the [module](self).
#[must_use = "a manager does nothing until it runs"]
pub struct Manager {
    factory: Factory,
    tasks: Vec<Task>,
    election: Option<LeaderElection>,
    server: Option<HttpServer>,
    status: Arc<Status>,
    shutdown_deadline: Duration,
    running: Running,
    stopping: watch::Sender<bool>,
    groups: RunningGroups,
}

/// The groups of sharded controllers, of which this process is a member.
#[derive(Default)]
struct RunningGroups {
    tasks: JoinSet<()>,
    leaving: watch::Sender<bool>,
}

/// The tasks that run.
#[derive(Default)]
struct Running {
    tasks: JoinSet<Result<(), BoxError>>,
    names: HashMap<Id, Arc<str>>,
}

impl Manager {
    /// Returns a builder of a manager with the informers of this factory.
    pub fn builder(factory: &Factory) -> ManagerBuilder {
        ManagerBuilder::new(factory.clone())
    }

    /// Runs until SIGTERM or SIGINT (Ctrl-C), an error, or the loss of leadership. A second signal
    /// cancels what still runs.
    ///
    /// Return its error from `main`, so that the process ends with a failure.
    pub async fn run(self) -> Result<(), ManagerError> {
        let signals = || Signals::new().map_err(ManagerError::Signals);
        let (mut first, mut second) = (signals()?, signals()?);
        let second = async move {
            second.next().await;
            second.next().await;
        };
        self.run_with(first.next(), second).await
    }

    /// Runs until a future completes, an error, or the loss of leadership.
    pub async fn run_until(self, stop: impl Future<Output = ()>) -> Result<(), ManagerError> {
        self.run_with(stop, future::pending()).await
    }

    async fn run_with(
        mut self,
        stop: impl Future<Output = ()>,
        cancel: impl Future<Output = ()>,
    ) -> Result<(), ManagerError> {
        let server = self.server.take().map(HttpServer::start);
        let outcome = Box::pin(self.work(pin!(stop))).await;
        match &outcome {
            Ok(()) => info!("shutting down"),
            Err(cause) => error!(%cause, "shutting down"),
        }
        let ended = Box::pin(self.end(outcome, pin!(cancel))).await;
        if let Some(server) = server {
            server.shutdown().await;
        }
        ended
    }

    /// Starts everything in order, and returns when everything is to end.
    async fn work(&mut self, mut stop: Pin<&mut impl Future<Output = ()>>) -> Result<(), ManagerError> {
        self.factory.start();
        let synced = self.synced();
        tokio::select! {
            biased;
            () = &mut stop => return Ok(()),
            synced = synced => synced?,
        }
        info!("caches are full");
        self.start_tasks(Work::is_of_every_process, &Leadership::unelected());
        for group in &self.status.groups {
            self.groups.start(group.clone());
        }
        let leadership = match &mut self.election {
            None => Leadership::unelected(),
            Some(election) => {
                self.status.enter(Phase::Standby);
                tokio::select! {
                    biased;
                    () = &mut stop => return Ok(()),
                    failed = self.running.failed() => return Err(failed),
                    leadership = election.acquire() => leadership,
                }
            }
        };
        self.status.enter(Phase::Leading);
        for recorder in &self.status.recorders {
            recorder.start(&leadership.writer(self.factory.client()));
        }
        self.start_tasks(|_| true, &leadership);
        tokio::select! {
            biased;
            lost = hold(self.election.as_mut()) => Err(lost.into()),
            () = &mut stop => Ok(()),
            failed = self.running.failed() => Err(failed),
        }
    }

    /// Completes when the caches of all controllers and of the whole factory are full.
    fn synced(&self) -> impl Future<Output = Result<(), ManagerError>> + use<> {
        let all = self.factory.synced();
        let controllers = self.tasks.iter().filter_map(|task| match &task.work {
            Work::Controller(controller) => Some(controller.synced()),
            _ => None,
        });
        let controllers = future::try_join_all(controllers.collect::<Vec<_>>());
        async move {
            controllers.await?;
            Ok(all.await?)
        }
    }

    /// Starts the tasks that are selected and not started yet.
    fn start_tasks(&mut self, is_selected: impl Fn(&Work) -> bool, leadership: &Leadership) {
        let (selected, rest) = std::mem::take(&mut self.tasks).into_iter().partition(|task| is_selected(&task.work));
        self.tasks = rest;
        for Task { name, work } in selected {
            let stop = Stop::new(self.stopping.subscribe());
            let running: BoxFuture<'static, Result<(), BoxError>> = match work {
                Work::Controller(controller) => {
                    let run = controller.run(leadership.clone(), stop.into_requested());
                    Box::pin(async move {
                        run.await;
                        Ok(())
                    })
                }
                Work::Leading(task) => task(leadership.clone(), stop),
                Work::Always(task) => task(stop),
            };
            info!(task = %name, "started");
            self.running.spawn(name, running);
        }
    }

    /// Ends everything in order.
    async fn end(
        mut self,
        mut outcome: Result<(), ManagerError>,
        cancel: Pin<&mut impl Future<Output = ()>>,
    ) -> Result<(), ManagerError> {
        self.status.enter(Phase::Stopping);
        self.stopping.send_replace(true);
        let mut is_lost = matches!(outcome, Err(ManagerError::LeadershipLost(_)));
        if !is_lost {
            let deadline = Instant::now() + self.shutdown_deadline;
            let drained = tokio::select! {
                biased;
                drained = self.running.drain() => drained,
                lost = hold(self.election.as_mut()) => {
                    is_lost = true;
                    Err(lost.into())
                }
                () = cancel => Ok(()),
                () = sleep_until(deadline) => Ok(()),
            };
            outcome = outcome.and(drained);
        }
        if is_lost {
            self.status.lease_gone();
        }
        let unfinished = self.running.unfinished();
        if !unfinished.is_empty() && !is_lost {
            warn!(unfinished = unfinished.join(", "), "cancelled at the end of the shutdown");
            outcome = outcome.and(Err(ManagerError::Unfinished(unfinished)));
        }
        let Self { running, factory, status, election, groups, .. } = self;
        let clean_up = async {
            running.cancel().await;
            groups.leave().await;
            future::join_all(status.recorders.iter().map(Recorder::shutdown)).await;
            if let Some(mut election) = election {
                // Logged. The lease expires by itself.
                election.release().await.ok();
                status.lease_gone();
            }
            factory.shutdown().await;
        };
        if timeout(CLEAN_UP, clean_up).await.is_err() {
            warn!("not everything has ended after the shutdown");
        }
        outcome
    }
}

/// Renews the lease until the leadership is lost: for ever without election.
async fn hold(election: Option<&mut LeaderElection>) -> LeadershipLost {
    match election {
        Some(election) => election.hold().await,
        None => future::pending().await,
    }
}

impl RunningGroups {
    fn start(&mut self, group: ShardGroup) {
        let mut leave = self.leaving.subscribe();
        self.tasks.spawn(async move {
            // An error: the manager was dropped.
            let leave = async { drop(leave.wait_for(|is_leaving| *is_leaving).await) };
            group.run(leave).await;
        });
    }

    /// Releases all ranges, for which nothing runs any more.
    async fn leave(mut self) {
        self.leaving.send_replace(true);
        while self.tasks.join_next().await.is_some() {}
    }
}

impl Running {
    fn spawn(&mut self, name: Arc<str>, task: BoxFuture<'static, Result<(), BoxError>>) {
        let handle = self.tasks.spawn(task);
        self.names.insert(handle.id(), name);
    }

    /// Waits until a task has failed.
    async fn failed(&mut self) -> ManagerError {
        loop {
            match self.tasks.join_next_with_id().await {
                Some(ended) => {
                    if let Err(error) = self.ended(ended) {
                        return error;
                    }
                }
                None => future::pending().await,
            }
        }
    }

    /// Waits until all tasks have ended. Returns the first failure.
    async fn drain(&mut self) -> Result<(), ManagerError> {
        let mut outcome = Ok(());
        while let Some(ended) = self.tasks.join_next_with_id().await {
            outcome = outcome.and(self.ended(ended));
        }
        outcome
    }

    fn ended(&mut self, ended: Result<(Id, Result<(), BoxError>), JoinError>) -> Result<(), ManagerError> {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let task = self.names.remove(&id).unwrap_or_default();
        match ended {
            Ok((_, Ok(()))) => {
                info!(%task, "ended");
                Ok(())
            }
            Ok((_, Err(cause))) => Err(ManagerError::Task { task, cause }),
            Err(error) => Err(ManagerError::Panicked { task, message: panic_text_of(error) }),
        }
    }

    fn unfinished(&self) -> Vec<String> {
        let mut names: Vec<String> = self.names.values().map(|name| (**name).to_owned()).collect();
        names.sort();
        names
    }

    /// Drops the tasks that still run.
    async fn cancel(mut self) {
        self.tasks.shutdown().await;
    }
}

fn panic_text_of(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => panic_text(&*panic).to_owned(),
        Err(_) => "cancelled".to_owned(),
    }
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager").field("tasks", &self.tasks).field("election", &self.election).finish_non_exhaustive()
    }
}
