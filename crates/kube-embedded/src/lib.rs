//! A Kubernetes API server in the process.
