//! The command `kubectl-informer`, also usable as the kubectl plugin `kubectl informer`.

mod apiserver;
mod args;
mod client;
mod completions;
mod demo;
mod duration;
mod failure;
#[cfg(test)]
#[path = "../../kube-embedded/src/fuzzing.rs"]
mod fuzzing;
mod get;
mod history;
mod kubeconfig_file;
mod line;
mod manifests;
mod object;
mod signals;
mod table;
mod terminal;
mod top;
mod tree;
mod tui;
mod watch;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Cli, Command};
use crate::failure::Failure;
use crate::terminal::document::Document;
use crate::terminal::output::Output;
use crate::terminal::paint::When;
use crate::terminal::stderr::{stderr, stderr_lines};

fn main() -> ExitCode {
    match completions::answer_shell() {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(failure) => return end(Err(failure)),
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return report_usage(&error),
    };
    let command = match cli.into_command() {
        Command::Completions(args) => return end(completions::run(&args)),
        command => command,
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            stderr(&format!("error: the runtime does not start: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let result = runtime.block_on(async {
        match command {
            Command::Demo(args) => demo::run(args).await,
            Command::Watch(args) => watch::run(*args).await,
            Command::Get(args) => get::run(*args).await,
            Command::Top(args) => top::run(*args).await,
            Command::Tree(args) => tree::run(*args).await,
            Command::Apiserver(args) => apiserver::run(args).await,
            Command::Completions(args) => completions::run(&args),
        }
    });
    // Does not wait for tasks that are still blocked on a socket.
    runtime.shutdown_background();
    end(result)
}

fn end(result: Result<(), Failure>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if !failure.is_silent() {
                stderr_lines(&format!("error: {failure}"));
            }
            failure.code()
        }
    }
}

/// Prints help and version as they are, and errors, which quote arguments, on standard error.
fn report_usage(error: &clap::Error) -> ExitCode {
    if error.use_stderr() {
        stderr_lines(&error.render().to_string());
        return ExitCode::from(2);
    }
    let mut out = Output::new(When::Never);
    match out.document(&Document::own(error.render().to_string())).and_then(|()| out.flush()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
