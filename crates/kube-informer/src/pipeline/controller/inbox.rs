//! The way from reflectors to the controller: bounded, so that back-pressure reaches the server.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::pipeline::delta_fifo::{DeltaFifo, Full};
use crate::reflector::{DeltaSink, SinkClosed};
use crate::store::Delta;

/// The queue of deltas, with those who wait for room and the one who waits for deltas.
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

    /// The next deltas to apply; none if there are none.
    pub(super) fn pop(&self) -> Vec<Delta> {
        let batch = self.fifo.lock().pop();
        if !batch.is_empty() {
            self.room.notify_waiters();
        }
        batch
    }

    /// Queues a delta of the controller's own, or hands it back if there is no room.
    pub(super) fn push(&self, delta: Delta) -> Result<(), Full> {
        self.fifo.lock().push(delta)
    }

    /// Completes when something has been put in since it was last asked.
    pub(super) fn filled(&self) -> Notified<'_> {
        self.filled.notified()
    }

    /// How many deltas wait, and their bytes.
    pub(super) fn depth(&self) -> (usize, usize) {
        let fifo = self.fifo.lock();
        (fifo.len(), fifo.bytes())
    }
}

/// A reflector's end of the inbox.
#[derive(Debug, Clone)]
pub(super) struct Slot(pub(super) Arc<Inbox>);

impl Slot {
    fn push(&self, delta: Delta) -> Result<(), Full> {
        self.0.push(delta)?;
        self.0.filled.notify_one();
        Ok(())
    }
}

impl DeltaSink for Slot {
    async fn accept(&mut self, delta: Delta) -> Result<(), SinkClosed> {
        let mut tried = self.push(delta);
        while let Err(Full(delta)) = tried {
            let mut room = std::pin::pin!(self.0.room.notified());
            // Listening before trying again, so that room made in between is not missed.
            room.as_mut().enable();
            tried = self.push(delta);
            if tried.is_err() {
                room.await;
            }
        }
        Ok(())
    }
}
