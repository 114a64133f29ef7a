//! Progress on standard error, of whatever takes longer than a moment.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube_informer::{Condition, Informer};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::terminal::stderr::StatusLine;

/// Delay before the first report on a terminal; shorter work prints nothing.
const FIRST_REPORT_DELAY: Duration = Duration::from_millis(500);
const REDRAW_INTERVAL: Duration = Duration::from_millis(200);
/// Interval between lines when standard error is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// The delay before the first report, and the interval between reports.
fn intervals(progress: &StatusLine) -> (Duration, Duration) {
    if progress.is_redrawn() { (FIRST_REPORT_DELAY, REDRAW_INTERVAL) } else { (LINE_INTERVAL, LINE_INTERVAL) }
}

/// Says what the command is doing and for how long, until it is dropped. The work may block its
/// thread: the report is drawn by a task.
#[derive(Debug)]
pub(crate) struct Waiting {
    line: Arc<Mutex<Option<StatusLine>>>,
    drawing: JoinHandle<()>,
}

impl Waiting {
    pub(crate) fn on(what: impl Into<String>) -> Self {
        let what = what.into();
        Self::with(move || what.clone())
    }

    /// With a text that may differ each time it is drawn.
    pub(crate) fn with(text: impl Fn() -> String + Send + 'static) -> Self {
        let progress = StatusLine::new();
        let (delay, period) = intervals(&progress);
        let line = Arc::new(Mutex::new(Some(progress)));
        let shared = Arc::clone(&line);
        let drawing = tokio::spawn(async move {
            let began = Instant::now();
            tokio::time::sleep(delay).await;
            loop {
                let text = format!("{} … {} s", text(), began.elapsed().as_secs());
                match locked(&shared).as_mut() {
                    Some(progress) => progress.draw(&text),
                    None => return,
                }
                tokio::time::sleep(period).await;
            }
        });
        Self { line, drawing }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.drawing.abort();
        // Erases the line now, before anything else is printed.
        drop(locked(&self.line).take());
    }
}

fn locked(line: &Mutex<Option<StatusLine>>) -> MutexGuard<'_, Option<StatusLine>> {
    line.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reports the progress of a sync on standard error until the informer is synced.
///
/// On a terminal the progress line is erased when the future completes or is dropped.
pub(crate) async fn run(name: String, informer: Informer<Value>) {
    let (began, mut progress) = (Instant::now(), StatusLine::new());
    let (delay, period) = intervals(&progress);
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
    let (delay, period) = intervals(&progress);
    tokio::time::sleep(delay).await;
    loop {
        let objects = received.load(Ordering::Relaxed);
        let per_second = objects as f64 / began.elapsed().as_secs_f64().max(0.001);
        progress.draw(&format!("{name}: {objects} objects so far, {per_second:.0}/s"));
        tokio::time::sleep(period).await;
    }
}
