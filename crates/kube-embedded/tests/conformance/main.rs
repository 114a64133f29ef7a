//! What an API server does towards its clients, one case per fact, over plain HTTP.
//!
//! The same cases run against any server. Without further words the suite starts an embedded one; to judge another, say
//! where it is:
//!
//! | variable | meaning |
//! |---|---|
//! | `KUBE_CONFORMANCE_URL` | base URL, `http://` or `https://` |
//! | `KUBE_CONFORMANCE_CA` | path of the PEM file that an `https://` server is trusted by |
//! | `KUBE_CONFORMANCE_TOKEN` | bearer token of somebody who may do everything |
//! | `KUBE_CONFORMANCE_NOBODY_TOKEN` | bearer token of the user `nobody`, who may do nothing |
//! | `KUBE_CONFORMANCE_EXPECTED_FAILURES` | path of the file of expected failures, if not the one beside this file |
//!
//! The server must compact its history every few seconds (a real one with `--etcd-compaction-interval=10s`): some cases
//! wait for that.
//!
//! A case creates what it needs under names of its own, so that cases run side by side and leave a shared server as they
//! found it. Known differences stand in `expected-failures-embedded.txt` and `expected-failures-real.txt`, each with its
//! reason; a case listed there that passes is a failure too.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a case that cannot go on has failed: panicking is how it says so"
)]

mod harness;

mod access;
mod applies;
mod content;
mod crd;
mod deletions;
mod discovery;
mod kinds;
mod namespaces;
mod paging;
mod patches;
mod protobuf;
mod reviews;
mod scales;
mod schemas;
mod selectors;
mod tables;
mod versions;
mod watch;
mod writes;

use std::process::ExitCode;

fn main() -> ExitCode {
    harness::run(
        &[
            access::CASES,
            applies::CASES,
            content::CASES,
            crd::CASES,
            deletions::CASES,
            discovery::CASES,
            kinds::CASES,
            namespaces::CASES,
            paging::CASES,
            patches::CASES,
            protobuf::CASES,
            reviews::CASES,
            scales::CASES,
            schemas::CASES,
            selectors::CASES,
            tables::CASES,
            versions::CASES,
            watch::CASES,
            writes::CASES,
        ]
        .concat(),
    )
}
