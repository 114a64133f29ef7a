//! The other half of [`LineProcess`](crate::line_process::LineProcess): a client that answers each
//! line of its standard input with its figures, until the input ends.

use std::io::{self, BufRead, Write};

use serde_json::json;

use crate::process;

/// Answers until the input ends. `more` adds figures of the client.
pub fn answer_figures(more: impl Fn() -> u64) -> io::Result<()> {
    for line in io::stdin().lock().lines() {
        if line? == "forget peak" {
            process::forget_peak();
        }
        let figures = json!({
            "cpu": process::cpu().as_secs_f64(), "rss": process::resident(), "peak": process::peak(), "events": more(),
        });
        let mut out = io::stdout().lock();
        writeln!(out, "{figures}")?;
        out.flush()?;
    }
    Ok(())
}
