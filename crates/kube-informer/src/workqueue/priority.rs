//! Priorities of items.

/// The priority of an item.
///
/// Items of a higher priority are taken first; within a priority, in the order in which they were
/// added. To prevent starvation, an item that has waited for longer than the queue's
/// [longest wait](super::WorkQueueBuilder::longest_wait) is overdue, and while any item is overdue,
/// every second take returns the one that has waited longest.
///
/// ```
/// use kube_informer::WorkQueue;
/// use kube_informer::workqueue::{Priority, RateLimit};
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
    /// Items from the initial list and from resyncs.
    Low,
    /// Changes found by a relist, which are already late.
    Normal,
    /// Live changes, and items added without a priority.
    #[default]
    High,
}

impl Priority {
    pub(super) const COUNT: usize = 3;
    pub(super) const DESCENDING: [Self; Self::COUNT] = [Self::High, Self::Normal, Self::Low];
    /// Priorities that a higher one can delay.
    pub(super) const HELD_BACK: [Self; 2] = [Self::Normal, Self::Low];

    /// Inverse of `as u64`.
    #[inline]
    pub(super) fn from_word(word: u64) -> Self {
        match word {
            0 => Self::Low,
            1 => Self::Normal,
            _ => Self::High,
        }
    }
}
