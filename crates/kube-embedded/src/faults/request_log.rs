//! Log of requests, and the open watches.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::http::request::Verb;

/// Requests kept in the log.
const MAX_REQUESTS: usize = 10_000;

/// A request that the server has handled.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoggedRequest {
    /// The HTTP method.
    pub method: String,
    /// The path.
    pub path: String,
    /// The raw query string.
    pub query: String,
    /// The verb. `None` if the request is not for a resource.
    pub verb: Option<Verb>,
    /// The user that sent the request.
    pub user: String,
    /// The status code of the response. `None` if the connection was dropped instead.
    pub code: Option<u16>,
    /// When the request arrived.
    pub at: Instant,
}

/// An open watch.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenWatch {
    /// The path.
    pub path: String,
    /// The raw query string.
    pub query: String,
    /// When the watch was opened.
    pub since: Instant,
}

/// The log of requests and open watches, shared by all clones.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestLog(Arc<Mutex<LogState>>);

#[derive(Debug, Default)]
struct LogState {
    requests: VecDeque<LoggedRequest>,
    total: u64,
    watches: BTreeMap<u64, OpenWatch>,
    next_watch: u64,
}

impl RequestLog {
    pub(crate) fn add(&self, seen: LoggedRequest) {
        let mut state = self.0.lock();
        state.total += 1;
        if state.requests.len() == MAX_REQUESTS {
            state.requests.pop_front();
        }
        state.requests.push_back(seen);
    }

    pub(crate) fn requests(&self) -> Vec<LoggedRequest> {
        self.0.lock().requests.iter().cloned().collect()
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.lock().total
    }

    pub(crate) fn forget(&self) {
        self.0.lock().requests.clear();
    }

    pub(crate) fn watches(&self) -> Vec<OpenWatch> {
        self.0.lock().watches.values().cloned().collect()
    }

    /// Registers an open watch until the returned guard is dropped.
    pub(crate) fn open(&self, watch: OpenWatch) -> WatchOpen {
        let mut state = self.0.lock();
        let id = state.next_watch;
        state.next_watch += 1;
        state.watches.insert(id, watch);
        WatchOpen { log: self.clone(), id }
    }
}

/// Guard of a registered watch; dropping it removes the watch from the log.
#[derive(Debug)]
pub(crate) struct WatchOpen {
    log: RequestLog,
    id: u64,
}

impl Drop for WatchOpen {
    fn drop(&mut self) {
        self.log.0.lock().watches.remove(&self.id);
    }
}
