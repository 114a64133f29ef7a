//! Client for the control API of the replay server.

use std::io::{self, Read, Write};
use std::net::TcpStream;

use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// The events that the server will send.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Phase {
    /// Number of events.
    pub events: u64,
    /// The resource version of the last event.
    pub version: u64,
}

/// The traffic of the server.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Lists and pages of lists.
    pub lists: u64,
    /// Watches, including streaming lists.
    pub watches: u64,
    /// Bytes of their responses, including headers.
    pub bytes: u64,
}

/// A client of the control API.
#[derive(Debug, Clone)]
pub struct Control {
    address: String,
}

impl Control {
    /// Creates a client of the server at this address.
    pub fn new(address: impl Into<String>) -> Self {
        Self { address: address.into() }
    }

    /// Sends this many updates as fast as they are read.
    pub fn updates(&self, count: u64) -> io::Result<Phase> {
        self.ask(&format!("updates?count={count}"))
    }

    /// Deletes this many objects, then creates them again.
    pub fn churn(&self, count: u64) -> io::Result<Phase> {
        self.ask(&format!("churn?count={count}"))
    }

    /// Gives every object a new version, and expires all watches.
    pub fn relist(&self) -> io::Result<Phase> {
        self.ask("relist?")
    }

    /// Sends this many updates at this rate.
    pub fn rate(&self, per_second: u64, count: u64) -> io::Result<Phase> {
        self.ask(&format!("rate?per_second={per_second}&count={count}"))
    }

    /// When the events of the last [`rate`](Self::rate) were written: version and time.
    pub fn times(&self) -> io::Result<Vec<(u64, u64)>> {
        self.ask("times?")
    }

    /// The traffic so far.
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
