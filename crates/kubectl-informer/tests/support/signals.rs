//! The signal dispositions that the command starts with.

use std::sync::{Once, mpsc};
use std::thread;

use tokio::signal::unix::{SignalKind, signal};

/// Installs handlers for SIGINT and SIGTERM in the test process, so that the command starts with
/// the default ones.
///
/// A shell starts background jobs with SIGINT ignored. A child inherits that across `execve`, which
/// resets only signals that have a handler.
#[expect(clippy::exit, reason = "Ctrl-C on the tests ends them")]
pub(crate) fn handle() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let (installed, wait) = mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let mut interrupts = signal(SignalKind::interrupt()).expect("a handler");
                let mut terminations = signal(SignalKind::terminate()).expect("a handler");
                installed.send(()).expect("the test waits");
                tokio::select! {
                    _ = interrupts.recv() => std::process::exit(130),
                    _ = terminations.recv() => std::process::exit(143),
                }
            });
        });
        wait.recv().expect("the handlers are installed");
    });
}
