//! Prefetching of entries.

use std::hint::black_box;

use super::hamt::{Hamt, Walk};
use super::state::{KeyHashes, NamespaceState, StoreEntry};

/// Prefetches the entries of these keys, before the first of them is processed.
///
/// With many objects, neither the nodes on the path to an entry nor its metadata are in a CPU
/// cache, and every step of a lookup is a cache miss that depends on the one before. Advancing all
/// lookups level by level overlaps their cache misses.
pub(super) fn prefetch_entries(spaces: &Hamt<NamespaceState>, keys: impl Iterator<Item = KeyHashes>) {
    // On a collision of namespace hashes this may prefetch from the wrong namespace, which is
    // harmless.
    let walk = |key: KeyHashes| Some(spaces.get(key.space, |_| true)?.entries.walk(key.name));
    let mut walks: Vec<Walk<'_, StoreEntry>> = keys.filter_map(walk).collect();
    while walks.iter_mut().fold(false, |any, walk| walk.step() | any) {}
    let entries: Vec<&StoreEntry> = walks.iter().filter_map(|walk| walk.end(|_| true)).collect();
    // The results are irrelevant; reading the fields loads their cache lines.
    let metadata = entries.iter().filter(|entry| entry.raw.meta().version.is_empty()).count();
    let names = entries.iter().filter(|entry| entry.key().as_str().ends_with('/')).count();
    black_box((metadata, names));
}
