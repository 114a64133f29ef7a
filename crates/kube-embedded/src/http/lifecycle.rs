//! When what is open must end: shutdown and restarts.

use crate::storage::latest::{Receiver, Sender};

/// The server's life as its connections and streams see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Phase {
    /// Grows with each restart: whatever was open before is cut.
    epoch: u64,
    closing: bool,
}

/// How something open has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The server shuts down: streams end cleanly.
    Closed,
    /// The server restarted: connections break.
    Cut,
}

/// The side that ends things.
#[derive(Debug)]
pub(crate) struct Lifecycle(Sender<Phase>);

/// The side that must end.
#[derive(Debug, Clone)]
pub(crate) struct Lifetime {
    phase: Receiver<Phase>,
    epoch: u64,
}

impl Lifecycle {
    pub(crate) fn new() -> Self {
        Self(Sender::new(Phase { epoch: 0, closing: false }))
    }

    /// Cuts everything that is open.
    pub(crate) fn cut(&self) {
        self.0.modify(|phase| phase.epoch += 1);
    }

    /// Ends everything that is open, and whatever opens later.
    pub(crate) fn close(&self) {
        self.0.modify(|phase| phase.closing = true);
    }

    /// The life of the server itself, which restarts do not end.
    pub(crate) fn closing(&self) -> Closing {
        Closing(self.0.subscribe())
    }

    /// The life of something that opens now.
    pub(crate) fn lifetime(&self) -> Lifetime {
        let phase = self.0.subscribe();
        let epoch = phase.get().epoch;
        Lifetime { phase, epoch }
    }
}

/// The side that waits for the shutdown alone.
#[derive(Debug)]
pub(crate) struct Closing(Receiver<Phase>);

impl Closing {
    pub(crate) async fn ended(&mut self) {
        // An error means that the server is gone: that is an end too.
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
