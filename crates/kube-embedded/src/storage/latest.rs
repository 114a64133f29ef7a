//! A channel that holds only the latest value.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The sending half.
///
/// Works as tokio's `watch`, except that waiting receivers are woken in FIFO order. In tokio's
/// `watch` the order is random, so runs with the same seed would send events to two clients in
/// different orders.
#[derive(Debug)]
pub(crate) struct Sender<T>(Arc<Channel<T>>);

/// The receiving half.
#[derive(Debug, Clone)]
pub(crate) struct Receiver<T> {
    shared: Arc<Channel<T>>,
    /// The number of changes already seen.
    seen: u64,
}

/// The sender is dropped and its last value has been received.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gone;

#[derive(Debug)]
struct Channel<T> {
    latest: Mutex<Latest<T>>,
    changed: Notify,
}

#[derive(Debug)]
struct Latest<T> {
    value: T,
    changes: u64,
    is_closed: bool,
}

impl<T: Copy> Sender<T> {
    pub(crate) fn new(value: T) -> Self {
        let latest = Mutex::new(Latest { value, changes: 0, is_closed: false });
        Self(Arc::new(Channel { latest, changed: Notify::new() }))
    }

    pub(crate) fn subscribe(&self) -> Receiver<T> {
        Receiver { seen: self.0.latest.lock().changes, shared: Arc::clone(&self.0) }
    }

    pub(crate) fn set(&self, value: T) {
        self.modify(|latest| *latest = value);
    }

    pub(crate) fn modify(&self, modify: impl FnOnce(&mut T)) {
        let mut latest = self.0.latest.lock();
        modify(&mut latest.value);
        latest.changes += 1;
        drop(latest);
        self.0.changed.notify_waiters();
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.latest.lock().is_closed = true;
        self.0.changed.notify_waiters();
    }
}

impl<T: Copy> Receiver<T> {
    pub(crate) fn get(&self) -> T {
        self.shared.latest.lock().value
    }

    /// Sets the current value as seen.
    pub(crate) fn mark_seen(&mut self) {
        self.seen = self.shared.latest.lock().changes;
    }

    /// Waits for a value that was not seen yet; it then counts as seen.
    pub(crate) async fn changed(&mut self) -> Result<T, Gone> {
        loop {
            let mut changed = std::pin::pin!(self.shared.changed.notified());
            // Registers for the notification before the check, so that no change in between is
            // missed.
            changed.as_mut().enable();
            {
                let latest = self.shared.latest.lock();
                if latest.changes != self.seen {
                    self.seen = latest.changes;
                    return Ok(latest.value);
                }
                if latest.is_closed {
                    return Err(Gone);
                }
            }
            changed.await;
        }
    }

    /// Waits until the value passes a test, and returns it.
    pub(crate) async fn wait_for(&mut self, mut test: impl FnMut(&T) -> bool) -> Result<T, Gone> {
        let mut value = self.get();
        while !test(&value) {
            value = self.changed().await?;
        }
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn waiters_are_woken_in_the_order_in_which_they_came() {
        let sender = Sender::new(0);
        let woken: Arc<Mutex<Vec<usize>>> = Arc::default();
        let waiters: Vec<_> = (0..100)
            .map(|nth| {
                let (mut receiver, woken) = (sender.subscribe(), Arc::clone(&woken));
                tokio::spawn(async move {
                    assert_eq!(receiver.changed().await, Ok(1));
                    woken.lock().push(nth);
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_secs(1)).await;
        sender.set(1);
        for waiter in waiters {
            waiter.await.unwrap();
        }
        assert_eq!(*woken.lock(), (0..100).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn the_last_value_is_received_even_if_its_sender_is_gone() {
        let sender = Sender::new(0);
        let mut receiver = sender.subscribe();
        sender.set(1);
        drop(sender);
        assert_eq!((receiver.changed().await, receiver.changed().await), (Ok(1), Err(Gone)));
        assert_eq!(receiver.wait_for(|value| *value == 1).await, Ok(1));
    }
}
