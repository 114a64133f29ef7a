//! Reports connection failures and recoveries of an informer.

use kube_informer::{Condition, Informer};
use serde_json::Value;
use tokio::time::Instant;

use super::seconds;
use crate::stderr::stderr;

/// Prints each new failure cause once on standard error, and the recovery.
///
/// Runs until the informer stops.
pub(crate) async fn run(name: String, informer: Informer<Value>) {
    let mut health = informer.watch_health();
    let mut lost: Option<(Instant, String)> = None;
    loop {
        let condition = health.borrow_and_update().condition.clone();
        match condition {
            Condition::Degraded { cause, next_try } => {
                let why = cause.to_string();
                let since = lost.as_ref().map_or_else(Instant::now, |(since, _)| *since);
                if lost.as_ref().is_none_or(|(_, known)| *known != why) {
                    let wait = next_try.saturating_duration_since(Instant::now());
                    stderr(&format!("! {name}: {why}; retrying in {}, then with backoff", seconds(wait)));
                }
                lost = Some((since, why));
            }
            Condition::Synced => {
                if let Some((since, _)) = lost.take() {
                    stderr(&format!("! {name}: connected again after {}", seconds(since.elapsed())));
                }
            }
            Condition::Stopped => return,
            _ => {}
        }
        if health.changed().await.is_err() {
            return;
        }
    }
}
