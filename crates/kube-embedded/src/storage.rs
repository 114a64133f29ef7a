//! What the server holds: one revision counter, every object as JSON bytes, and the changes of a while.
//!
//! The storage is an event log with a present state, as etcd is. A write is worked out outside the lock and committed
//! under it, against the revision it was worked out from; a watch is a cursor into the log, so that nothing is queued
//! for anybody and one event is held and encoded once, however many watch it.

mod change;
pub(crate) mod continue_token;
mod key;
pub(crate) mod latest;
mod object;
pub(crate) mod selector;
mod table;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

pub(crate) use self::change::{Change, ChangeKind, FrameKind};
pub(crate) use self::key::{Key, Span};
pub(crate) use self::object::{Draft, Labels, Object};
use self::table::Table;

/// A table's name: versions of one kind share a table; so do core events and those of `events.k8s.io`.
pub(crate) type TableId = crate::kinds::GroupResource;

/// How long changes are kept for watches and consistent pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// The most changes kept for one resource.
    pub(crate) changes: usize,
    /// The greatest age of a change that is kept.
    pub(crate) age: Duration,
}

/// What a write relies on: it fails unless this still holds when it is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// Nothing is there.
    Absent,
    /// The object is there in this revision.
    Revision(u64),
}

/// A write that lost against another one: read again and decide anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outdated;

/// Why a cursor cannot be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The changes after the cursor are no longer all kept; `oldest` is the first revision one may watch from.
    Compacted { oldest: u64 },
    /// The resource is no longer served, or the server took up another state.
    Closed,
}

/// A look at a table in one revision.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// The revision that the objects were read in.
    pub(crate) revision: u64,
    /// The objects, in the order of their keys.
    pub(crate) objects: Vec<Arc<Object>>,
    /// How many keys follow those read.
    pub(crate) remaining: usize,
}

/// A whole state, taken by [`Storage::backup`].
#[derive(Debug, Clone)]
pub(crate) struct Backup {
    revision: u64,
    objects: HashMap<TableId, Vec<Arc<Object>>>,
}

impl Backup {
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }
}

/// The state behind the server.
#[derive(Debug)]
pub(crate) struct Storage {
    inner: Mutex<Inner>,
    /// The store's revision, for requests that wait until it reaches theirs.
    revision: latest::Sender<u64>,
    window: Window,
}

#[derive(Debug)]
struct Inner {
    revision: u64,
    tables: HashMap<TableId, Table>,
}

impl Storage {
    pub(crate) fn new(window: Window) -> Self {
        Self {
            inner: Mutex::new(Inner { revision: 0, tables: HashMap::new() }),
            revision: latest::Sender::new(0),
            window,
        }
    }

    /// The revision of the last write to any table.
    pub(crate) fn revision(&self) -> u64 {
        self.inner.lock().revision
    }

    /// Follows the revision of the whole store.
    pub(crate) fn revisions(&self) -> latest::Receiver<u64> {
        self.revision.subscribe()
    }

    /// The present state of one object.
    pub(crate) fn get(&self, table: &TableId, key: &Key) -> Option<Arc<Object>> {
        self.inner.lock().tables.get(table)?.get(key)
    }

    /// How many objects a table holds.
    pub(crate) fn count(&self, table: &TableId) -> usize {
        self.inner.lock().tables.get(table).map_or(0, Table::len)
    }

    /// Every table that holds or held objects.
    pub(crate) fn tables(&self) -> Vec<TableId> {
        let mut ids: Vec<TableId> = self.inner.lock().tables.keys().cloned().collect();
        ids.sort();
        ids
    }

    /// The present state of the objects of a span, and the store's revision.
    ///
    /// This is a consistent read: whoever reads the table "as cached" later sees at least this revision.
    pub(crate) fn list(&self, table: &TableId, span: &Span) -> Snapshot {
        let mut inner = self.inner.lock();
        let revision = inner.revision;
        inner.table(table, self.window).read_all(span, revision)
    }

    /// The state of a span as the table itself knows it, in the revision of the last change or consistent read.
    pub(crate) fn list_cached(&self, table: &TableId, span: &Span) -> Snapshot {
        let mut inner = self.inner.lock();
        let table = inner.table(table, self.window);
        let revision = table.progress();
        table.read_all(span, revision)
    }

    /// The state of a span in a past or the present revision, at most `limit` objects of it; `None` if the history no
    /// longer reaches that far.
    pub(crate) fn list_at(
        &self,
        table: &TableId,
        span: &Span,
        revision: u64,
        limit: Option<usize>,
    ) -> Option<Snapshot> {
        let mut inner = self.inner.lock();
        inner.table(table, self.window).read_at(span, revision, limit)
    }

    /// Marks a table as read consistently in the present revision, and gives that revision.
    pub(crate) fn progress(&self, table: &TableId) -> u64 {
        let mut inner = self.inner.lock();
        let revision = inner.revision;
        inner.table(table, self.window).advance(revision);
        revision
    }

    /// The revision a table knows of: of its last change or of the last consistent read.
    pub(crate) fn cached_revision(&self, table: &TableId) -> u64 {
        self.inner.lock().table(table, self.window).progress()
    }

    /// Writes an object. Content equal to what is there changes nothing and tells nobody.
    pub(crate) fn put(
        &self,
        table: &TableId,
        expect: Expect,
        draft: Draft,
        now: Instant,
    ) -> Result<Arc<Object>, Outdated> {
        let mut inner = self.inner.lock();
        let revision = inner.revision + 1;
        let object = inner.table(table, self.window).put(expect, draft, revision, now)?;
        if object.revision() == revision {
            inner.revision = revision;
            drop(inner);
            self.revision.set(revision);
        }
        Ok(object)
    }

    /// Removes an object. Gives its last state under the revision of the deletion.
    pub(crate) fn delete(
        &self,
        table: &TableId,
        key: &Key,
        expect: u64,
        now: Instant,
    ) -> Result<Arc<Object>, Outdated> {
        let mut inner = self.inner.lock();
        let revision = inner.revision + 1;
        let object = inner.table(table, self.window).delete(key, expect, revision, now)?;
        inner.revision = revision;
        drop(inner);
        self.revision.set(revision);
        Ok(object)
    }

    /// Follows a table: the value moves whenever there is a change to read with [`Storage::changes`].
    pub(crate) fn follow(&self, table: &TableId) -> latest::Receiver<u64> {
        self.inner.lock().table(table, self.window).follow()
    }

    /// Whether a watch may start after `revision`.
    pub(crate) fn can_watch_from(&self, table: &TableId, revision: u64) -> Result<(), Lost> {
        self.inner.lock().table(table, self.window).can_watch_from(revision)
    }

    /// At most `limit` changes after `cursor`, oldest first, with the number that are still waiting after those.
    pub(crate) fn changes(
        &self,
        table: &TableId,
        cursor: u64,
        limit: usize,
    ) -> Result<(Vec<Arc<Change>>, usize), Lost> {
        let inner = self.inner.lock();
        inner.tables.get(table).ok_or(Lost::Closed)?.changes(cursor, limit)
    }

    /// Forgets changes that are older than the window allows.
    pub(crate) fn expire(&self, now: Instant) {
        let Some(horizon) = now.checked_sub(self.window.age) else { return };
        let mut inner = self.inner.lock();
        for table in inner.tables.values_mut() {
            table.forget_before(horizon);
        }
    }

    /// Forgets every change: pages and watches from before now expire.
    pub(crate) fn compact(&self) {
        let mut inner = self.inner.lock();
        let revision = inner.revision;
        for table in inner.tables.values_mut() {
            table.compact(revision);
        }
    }

    /// Takes a table out of service: its watches end.
    pub(crate) fn close(&self, table: &TableId) {
        let closed = self.inner.lock().tables.remove(table);
        // Freed outside the lock, with all its objects.
        drop(closed);
    }

    /// The present state of everything.
    pub(crate) fn backup(&self) -> Backup {
        let inner = self.inner.lock();
        let objects = inner.tables.iter().map(|(id, table)| (id.clone(), table.present().collect())).collect();
        Backup { revision: inner.revision, objects }
    }

    /// Takes up an earlier state, as after a restored backup: the revision goes back, the history is gone, watches end.
    pub(crate) fn restore(&self, backup: &Backup) {
        let mut inner = self.inner.lock();
        let mut tables = HashMap::new();
        for (id, objects) in &backup.objects {
            tables.insert(id.clone(), Table::holding(objects, backup.revision, self.window.changes));
        }
        inner.revision = backup.revision;
        let before = std::mem::replace(&mut inner.tables, tables);
        drop(inner);
        drop(before);
        self.revision.set(backup.revision);
    }
}

impl Inner {
    fn table(&mut self, id: &TableId, window: Window) -> &mut Table {
        let revision = self.revision;
        self.tables.entry(id.clone()).or_insert_with(|| Table::new(revision, window.changes))
    }
}
