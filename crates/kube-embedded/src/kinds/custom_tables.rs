//! The tables of custom kinds, which come and go.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::cluster::{Cluster, FirstAccess};
use crate::http::query::{ListOptions, Match};
use crate::http::status::Status;
use crate::storage::TableId;

/// How long watches live on after their kind is gone.
const FAREWELL: Duration = Duration::from_secs(1);

/// Which custom kinds nobody has read yet, and which are no longer served.
#[derive(Debug, Default)]
pub(crate) struct CustomTables {
    unread: Mutex<HashSet<TableId>>,
    retired: Mutex<VecDeque<(Instant, TableId)>>,
    one_more: Notify,
}

impl CustomTables {
    /// A kind is served from now on. Whatever was there under its name before is over.
    pub(crate) fn open(&self, cluster: &Cluster, table: &TableId) {
        let mut retired = self.retired.lock();
        let before = retired.len();
        retired.retain(|(_, each)| each != table);
        if retired.len() != before {
            cluster.storage.close(table);
        }
        drop(retired);
        if cluster.settings.first_access == FirstAccess::Refused {
            self.unread.lock().insert(table.clone());
        }
    }

    /// A kind is no longer served: its watches end in a moment.
    pub(crate) fn retire(&self, table: TableId) {
        self.unread.lock().remove(&table);
        self.retired.lock().push_back((Instant::now() + FAREWELL, table));
        self.one_more.notify_one();
    }

    /// Refuses the first one who lists or watches a new kind.
    ///
    /// # Errors
    ///
    /// 429, once.
    pub(crate) fn admit_list(&self, table: &TableId, options: &ListOptions) -> Result<(), Status> {
        // Pages of the latest state are read past the cache.
        let past_the_cache = options.limit.is_some() && options.resource_version.is_empty()
            || !options.continue_token.is_empty() && options.version_match != Some(Match::Exact);
        if past_the_cache { Ok(()) } else { self.admit_watch(table) }
    }

    /// The same for a watch.
    ///
    /// # Errors
    ///
    /// 429, once.
    pub(crate) fn admit_watch(&self, table: &TableId) -> Result<(), Status> {
        match self.unread.lock().remove(table) {
            true => Err(Status::too_many_requests("storage is (re)initializing", 1)),
            false => Ok(()),
        }
    }

    /// Closes the tables of kinds that are gone, each in its time, for ever.
    pub(crate) async fn close_retired(&self, cluster: &Cluster) {
        loop {
            let next = self.retired.lock().front().map(|(at, _)| *at);
            match next {
                None => self.one_more.notified().await,
                Some(at) => {
                    sleep_until(at).await;
                    let mut retired = self.retired.lock();
                    let over = retired.front().is_some_and(|(at, _)| *at <= Instant::now());
                    if let Some((_, table)) = over.then(|| retired.pop_front()).flatten() {
                        cluster.storage.close(&table);
                    }
                }
            }
        }
    }
}
