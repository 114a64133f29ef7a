//! The manager on the embedded server: start, end, and what is left.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

#[path = "../support/manifests.rs"]
mod guide_manifests;
mod http;
mod lifecycle;
mod manifests;
mod shards;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use kube::Client;
use kube_controller::leadership::{Clock, LeaderElection};
use kube_embedded::Server;
use tokio::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

async fn server() -> Server {
    Server::builder().in_process().seed(1).start().await.unwrap()
}

fn client(server: &Server) -> Client {
    Client::new(server.service(), "default")
}

fn candidate(server: &Server, identity: &str) -> LeaderElection {
    let builder = LeaderElection::builder(client(server), "default", "lease").identity(identity);
    builder.clock(Clock::tokio()).seed(1).build().unwrap()
}

fn holder(server: &Server) -> String {
    let leases = server.objects("coordination.k8s.io/v1", "Lease").unwrap();
    leases.get("lease").map(|lease| lease["spec"]["holderIdentity"].as_str().unwrap().to_owned()).unwrap_or_default()
}

fn alive_tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// What happened, with the second in which it did.
#[derive(Clone)]
struct Journal {
    start: Instant,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Journal {
    fn new() -> Self {
        Self { start: Instant::now(), lines: Arc::default() }
    }

    fn note(&self, what: &str) {
        self.lines.lock().unwrap().push(format!("{} {what}", self.start.elapsed().as_secs()));
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// Notes when it is dropped: a task was cancelled or has ended.
    fn at_end(&self, what: &'static str) -> AtEnd {
        AtEnd(self.clone(), what)
    }
}

struct AtEnd(Journal, &'static str);

impl Drop for AtEnd {
    fn drop(&mut self) {
        self.0.note(self.1);
    }
}
