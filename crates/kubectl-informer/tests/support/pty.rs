//! Runs the command on a pseudo-terminal.

use std::io::{Read as _, Write as _};
use std::process::{Child, Command};

use super::signals;
use super::terminal::Terminal;

/// The running command and an emulation of its terminal.
pub(crate) struct Live {
    child: Child,
    pty: pty_process::blocking::Pty,
    pub(crate) terminal: Terminal,
    /// All output so far.
    pub(crate) raw: Vec<u8>,
}

impl Live {
    pub(crate) fn start(width: u16, height: u16, args: &[&str]) -> Self {
        Self::start_with(width, height, args, &[])
    }

    /// Starts the command with additional environment variables.
    pub(crate) fn start_with(width: u16, height: u16, args: &[&str], variables: &[(&str, &str)]) -> Self {
        signals::handle();
        let (pty, pts) = pty_process::blocking::open().expect("a terminal");
        pty.resize(pty_process::Size::new(height, width)).expect("resized");
        let command = pty_process::blocking::Command::new(env!("CARGO_BIN_EXE_kubectl-informer"))
            .args(args)
            .env_remove("NO_COLOR")
            .env("TERM", "xterm")
            .envs(variables.iter().copied());
        let child = command.spawn(pts).expect("it starts");
        Self { child, pty, terminal: Terminal::new(width, height), raw: Vec::new() }
    }

    /// Reads output until the screen satisfies the condition.
    #[track_caller]
    pub(crate) fn until(&mut self, condition: impl Fn(&[String]) -> bool) {
        while !condition(&self.terminal.lines()) {
            assert!(self.read(), "it ended too early: {:#?}", self.terminal.lines());
        }
    }

    /// Types on the keyboard of the terminal.
    pub(crate) fn keys(&mut self, keys: &str) {
        self.pty.write_all(keys.as_bytes()).expect("the terminal is there");
    }

    /// Sends SIGINT and returns the exit code.
    pub(crate) fn interrupt(&mut self) -> Option<i32> {
        let status = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(status.expect("kill is there").success());
        self.end()
    }

    /// Reads the output to its end and returns the exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        while self.read() {}
        self.child.wait().expect("it ends").code()
    }

    /// Reads available output; returns false at the end.
    fn read(&mut self) -> bool {
        let mut bytes = [0; 4096];
        // When the program ends, reading from the pseudo-terminal fails.
        match self.pty.read(&mut bytes) {
            Ok(count) if count > 0 => {
                self.raw.extend_from_slice(&bytes[..count]);
                self.terminal.feed(&bytes[..count]);
                true
            }
            _ => false,
        }
    }
}
