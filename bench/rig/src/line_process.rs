//! A process that answers each line of its standard input with a line of JSON, and ends when the
//! input is closed.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde::de::DeserializeOwned;

/// A running process. Dropping it closes its input and waits for its end.
#[derive(Debug)]
pub struct LineProcess {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl LineProcess {
    /// Starts the process.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().ok_or_else(|| io::Error::other("it has no output"))?);
        Ok(Self { child, input, output })
    }

    /// Sends a line and reads the answer.
    pub fn ask<T: DeserializeOwned>(&mut self, line: &str) -> io::Result<T> {
        let input = self.input.as_mut().ok_or_else(|| io::Error::other("its input is closed"))?;
        writeln!(input, "{line}")?;
        let answer = self.line()?;
        serde_json::from_str(&answer).map_err(|error| io::Error::other(format!("{line}: {error} in {answer:?}")))
    }

    /// Reads the next line.
    pub fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the process has ended"));
        }
        Ok(line.trim_end().to_owned())
    }
}

impl Drop for LineProcess {
    fn drop(&mut self) {
        drop(self.input.take());
        drop(self.child.wait());
    }
}
