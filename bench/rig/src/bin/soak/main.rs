//! Soak test: runs informers against a simulated cluster for a long time: `just soak [--for 1h]`.
//!
//! The cluster is another process (`soak serve`), so that only the informers are measured here. It
//! writes at a constant rate, and faults occur: connections are cut, resource versions expire,
//! requests fail, watches stall. Handlers are added and removed continuously. At the end memory
//! must have been stable, no event lost, and the numbers of tasks and connections the same as in
//! the beginning; otherwise the test fails.

use std::process::ExitCode;

use self::options::Options;

mod cluster;
mod fault_injection;
mod handlers;
mod host;
mod informers;
mod judge;
mod options;
mod page;
mod record;
mod run;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.split_first() {
        Some((serve, rest)) if serve == "serve" => cluster::serve(rest).map(|()| ExitCode::SUCCESS),
        _ => Options::parse(words).map_err(Into::into).and_then(|options| run::run(&options)),
    };
    done.unwrap_or_else(|error| {
        eprintln!("soak: {error}");
        ExitCode::FAILURE
    })
}

/// An error that ends a soak test early.
type Error = Box<dyn std::error::Error + Send + Sync>;
