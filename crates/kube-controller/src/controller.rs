//! The controller: [`Controller`], and the [`Monitor`] that observes it.
//!
//! Uses every other part of the crate but the manager.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use kube::core::ApiResource;
use kube_informer::{Factory, Kind, Object, SyncError};

pub use self::builder::ControllerBuilder;
pub use self::handles::{Owned, Watched};
pub use self::monitor::Monitor;
pub use self::watch::Watch;
use crate::leadership::Leadership;
use crate::sharding::ShardGroup;

mod builder;
mod follower;
mod gone;
mod handles;
mod mapping;
mod monitor;
mod ranges;
mod run;
mod watch;

/// A finished controller: its kinds are declared and its reconciler is set, but it does not run
/// yet.
///
/// It has no type parameter, so that a manager can hold controllers of any kind.
#[must_use = "a controller does nothing until it runs"]
pub struct Controller {
    monitor: Monitor,
    synced: Box<dyn Fn() -> BoxFuture<'static, Result<(), NotSynced>> + Send + Sync>,
    group: Option<ShardGroup>,
    run: Run,
}

type Run = Box<dyn FnOnce(Rights, BoxFuture<'static, ()>) -> BoxFuture<'static, ()> + Send>;

/// What gives a controller the right to write.
enum Rights {
    /// For all objects.
    Leadership(Leadership),
    /// For the objects of the ranges that this process holds.
    Group(ShardGroup),
}

/// A cache of a controller cannot be filled, and waiting longer does not help.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the controller {controller} cannot run: {}: {cause}", plural_name(.resource))]
#[non_exhaustive]
pub struct NotSynced {
    /// The name of the controller.
    pub controller: Arc<str>,
    /// The resource of the cache.
    pub resource: ApiResource,
    /// Why the cache cannot be filled.
    pub cause: SyncError,
}

impl Controller {
    /// Returns a builder of a controller of the kind `K`, with the caches of a factory.
    pub fn builder<K: Kind>(factory: &Factory) -> ControllerBuilder<K> {
        Self::builder_with(factory, Watch::kind())
    }

    /// Returns a builder of a controller of some objects of a kind, or of one that is known only at
    /// run time.
    pub fn builder_with<K: Object>(factory: &Factory, watch: Watch<K>) -> ControllerBuilder<K> {
        ControllerBuilder::new(factory, watch)
    }

    /// Returns the name of the controller, which is that of its metrics and logs.
    #[must_use]
    pub fn name(&self) -> &str {
        self.monitor.name()
    }

    /// Returns a handle to observe the controller with, also while it runs.
    #[must_use]
    pub fn monitor(&self) -> Monitor {
        self.monitor.clone()
    }

    /// Completes when all caches of the controller are full. Starts them if needed.
    ///
    /// No object is reconciled before the controller [runs](Self::run): this is the warm standby of
    /// a process that does not lead yet.
    pub fn synced(&self) -> impl Future<Output = Result<(), NotSynced>> + Send + use<> {
        (self.synced)()
    }

    /// Reconciles only the objects in the ranges that this process holds as a member of a group.
    ///
    /// The objects of a range are reconciled by the process that holds it, from the moment at which
    /// its caches have what the last holder has seen and written. A range that is to be released
    /// is released when its attempts have ended. The writes of an attempt fail once its range is
    /// lost, and the attempt is cancelled. See [the guide](crate::guide::shards).
    ///
    /// [`gone`](ControllerBuilder::gone) is called by the process that holds the range at the time.
    pub fn sharded(self, group: &ShardGroup) -> Self {
        Self { group: Some(group.clone()), ..self }
    }

    pub(crate) fn group(&self) -> Option<&ShardGroup> {
        self.group.as_ref()
    }

    /// Reconciles until `stop` completes, and then until the running attempts have ended.
    ///
    /// Waits for the caches first. After `stop` no key is taken any more. A caller with a deadline
    /// drops the future at the deadline, which cancels the attempts that still run.
    ///
    /// A [sharded](Self::sharded) controller writes by the right of its group, which has to
    /// [run](ShardGroup::run) too, and not by this leadership.
    pub fn run(
        self,
        leadership: Leadership,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> impl Future<Output = ()> + Send {
        let rights = self.group.map_or(Rights::Leadership(leadership), Rights::Group);
        (self.run)(rights, Box::pin(stop))
    }
}

/// The plural of a resource, with its group.
fn plural_name(resource: &ApiResource) -> String {
    match resource.group.as_str() {
        "" => resource.plural.clone(),
        group => format!("{}.{group}", resource.plural),
    }
}

impl fmt::Debug for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Controller").field("name", &self.name()).finish_non_exhaustive()
    }
}
