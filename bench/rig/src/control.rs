//! Telling the replay server what to do.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// What the server will send.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Phase {
    /// So many events.
    pub events: u64,
    /// The last of them of this version.
    pub version: u64,
}

/// What the server has sent.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Lists and pages of lists.
    pub lists: u64,
    /// Watches, streaming lists included.
    pub watches: u64,
    /// Bytes of their answers, headers included.
    pub bytes: u64,
}

/// The way to the server.
#[derive(Debug, Clone)]
pub struct Control {
    address: String,
}

impl Control {
    /// To the server at this address.
    pub fn new(address: impl Into<String>) -> Self {
        Self { address: address.into() }
    }

    /// So many updates, as fast as they are read.
    pub fn updates(&self, count: u64) -> io::Result<Phase> {
        self.ask(&format!("updates?count={count}"))
    }

    /// So many deletions, then the same objects again.
    pub fn churn(&self, count: u64) -> io::Result<Phase> {
        self.ask(&format!("churn?count={count}"))
    }

    /// A new version of everything, and no watch can go on.
    pub fn relist(&self) -> io::Result<Phase> {
        self.ask("relist?")
    }

    /// So many updates, so many in a second.
    pub fn rate(&self, per_second: u64, count: u64) -> io::Result<Phase> {
        self.ask(&format!("rate?per_second={per_second}&count={count}"))
    }

    /// When the events of the last [`rate`](Self::rate) were written: version and time.
    pub fn times(&self) -> io::Result<Vec<(u64, u64)>> {
        self.ask("times?")
    }

    /// What has been sent so far.
    pub fn counters(&self) -> io::Result<Counters> {
        self.ask("counters?")
    }

    fn ask<T: DeserializeOwned>(&self, what: &str) -> io::Result<T> {
        let mut stream = TcpStream::connect(&self.address)?;
        write!(stream, "GET /control/{what} HTTP/1.1\r\nHost: replay\r\nConnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let body = memchr::memmem::find(&answer, b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
        serde_json::from_slice(&answer[body..]).map_err(io::Error::other)
    }
}
