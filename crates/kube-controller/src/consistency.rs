//! Read-your-writes: a key is not reconciled again before the caches have what it wrote.
//!
//! `unseen` is the pure part: what a key has written that its caches may not have yet. `caches`
//! compares it with the caches and waits. `gate` decides for a worker whether a key may run, and
//! `disconnection` makes a worker wait while the cache of the controller's own kind is cut off.
//! Uses `figures` and the controller's informers.

pub(crate) use self::caches::{Caches, latest_version};
pub(crate) use self::disconnection::Disconnection;
pub(crate) use self::gate::{Gate, Passage};
pub(crate) use self::tracker::Tracker;
pub(crate) use self::unseen::{CacheId, Unseen};

mod caches;
mod disconnection;
mod gate;
mod tracker;
mod unseen;
