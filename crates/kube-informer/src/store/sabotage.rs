//! Deliberate faults, to see that the model test would find them. Only a test build can switch one on.

/// A way in which the fold could be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sabotage {
    /// A list does not take out what it has not shown.
    NoMissedDeletes,
    /// New objects of a list are told before its deletions.
    WrongOrder,
    /// A new object of a list is told at once and again at the end.
    DoubleAdd,
    /// A deletion is not told.
    LostTombstone,
    /// Events are told before readers can see them.
    EventBeforeStore,
}

#[cfg(test)]
impl Sabotage {
    pub(super) const ALL: [Self; 5] =
        [Self::NoMissedDeletes, Self::WrongOrder, Self::DoubleAdd, Self::LostTombstone, Self::EventBeforeStore];
}
