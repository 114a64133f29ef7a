//! Adds that found the queue locked.

use std::sync::atomic::Ordering;

use super::core::Core;
use super::platform::{AtomicUsize, Mutex};
use super::slots::Hashed;

/// Fresh items on their way into the queue.
///
/// Whoever adds one while another thread has the queue leaves it here and goes on, instead of waiting for the queue and of having all that
/// changes with it fetched from the other processor. Workers take in all of them at once, when nothing fresh is ready any more: so the
/// order stays as it was, and what everybody else asks the queue is asked after all have been taken in.
///
/// While a worker waits nothing is here: it would not be found. The queue is locked before its inbox, never after it.
///
/// On lines of the cache of its own: what others read beside it would be torn from them with each item.
#[repr(align(128))]
pub(super) struct Inbox<T> {
    /// How many there are, for those who have not locked it.
    len: AtomicUsize,
    letters: Mutex<Letters<T>>,
}

struct Letters<T> {
    letters: Vec<Letter<T>>,
    /// How to put them into the queue. Only those who leave one know that items can be compared.
    deliver: Option<Deliver<T>>,
    /// Whether a worker may be waiting.
    awaited: bool,
}

/// An item; none once the queue has it.
pub(super) type Letter<T> = Hashed<Option<T>>;
type Deliver<T> = fn(&mut Core<T>, &mut Vec<Letter<T>>);

/// When so many are there, whoever comes next waits for the queue. With fewer, processors take the queue from each other more often.
const LIMIT: usize = if cfg!(test) { 2 } else { 1024 };

impl<T> Inbox<T> {
    pub(super) fn new() -> Self {
        let letters = Letters { letters: Vec::new(), deliver: None, awaited: false };
        Self { len: AtomicUsize::new(0), letters: Mutex::new(letters) }
    }

    /// Whether there is nothing of those that this thread knows of: its own, and those of whom it has heard in some other way.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len.load(Ordering::Acquire) == 0
    }

    /// Leaves an item here, or gives it back: it has to be put into the queue then, and maybe somebody has to be woken for it.
    pub(super) fn put(&self, letter: Letter<T>, deliver: Deliver<T>) -> Result<(), Letter<T>> {
        let mut inbox = self.letters.lock();
        if inbox.awaited || inbox.letters.len() >= LIMIT {
            return Err(letter);
        }
        inbox.deliver = Some(deliver);
        inbox.letters.push(letter);
        self.len.store(inbox.letters.len(), Ordering::Release);
        Ok(())
    }

    /// Puts all of them into the queue, in their order. Those that it had already stay in `batch`. That was empty, or has what is left if
    /// comparing items panicked the last time: that is for the next time.
    pub(super) fn empty_into(&self, core: &mut Core<T>, batch: &mut Vec<Letter<T>>) {
        let mut inbox = self.letters.lock();
        std::mem::swap(&mut inbox.letters, batch);
        self.len.store(inbox.letters.len(), Ordering::Release);
        let deliver = inbox.deliver;
        drop(inbox);
        if let Some(deliver) = deliver {
            deliver(core, batch);
        }
    }

    /// Nothing is left here from now on, because a worker waits. False if something is here already.
    pub(super) fn close_for_waiting(&self) -> bool {
        let mut inbox = self.letters.lock();
        inbox.awaited = inbox.letters.is_empty();
        inbox.awaited
    }

    /// No worker waits.
    pub(super) fn open(&self) {
        self.letters.lock().awaited = false;
    }
}
