//! Kubernetes informers.
