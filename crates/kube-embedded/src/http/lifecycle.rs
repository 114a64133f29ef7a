//! Signals shutdown and simulated restarts to open connections and streams.

use crate::storage::latest::{Receiver, Sender};

/// The server's state as its connections and streams see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Phase {
    /// Incremented by each restart: connections of an earlier epoch are broken.
    epoch: u64,
    closing: bool,
}

/// How a connection or stream has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The server shuts down: streams end cleanly.
    Closed,
    /// The server restarted: connections break.
    Cut,
}

/// The sender side: ends connections and streams.
#[derive(Debug)]
pub(crate) struct Lifecycle(Sender<Phase>);

/// The receiver side, held by one connection or stream.
#[derive(Debug, Clone)]
pub(crate) struct Lifetime {
    phase: Receiver<Phase>,
    epoch: u64,
}

impl Lifecycle {
    pub(crate) fn new() -> Self {
        Self(Sender::new(Phase { epoch: 0, closing: false }))
    }

    /// Breaks all open connections and streams.
    pub(crate) fn cut(&self) {
        self.0.modify(|phase| phase.epoch += 1);
    }

    /// Gracefully ends all open connections and streams, and those opened later.
    pub(crate) fn close(&self) {
        self.0.modify(|phase| phase.closing = true);
    }

    /// The lifetime of the server itself, which restarts do not end.
    pub(crate) fn closing(&self) -> Closing {
        Closing(self.0.subscribe())
    }

    /// The lifetime of a connection or stream that opens now.
    pub(crate) fn lifetime(&self) -> Lifetime {
        let phase = self.0.subscribe();
        let epoch = phase.get().epoch;
        Lifetime { phase, epoch }
    }
}

/// The receiver side that waits for the shutdown only.
#[derive(Debug)]
pub(crate) struct Closing(Receiver<Phase>);

impl Closing {
    pub(crate) async fn ended(&mut self) {
        // An error means that the server was dropped, which also ends it.
        drop(self.0.wait_for(|phase| phase.closing).await);
    }
}

impl Lifetime {
    /// Waits for the end.
    pub(crate) async fn ended(&mut self) -> Ending {
        let epoch = self.epoch;
        match self.phase.wait_for(|phase| phase.closing || phase.epoch != epoch).await {
            Ok(phase) if phase.epoch != epoch => Ending::Cut,
            Ok(_) | Err(_) => Ending::Closed,
        }
    }
}
