//! Log of requests, and the open watches.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::Instant;

use crate::http::request::Verb;

/// The maximum number of requests in the log.
const MAX_REQUESTS: usize = 10_000;

/// The maximum size of the texts of these requests, in bytes. Paths, queries, methods and user
/// names come from clients, and may be long.
const MAX_BYTES: usize = 8 * 1024 * 1024;

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
pub(crate) struct RequestLog(Arc<Log>);

#[derive(Debug, Default)]
struct Log {
    state: Mutex<LogState>,
    changed: Notify,
}

impl LoggedRequest {
    /// The size of the request's texts.
    fn bytes(&self) -> usize {
        self.method.len() + self.path.len() + self.query.len() + self.user.len()
    }
}

#[derive(Debug, Default)]
struct LogState {
    requests: VecDeque<LoggedRequest>,
    /// The size of the texts of these requests.
    bytes: usize,
    total: u64,
    watches: BTreeMap<u64, OpenWatch>,
    next_watch: u64,
}

impl RequestLog {
    pub(crate) fn add(&self, seen: LoggedRequest) {
        let mut state = self.0.state.lock();
        state.total += 1;
        state.bytes += seen.bytes();
        state.requests.push_back(seen);
        while state.requests.len() > MAX_REQUESTS || state.bytes > MAX_BYTES {
            let Some(oldest) = state.requests.pop_front() else { break };
            state.bytes -= oldest.bytes();
        }
        drop(state);
        self.0.changed.notify_waiters();
    }

    /// Waits for a request, or for a watch that is opened or closed.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.0.changed.notified()
    }

    pub(crate) fn requests(&self) -> Vec<LoggedRequest> {
        self.0.state.lock().requests.iter().cloned().collect()
    }

    pub(crate) fn total(&self) -> u64 {
        self.0.state.lock().total
    }

    pub(crate) fn forget(&self) {
        let mut state = self.0.state.lock();
        state.requests.clear();
        state.bytes = 0;
    }

    pub(crate) fn watches(&self) -> Vec<OpenWatch> {
        self.0.state.lock().watches.values().cloned().collect()
    }

    /// Registers an open watch until the returned guard is dropped.
    pub(crate) fn open(&self, watch: OpenWatch) -> WatchOpen {
        let mut state = self.0.state.lock();
        let id = state.next_watch;
        state.next_watch += 1;
        state.watches.insert(id, watch);
        drop(state);
        self.0.changed.notify_waiters();
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
        self.log.0.state.lock().watches.remove(&self.id);
        self.log.0.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: &str) -> LoggedRequest {
        LoggedRequest {
            method: "GET".to_owned(),
            path: path.to_owned(),
            query: String::new(),
            verb: None,
            user: String::new(),
            code: Some(200),
            at: Instant::now(),
        }
    }

    #[test]
    fn the_log_keeps_the_latest_requests_up_to_a_number_and_a_size() {
        let log = RequestLog::default();
        for nth in 0..MAX_REQUESTS + 5 {
            log.add(request(&format!("/{nth}")));
        }
        assert_eq!((log.requests().len(), log.requests()[0].path.as_str()), (MAX_REQUESTS, "/5"));
        let long = format!("/{}", "x".repeat(60_000));
        for _ in 0..MAX_REQUESTS {
            log.add(request(&long));
        }
        let bytes: usize = log.requests().iter().map(LoggedRequest::bytes).sum();
        assert!((MAX_BYTES / 2..=MAX_BYTES).contains(&bytes), "{bytes}");
        assert_eq!(log.total(), 2 * MAX_REQUESTS as u64 + 5);
        log.forget();
        log.add(request("/again"));
        assert_eq!(log.requests().len(), 1);
    }
}
