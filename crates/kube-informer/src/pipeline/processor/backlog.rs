//! The queue of one handler. Pure: no task, no clock.

use std::collections::VecDeque;

use super::coalesce::{CoalesceMode, Coalescer, Discarded, NextEvents};
use crate::store::{BatchKind, Event, EventBatch, Origin};

/// How many events may wait for a slow handler, and what happens beyond that.
///
/// With every policy, nothing upstream waits for the handler, and the events of each object stay
/// consistent: added once, updated, deleted once, each update from the state that was last
/// delivered to the handler.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Informer;
/// use kube_informer::pipeline::Backlog;
///
/// let maps = Informer::<ConfigMap>::builder(client).start();
/// // It needs the current state, not every change: at most one event per object while it is busy.
/// let painter = maps.handler().backlog(Backlog::Latest).on_event_async(|event| async move {
///     println!("repaint {}", event.key());
/// });
/// painter.synced().await?;
/// assert_eq!(painter.backlog(), 0);
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backlog {
    /// Every event, in order, while no more than `limit` are queued.
    ///
    /// Objects that are delivered together (the first list, a resync, the current state for a
    /// handler added late) do not count: all handlers share one list of them, and they are never
    /// more than the cache holds.
    Every {
        /// How many events may be queued.
        limit: usize,
        /// What to do beyond that.
        overflow: Overflow,
    },
    /// Changes of an object are coalesced while the handler is busy: it receives at most one event
    /// per object, with the latest state.
    Latest,
}

impl Default for Backlog {
    /// Every event, up to 4,096 of them; then [`Overflow::Coalesce`].
    fn default() -> Self {
        Self::Every { limit: 4096, overflow: Overflow::Coalesce }
    }
}

/// What happens when a handler's queue overflows.
///
/// The queue is dropped, and the handler receives the difference between the state last delivered
/// to it and the cache: one event for each changed object. This continues until the handler has
/// caught up.
///
/// ```
/// use kube_informer::pipeline::{Backlog, Overflow};
///
/// // Up to 100 events are queued. A slower handler receives the difference, as after a relist.
/// let backlog = Backlog::Every { limit: 100, overflow: Overflow::Replay };
/// assert_ne!(backlog, Backlog::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Overflow {
    /// Events have the origin of the last change of each object.
    #[default]
    Coalesce,
    /// Events are as after a lost watch: with [`Origin::Relist`], and deletions as
    /// [`Missed`](crate::FinalState::Missed). So the handler can detect that it has missed events.
    Replay,
}

/// The queue of one handler.
///
/// It has two parts: the FIFO queue, delivered first, and the coalesced events behind it. Without
/// an overflow there is only the FIFO queue.
#[derive(Debug)]
pub(super) struct Queue {
    policy: Backlog,
    queue: VecDeque<Item>,
    /// The queued events that count towards the limit.
    counted: usize,
    /// The queued objects that do not.
    uncounted: usize,
    coalesced: Option<Coalescer>,
    /// The second of two events that belong together (a deletion and the addition of its
    /// successor).
    second_event: Option<Event>,
    discarded: Discarded,
    overflows: u64,
}

#[derive(Debug)]
enum Item {
    One(Event),
    Batch(EventBatch),
    Synced,
}

/// An item popped from a queue.
#[derive(Debug)]
pub(super) enum Popped {
    Event(Event),
    /// All initial objects have been delivered.
    Synced,
}

/// Whether the events of a batch count towards the limit.
fn counts(batch: &EventBatch) -> bool {
    !matches!(batch.kind(), BatchKind::Resync | BatchKind::Added(Origin::Initial))
}

impl Queue {
    pub(super) fn new(policy: Backlog) -> Self {
        let coalesced = matches!(policy, Backlog::Latest).then(|| Coalescer::new(CoalesceMode::LastChange));
        Self {
            policy,
            queue: VecDeque::new(),
            counted: 0,
            uncounted: 0,
            coalesced,
            second_event: None,
            discarded: Discarded::default(),
            overflows: 0,
        }
    }

    pub(super) fn policy(&self) -> Backlog {
        self.policy
    }

    /// How many events are queued.
    pub(super) fn len(&self) -> usize {
        let coalesced = self.coalesced.as_ref().map_or(0, Coalescer::len);
        self.counted + self.uncounted + coalesced + usize::from(self.second_event.is_some())
    }

    /// What the queue has held and no longer holds: the caller drops it when the queue's lock has
    /// been released.
    pub(super) fn take_discarded(&mut self) -> Discarded {
        std::mem::take(&mut self.discarded)
    }

    /// How often the queue overflowed.
    pub(super) fn overflows(&self) -> u64 {
        self.overflows
    }

    pub(super) fn push(&mut self, event: Event) {
        if let Some(coalesced) = &mut self.coalesced {
            return coalesced.push(event, &mut self.discarded);
        }
        self.queue.push_back(Item::One(event));
        self.counted += 1;
        self.check_limit();
    }

    pub(super) fn push_batch(&mut self, batch: EventBatch) {
        if batch.is_empty() {
            return;
        }
        let under_way = self.queue.iter().any(|item| matches!(item, Item::Batch(_)));
        if batch.is_resync() && (under_way || self.coalesced.as_ref().is_some_and(Coalescer::is_resyncing)) {
            // The previous resync is still being delivered.
            return self.discarded.batch(batch);
        }
        match &mut self.coalesced {
            Some(coalesced) if !coalesced.is_empty() => match batch.is_resync() {
                true => coalesced.resync(batch, &mut self.discarded),
                false => {
                    self.discarded.batch(batch.clone());
                    batch.for_each(|event| coalesced.push(event, &mut self.discarded));
                }
            },
            _ => {
                *(if counts(&batch) { &mut self.counted } else { &mut self.uncounted }) += batch.len();
                self.queue.push_back(Item::Batch(batch));
                self.check_limit();
            }
        }
    }

    /// Queues the sync marker: all initial objects have been pushed.
    pub(super) fn push_synced(&mut self) {
        match &mut self.coalesced {
            Some(coalesced) if !coalesced.is_empty() => coalesced.synced(),
            _ => self.queue.push_back(Item::Synced),
        }
    }

    fn check_limit(&mut self) {
        let Backlog::Every { limit, overflow } = self.policy else { return };
        if self.counted <= limit {
            return;
        }
        self.overflows += 1;
        let mode = match overflow {
            Overflow::Coalesce => CoalesceMode::LastChange,
            Overflow::Replay => CoalesceMode::AsRelist,
        };
        let mut coalesced = Coalescer::new(mode);
        let mut first = VecDeque::new();
        for item in std::mem::take(&mut self.queue) {
            match item {
                // A batch at the head precedes all coalesced events and stays queued, ...
                Item::Batch(batch) if !counts(&batch) && coalesced.is_empty() => first.push_back(Item::Batch(batch)),
                // ... and so does a resync, without the objects that have coalesced events.
                Item::Batch(batch) if batch.is_resync() => {
                    self.uncounted -= batch.len();
                    self.discarded.batch(batch.clone());
                    let batch = batch.without(|key| coalesced.has(key));
                    self.uncounted += batch.len();
                    first.push_back(Item::Batch(batch));
                }
                Item::Batch(batch) => {
                    if !counts(&batch) {
                        self.uncounted -= batch.len();
                    }
                    self.discarded.batch(batch.clone());
                    batch.for_each(|event| coalesced.push(event, &mut self.discarded));
                }
                Item::One(event) => coalesced.push(event, &mut self.discarded),
                Item::Synced if coalesced.is_empty() => first.push_back(Item::Synced),
                Item::Synced => coalesced.synced(),
            }
        }
        self.queue = first;
        self.counted = 0;
        self.coalesced = Some(coalesced);
    }

    pub(super) fn pop(&mut self) -> Option<Popped> {
        if let Some(event) = self.second_event.take() {
            return Some(Popped::Event(event));
        }
        while let Some(item) = self.queue.front_mut() {
            match item {
                Item::Batch(batch) => {
                    let Some(event) = batch.next() else {
                        self.pop_batch();
                        continue;
                    };
                    *(if counts(batch) { &mut self.counted } else { &mut self.uncounted }) -= 1;
                    if let Some(event) = self.merged(event) {
                        return Some(Popped::Event(event));
                    }
                }
                Item::One(_) | Item::Synced => match self.queue.pop_front() {
                    Some(Item::One(event)) => {
                        self.counted -= 1;
                        return Some(Popped::Event(event));
                    }
                    _ => return Some(Popped::Synced),
                },
            }
        }
        self.pop_coalesced()
    }

    /// Removes the sync marker if it is the next item; returns whether it was.
    pub(super) fn pop_synced(&mut self) -> bool {
        if self.second_event.is_some() {
            return false;
        }
        while matches!(self.queue.front(), Some(Item::Batch(batch)) if batch.is_empty()) {
            self.pop_batch();
        }
        match self.queue.front() {
            Some(Item::Synced) => self.queue.pop_front().is_some(),
            Some(_) => false,
            None => self.coalesced.as_mut().is_some_and(Coalescer::pop_synced),
        }
    }

    /// Removes the batch at the head, which is empty.
    fn pop_batch(&mut self) {
        if let Some(Item::Batch(batch)) = self.queue.pop_front() {
            self.discarded.batch(batch);
        }
    }

    /// Merges an event of a batch with the coalesced events of its object.
    fn merged(&mut self, event: Event) -> Option<Event> {
        let Some(coalesced) = &mut self.coalesced else { return Some(event) };
        match event {
            Event::Added { object, origin } => {
                let object = coalesced.introduce(object, &mut self.discarded)?;
                Some(Event::Added { object, origin })
            }
            event if coalesced.has(event.key()) => {
                self.discarded.event(event);
                None
            }
            event => Some(event),
        }
    }

    fn pop_coalesced(&mut self) -> Option<Popped> {
        let coalesced = self.coalesced.as_mut()?;
        let popped = match coalesced.pop(&mut self.discarded) {
            Some(NextEvents::Events(event, second_event)) => {
                self.second_event = second_event;
                Some(Popped::Event(event))
            }
            Some(NextEvents::Synced) => Some(Popped::Synced),
            None => None,
        };
        if coalesced.is_empty() && matches!(self.policy, Backlog::Every { .. }) {
            self.coalesced = None;
        }
        popped
    }
}
