//! The settings of a manager.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube_informer::Factory;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tower::BoxError;

use super::http::HttpServer;
use super::informer_metrics::InformerMetrics;
use super::request_metrics::RequestMetrics;
use super::status::{Check, Status};
use super::stop::Stop;
use super::task::{Task, Work};
use super::{Manager, Running, RunningGroups};
use crate::controller::Controller;
use crate::leadership::{LeaderElection, Leadership};
use crate::recorder::Recorder;

/// Builds a [`Manager`].
#[must_use = "a builder does nothing until it builds a manager"]
pub struct ManagerBuilder {
    factory: Factory,
    tasks: Vec<Task>,
    election: Option<LeaderElection>,
    listener: Option<TcpListener>,
    status: Status,
    shutdown_deadline: Duration,
}

/// A manager was built with settings that do not fit together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidManager {
    /// Two controllers or tasks have the same name, and thus the same metrics.
    #[error("two controllers or tasks are named {0:?}")]
    SameName(String),
}

impl ManagerBuilder {
    pub(super) fn new(factory: Factory) -> Self {
        Self {
            status: Status::new(factory.clone()),
            factory,
            tasks: Vec::new(),
            election: None,
            listener: None,
            shutdown_deadline: Duration::from_secs(20),
        }
    }

    /// Adds a controller. It reconciles while this process leads, or, if it is
    /// [sharded](Controller::sharded), what this process holds. The manager runs its group.
    pub fn controller(mut self, controller: Controller) -> Self {
        self.status.monitors.push(controller.monitor());
        if let Some(group) = controller.group().filter(|group| !self.status.groups.iter().any(|known| known.is(group)))
        {
            self.status.groups.push(group.clone());
        }
        self.add(controller.name().into(), Work::Controller(controller))
    }

    /// Adds a task, which starts when this process leads.
    ///
    /// When it is asked to stop, it should end. If it fails, the manager ends; if it ends, nothing
    /// happens.
    #[doc(alias = "LeaderElectionRunnable")]
    pub fn task<F>(self, name: impl Into<Arc<str>>, task: impl FnOnce(Leadership, Stop) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.add(name.into(), Work::Leading(Box::new(|leadership, stop| Box::pin(task(leadership, stop)))))
    }

    /// Adds a task of every process, whether it leads or not. It starts when the caches are full.
    ///
    /// Such a task must not write what belongs to the leader.
    #[doc(alias = "Runnable")]
    pub fn standby_task<F>(self, name: impl Into<Arc<str>>, task: impl FnOnce(Stop) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        self.add(name.into(), Work::Always(Box::new(|stop| Box::pin(task(stop)))))
    }

    fn add(mut self, name: Arc<str>, work: Work) -> Self {
        self.tasks.push(Task { name, work });
        self
    }

    /// Sets the election. Without one, this is the only process: it always leads.
    pub fn leader_election(mut self, election: LeaderElection) -> Self {
        self.status.elects(election.lease());
        self.election = Some(election);
        self
    }

    /// Adds an event recorder: it is started with the leadership and the client of the factory,
    /// shut down with the manager, and its figures are among the metrics.
    pub fn recorder(mut self, recorder: &Recorder) -> Self {
        self.status.recorders.push(recorder.clone());
        self
    }

    /// Serves `/healthz`, `/readyz` and `/metrics` over HTTP, without authentication.
    pub fn serve(mut self, listener: TcpListener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// Adds the figures of informers to the metrics.
    pub fn informer_metrics(mut self, metrics: &InformerMetrics) -> Self {
        self.status.informers = Some(metrics.clone());
        self
    }

    /// Adds the counted requests of clients to the metrics.
    pub fn request_metrics(mut self, metrics: &RequestMetrics) -> Self {
        self.status.requests = Some(metrics.clone());
        self
    }

    /// Adds text to `/metrics`, in Prometheus' text format: what the recorder of the `metrics`
    /// crate renders, for example.
    ///
    /// Called for each request, from several threads at the same time. It should not block.
    pub fn extra_metrics(mut self, render: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.status.extra_metrics.push(Box::new(render));
        self
    }

    /// Adds a condition of `/readyz`. The error says what is not ready.
    pub fn ready_check(
        mut self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.status.ready_checks.push(Check { name: name.into(), check: Box::new(check) });
        self
    }

    /// Adds a condition of `/healthz`. If it fails, the process should be restarted.
    pub fn health_check(
        mut self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.status.health_checks.push(Check { name: name.into(), check: Box::new(check) });
        self
    }

    /// Sets how long running attempts and tasks have to end. 20 s by default.
    ///
    /// With the five seconds for the rest, it should be shorter than the pod's
    /// `terminationGracePeriodSeconds`, which is 30 by default.
    #[doc(alias = "GracefulShutdownTimeout")]
    pub fn shutdown_deadline(mut self, deadline: Duration) -> Self {
        self.shutdown_deadline = deadline;
        self
    }

    /// Checks the settings. Starts nothing.
    pub fn build(self) -> Result<Manager, InvalidManager> {
        let Self { factory, tasks, election, listener, status, shutdown_deadline } = self;
        let mut names = BTreeSet::new();
        if let Some(twice) = tasks.iter().find(|task| !names.insert(Arc::clone(&task.name))) {
            return Err(InvalidManager::SameName((*twice.name).to_owned()));
        }
        let status = Arc::new(status);
        Ok(Manager {
            factory,
            tasks,
            election,
            server: listener.map(|listener| HttpServer::new(listener, Arc::clone(&status))),
            status,
            shutdown_deadline,
            running: Running::default(),
            stopping: watch::Sender::new(false),
            groups: RunningGroups::default(),
        })
    }
}

impl fmt::Debug for ManagerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagerBuilder")
            .field("tasks", &self.tasks)
            .field("election", &self.election)
            .field("shutdown_deadline", &self.shutdown_deadline)
            .finish_non_exhaustive()
    }
}
