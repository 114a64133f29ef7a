//! An embedded API server in a process of its own: `apiserver websites COUNT`, or `apiserver
//! pretend NODES PODS RATE`.
//!
//! Prints its URL, then answers each line of its standard input with a line of JSON: see the
//! modules. Ends when the input is closed.

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};
use tokio::runtime::Runtime;

mod pretended;
mod websites;

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let runtime = Runtime::new()?;
    match words[..] {
        ["websites", count] => {
            let mut cluster = runtime.block_on(websites::Cluster::start(count.parse()?))?;
            serve(&cluster.url(), |line| runtime.block_on(cluster.obey(line)))
        }
        ["pretend", nodes, pods, rate] => {
            let cluster = runtime.block_on(pretended::Cluster::start(nodes.parse()?, pods.parse()?, rate.parse()?))?;
            serve(&cluster.url(), |line| cluster.obey(line))
        }
        _ => Err("apiserver websites COUNT, or apiserver pretend NODES PODS RATE".into()),
    }
}

fn serve(url: &str, mut obey: impl FnMut(&str) -> Result<Value, Error>) -> Result<(), Error> {
    say(url)?;
    for line in io::stdin().lock().lines() {
        let answer = obey(&line?).unwrap_or_else(|error| json!({"error": error.to_string()}));
        say(&answer.to_string())?;
    }
    Ok(())
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
