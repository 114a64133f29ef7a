//! Test support: a server in the test's process, and the command as a child process.
#![allow(dead_code, reason = "each test file uses its own part")]

pub(crate) mod hostile_server;
pub(crate) mod pty;
mod signals;
pub(crate) mod svg;
pub(crate) mod terminal;

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

use kube_embedded::access::Access;
use kube_embedded::{Server, ServerBuilder};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// A server and its runtime.
pub(crate) struct Rig {
    pub(crate) server: Server,
    pub(crate) runtime: Runtime,
}

impl Rig {
    pub(crate) fn new() -> Self {
        Self::with(|builder| builder)
    }

    pub(crate) fn with(change: impl FnOnce(ServerBuilder) -> ServerBuilder) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        let server = runtime.block_on(change(Server::builder().seed(1)).start()).expect("a server");
        Self { server, runtime }
    }

    pub(crate) fn closed() -> Self {
        Self::with(|builder| builder.access(Access::closed()))
    }

    /// The command with these arguments, connected to this server.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = command(args);
        command.args(["--server", &self.server.url()]);
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(&mut self.command(args))
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Running {
        Running::start(&mut self.command(args))
    }

    pub(crate) fn create(&self, object: &Value) {
        self.server.create(object).expect("created");
    }

    pub(crate) fn config_map(&self, name: &str, value: &str) -> Value {
        let map = config_map(name, value);
        self.create(&map);
        map
    }
}

pub(crate) fn config_map(name: &str, value: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}, "data": {"k": value}})
}

/// The command, isolated from this machine's kubeconfig and environment.
pub(crate) fn command(args: &[&str]) -> Command {
    signals::handle();
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-informer"));
    command.args(args).env_remove("KUBECONFIG").env_remove("KUBERNETES_SERVICE_HOST").env("HOME", "/nonexistent");
    command.env_remove("NO_COLOR").env("TERM", "xterm");
    command
}

/// Exit code and output of a finished run.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(command: &mut Command) -> Self {
        let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().expect("it runs");
        Self {
            code: status.code(),
            out: String::from_utf8(stdout).expect("UTF-8"),
            err: String::from_utf8(stderr).expect("UTF-8"),
        }
    }

    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self
    }

    /// The output lines, sorted.
    pub(crate) fn sorted(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self.out.lines().collect();
        lines.sort_unstable();
        lines
    }
}

/// A running command whose output is read line by line.
pub(crate) struct Running {
    pub(crate) child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { child, lines }
    }

    /// Waits for the next line of standard output.
    #[track_caller]
    pub(crate) fn line(&mut self) -> String {
        self.lines.next().expect("another line").expect("UTF-8")
    }

    /// Waits for the next line of standard error. Buffered later output is discarded.
    #[track_caller]
    pub(crate) fn error_line(&mut self) -> String {
        let mut line = String::new();
        let mut err = BufReader::new(self.child.stderr.as_mut().expect("piped"));
        err.read_line(&mut line).expect("UTF-8");
        line
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status();
        assert!(status.expect("kill is there").success());
    }

    /// Closes the command's standard output, then waits; returns the same as [`Running::end`].
    pub(crate) fn hang_up(self) -> (Option<i32>, String) {
        let Self { child, lines } = self;
        drop(lines);
        let output = child.wait_with_output().expect("it ends");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Waits for the exit; returns the exit code, the remaining lines and standard error.
    pub(crate) fn read_to_end(mut self) -> (Option<i32>, Vec<String>, String) {
        let lines = self.lines.by_ref().map(|line| line.expect("UTF-8")).collect();
        let (code, err) = self.end();
        (code, lines, err)
    }

    /// Waits for the exit; returns the exit code and standard error.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        for line in self.lines.by_ref() {
            drop(line);
        }
        let output = self.child.wait_with_output().expect("it ends");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
