//! One resource: the states of its objects within the history, and its event log.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use tokio::time::Instant;

use super::change::{Change, ChangeKind};
use super::key::{Key, KeyRange};
use super::latest;
use super::object::{Draft, Object};
use super::{CursorError, Expect, Outdated, Snapshot};

/// The objects of one resource.
#[derive(Debug)]
pub(super) struct Table {
    /// The states of every key within the history, oldest first, the current one last.
    keys: BTreeMap<Key, Vec<RevisedObject>>,
    /// The number of keys that have an object now.
    live: usize,
    log: VecDeque<Arc<Change>>,
    /// The maximum number of changes in the log.
    capacity: usize,
    /// Compaction revision: reads and cursors before it are not possible.
    compacted: u64,
    /// The revision at which the table was created or renewed: no watch can start before it.
    started: u64,
    /// The revision of the last change or consistent read.
    progress: u64,
    followers: latest::Sender<u64>,
    /// The followers from before each renewal, oldest first, until they are released.
    retiring: VecDeque<latest::Sender<u64>>,
}

/// The object at a key from a revision on; `None` is a tombstone.
#[derive(Debug)]
struct RevisedObject {
    revision: u64,
    object: Option<Arc<Object>>,
}

impl Table {
    pub(super) fn new(revision: u64, capacity: usize) -> Self {
        Self {
            keys: BTreeMap::new(),
            live: 0,
            log: VecDeque::new(),
            capacity,
            compacted: 0,
            started: revision,
            progress: revision,
            followers: latest::Sender::new(revision),
            retiring: VecDeque::new(),
        }
    }

    /// Creates a table with these objects and no history.
    pub(super) fn holding(objects: &[Arc<Object>], revision: u64, capacity: usize) -> Self {
        let mut table = Self::new(revision, capacity);
        table.compacted = revision;
        table.live = objects.len();
        table.keys = objects
            .iter()
            .map(|o| (o.key().clone(), vec![RevisedObject { revision: o.revision(), object: Some(o.clone()) }]))
            .collect();
        table
    }

    pub(super) fn len(&self) -> usize {
        self.live
    }

    pub(super) fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.keys.get(key)?.last()?.object.clone()
    }

    pub(super) fn present(&self) -> impl Iterator<Item = Arc<Object>> {
        self.keys.values().filter_map(|states| states.last()?.object.clone())
    }

    pub(super) fn progress(&self) -> u64 {
        self.progress
    }

    pub(super) fn advance(&mut self, revision: u64) {
        self.progress = self.progress.max(revision);
    }

    pub(super) fn follow(&self) -> latest::Receiver<u64> {
        self.followers.subscribe()
    }

    /// Lets new watches start only after this revision. Those that are open go on until
    /// [`Self::release`].
    pub(super) fn renew(&mut self, revision: u64) {
        self.started = revision;
        self.advance(revision);
        let before = std::mem::replace(&mut self.followers, latest::Sender::new(revision));
        self.retiring.push_back(before);
    }

    /// Ends the watches from before the oldest renewal that was not released yet.
    pub(super) fn release(&mut self) {
        self.retiring.pop_front();
    }

    /// Reads the whole range in its current state.
    pub(super) fn read_all(&mut self, range: &KeyRange, revision: u64) -> Snapshot {
        self.advance(revision);
        let objects = self.states(range).filter_map(|states| states.last()?.object.clone()).collect();
        Snapshot { revision: self.progress, objects, remaining: 0 }
    }

    /// Reads at most `limit` objects of the range at a revision.
    pub(super) fn read_at(&mut self, range: &KeyRange, revision: u64, limit: Option<usize>) -> Option<Snapshot> {
        if revision < self.compacted {
            return None;
        }
        self.advance(revision);
        let mut then = self.states(range).filter_map(|states| at(states, revision));
        let objects = match limit {
            None => then.by_ref().cloned().collect(),
            Some(limit) => then.by_ref().take(limit).cloned().collect(),
        };
        let remaining = then.count();
        Some(Snapshot { revision, objects, remaining })
    }

    fn states<'t>(&'t self, range: &'t KeyRange) -> impl Iterator<Item = &'t [RevisedObject]> {
        self.keys
            .range::<str, _>((range.start(), Bound::Unbounded))
            .take_while(|(key, _)| range.contains(key))
            .map(|(_, states)| states.as_slice())
    }

    pub(super) fn put(
        &mut self,
        expect: Expect,
        draft: Draft,
        revision: u64,
        now: Instant,
    ) -> Result<Arc<Object>, Outdated> {
        let previous = self.get(&draft.key);
        match (expect, &previous) {
            (Expect::Absent, None) => {}
            (Expect::Revision(expected), Some(object)) if object.revision() == expected => {}
            _ => return Err(Outdated),
        }
        if let Some(object) = previous.as_ref().filter(|object| object.is_same_as(&draft)) {
            return Ok(object.clone());
        }
        let kind = if previous.is_some() { ChangeKind::Updated } else { ChangeKind::Created };
        let object = Arc::new(Object::new(draft, revision));
        if previous.is_none() {
            self.live += 1;
        }
        self.record(Some(object.clone()), Change::new(kind, object.clone(), previous, now));
        Ok(object)
    }

    pub(super) fn delete(
        &mut self,
        key: &Key,
        expect: u64,
        revision: u64,
        now: Instant,
    ) -> Result<Arc<Object>, Outdated> {
        let previous = self.get(key).filter(|object| object.revision() == expect).ok_or(Outdated)?;
        let last = Arc::new(previous.under(revision));
        self.live -= 1;
        self.record(None, Change::new(ChangeKind::Deleted, last.clone(), Some(previous), now));
        Ok(last)
    }

    fn record(&mut self, object: Option<Arc<Object>>, change: Change) {
        let revision = change.revision();
        let states = self.keys.entry(change.object.key().clone()).or_default();
        states.push(RevisedObject { revision, object });
        self.log.push_back(Arc::new(change));
        self.progress = revision;
        while self.log.len() > self.capacity {
            self.forget_oldest();
        }
        for followers in self.retiring.iter().chain([&self.followers]) {
            followers.set(revision);
        }
    }

    /// The first revision that a watch may start after.
    fn oldest(&self) -> u64 {
        match self.log.front() {
            Some(change) if self.compacted > self.started => change.revision() - 1,
            _ => self.compacted.max(self.started),
        }
    }

    pub(super) fn can_watch_from(&self, revision: u64) -> Result<(), CursorError> {
        match self.oldest() {
            oldest if revision < oldest => Err(CursorError::Compacted { oldest }),
            _ => Ok(()),
        }
    }

    pub(super) fn changes(&self, cursor: u64, limit: usize) -> Result<(Vec<Arc<Change>>, usize), CursorError> {
        if cursor < self.compacted {
            return Err(CursorError::Compacted { oldest: self.oldest() });
        }
        let from = self.log.partition_point(|change| change.revision() <= cursor);
        let changes: Vec<_> = self.log.range(from..).take(limit).cloned().collect();
        let waiting = self.log.len() - from - changes.len();
        Ok((changes, waiting))
    }

    pub(super) fn forget_before(&mut self, horizon: Instant) {
        while self.log.front().is_some_and(|change| change.at < horizon) {
            self.forget_oldest();
        }
    }

    pub(super) fn compact(&mut self, revision: u64) {
        while !self.log.is_empty() {
            self.forget_oldest();
        }
        self.compacted = self.compacted.max(revision);
        // What is listed from now on can be watched on, also if the last change was before.
        self.advance(revision);
    }

    /// Removes the oldest change, and the states that were reachable only through it.
    fn forget_oldest(&mut self) {
        let Some(change) = self.log.pop_front() else { return };
        let revision = change.revision();
        self.compacted = revision;
        let key = change.object.key();
        let Some(states) = self.keys.get_mut(key) else { return };
        states.retain(|state| state.revision >= revision);
        if matches!(states.as_slice(), [RevisedObject { object: None, .. }]) {
            self.keys.remove(key);
        }
    }
}

/// The object at a revision.
fn at(states: &[RevisedObject], revision: u64) -> Option<&Arc<Object>> {
    states.iter().rev().find(|state| state.revision <= revision)?.object.as_ref()
}
