//! The bounded queue from the reflectors to the controller. Backpressure reaches the server.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::pipeline::platform::Mutex;
use crate::pipeline::{DeltaFifo, DeltaFifoFull};
use crate::reflector::{DeltaSink, SinkClosed};
use crate::store::{Delta, Reader, WatchScope};

/// The delta queue, with notifications for reflectors that wait for room and for the controller
/// that waits for deltas.
#[derive(Debug)]
pub(crate) struct Inbox {
    fifo: Mutex<DeltaFifo>,
    filled: Notify,
    room: Notify,
}

impl Inbox {
    pub(super) fn new(fifo: DeltaFifo) -> Self {
        Self { fifo: Mutex::new(fifo), filled: Notify::new(), room: Notify::new() }
    }

    /// The next batch to apply; empty if nothing is queued.
    pub(super) fn pop(&self) -> Vec<Delta> {
        let batch = self.fifo.lock().pop();
        if !batch.is_empty() {
            self.room.notify_waiters();
        }
        batch
    }

    /// Queues a delta of the controller itself, or returns it if there is no room.
    pub(super) fn push(&self, delta: Delta) -> Result<(), DeltaFifoFull> {
        self.fifo.lock().push(delta)
    }

    /// Completes when a reflector has queued a delta since the last call.
    pub(super) fn filled(&self) -> Notified<'_> {
        self.filled.notified()
    }

    /// The number of queued deltas, and their bytes.
    pub(super) fn depth(&self) -> (usize, usize) {
        let fifo = self.fifo.lock();
        (fifo.len(), fifo.bytes())
    }
}

/// The sending end that a reflector holds.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    inbox: Arc<Inbox>,
    store: Reader,
}

impl Slot {
    /// `store` is the one that the deltas are applied to.
    pub(super) fn new(inbox: Arc<Inbox>, store: Reader) -> Self {
        Self { inbox, store }
    }

    fn push(&self, delta: Delta) -> Result<(), DeltaFifoFull> {
        self.inbox.push(delta)?;
        self.inbox.filled.notify_one();
        Ok(())
    }
}

impl DeltaSink for Slot {
    async fn accept(&mut self, delta: Delta) -> Result<(), SinkClosed> {
        let mut tried = self.push(delta);
        while let Err(DeltaFifoFull(delta)) = tried {
            let mut room = std::pin::pin!(self.inbox.room.notified());
            // Registered before the retry, so that room made in between is not missed.
            room.as_mut().enable();
            tried = self.push(delta);
            if tried.is_err() {
                room.await;
            }
        }
        Ok(())
    }

    /// Counts the queued deltas of all scopes: too much rather than too little, and never more than
    /// the queue may hold.
    fn held_bytes(&self, scope: &WatchScope) -> Option<u64> {
        let (_, queued) = self.inbox.depth();
        Some(self.store.bytes_in(scope).saturating_add(queued as u64))
    }
}
