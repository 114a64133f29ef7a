//! Looking ahead.

use std::hint::black_box;

use super::hamt::{Hamt, Walk};
use super::state::{KeyHashes, NamespaceState, StoreEntry};

/// Looks at what is at these spots, at all of them before anything is done with the first.
///
/// Where there are many objects, no cache of a processor has the nodes that lead to one of them, nor its metadata: it waits for each on the way
/// to the next. Side by side, a step of every walk at a time, it waits for all of them at once.
pub(super) fn look_ahead(spaces: &Hamt<NamespaceState>, spots: impl Iterator<Item = KeyHashes>) {
    // Two namespaces of one hash would be a look at the wrong one, which does no harm.
    let walk = |spot: KeyHashes| Some(spaces.get(spot.space, |_| true)?.entries.walk(spot.name));
    let mut walks: Vec<Walk<'_, StoreEntry>> = spots.filter_map(walk).collect();
    while walks.iter_mut().fold(false, |any, walk| walk.step() | any) {}
    let entries: Vec<&StoreEntry> = walks.iter().filter_map(|walk| walk.end(|_| true)).collect();
    // What is asked of them is of no matter, only that they have been touched.
    let metadata = entries.iter().filter(|entry| entry.raw.meta().version.is_empty()).count();
    let names = entries.iter().filter(|entry| entry.key().as_str().ends_with('/')).count();
    black_box((metadata, names));
}
