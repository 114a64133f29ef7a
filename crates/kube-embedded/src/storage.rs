//! The storage: one revision counter, every object as JSON bytes, and a bounded history of changes.
//!
//! As in etcd, it is a current state plus an event log. A write is prepared outside the lock and
//! committed under it, with optimistic concurrency: it names the revision it is based on. A watch
//! is a cursor into the log, so nothing is queued per watch, and each event is stored and encoded
//! once for all watches.
//!
//! Uses `kinds`, `encoding`, `http::status` and, for the cache of encoded frames, `api::view`; must
//! not use `controllers`, `faults`, `generate` or `pretend`.

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
pub(crate) use self::key::{Key, KeyRange};
pub(crate) use self::object::{Draft, Labels, Object};
use self::table::Table;

/// The name of a table. All versions of one kind share a table, and so do core events and those of
/// `events.k8s.io`.
pub(crate) type TableId = crate::kinds::GroupResource;

/// Limits of the history that is kept for watches and consistent pagination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Window {
    /// The maximum number of changes kept for one resource.
    pub(crate) changes: usize,
    /// The maximum age of a change.
    pub(crate) age: Duration,
}

/// The precondition of a write: it fails unless this holds when it is committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expect {
    /// The key has no object.
    Absent,
    /// The object exists at this revision.
    Revision(u64),
}

/// The precondition of a write failed because of a concurrent write: the caller reads again and
/// retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outdated;

/// Why a watch cursor is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CursorError {
    /// Some changes after the cursor are compacted; `oldest` is the first revision that a watch may
    /// start from.
    Compacted { oldest: u64 },
    /// The resource is no longer served, or the server restored a backup.
    Closed,
}

/// The objects of a table at one revision.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// The revision at which the objects were read.
    pub(crate) revision: u64,
    /// The objects, in key order.
    pub(crate) objects: Vec<Arc<Object>>,
    /// The number of objects in the range after those read.
    pub(crate) remaining: usize,
}

/// The complete state of the storage, taken by [`Storage::backup`].
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

/// The state of the server: all tables, under one lock.
#[derive(Debug)]
pub(crate) struct Storage {
    inner: Mutex<Inner>,
    /// The current revision, for requests that wait until it reaches theirs.
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

    /// Subscribes to the revision of the whole storage.
    pub(crate) fn revisions(&self) -> latest::Receiver<u64> {
        self.revision.subscribe()
    }

    /// The current state of one object.
    pub(crate) fn get(&self, table: &TableId, key: &Key) -> Option<Arc<Object>> {
        self.inner.lock().tables.get(table)?.get(key)
    }

    /// The number of objects in a table.
    pub(crate) fn count(&self, table: &TableId) -> usize {
        self.inner.lock().tables.get(table).map_or(0, Table::len)
    }

    /// Every table that contains or contained objects.
    pub(crate) fn tables(&self) -> Vec<TableId> {
        let mut ids: Vec<TableId> = self.inner.lock().tables.keys().cloned().collect();
        ids.sort();
        ids
    }

    /// The current state of the objects in a range, at the storage's revision.
    ///
    /// This is a consistent read: later cached reads of the table return at least this revision.
    pub(crate) fn list(&self, table: &TableId, range: &KeyRange) -> Snapshot {
        let mut inner = self.inner.lock();
        let revision = inner.revision;
        inner.table(table, self.window).read_all(range, revision)
    }

    /// The state of a range as a watch cache has it: at the revision of the table's last change or
    /// consistent read.
    pub(crate) fn list_cached(&self, table: &TableId, range: &KeyRange) -> Snapshot {
        let mut inner = self.inner.lock();
        let table = inner.table(table, self.window);
        let revision = table.progress();
        table.read_all(range, revision)
    }

    /// The state of a range at a past or the current revision, at most `limit` objects; `None` if
    /// the history does not reach back that far.
    pub(crate) fn list_at(
        &self,
        table: &TableId,
        range: &KeyRange,
        revision: u64,
        limit: Option<usize>,
    ) -> Option<Snapshot> {
        let mut inner = self.inner.lock();
        inner.table(table, self.window).read_at(range, revision, limit)
    }

    /// Records a consistent read of a table at the current revision, and returns that revision.
    pub(crate) fn progress(&self, table: &TableId) -> u64 {
        let mut inner = self.inner.lock();
        let revision = inner.revision;
        inner.table(table, self.window).advance(revision);
        revision
    }

    /// The revision of a table's last change or consistent read.
    pub(crate) fn cached_revision(&self, table: &TableId) -> u64 {
        self.inner.lock().table(table, self.window).progress()
    }

    /// Writes an object. Content equal to the current one gets no revision and creates no event.
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

    /// Removes an object. Returns its last state with the revision of the deletion.
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

    /// Subscribes to a table: the value changes whenever there is a change to read with
    /// [`Storage::changes`].
    pub(crate) fn follow(&self, table: &TableId) -> latest::Receiver<u64> {
        self.inner.lock().table(table, self.window).follow()
    }

    /// Whether a watch may start after `revision`.
    pub(crate) fn can_watch_from(&self, table: &TableId, revision: u64) -> Result<(), CursorError> {
        self.inner.lock().table(table, self.window).can_watch_from(revision)
    }

    /// At most `limit` changes after `cursor`, oldest first, and the number of changes that remain
    /// after them.
    pub(crate) fn changes(
        &self,
        table: &TableId,
        cursor: u64,
        limit: usize,
    ) -> Result<(Vec<Arc<Change>>, usize), CursorError> {
        let inner = self.inner.lock();
        inner.tables.get(table).ok_or(CursorError::Closed)?.changes(cursor, limit)
    }

    /// Removes changes older than the maximum age.
    pub(crate) fn expire(&self, now: Instant) {
        let Some(horizon) = now.checked_sub(self.window.age) else { return };
        let mut inner = self.inner.lock();
        for table in inner.tables.values_mut() {
            table.forget_before(horizon);
        }
    }

    /// Removes every change: continue tokens and watches from before now expire.
    pub(crate) fn compact(&self) {
        let mut inner = self.inner.lock();
        let revision = inner.revision;
        for table in inner.tables.values_mut() {
            table.compact(revision);
        }
    }

    /// Lets new watches of a table start only from now on. Those that are open go on until
    /// [`Storage::release`].
    pub(crate) fn renew(&self, table: &TableId) {
        let mut inner = self.inner.lock();
        let revision = inner.revision;
        if let Some(table) = inner.tables.get_mut(table) {
            table.renew(revision);
        }
    }

    /// Ends the watches of a table from before its oldest renewal that was not released yet.
    pub(crate) fn release(&self, table: &TableId) {
        if let Some(table) = self.inner.lock().tables.get_mut(table) {
            table.release();
        }
    }

    /// Removes a table; its watches end.
    pub(crate) fn close(&self, table: &TableId) {
        let closed = self.inner.lock().tables.remove(table);
        // Freed outside the lock, together with all its objects.
        drop(closed);
    }

    /// The current state of all tables.
    pub(crate) fn backup(&self) -> Backup {
        let inner = self.inner.lock();
        let objects = inner.tables.iter().map(|(id, table)| (id.clone(), table.present().collect())).collect();
        Backup { revision: inner.revision, objects }
    }

    /// Replaces the state with that of a backup: the revision goes back, the history is lost,
    /// watches end.
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
