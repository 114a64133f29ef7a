//! Reports connection failures and recoveries of an informer.

use kube_informer::{Condition, Informer};
use serde_json::Value;
use tokio::time::Instant;

use super::seconds;
use crate::terminal::stderr::stderr;

/// Prints each new failure cause once on standard error, and the recovery.
///
/// Runs until the informer stops.
pub(crate) async fn run(name: String, informer: Informer<Value>) {
    let mut health = informer.watch_health();
    let mut report = Report::default();
    loop {
        let condition = health.borrow_and_update().condition.clone();
        if matches!(condition, Condition::Stopped) {
            return;
        }
        if let Some(line) = report.line(&condition, Instant::now()) {
            stderr(&format!("! {name}: {line}"));
        }
        if health.changed().await.is_err() {
            return;
        }
    }
}

/// The failure that was printed and has not ended.
#[derive(Debug, Default)]
struct Report {
    failure: Option<(Instant, String)>,
}

impl Report {
    /// Returns the line to print for a condition, if it should be printed.
    fn line(&mut self, condition: &Condition, now: Instant) -> Option<String> {
        match condition {
            Condition::Degraded { cause, since, next_try } => {
                let why = cause.to_string();
                let is_known = self.failure.as_ref().is_some_and(|(_, known)| *known == why);
                self.failure = Some((*since, why.clone()));
                let wait = match next_try {
                    Some(at) => {
                        format!("retrying in {}, then with backoff", seconds(at.saturating_duration_since(now)))
                    }
                    None => "retrying, then with backoff".to_owned(),
                };
                (!is_known).then(|| format!("{why}; {wait}"))
            }
            Condition::Synced => {
                let (since, _) = self.failure.take()?;
                Some(format!("connected again after {}", seconds(now.saturating_duration_since(since))))
            }
            _ => None,
        }
    }
}
