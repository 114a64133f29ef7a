//! client-go's informer in the differential test.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};

use super::scenario::{Client, Scenario};
use super::transcript_recorder::TranscriptRecorder;
use crate::Error;

/// Timeout for stopping it.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// client-go's informer, in a separate process that is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Theirs {
    child: Child,
    input: ChildStdin,
    pub(crate) recorder: TranscriptRecorder,
}

impl Theirs {
    /// Starts an informer for the scenario, which reports to this recorder.
    pub(crate) fn start(
        program: &Path,
        kubeconfig: &Path,
        scenario: &Scenario,
        namespace: &str,
        recorder: TranscriptRecorder,
    ) -> Result<Self, Error> {
        let mut command = Command::new(program);
        command.arg(format!("-kubeconfig={}", kubeconfig.display())).arg(format!("-resource={}", scenario.resource()));
        command.arg(match scenario.client {
            Client::Typed => "-client=typed",
            Client::Dynamic => "-client=dynamic",
        });
        if scenario.is_of_one_namespace() {
            command.arg(format!("-namespace={namespace}"));
        }
        if let Some(labels) = scenario.labels() {
            command.arg(format!("-labels={labels}"));
        }
        if let Some(fields) = scenario.fields() {
            command.arg(format!("-fields={fields}"));
        }
        if let Some(period) = scenario.resync {
            command.arg(format!("-resync={}ms", period.as_millis()));
        }
        let log = recorder.log().to_owned();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log)?)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("starting {}: {error}", program.display()))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a process without pipes".into());
        };
        let recording = recorder.clone();
        tokio::spawn(async move {
            let mut lines = BufReader::new(output).lines();
            let why = loop {
                match lines.next_line().await {
                    Ok(Some(line)) => match serde_json::from_str(&line) {
                        Ok(line) => recording.record(line),
                        Err(error) => break format!("{error} in {line}"),
                    },
                    Ok(None) => break format!("see {}", log.display()),
                    Err(error) => break error.to_string(),
                }
            };
            recording.ended(why);
        });
        Ok(Self { child, input, recorder })
    }

    /// Requests the content of the cache.
    pub(crate) async fn print_cache(&mut self) -> Result<(), Error> {
        self.input.write_all(b"cache\n").await?;
        Ok(())
    }

    /// Closes its input and waits until it ends.
    pub(crate) async fn stop(self) -> Result<(), Error> {
        let Self { mut child, input, .. } = self;
        drop(input);
        let ended = tokio::time::timeout(STOP_TIMEOUT, child.wait()).await;
        let status = ended.map_err(|_| "client-go's informer does not end")??;
        if status.success() { Ok(()) } else { Err(format!("client-go's informer ended with {status}").into()) }
    }
}
