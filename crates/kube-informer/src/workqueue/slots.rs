//! All that is known of each item.

use std::hash::{BuildHasher, Hash};

use hashbrown::hash_table::Entry;
use hashbrown::{DefaultHashBuilder, HashTable};

use super::moment::Moment;
use super::priority::Priority;

/// What is known of one item. 40 bytes beside the item, because there may be a million of them.
#[derive(Debug)]
pub(super) struct Slot<T> {
    /// None: the slot is free.
    item: Option<T>,
    /// When the run that is to come was first asked for.
    pub(super) asked: Moment,
    /// When it came to the place where it is.
    pub(super) since: Moment,
    /// Neighbours in the list of the place where it is.
    before: u32,
    after: u32,
    hash: u32,
    /// Where in the table it was put. It is elsewhere once the table has grown.
    bucket: u32,
    pub(super) failures: u32,
    pub(super) place: Place,
    /// Whether it was added again while it runs.
    pub(super) again: Option<Cause>,
    /// Of the run that is to come.
    pub(super) priority: Priority,
    /// Of the run that waits for its time.
    pub(super) later: Priority,
}

/// Where an item is. Independently of it, it may wait for its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// In no list: it does nothing but wait for its time, or is about to be put somewhere.
    Nowhere,
    /// Ready to be taken.
    Ready,
    /// A worker has it.
    Running,
    /// Only its failures are remembered.
    Idle,
}

/// Why an item is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// To make sure, or late: if it failed before, it can wait for its next try.
    Repeat,
    /// Something happened: it runs now.
    Fresh,
}

/// The slot of an item that is to be added.
#[derive(Debug, Clone, Copy)]
pub(super) enum Found {
    /// It was not known.
    New(u32),
    Known(u32),
}

/// Slots in the order in which they came. The links are in the slots, so that one can leave from the middle.
#[derive(Debug)]
pub(super) struct List {
    first: u32,
    last: u32,
    len: u32,
}

/// Every item once, found by its hash or by the number of its slot.
///
/// In this order, what changes first: see [`Core`](super::core::Core).
#[derive(Debug)]
#[repr(C)]
pub(super) struct Slots<T> {
    /// The first free slot; the others follow by `after`.
    free: u32,
    slots: Vec<Slot<T>>,
    table: HashTable<u32>,
}

/// An item with its hash: that takes a while, and is done before the queue is locked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hashed<I> {
    hash: u32,
    item: I,
}

/// How the items of a queue are hashed.
#[derive(Debug, Default)]
pub(super) struct Hashes(DefaultHashBuilder);

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
/// Memory for fewer slots than this is kept.
const WORTH_RETURNING: usize = 4096;

impl<T: Eq> Slots<T> {
    pub(super) fn find(&self, Hashed { hash, item }: Hashed<&T>) -> Option<u32> {
        let is_it = |number: &u32| {
            let slot = &self.slots[*number as usize];
            slot.hash == hash && slot.item.as_ref() == Some(item)
        };
        self.table.find(spread(hash), is_it).copied()
    }

    /// The slot of the item, a new one if it has none. Takes the item only if it is new: dropping it otherwise is for the caller, who
    /// can do so without the lock.
    #[inline]
    pub(super) fn find_or_insert(&mut self, Hashed { hash, item }: &mut Hashed<Option<T>>) -> Option<Found> {
        item.as_ref()?;
        let hash = *hash;
        let slots = &self.slots;
        let is_it = |number: &u32| {
            let slot = &slots[*number as usize];
            slot.hash == hash && slot.item == *item
        };
        match self.table.entry(spread(hash), is_it, |number| spread(slots[*number as usize].hash)) {
            Entry::Occupied(entry) => Some(Found::Known(*entry.get())),
            Entry::Vacant(entry) => {
                let number = match self.free {
                    NONE => slots.len() as u32,
                    free => free,
                };
                let bucket = entry.insert(number).bucket_index() as u32;
                self.fill(number, hash, bucket, item.take());
                Some(Found::New(number))
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

    /// Where in the table a slot is. Looking where it was put takes no search: there is no waiting for one line of memory to know the next.
    #[inline]
    fn bucket(&self, number: u32) -> Option<usize> {
        let slot = self.get(number);
        let bucket = slot.bucket as usize;
        if self.table.get_bucket(bucket) == Some(&number) {
            return Some(bucket);
        }
        self.table.find_bucket_index(spread(slot.hash), |other| *other == number)
    }

    /// Puts an item into the slot of that number, which is free or the one after the last.
    #[inline]
    fn fill(&mut self, number: u32, hash: u32, bucket: u32, item: Option<T>) {
        if let Some(slot) = self.slots.get_mut(number as usize) {
            self.free = slot.after;
            slot.item = item;
            (slot.hash, slot.bucket) = (hash, bucket);
            slot.failures = 0;
            slot.place = Place::Nowhere;
            slot.again = None;
            slot.priority = Priority::Low;
            return;
        }
        assert!(number < NONE, "memory ends before 2^32 items do");
        self.slots.push(Slot {
            item,
            asked: Moment::START,
            since: Moment::START,
            before: NONE,
            after: NONE,
            hash,
            bucket,
            failures: 0,
            place: Place::Nowhere,
            again: None,
            priority: Priority::Low,
            later: Priority::Low,
        });
    }

    /// Whether so few of many slots are used that their memory should be given back.
    #[inline]
    pub(super) fn are_mostly_free(&self) -> bool {
        self.slots.capacity() > WORTH_RETURNING && self.table.len() < self.slots.capacity() / 16
    }

    /// Moves all slots together and gives memory back. Returns for each old number the new one. Nobody may hold a number meanwhile.
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
        // No hint of a bucket is true any more, and each is checked before it is used.
        let slots = &self.slots;
        self.table = HashTable::with_capacity(slots.len());
        for (number, slot) in (0..).zip(slots) {
            self.table.insert_unique(spread(slot.hash), number, |number| spread(slots[*number as usize].hash));
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

    /// There is one.
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

/// The table wants the upper and the lower bits to be good; 32 good bits are enough for both.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}
