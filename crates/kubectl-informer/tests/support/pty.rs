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
        Self::start_program(width, height, env!("CARGO_BIN_EXE_kubectl-informer"), args, variables)
    }

    /// Starts any program, isolated from this machine's kubeconfig.
    pub(crate) fn start_program(
        width: u16,
        height: u16,
        program: &str,
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        signals::handle();
        let (pty, pts) = pty_process::blocking::open().expect("a terminal");
        pty.resize(pty_process::Size::new(height, width)).expect("resized");
        let command = pty_process::blocking::Command::new(program)
            .args(args)
            .env_remove("NO_COLOR")
            .env_remove("KUBECONFIG")
            .env_remove("KUBERNETES_SERVICE_HOST")
            .env("HOME", "/nonexistent")
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

    /// Reads output until a row of the screen contains the text.
    #[track_caller]
    pub(crate) fn until_shown(&mut self, text: &str) {
        self.until(|lines| lines.iter().any(|line| line.contains(text)));
    }

    /// Reads output until no row of the screen contains the text.
    #[track_caller]
    pub(crate) fn until_gone(&mut self, text: &str) {
        self.until(|lines| !lines.iter().any(|line| line.contains(text)));
    }

    /// Changes the size of the terminal.
    pub(crate) fn resize(&mut self, width: u16, height: u16) {
        self.pty.resize(pty_process::Size::new(height, width)).expect("resized");
        self.terminal = Terminal::new(width, height);
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

    /// The full screen as it was drawn last, after the program has left it.
    pub(crate) fn last_screen(&self, width: u16, height: u16) -> Terminal {
        const LEAVE: &[u8] = b"\x1b[?1049l";
        let end = self.raw.windows(LEAVE.len()).rposition(|bytes| bytes == LEAVE).expect("it has left the screen");
        let mut terminal = Terminal::new(width, height);
        terminal.feed(&self.raw[..end]);
        terminal
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
