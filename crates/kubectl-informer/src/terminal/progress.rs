//! Progress of the initial sync on standard error.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kube_informer::{Condition, Informer};
use serde_json::Value;
use tokio::time::Instant;

use crate::terminal::stderr::StatusLine;

/// Delay before the first report on a terminal; shorter syncs print nothing.
const FIRST_REPORT_DELAY: Duration = Duration::from_millis(500);
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);
/// Interval between lines when standard error is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Reports the progress of a sync on standard error until the informer is synced.
///
/// On a terminal the progress line is erased when the future completes or is dropped.
pub(crate) async fn run(name: String, informer: Informer<Value>) {
    let (began, mut progress) = (Instant::now(), StatusLine::new());
    let (delay, period) =
        if progress.is_redrawn() { (FIRST_REPORT_DELAY, REDRAW_INTERVAL) } else { (LINE_INTERVAL, LINE_INTERVAL) };
    tokio::time::sleep(delay).await;
    while !informer.is_synced() {
        if let Condition::Listing { objects, remaining } = informer.health().condition {
            let per_second = objects as f64 / began.elapsed().as_secs_f64().max(0.001);
            let of = remaining.map(|left| format!(" of {}", objects.saturating_add(left))).unwrap_or_default();
            let text = format!("{name}: {objects}{of} objects so far, {per_second:.0}/s");
            progress.draw(&text);
        }
        tokio::time::sleep(period).await;
    }
}

/// Reports how many objects of a list have been received. Never completes.
///
/// On a terminal the progress line is erased when the future is dropped.
pub(crate) async fn of_list(name: &str, received: &AtomicU64) -> Infallible {
    let (began, mut progress) = (Instant::now(), StatusLine::new());
    let (delay, period) =
        if progress.is_redrawn() { (FIRST_REPORT_DELAY, REDRAW_INTERVAL) } else { (LINE_INTERVAL, LINE_INTERVAL) };
    tokio::time::sleep(delay).await;
    loop {
        let objects = received.load(Ordering::Relaxed);
        let per_second = objects as f64 / began.elapsed().as_secs_f64().max(0.001);
        progress.draw(&format!("{name}: {objects} objects so far, {per_second:.0}/s"));
        tokio::time::sleep(period).await;
    }
}
