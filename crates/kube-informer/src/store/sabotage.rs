//! Deliberate faults that the model test must detect. Only a test build can enable one.

/// A deliberate fault in applying deltas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sabotage {
    /// A complete list does not delete the objects it does not contain.
    NoMissedDeletes,
    /// New objects of a list are reported before its deletions.
    WrongOrder,
    /// A new object of a list is reported immediately and again at the end.
    DoubleAdd,
    /// A deletion is not reported.
    LostTombstone,
    /// Events are returned before readers can see the changes.
    EventBeforeStore,
}

#[cfg(test)]
impl Sabotage {
    pub(super) const ALL: [Self; 5] =
        [Self::NoMissedDeletes, Self::WrongOrder, Self::DoubleAdd, Self::LostTombstone, Self::EventBeforeStore];
}
