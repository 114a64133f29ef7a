//! Lets informers live beside a pretended cluster for a long time: `just soak [--for 1h]`.
//!
//! The cluster is another process (`soak serve`), so that what is measured here are the informers. It writes at a steady rate, and things go
//! wrong: connections are cut, versions expire, requests fail, watches stall. Handlers come and go all the while. In the end memory
//! must have been flat, nothing lost, and the numbers of tasks and connections the same as in the beginning; otherwise it fails.

use std::process::ExitCode;

use self::options::Options;

mod cluster;
mod handlers;
mod host;
mod informers;
mod judge;
mod options;
mod page;
mod record;
mod run;
mod story;
mod trouble;

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

/// What ends a soak before its time.
type Error = Box<dyn std::error::Error + Send + Sync>;
