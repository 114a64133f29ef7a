//! Generated objects and the simulated cluster.

mod samples;
mod simulated_cluster;
