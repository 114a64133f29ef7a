//! The immutable state that readers see.

use std::any::Any;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;

use super::hamt::Hamt;
use super::label_bloom::LabelBlooms;
use crate::body::{Obj, Raw, Untyped};
use crate::object::ObjectKey;
use crate::object::Version;

/// Randomly seeded per store, so that an attacker cannot choose names that collide; or seeded
/// explicitly, for reproducible tests.
pub(crate) type Hashing = foldhash::fast::SeedableRandomState;

/// Objects, indexes and version at one point in time. A clone is a snapshot.
#[derive(Clone)]
pub(crate) struct StoreState {
    /// Keyed by the hash of the namespace.
    pub(super) spaces: Hamt<NamespaceState>,
    pub(super) len: usize,
    /// Bloom filters by label set number.
    pub(super) blooms: LabelBlooms,
    pub(super) version: Option<Version>,
    pub(super) tables: Tables,
    pub(super) hashing: Hashing,
}

/// Published index tables by id.
pub(super) type Tables = Arc<[(usize, Arc<dyn Any + Send + Sync>)]>;

/// The objects of one namespace. Objects without a namespace are under the empty name.
#[derive(Debug, Clone)]
pub(super) struct NamespaceState {
    pub(super) namespace: Arc<str>,
    /// Keyed by the hash of the name.
    pub(super) entries: Hamt<StoreEntry>,
}

/// An object in the store.
#[derive(Debug, Clone)]
pub(crate) struct StoreEntry {
    pub(crate) raw: Arc<Raw>,
    /// Number of its label set.
    pub(crate) labels: u32,
    /// Slot number, constant while its key is in the store.
    pub(crate) slot: u32,
}

/// Locates an entry without its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotRef {
    pub(crate) space: u32,
    pub(crate) name: u32,
    pub(crate) slot: u32,
}

/// The hashes of a key, computed once and passed to every operation on it.
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
            blooms: LabelBlooms::default(),
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

    pub(crate) fn at(&self, slot_ref: SlotRef) -> Option<&StoreEntry> {
        // Slots are unique, so neither names nor namespaces are compared.
        let find =
            |space: &NamespaceState| space.entries.get(slot_ref.name, |entry| entry.slot == slot_ref.slot).is_some();
        self.spaces.get(slot_ref.space, find)?.entries.get(slot_ref.name, |entry| entry.slot == slot_ref.slot)
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

    /// Bloom filters by label set number.
    pub(crate) fn blooms(&self) -> &LabelBlooms {
        &self.blooms
    }

    pub(crate) fn table(&self, id: usize) -> Option<&Arc<dyn Any + Send + Sync>> {
        self.tables.iter().find(|(other, _)| *other == id).map(|(_, table)| table)
    }

    pub(super) fn hashes_of(&self, key: &ObjectKey) -> KeyHashes {
        KeyHashes { space: self.hash(key.namespace().unwrap_or_default()), name: self.hash(key.name()) }
    }

    pub(super) fn get_at(&self, hashes: KeyHashes, key: &ObjectKey) -> Option<&StoreEntry> {
        named(self.space_at(hashes.space, key.namespace().unwrap_or_default())?, hashes.name, key.name())
    }

    pub(super) fn slot_ref_of(&self, key: &ObjectKey, slot: u32) -> SlotRef {
        self.hashes_of(key).with_slot(slot)
    }

    /// Inserts an entry, replacing the one with the same key.
    pub(super) fn put(&mut self, slot_ref: SlotRef, entry: StoreEntry) {
        self.len += usize::from(put(&mut self.spaces, slot_ref, entry).is_none());
    }

    /// Removes the entry of this key, and returns where it was.
    pub(super) fn remove(&mut self, hashes: KeyHashes, key: &ObjectKey) -> Option<(SlotRef, StoreEntry)> {
        let slot_ref = hashes.with_slot(self.get_at(hashes, key)?.slot);
        let entry = remove(&mut self.spaces, slot_ref)?;
        self.len -= 1;
        Some((slot_ref, entry))
    }
}

/// One change between two states.
#[derive(Debug)]
pub(super) enum Change {
    Put(SlotRef, StoreEntry),
    Removed(SlotRef),
}

impl Change {
    pub(super) fn hashes_of(&self) -> KeyHashes {
        let (Self::Put(slot_ref, _) | Self::Removed(slot_ref)) = self;
        KeyHashes { space: slot_ref.space, name: slot_ref.name }
    }

    pub(super) fn make(self, spaces: &mut Hamt<NamespaceState>) {
        drop(match self {
            Self::Put(slot_ref, entry) => put(spaces, slot_ref, entry),
            Self::Removed(slot_ref) => remove(spaces, slot_ref),
        });
    }
}

fn put(spaces: &mut Hamt<NamespaceState>, slot_ref: SlotRef, entry: StoreEntry) -> Option<StoreEntry> {
    let namespace = entry.key().namespace().unwrap_or_default();
    if let Some(space) = spaces.get_mut(slot_ref.space, |space| *space.namespace == *namespace) {
        return space.entries.insert(slot_ref.name, entry, |other| other.slot == slot_ref.slot);
    }
    let mut space = NamespaceState { namespace: namespace.into(), entries: Hamt::new() };
    space.entries.insert(slot_ref.name, entry, |_| false);
    spaces.insert(slot_ref.space, space, |_| false);
    None
}

fn remove(spaces: &mut Hamt<NamespaceState>, slot_ref: SlotRef) -> Option<StoreEntry> {
    // Slots are unique, so neither names nor namespaces are compared.
    let same = |entry: &StoreEntry| entry.slot == slot_ref.slot;
    let space = spaces.get_mut(slot_ref.space, |space| space.entries.get(slot_ref.name, same).is_some())?;
    let old = space.entries.remove(slot_ref.name, same);
    if space.entries.is_empty() {
        drop(spaces.remove(slot_ref.space, |space| space.entries.is_empty()));
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
