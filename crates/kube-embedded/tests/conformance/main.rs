//! Conformance of an API server towards its clients, one case per fact, over plain HTTP.
//!
//! The same cases run against any server. By default the suite starts an embedded one; another
//! server is configured by environment variables:
//!
//! | variable | meaning |
//! |---|---|
//! | `KUBE_CONFORMANCE_URL` | base URL, `http://` or `https://` |
//! | `KUBE_CONFORMANCE_CA` | path of the CA certificate (PEM) of an `https://` server |
//! | `KUBE_CONFORMANCE_TOKEN` | bearer token of a user with all permissions |
//! | `KUBE_CONFORMANCE_NOBODY_TOKEN` | bearer token of the user `nobody`, without permissions |
//! | `KUBE_CONFORMANCE_IMPERSONATOR_TOKEN` | bearer token of the user `impersonator`, whose role a case creates |
//! | `KUBE_CONFORMANCE_SHARDED` | set if the server has the feature `ShardedListAndWatch` |
//! | `KUBE_CONFORMANCE_EXPECTED_FAILURES` | path of another file of expected failures |
//!
//! The server must compact its history every few seconds (kube-apiserver with
//! `--etcd-compaction-interval=10s`): some cases wait for that.
//!
//! Each case creates its objects under unique names, so that cases run concurrently and leave a
//! shared server unchanged. Known differences are listed in `expected-failures-embedded.txt` and
//! `expected-failures-real.txt`, each with its reason; a listed case that passes is a failure too.
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
mod impersonation;
mod kinds;
mod namespaces;
mod paging;
mod patches;
mod protobuf;
mod reviews;
mod scales;
mod schemas;
mod selectors;
mod services;
mod shards;
mod subresources;
mod tables;
mod validations;
mod versions;
mod watch;
mod webhooks;
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
            impersonation::CASES,
            kinds::CASES,
            namespaces::CASES,
            paging::CASES,
            patches::CASES,
            protobuf::CASES,
            reviews::CASES,
            scales::CASES,
            schemas::CASES,
            selectors::CASES,
            services::CASES,
            shards::CASES,
            subresources::certificates::CASES,
            subresources::pods::CASES,
            subresources::evictions::CASES,
            subresources::tokens::CASES,
            tables::CASES,
            validations::CASES,
            versions::CASES,
            watch::CASES,
            webhooks::CASES,
            writes::CASES,
        ]
        .concat(),
    )
}
