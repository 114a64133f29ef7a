//! Runs the command on a pseudo-terminal.

use std::io::Read as _;
use std::process::{Child, Command};
use std::sync::{Once, mpsc};
use std::thread;

use tokio::signal::unix::{SignalKind, signal};

use super::terminal::Terminal;

/// The running command and an emulation of its terminal.
pub(crate) struct Live {
    child: Child,
    pty: pty_process::blocking::Pty,
    pub(crate) terminal: Terminal,
}

impl Live {
    pub(crate) fn start(width: u16, height: u16, args: &[&str]) -> Self {
        Self::start_with(width, height, args, &[])
    }

    /// Starts the command with additional environment variables.
    pub(crate) fn start_with(width: u16, height: u16, args: &[&str], variables: &[(&str, &str)]) -> Self {
        handle_interrupt();
        let (pty, pts) = pty_process::blocking::open().expect("a terminal");
        pty.resize(pty_process::Size::new(height, width)).expect("resized");
        let command = pty_process::blocking::Command::new(env!("CARGO_BIN_EXE_kubectl-informer"))
            .args(args)
            .env_remove("NO_COLOR")
            .env("TERM", "xterm")
            .envs(variables.iter().copied());
        let child = command.spawn(pts).expect("it starts");
        Self { child, pty, terminal: Terminal::new(usize::from(width), usize::from(height)) }
    }

    /// Reads output until the screen satisfies the condition.
    #[track_caller]
    pub(crate) fn until(&mut self, condition: impl Fn(&[String]) -> bool) {
        while !condition(&self.terminal.lines()) {
            assert!(self.read(), "it ended too early: {:#?}", self.terminal.lines());
        }
    }

    /// Sends SIGINT and returns the exit code.
    pub(crate) fn interrupt(&mut self) -> Option<i32> {
        let status = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(status.expect("kill is there").success());
        while self.read() {}
        self.child.wait().expect("it ends").code()
    }

    /// Reads available output; returns false at the end.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        // When the program ends, reading from the pseudo-terminal fails.
        match self.pty.read(&mut bytes) {
            Ok(count) if count > 0 => {
                self.terminal.feed(&bytes[..count]);
                true
            }
            _ => false,
        }
    }
}

/// Installs a handler for SIGINT in the test process, so that the command starts with the default
/// one.
///
/// A shell starts background jobs with SIGINT ignored. A child inherits that across `execve`, which
/// resets only signals that have a handler.
#[expect(clippy::exit, reason = "Ctrl-C on the tests ends them")]
fn handle_interrupt() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let (installed, wait) = mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let mut interrupts = signal(SignalKind::interrupt()).expect("a handler");
                installed.send(()).expect("the test waits");
                interrupts.recv().await;
                std::process::exit(130);
            });
        });
        wait.recv().expect("the handler is installed");
    });
}
