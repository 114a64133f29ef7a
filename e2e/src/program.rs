//! A program of the control plane that can be killed and restarted.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::fs;
use tokio::process::{Child, Command};

use crate::Error;

/// A program whose output goes to a log beside its data. Dropping it kills the process and waits
/// until it has ended.
#[derive(Debug)]
pub(crate) struct Program {
    name: &'static str,
    path: PathBuf,
    folder: PathBuf,
    arguments: Vec<String>,
    child: Option<Child>,
}

impl Program {
    /// Creates a program without starting it.
    pub(crate) fn new(name: &'static str, path: PathBuf, folder: &Path, arguments: Vec<String>) -> Self {
        Self { name, path, folder: folder.to_owned(), arguments, child: None }
    }

    pub(crate) fn start(&mut self) -> Result<(), Error> {
        let log = std::fs::File::options().create(true).append(true).open(self.log())?;
        let child = Command::new(&self.path)
            .args(&self.arguments)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("starting {}: {error}", self.name))?;
        self.child = Some(child);
        Ok(())
    }

    /// Sends it a signal, such as `STOP`.
    pub(crate) async fn signal(&self, name: &str) -> Result<(), Error> {
        let id = self.child.as_ref().and_then(Child::id).ok_or_else(|| format!("{} does not run", self.name))?;
        signal(id, name).await
    }

    /// Kills it (SIGKILL).
    pub(crate) async fn kill(&mut self) -> io::Result<()> {
        match self.child.take() {
            Some(mut child) => child.kill().await,
            None => Ok(()),
        }
    }

    /// Terminates it (SIGTERM) and waits. Returns its exit status; `None` if it was not running.
    pub(crate) async fn stop(&mut self) -> Result<Option<ExitStatus>, Error> {
        let Some(child) = &mut self.child else { return Ok(None) };
        if let Some(id) = child.id() {
            signal(id, "TERM").await?;
        }
        let status = child.wait().await?;
        self.child = None;
        Ok(Some(status))
    }

    /// Waits until it has ended for any reason.
    pub(crate) async fn wait(&mut self) -> Result<String, Error> {
        let status = match &mut self.child {
            Some(child) => child.wait().await?.to_string(),
            None => "it was not running".to_owned(),
        };
        Ok(format!("{} has ended: {status}\n{}", self.name, self.last_lines().await))
    }

    /// Its exit status, if it has ended by itself.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.as_mut().map_or(Ok(None), Child::try_wait)
    }

    /// Its complete output.
    pub(crate) async fn said(&self) -> String {
        fs::read(self.log()).await.map(|log| String::from_utf8_lossy(&log).into_owned()).unwrap_or_default()
    }

    /// The last lines of its output.
    pub(crate) async fn last_lines(&self) -> String {
        let log = self.said().await;
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    fn log(&self) -> PathBuf {
        self.folder.join(format!("{}.log", self.name))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        child.start_kill().ok();
        // Its data can be deleted only when it no longer writes; killed processes end quickly.
        for _ in 0..400 {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Sends a signal to a process, with the shell's builtin `kill`, which is always available.
pub(crate) async fn signal(process: u32, signal: &str) -> Result<(), Error> {
    let status = Command::new("sh").args(["-c", &format!("kill -{signal} {process}")]).status().await?;
    if status.success() { Ok(()) } else { Err(format!("no signal {signal} could be sent to process {process}").into()) }
}
