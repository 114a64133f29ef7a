//! What declaring a kind returns: the right to read it.

use std::fmt;
use std::ops::Deref;

use kube_informer::{Index, Lister, Uid};

/// Reads a kind that a controller watches: a [`Lister`].
pub struct Watched<C> {
    lister: Lister<C>,
}

/// Reads a kind whose objects belong to the objects of a controller: a [`Lister`], and an index by
/// owner, which [`Context::owned`](crate::Context::owned) reads.
pub struct Owned<C> {
    lister: Lister<C>,
    by_owner: Index<C, Uid>,
}

impl<C> Watched<C> {
    pub(super) fn new(lister: Lister<C>) -> Self {
        Self { lister }
    }
}

impl<C> Owned<C> {
    pub(super) fn new(lister: Lister<C>, by_owner: Index<C, Uid>) -> Self {
        Self { lister, by_owner }
    }

    /// Returns the index by the uid of the controlling owner.
    pub fn by_owner(&self) -> &Index<C, Uid> {
        &self.by_owner
    }
}

impl<C> Deref for Watched<C> {
    type Target = Lister<C>;

    fn deref(&self) -> &Lister<C> {
        &self.lister
    }
}

impl<C> Deref for Owned<C> {
    type Target = Lister<C>;

    fn deref(&self) -> &Lister<C> {
        &self.lister
    }
}

impl<C> Clone for Watched<C> {
    fn clone(&self) -> Self {
        Self { lister: self.lister.clone() }
    }
}

impl<C> Clone for Owned<C> {
    fn clone(&self) -> Self {
        Self { lister: self.lister.clone(), by_owner: self.by_owner.clone() }
    }
}

impl<C> fmt::Debug for Watched<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("objects", &self.lister.len()).finish_non_exhaustive()
    }
}

impl<C> fmt::Debug for Owned<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Owned").field("objects", &self.lister.len()).finish_non_exhaustive()
    }
}
