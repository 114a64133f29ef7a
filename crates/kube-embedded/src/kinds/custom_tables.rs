//! Tables of custom resources: first access to a new table, the end of watches after a change of
//! the definition, and closing those no longer served.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::cluster::{Cluster, FirstAccess};
use crate::http::query::{ListOptions, Match};
use crate::http::status::Status;
use crate::storage::TableId;

/// Watches stay open this long after their kind was changed or is no longer served.
const CLOSE_DELAY: Duration = Duration::from_secs(1);

/// Tables of custom resources that have not been read yet, and those to close.
#[derive(Debug, Default)]
pub(crate) struct CustomTables {
    unread: Mutex<HashSet<TableId>>,
    retired: Mutex<VecDeque<(Instant, Retired, TableId)>>,
    one_more: Notify,
}

/// What is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retired {
    /// A table that is no longer served.
    Table,
    /// The watches of a table from before its last change.
    Watches,
}

impl CustomTables {
    /// Registers a newly served table. If a table of the same name is still waiting to be closed,
    /// closes it now.
    pub(crate) fn open(&self, cluster: &Cluster, table: &TableId) {
        let mut retired = self.retired.lock();
        let before = retired.len();
        retired.retain(|(.., each)| each != table);
        if retired.len() != before {
            cluster.storage.close(table);
        }
        drop(retired);
        self.begin(cluster, table);
    }

    /// Continues with a table whose definition has changed, as with a new one: watches from before
    /// end after [`CLOSE_DELAY`], and new ones cannot start before now.
    pub(crate) fn renew(&self, cluster: &Cluster, table: &TableId) {
        cluster.storage.renew(table);
        self.begin(cluster, table);
        self.close_later(Retired::Watches, table.clone());
    }

    fn begin(&self, cluster: &Cluster, table: &TableId) {
        if cluster.settings.first_access == FirstAccess::Refused {
            self.unread.lock().insert(table.clone());
        }
    }

    fn close_later(&self, retired: Retired, table: TableId) {
        self.retired.lock().push_back((Instant::now() + CLOSE_DELAY, retired, table));
        self.one_more.notify_one();
    }

    /// Removes a table that is no longer served: its watches end after [`CLOSE_DELAY`].
    pub(crate) fn retire(&self, table: TableId) {
        self.unread.lock().remove(&table);
        self.close_later(Retired::Table, table);
    }

    /// Refuses the first list of a new kind.
    ///
    /// # Errors
    ///
    /// 429, once.
    pub(crate) fn admit_list(&self, table: &TableId, options: &ListOptions) -> Result<(), Status> {
        // Paginated lists of the latest state bypass the watch cache.
        let past_the_cache = options.limit.is_some() && options.resource_version.is_empty()
            || !options.continue_token.is_empty() && options.version_match != Some(Match::Exact);
        if past_the_cache { Ok(()) } else { self.admit_watch(table) }
    }

    /// Refuses the first watch of a new kind.
    ///
    /// # Errors
    ///
    /// 429, once.
    pub(crate) fn admit_watch(&self, table: &TableId) -> Result<(), Status> {
        let is_first = self.unread.lock().remove(table);
        if is_first { Err(Status::too_many_requests("storage is (re)initializing", 1)) } else { Ok(()) }
    }

    /// Closes tables that are no longer served, and watches, when their delay has passed. Never
    /// returns.
    pub(crate) async fn close_retired(&self, cluster: &Cluster) {
        loop {
            let next = self.retired.lock().front().map(|(at, ..)| *at);
            match next {
                None => self.one_more.notified().await,
                Some(at) => {
                    sleep_until(at).await;
                    let mut retired = self.retired.lock();
                    let over = retired.front().is_some_and(|(at, ..)| *at <= Instant::now());
                    match over.then(|| retired.pop_front()).flatten() {
                        Some((_, Retired::Table, table)) => cluster.storage.close(&table),
                        Some((_, Retired::Watches, table)) => cluster.storage.release(&table),
                        None => {}
                    }
                }
            }
        }
    }
}
