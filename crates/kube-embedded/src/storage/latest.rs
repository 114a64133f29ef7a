//! The latest value of something, for those who follow it.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The side that sets the value.
///
/// As tokio's `watch`, except that whoever waits is woken in the order in which they came. There, chance decides, and what a server
/// sends first to which of two clients would be another matter each time a seed is played.
#[derive(Debug)]
pub(crate) struct Sender<T>(Arc<Shared<T>>);

/// The side that follows.
#[derive(Debug, Clone)]
pub(crate) struct Receiver<T> {
    shared: Arc<Shared<T>>,
    /// How many changes have been seen.
    seen: u64,
}

/// The sender is gone, and everything it said has been heard.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gone;

#[derive(Debug)]
struct Shared<T> {
    latest: Mutex<Latest<T>>,
    changed: Notify,
}

#[derive(Debug)]
struct Latest<T> {
    value: T,
    changes: u64,
    gone: bool,
}

impl<T: Copy> Sender<T> {
    pub(crate) fn new(value: T) -> Self {
        let latest = Mutex::new(Latest { value, changes: 0, gone: false });
        Self(Arc::new(Shared { latest, changed: Notify::new() }))
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
        self.0.latest.lock().gone = true;
        self.0.changed.notify_waiters();
    }
}

impl<T: Copy> Receiver<T> {
    pub(crate) fn get(&self) -> T {
        self.shared.latest.lock().value
    }

    /// Takes the present value as seen.
    pub(crate) fn mark_seen(&mut self) {
        self.seen = self.shared.latest.lock().changes;
    }

    /// Completes when there is a value that was not seen, and takes it as seen.
    pub(crate) async fn changed(&mut self) -> Result<T, Gone> {
        loop {
            let mut changed = std::pin::pin!(self.shared.changed.notified());
            // Listening before looking, so that nothing is missed in between.
            changed.as_mut().enable();
            {
                let latest = self.shared.latest.lock();
                if latest.changes != self.seen {
                    self.seen = latest.changes;
                    return Ok(latest.value);
                }
                if latest.gone {
                    return Err(Gone);
                }
            }
            changed.await;
        }
    }

    /// Completes when the value passes a test, with the value.
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
    async fn whoever_waits_is_woken_in_the_order_in_which_they_came() {
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
    async fn the_last_value_is_heard_even_if_its_sender_is_gone() {
        let sender = Sender::new(0);
        let mut receiver = sender.subscribe();
        sender.set(1);
        drop(sender);
        assert_eq!((receiver.changed().await, receiver.changed().await), (Ok(1), Err(Gone)));
        assert_eq!(receiver.wait_for(|value| *value == 1).await, Ok(1));
    }
}
