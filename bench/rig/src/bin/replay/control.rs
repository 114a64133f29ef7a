//! Execution of control commands.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use rig::control::Phase;

use crate::answer::Answers;

/// Executes a command. Returns what will be sent as a result.
pub fn obey(answers: &Answers, what: &str, query: &HashMap<String, String>) -> String {
    let number = |name: &str| query.get(name).and_then(|value| value.parse().ok()).unwrap_or(0_u64);
    let history = answers.history();
    let phase = match what {
        "updates" => {
            answers.make_ahead(&history.next_updates(number("count")));
            history.update(number("count"))
        }
        "churn" => history.churn(number("count")),
        "relist" => history.forget(),
        "rate" => {
            history.take_times();
            let (per_second, count) = (number("per_second").max(1), number("count"));
            let history = std::sync::Arc::clone(history);
            std::thread::spawn(move || {
                let start = Instant::now();
                for nth in 0..count {
                    let due = start + Duration::from_nanos(nth * 1_000_000_000 / per_second);
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    history.update(1);
                }
            });
            Phase { events: count, version: 0 }
        }
        "times" => return serde_json::to_string(&history.times()).unwrap_or_default(),
        "counters" => return serde_json::to_string(&answers.counters()).unwrap_or_default(),
        _ => return String::new(),
    };
    serde_json::to_string(&phase).unwrap_or_default()
}
