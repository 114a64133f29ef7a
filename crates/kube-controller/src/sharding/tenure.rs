//! One member's time with one range.

use std::fmt;
use std::sync::Arc;

use kube_informer::shard::HashRange;

use super::record::Versions;
use crate::leadership::Leadership;

/// A range that this member holds, from its claim to its release or loss. Cheap to clone.
///
/// Its [`leadership`](Self::leadership) is the right to write for the objects of the range, and is
/// lost with the range.
#[derive(Clone)]
pub struct Tenure {
    parts: Arc<TenureParts>,
}

struct TenureParts {
    range: HashRange,
    index: usize,
    epoch: u64,
    versions: Option<Versions>,
    leadership: Leadership,
}

impl Tenure {
    pub(super) fn new(
        range: HashRange,
        index: usize,
        epoch: u64,
        versions: Option<Versions>,
        leadership: Leadership,
    ) -> Self {
        Self { parts: Arc::new(TenureParts { range, index, epoch, versions, leadership }) }
    }

    /// The hashes of the range.
    #[must_use]
    pub fn range(&self) -> HashRange {
        self.parts.range
    }

    /// How many times the range was claimed until now, by any member.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.parts.epoch
    }

    /// The right to write for the objects of the range.
    #[must_use]
    pub fn leadership(&self) -> &Leadership {
        &self.parts.leadership
    }

    /// What the last holder had seen when it released the range, by resource: nothing may be done
    /// for the range before the caches are there.
    ///
    /// `None` if that is not known, because the last holder has crashed: then the versions that the
    /// server has now are a bound.
    #[must_use]
    pub fn versions(&self) -> Option<&Versions> {
        self.parts.versions.as_ref()
    }

    pub(super) fn index(&self) -> usize {
        self.parts.index
    }
}

impl fmt::Debug for Tenure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tenure")
            .field("range", &self.range())
            .field("epoch", &self.epoch())
            .field("leadership", self.leadership())
            .finish_non_exhaustive()
    }
}
