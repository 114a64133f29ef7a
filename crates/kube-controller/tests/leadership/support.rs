//! A clock that the test sets, and leaderships by it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kube::Client;
use kube_controller::leadership::{Clock, LeaderElection};
use kube_embedded::Server;

/// A clock that stands still until the test advances it.
#[derive(Clone, Default)]
pub(crate) struct HandClock(Arc<AtomicU64>);

impl HandClock {
    pub(crate) fn advance(&self, by: Duration) {
        self.0.fetch_add(u64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }

    pub(crate) fn clock(&self) -> Clock {
        let millis = Arc::clone(&self.0);
        Clock::custom(move || Duration::from_millis(millis.load(Ordering::SeqCst)))
    }
}

pub(crate) async fn server() -> Server {
    Server::builder().in_process().seed(1).start().await.unwrap()
}

pub(crate) fn client(server: &Server) -> Client {
    Client::new(server.service(), "default")
}

/// A candidate on tokio's clock.
pub(crate) fn candidate(server: &Server, identity: &str) -> LeaderElection {
    let builder = LeaderElection::builder(client(server), "default", "lease").identity(identity);
    builder.clock(Clock::tokio()).seed(1).build().unwrap()
}
