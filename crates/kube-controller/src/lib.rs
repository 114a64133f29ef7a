//! Kubernetes controllers on the caches of [`kube_informer`].

pub mod conditions;
mod consistency;
pub mod context;
pub mod controller;
mod error;
pub mod figures;
pub mod filter;
mod finalizer;
pub mod guide;
pub mod leadership;
pub mod manager;
mod names;
pub mod reconcile;
pub mod recorder;
mod rng;

pub use self::context::{Context, Patch, WriteError};
pub use self::controller::{Controller, ControllerBuilder, Monitor, Owned, Watch, Watched};
pub use self::error::Error;
pub use self::figures::Figures;
pub use self::filter::Filter;
pub use self::leadership::{Leadership, Writer};
pub use self::manager::Manager;
pub use self::reconcile::Outcome;
pub use self::recorder::Recorder;
