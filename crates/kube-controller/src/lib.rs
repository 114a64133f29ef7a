//! Kubernetes controllers on the caches of [`kube_informer`].

pub mod conditions;
pub mod controller;
pub mod figures;
mod host_name;
pub mod leadership;
pub mod manager;
pub mod recorder;
mod rng;

pub use self::controller::{Controller, Monitor};
pub use self::figures::Figures;
pub use self::leadership::{Leadership, Writer};
pub use self::manager::Manager;
pub use self::recorder::Recorder;
