//! Kubernetes controllers on the caches of [`kube_informer`].

pub mod leadership;

pub use self::leadership::{Leadership, Writer};
