//! Slab of items with their state, and a hash table from item to slot.

use std::hash::{BuildHasher, Hash};

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::moment::Moment;
use super::priority::Priority;

/// The state of one item. 40 bytes in addition to the item, because there may be a million slots.
#[derive(Debug)]
pub(super) struct Slot<T> {
    /// `None` if the slot is free.
    item: Option<T>,
    /// When the next run was first requested.
    pub(super) requested_at: Moment,
    /// When it entered its current state.
    pub(super) since: Moment,
    /// Links of the intrusive list that its state implies.
    before: u32,
    after: u32,
    hash: u32,
    /// Hint for the bucket in the table; stale once the table has grown.
    bucket: u32,
    pub(super) failures: u32,
    pub(super) state: ItemState,
    /// Whether, and why, it was added again while running.
    pub(super) added_again: Option<Cause>,
    /// Priority of the next run.
    pub(super) priority: Priority,
    /// Priority of the delayed run.
    pub(super) delayed_priority: Priority,
}

/// The state of an item. It may also be delayed, independently of its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemState {
    /// In no list: only delayed, or about to enter another state.
    Unlisted,
    /// Ready to be taken by a worker.
    Ready,
    /// Held by a worker.
    Running,
    /// Only its failure count is kept.
    Idle,
}

/// Why an item is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// Initial list, relist or resync: if the item failed before, it waits for its next retry.
    Repeat,
    /// A live event or an explicit add: it runs immediately.
    Fresh,
}

/// The slot of an item that is to be added.
#[derive(Debug, Clone, Copy)]
pub(super) enum FoundSlot {
    /// The item was not in the queue.
    New(u32),
    Known(u32),
}

/// A FIFO list of slots. The links are intrusive, so that removal from the middle takes O(1).
#[derive(Debug)]
pub(super) struct List {
    first: u32,
    last: u32,
    len: u32,
}

/// Every item once, found by its hash or by its slot number.
///
/// Field order matters, most frequently modified first: see [`Core`](super::core::Core).
#[derive(Debug)]
#[repr(C)]
pub(super) struct Slots<T> {
    /// Head of the free list, linked by `after`.
    free: u32,
    slots: Vec<Slot<T>>,
    table: HashTable<u32>,
}

/// An item with its hash, computed before the queue is locked to shorten the critical section.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hashed<I> {
    hash: u32,
    item: I,
}

/// The hasher of a queue's items.
#[derive(Debug, Default)]
pub(super) struct Hashes(DefaultHashBuilder);

impl<T> Hashed<Option<T>> {
    pub(super) fn as_ref(&self) -> Option<Hashed<&T>> {
        Some(Hashed { hash: self.hash, item: self.item.as_ref()? })
    }
}

impl Hashes {
    #[inline]
    pub(super) fn to_add<T: Hash>(&self, item: T) -> Hashed<Option<T>> {
        Hashed { hash: self.of(&item), item: Some(item) }
    }

    pub(super) fn to_find<'a, T: Hash>(&self, item: &'a T) -> Hashed<&'a T> {
        Hashed { hash: self.of(item), item }
    }

    #[inline]
    fn of(&self, item: &impl Hash) -> u32 {
        let hash = self.0.hash_one(item);
        (hash ^ (hash >> 32)) as u32
    }
}

const NONE: u32 = u32::MAX;
/// Memory for at most this many slots is never released.
const MIN_TRIMMED_SLOTS: usize = 4096;

impl<T: Eq> Slots<T> {
    pub(super) fn find(&self, Hashed { hash, item }: Hashed<&T>) -> Option<u32> {
        let is_same = |number: &u32| {
            let slot = &self.slots[*number as usize];
            slot.hash == hash && slot.item.as_ref() == Some(item)
        };
        self.table.find(repeat_bits(hash), is_same).copied()
    }

    /// Returns the slot of the item, a new one if it has none. Moves the item out only if it is
    /// new: otherwise the caller drops it after releasing the lock.
    #[inline]
    pub(super) fn find_or_insert(&mut self, Hashed { hash, item }: &mut Hashed<Option<T>>) -> Option<FoundSlot> {
        item.as_ref()?;
        let hash = *hash;
        let slots = &self.slots;
        let is_same = |number: &u32| {
            let slot = &slots[*number as usize];
            slot.hash == hash && slot.item == *item
        };
        match self.table.entry(repeat_bits(hash), is_same, |number| repeat_bits(slots[*number as usize].hash)) {
            Entry::Occupied(entry) => Some(FoundSlot::Known(*entry.get())),
            Entry::Vacant(entry) => {
                let number = match self.free {
                    NONE => slots.len() as u32,
                    free => free,
                };
                let bucket = entry.insert(number).bucket_index() as u32;
                self.fill(number, hash, bucket, item.take());
                Some(FoundSlot::New(number))
            }
        }
    }
}

impl<T> Slots<T> {
    pub(super) fn new() -> Self {
        Self { free: NONE, slots: Vec::new(), table: HashTable::new() }
    }

    #[inline]
    pub(super) fn get(&self, slot: u32) -> &Slot<T> {
        &self.slots[slot as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Slot<T> {
        &mut self.slots[slot as usize]
    }

    #[inline]
    pub(super) fn item(&self, slot: u32) -> &T {
        self.get(slot).item.as_ref().expect("a slot in use has its item")
    }

    /// Frees a slot that is in no list.
    #[inline]
    pub(super) fn remove(&mut self, number: u32) -> Option<T> {
        if let Some(Ok(entry)) = self.bucket(number).map(|bucket| self.table.get_bucket_entry(bucket)) {
            entry.remove();
        }
        let free = self.free;
        let slot = self.get_mut(number);
        slot.after = free;
        let item = slot.item.take();
        self.free = number;
        item
    }

    /// The bucket of a slot in the table. Tries the hint first: it needs no probing and so avoids
    /// dependent cache misses.
    #[inline]
    fn bucket(&self, number: u32) -> Option<usize> {
        let slot = self.get(number);
        let bucket = slot.bucket as usize;
        if self.table.get_bucket(bucket) == Some(&number) {
            return Some(bucket);
        }
        self.table.find_bucket_index(repeat_bits(slot.hash), |other| *other == number)
    }

    /// Stores an item in slot `number`, which is free or one past the last.
    #[inline]
    fn fill(&mut self, number: u32, hash: u32, bucket: u32, item: Option<T>) {
        if let Some(slot) = self.slots.get_mut(number as usize) {
            self.free = slot.after;
            slot.item = item;
            (slot.hash, slot.bucket) = (hash, bucket);
            slot.failures = 0;
            slot.state = ItemState::Unlisted;
            slot.added_again = None;
            slot.priority = Priority::Low;
            return;
        }
        assert!(number < NONE, "memory ends before 2^32 items do");
        self.slots.push(Slot {
            item,
            requested_at: Moment::START,
            since: Moment::START,
            before: NONE,
            after: NONE,
            hash,
            bucket,
            failures: 0,
            state: ItemState::Unlisted,
            added_again: None,
            priority: Priority::Low,
            delayed_priority: Priority::Low,
        });
    }

    /// Whether so few of the allocated slots are used that their memory should be released.
    #[inline]
    pub(super) fn are_mostly_free(&self) -> bool {
        self.slots.capacity() > MIN_TRIMMED_SLOTS && self.table.len() < self.slots.capacity() / 16
    }

    /// Compacts all slots and releases memory. Returns the new number of each old one. No caller
    /// may hold a slot number across this call.
    pub(super) fn compact(&mut self, lists: &mut [&mut List]) -> Vec<u32> {
        let mut numbers = vec![NONE; self.slots.len()];
        let mut next = 0;
        for (number, slot) in numbers.iter_mut().zip(&self.slots) {
            if slot.item.is_some() {
                *number = next;
                next += 1;
            }
        }
        let renumber = |number: &mut u32| *number = numbers.get(*number as usize).copied().unwrap_or(NONE);
        self.slots.retain(|slot| slot.item.is_some());
        self.slots.shrink_to_fit();
        for slot in &mut self.slots {
            renumber(&mut slot.before);
            renumber(&mut slot.after);
        }
        for list in lists {
            renumber(&mut list.first);
            renumber(&mut list.last);
        }
        self.free = NONE;
        // All bucket hints are stale now; each is checked before it is used.
        let slots = &self.slots;
        self.table = HashTable::with_capacity(slots.len());
        for (number, slot) in (0..).zip(slots) {
            self.table
                .insert_unique(repeat_bits(slot.hash), number, |number| repeat_bits(slots[*number as usize].hash));
        }
        numbers
    }
}

impl List {
    pub(super) const fn new() -> Self {
        Self { first: NONE, last: NONE, len: 0 }
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    #[inline]
    pub(super) fn push<T>(&mut self, slots: &mut Slots<T>, number: u32) {
        let last = std::mem::replace(&mut self.last, number);
        let slot = slots.get_mut(number);
        (slot.before, slot.after) = (last, NONE);
        match last {
            NONE => self.first = number,
            last => slots.get_mut(last).after = number,
        }
        self.len += 1;
    }

    /// Removes the first slot. The list must not be empty.
    #[inline]
    pub(super) fn remove_first<T>(&mut self, slots: &mut Slots<T>) {
        self.first = slots.get(self.first).after;
        match self.first {
            NONE => self.last = NONE,
            first => slots.get_mut(first).before = NONE,
        }
        self.len -= 1;
    }

    #[inline]
    pub(super) fn remove<T>(&mut self, slots: &mut Slots<T>, number: u32) {
        let slot = slots.get(number);
        let (before, after) = (slot.before, slot.after);
        match before {
            NONE => self.first = after,
            before => slots.get_mut(before).after = after,
        }
        match after {
            NONE => self.last = before,
            after => slots.get_mut(after).before = before,
        }
        self.len -= 1;
    }
}

/// hashbrown uses the upper and the lower bits of a hash; repeats the 32 good bits in both halves.
fn repeat_bits(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}
