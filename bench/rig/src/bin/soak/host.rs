//! The other process, as this one sees it.

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

/// What the other process has done and uses.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostFigures {
    /// What the cluster has written.
    pub writes: f64,
    /// Requests answered.
    pub requests: f64,
    /// Bytes in memory.
    pub resident: f64,
    /// Seconds of CPU.
    pub cpu: f64,
}

impl Host {
    /// Starts the cluster, and says where it is.
    pub fn start(options: &Options) -> Result<(Self, String), Error> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["serve", &options.pods.to_string(), &options.rate.to_string(), &options.seed.to_string()]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take().ok_or("no output")?);
        let mut process = Process { child, input, output: BufReader::new(output) };
        let url = process.answer()?.pop().ok_or("the cluster says nothing")?;
        let (commands, asked) = mpsc::channel::<(String, Reply)>();
        // A thread of its own, and not one of the runtime's that come and go: their memory would be measured as well.
        thread::spawn(move || {
            for (command, reply) in asked {
                // Whoever asked may have gone.
                drop(reply.send(process.ask(&command)));
            }
        });
        Ok((Self(commands), url))
    }

    /// Has something done.
    pub async fn ask(&self, command: impl Into<String>) -> Result<Vec<String>, Error> {
        let (reply, answer) = oneshot::channel();
        self.0.send((command.into(), reply)).map_err(|_| "the cluster has ended")?;
        answer.await?
    }

    /// What it has done and uses.
    pub async fn figures(&self) -> Result<HostFigures, Error> {
        let numbers: Vec<f64> = self.ask("figures").await?.iter().filter_map(|line| line.parse().ok()).collect();
        match numbers[..] {
            [writes, requests, resident, cpu] => Ok(HostFigures { writes, requests, resident, cpu }),
            _ => Err("figures that are none".into()),
        }
    }

    /// Keys and versions of everything of a kind, as the server has it.
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
        // It ends with its input.
        drop(self.input.take());
        drop(self.child.wait());
    }
}
