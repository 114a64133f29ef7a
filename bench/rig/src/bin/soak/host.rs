//! The interface to the cluster's process.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use tokio::sync::oneshot;

use crate::Error;
use crate::options::Options;

/// The process with the cluster. It ends when the last clone of this is dropped.
#[derive(Debug, Clone)]
pub struct Host(mpsc::Sender<(String, Reply)>);

type Reply = oneshot::Sender<Result<Vec<String>, Error>>;

#[derive(Debug)]
struct Process {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// Counters and resource usage of the cluster's process.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostFigures {
    /// Writes of the cluster.
    pub writes: f64,
    /// Requests served.
    pub requests: f64,
    /// Resident bytes.
    pub resident: f64,
    /// CPU time in seconds.
    pub cpu: f64,
}

impl Host {
    /// Starts the cluster. Returns its URL.
    pub fn start(options: &Options) -> Result<(Self, String), Error> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["serve", &options.pods.to_string(), &options.rate.to_string(), &options.seed.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take().ok_or("no output")?);
        let mut process = Process { child, input, output: BufReader::new(output) };
        let url = process.answer()?.pop().ok_or("the cluster says nothing")?;
        let (commands, asked) = mpsc::channel::<(String, Reply)>();
        // A dedicated thread instead of one of the runtime's blocking pool, whose memory would be
        // measured too.
        thread::spawn(move || {
            for (command, reply) in asked {
                // The requesting task may have been dropped.
                drop(reply.send(process.ask(&command)));
            }
        });
        Ok((Self(commands), url))
    }

    /// Sends a command and returns the response.
    pub async fn ask(&self, command: impl Into<String>) -> Result<Vec<String>, Error> {
        let (reply, answer) = oneshot::channel();
        self.0.send((command.into(), reply)).map_err(|_| "the cluster has ended")?;
        answer.await?
    }

    /// Reads counters and resource usage.
    pub async fn figures(&self) -> Result<HostFigures, Error> {
        let numbers: Vec<f64> = self.ask("figures").await?.iter().filter_map(|line| line.parse().ok()).collect();
        match numbers[..] {
            [writes, requests, resident, cpu] => Ok(HostFigures { writes, requests, resident, cpu }),
            _ => Err("figures that are none".into()),
        }
    }

    /// Keys and resource versions of all objects of a kind on the server.
    pub async fn truth(&self, api_version: &str, kind: &str) -> Result<Vec<(String, u64)>, Error> {
        let lines = self.ask(format!("truth {api_version} {kind}")).await?;
        let parse = |line: &String| {
            let (key, version) = line.split_once(' ')?;
            Some((key.to_owned(), version.parse().ok()?))
        };
        lines.iter().map(|line| parse(line).ok_or_else(|| format!("no truth: {line}").into())).collect()
    }
}

impl Process {
    fn ask(&mut self, command: &str) -> Result<Vec<String>, Error> {
        let input = self.input.as_mut().ok_or("the cluster has ended")?;
        writeln!(input, "{command}")?;
        self.answer()
    }

    fn answer(&mut self) -> Result<Vec<String>, Error> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err("the cluster has ended".into());
            }
            match line.trim_end() {
                "" => return Ok(lines),
                text => lines.push(text.to_owned()),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process ends when its standard input is closed.
        drop(self.input.take());
        drop(self.child.wait());
    }
}
