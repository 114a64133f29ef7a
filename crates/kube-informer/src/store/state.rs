//! What readers see: one immutable state of the store.

use std::any::Any;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;

use super::hamt::Hamt;
use super::label_bloom::LabelBlooms;
use crate::body::{Obj, Raw, Untyped};
use crate::object::ObjectKey;
use crate::object::Version;

/// Keyed afresh for each store, so that nobody can choose names that collide; or from a seed, so that seeds replay.
pub(crate) type Hashing = foldhash::fast::SeedableRandomState;

/// Everything at one moment: objects, indexes, version. A clone is a snapshot.
#[derive(Clone)]
pub(crate) struct StoreState {
    /// By the hash of the namespace.
    pub(super) spaces: Hamt<NamespaceState>,
    pub(super) len: usize,
    /// By the numbers of label sets.
    pub(super) marks: LabelBlooms,
    pub(super) version: Option<Version>,
    pub(super) tables: Tables,
    pub(super) hashing: Hashing,
}

/// Indexes by their numbers.
pub(super) type Tables = Arc<[(usize, Arc<dyn Any + Send + Sync>)]>;

/// The objects of one namespace; those without one are in the namespace of no name.
#[derive(Debug, Clone)]
pub(super) struct NamespaceState {
    pub(super) namespace: Arc<str>,
    /// By the hash of the name.
    pub(super) entries: Hamt<StoreEntry>,
}

/// An object in the store.
#[derive(Debug, Clone)]
pub(crate) struct StoreEntry {
    pub(crate) raw: Arc<Raw>,
    /// The number of its label set.
    pub(crate) labels: u32,
    /// Its own number for as long as its key is in the store.
    pub(crate) slot: u32,
}

/// Where to find an entry again without its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotRef {
    pub(crate) space: u32,
    pub(crate) name: u32,
    pub(crate) slot: u32,
}

/// Where a key belongs: its hashes, so that they are made once for all that is done with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyHashes {
    pub(super) space: u32,
    pub(super) name: u32,
}

impl KeyHashes {
    pub(super) fn with_slot(self, slot: u32) -> SlotRef {
        SlotRef { space: self.space, name: self.name, slot }
    }
}

impl StoreState {
    pub(super) fn new(hashing: Hashing) -> Self {
        Self {
            spaces: Hamt::new(),
            len: 0,
            marks: LabelBlooms::default(),
            version: None,
            tables: Arc::new([]),
            hashing,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn version(&self) -> Option<&Version> {
        self.version.as_ref()
    }

    pub(crate) fn hash(&self, text: &str) -> u32 {
        self.hashing.hash_one(text) as u32
    }

    pub(crate) fn hashing(&self) -> &Hashing {
        &self.hashing
    }

    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&StoreEntry> {
        self.get_named(key.namespace().unwrap_or_default(), key.name())
    }

    pub(crate) fn get_named(&self, namespace: &str, name: &str) -> Option<&StoreEntry> {
        named(self.space(namespace)?, self.hash(name), name)
    }

    pub(super) fn space(&self, namespace: &str) -> Option<&NamespaceState> {
        self.space_at(self.hash(namespace), namespace)
    }

    fn space_at(&self, hash: u32, namespace: &str) -> Option<&NamespaceState> {
        self.spaces.get(hash, |space| *space.namespace == *namespace)
    }

    pub(crate) fn at(&self, place: SlotRef) -> Option<&StoreEntry> {
        // Slots are unique, so no name need be compared, not even the namespace's.
        let find = |space: &NamespaceState| space.entries.get(place.name, |entry| entry.slot == place.slot).is_some();
        self.spaces.get(place.space, find)?.entries.get(place.name, |entry| entry.slot == place.slot)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &StoreEntry> {
        self.spaces.iter().flat_map(|space| &space.entries)
    }

    pub(crate) fn namespace(&self, namespace: &str) -> impl Iterator<Item = &StoreEntry> + use<'_> {
        self.space(namespace).into_iter().flat_map(|space| &space.entries)
    }

    pub(crate) fn namespace_len(&self, namespace: &str) -> usize {
        self.space(namespace).map_or(0, |space| space.entries.len())
    }

    /// By the numbers of label sets.
    pub(crate) fn marks(&self) -> &LabelBlooms {
        &self.marks
    }

    pub(crate) fn table(&self, id: usize) -> Option<&Arc<dyn Any + Send + Sync>> {
        self.tables.iter().find(|(other, _)| *other == id).map(|(_, table)| table)
    }

    pub(super) fn spot(&self, key: &ObjectKey) -> KeyHashes {
        KeyHashes { space: self.hash(key.namespace().unwrap_or_default()), name: self.hash(key.name()) }
    }

    pub(super) fn get_at(&self, spot: KeyHashes, key: &ObjectKey) -> Option<&StoreEntry> {
        named(self.space_at(spot.space, key.namespace().unwrap_or_default())?, spot.name, key.name())
    }

    pub(super) fn place(&self, key: &ObjectKey, slot: u32) -> SlotRef {
        self.spot(key).with_slot(slot)
    }

    /// Puts an entry in, instead of the one of its key if there is one.
    pub(super) fn put(&mut self, place: SlotRef, entry: StoreEntry) {
        self.len += usize::from(put(&mut self.spaces, place, entry).is_none());
    }

    /// Takes out the entry of this key, and says where it was.
    pub(super) fn remove(&mut self, spot: KeyHashes, key: &ObjectKey) -> Option<(SlotRef, StoreEntry)> {
        let place = spot.with_slot(self.get_at(spot, key)?.slot);
        let entry = remove(&mut self.spaces, place)?;
        self.len -= 1;
        Some((place, entry))
    }
}

/// One step from one state to the next.
#[derive(Debug)]
pub(super) enum Change {
    Put(SlotRef, StoreEntry),
    Removed(SlotRef),
}

impl Change {
    pub(super) fn spot(&self) -> KeyHashes {
        let (Self::Put(place, _) | Self::Removed(place)) = self;
        KeyHashes { space: place.space, name: place.name }
    }

    pub(super) fn make(self, spaces: &mut Hamt<NamespaceState>) {
        drop(match self {
            Self::Put(place, entry) => put(spaces, place, entry),
            Self::Removed(place) => remove(spaces, place),
        });
    }
}

fn put(spaces: &mut Hamt<NamespaceState>, place: SlotRef, entry: StoreEntry) -> Option<StoreEntry> {
    let namespace = entry.key().namespace().unwrap_or_default();
    if let Some(space) = spaces.get_mut(place.space, |space| *space.namespace == *namespace) {
        return space.entries.insert(place.name, entry, |other| other.slot == place.slot);
    }
    let mut space = NamespaceState { namespace: namespace.into(), entries: Hamt::new() };
    space.entries.insert(place.name, entry, |_| false);
    spaces.insert(place.space, space, |_| false);
    None
}

fn remove(spaces: &mut Hamt<NamespaceState>, place: SlotRef) -> Option<StoreEntry> {
    // Slots are unique, so no name need be compared, not even the namespace's.
    let same = |entry: &StoreEntry| entry.slot == place.slot;
    let space = spaces.get_mut(place.space, |space| space.entries.get(place.name, same).is_some())?;
    let old = space.entries.remove(place.name, same);
    if space.entries.is_empty() {
        drop(spaces.remove(place.space, |space| space.entries.is_empty()));
    }
    old
}

fn named<'a>(space: &'a NamespaceState, hash: u32, name: &str) -> Option<&'a StoreEntry> {
    space.entries.get(hash, |entry| entry.raw.meta().key.name() == name)
}

impl StoreEntry {
    pub(crate) fn object(&self) -> Obj<Untyped> {
        Obj::new(Arc::clone(&self.raw))
    }

    pub(crate) fn key(&self) -> &ObjectKey {
        &self.raw.meta().key
    }
}

impl fmt::Debug for StoreState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoreState").field("len", &self.len).field("version", &self.version).finish_non_exhaustive()
    }
}
