//! Searches a Kubernetes controller for bugs: crashes, stale views, missed states and failures.
