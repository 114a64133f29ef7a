//! What goes first.

/// How soon an item should have its turn.
///
/// Work of a higher priority goes first, within a priority the work that was added first. So that nothing is held back for ever,
/// work that has waited for longer than the queue's [longest wait](super::WorkQueueBuilder::longest_wait) is overdue, and as long
/// as any is, every second turn goes to the one that has waited longest.
///
/// ```
/// use kube_informer::{Priority, RateLimit, WorkQueue};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let queue = WorkQueue::new(RateLimit::default());
/// queue.add_with("found at start", Priority::Low);
/// queue.add("changed just now");
/// assert_eq!(*queue.next().await.unwrap(), "changed just now");
/// # });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Priority {
    /// Work that only makes sure: the first list, resyncs.
    Low,
    /// Work that is late already: changes found by a relist.
    Normal,
    /// Fresh work: changes as they happen, and whatever is added without a priority.
    #[default]
    High,
}

impl Priority {
    pub(super) const COUNT: usize = 3;
    pub(super) const DESCENDING: [Self; Self::COUNT] = [Self::High, Self::Normal, Self::Low];
    /// The ones that something may go before.
    pub(super) const HELD_BACK: [Self; 2] = [Self::Normal, Self::Low];

    /// Of what `as u64` made.
    #[inline]
    pub(super) fn from_word(word: u64) -> Self {
        match word {
            0 => Self::Low,
            1 => Self::Normal,
            _ => Self::High,
        }
    }
}
