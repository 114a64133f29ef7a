//! Kubernetes controllers on the caches of [`kube_informer`].

pub mod controller;
pub mod figures;
pub mod leadership;
mod rng;

pub use self::controller::{Controller, Monitor};
pub use self::figures::Figures;
pub use self::leadership::{Leadership, Writer};
