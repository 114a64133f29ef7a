//! How far a sync is, while it takes a while.

use std::io::{self, IsTerminal, Write as _};
use std::time::Duration;

use kube_informer::{Condition, Informer};
use serde_json::Value;
use tokio::time::Instant;

/// A sync that is over sooner is not worth a word.
const PATIENCE: Duration = Duration::from_millis(500);
const REDRAW: Duration = Duration::from_millis(200);
/// Where nothing can be drawn twice, a line now and then.
const LINES: Duration = Duration::from_secs(5);

/// Tells on standard error how far a sync is. Runs until it is dropped, and then leaves nothing behind on a terminal.
pub(crate) async fn tell(name: String, informer: Informer<Value>) {
    let terminal = io::stderr().is_terminal();
    let (began, period) = (Instant::now(), if terminal { REDRAW } else { LINES });
    tokio::time::sleep(if terminal { PATIENCE } else { LINES }).await;
    let wipe = Wipe { terminal };
    while !informer.is_synced() {
        if let Condition::Listing { objects, remaining } = informer.health().condition {
            let per_second = objects as f64 / began.elapsed().as_secs_f64().max(0.001);
            let of = remaining.map(|left| format!(" of {}", objects + left)).unwrap_or_default();
            let text = format!("{name}: {objects}{of} objects so far, {per_second:.0}/s");
            wipe.say(&text);
        }
        tokio::time::sleep(period).await;
    }
}

struct Wipe {
    terminal: bool,
}

impl Wipe {
    fn say(&self, text: &str) {
        let mut err = io::stderr().lock();
        // Whether anybody reads it is their business.
        drop(match self.terminal {
            true => write!(err, "\r\x1b[K{text}").and_then(|()| err.flush()),
            false => writeln!(err, "{text}"),
        });
    }
}

impl Drop for Wipe {
    fn drop(&mut self) {
        if self.terminal {
            let mut err = io::stderr().lock();
            drop(write!(err, "\r\x1b[K").and_then(|()| err.flush()));
        }
    }
}
