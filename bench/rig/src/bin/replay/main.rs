//! A server that sends prepared bytes as fast as they are read: `replay --work pods --json FILE
//! [--protobuf FILE] [--gzip 1]`. Instead of a file, a number makes so many objects when they are
//! sent.
//!
//! Serves lists, pages, streaming lists and watches of one kind. Prints its address. It is
//! controlled by requests to `/control/…` (see `rig::control`). Ends when its standard input is
//! closed.

use std::io::{self, Read};
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

use rig::corpus::Corpus;
use rig::work::Work;

use self::answer::Answers;
use self::history::History;
use self::wire::{Format, Wire};

mod answer;
mod control;
mod history;
mod http;
mod wire;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut work, mut json, mut protobuf, mut gzip) = (Work::Pods, None, None, false);
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    for pair in arguments.chunks(2) {
        let [name, value] = pair else { return Err("options are pairs of name and value".into()) };
        match name.as_str() {
            "--work" => work = value.parse()?,
            "--json" => json = Some(PathBuf::from(value)),
            "--protobuf" => protobuf = Some(PathBuf::from(value)),
            "--gzip" => gzip = value != "0",
            _ => return Err(format!("no such option: {name}").into()),
        }
    }
    let read = |format, path: Option<PathBuf>| -> io::Result<Option<Arc<Wire>>> {
        let open = |path: PathBuf| match path.to_str().and_then(|number| number.parse().ok()) {
            Some(count) => Ok(Corpus::made(work, count, format == Format::Protobuf)),
            None => Corpus::read(&path),
        };
        let corpus = path.map(open).transpose()?;
        Ok(corpus.map(|corpus| Arc::new(Wire::new(work, format, corpus))))
    };
    let (json, protobuf) = (read(Format::Json, json)?, read(Format::Protobuf, protobuf)?);
    let count = json.as_ref().or(protobuf.as_ref()).ok_or("nothing to serve")?.count();
    let history = Arc::new(History::new(count));
    let answers = Arc::new(Answers::new(work.path(), json, protobuf, history, gzip));

    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answers = Arc::clone(&answers);
            // A broken connection concerns only its client.
            std::thread::spawn(move || drop(http::serve(&answers, stream)));
        }
    });
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
