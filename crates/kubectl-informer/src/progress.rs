//! Progress of the initial sync on standard error.

use std::io::{self, IsTerminal, Write as _};
use std::time::Duration;

use kube_informer::{Condition, Informer};
use serde_json::Value;
use tokio::time::Instant;

/// Delay before the first report on a terminal; shorter syncs print nothing.
const FIRST_REPORT_DELAY: Duration = Duration::from_millis(500);
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);
/// Interval between lines when standard error is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Reports the progress of a sync on standard error until the informer is synced.
///
/// On a terminal the progress line is erased when the future completes or is dropped.
pub(crate) async fn run(name: String, informer: Informer<Value>) {
    let terminal = io::stderr().is_terminal();
    let (began, period) = (Instant::now(), if terminal { REDRAW_INTERVAL } else { LINE_INTERVAL });
    tokio::time::sleep(if terminal { FIRST_REPORT_DELAY } else { LINE_INTERVAL }).await;
    let progress = ProgressLine { terminal };
    while !informer.is_synced() {
        if let Condition::Listing { objects, remaining } = informer.health().condition {
            let per_second = objects as f64 / began.elapsed().as_secs_f64().max(0.001);
            let of = remaining.map(|left| format!(" of {}", objects + left)).unwrap_or_default();
            let text = format!("{name}: {objects}{of} objects so far, {per_second:.0}/s");
            progress.write(&text);
        }
        tokio::time::sleep(period).await;
    }
}

struct ProgressLine {
    terminal: bool,
}

impl ProgressLine {
    fn write(&self, text: &str) {
        let mut err = io::stderr().lock();
        // Write errors are ignored: progress output is optional.
        drop(match self.terminal {
            true => write!(err, "\r\x1b[K{text}").and_then(|()| err.flush()),
            false => writeln!(err, "{text}"),
        });
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.terminal {
            let mut err = io::stderr().lock();
            drop(write!(err, "\r\x1b[K").and_then(|()| err.flush()));
        }
    }
}
