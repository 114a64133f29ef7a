//! Responses to requests.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use rig::control::Counters;
use rig::corpus::BASE_VERSION;
use rig::process::now_nanos;

use crate::history::{History, LogRead, What};
use crate::http::{Connection, Request};
use crate::wire::{CHUNK, ListMeta, Wire};

/// The version of the server, which clients may ask for.
const VERSION: &str = r#"{"major":"1","minor":"37","gitVersion":"v1.37.1"}"#;

/// All prepared responses.
pub struct Answers {
    path: String,
    json: Option<Arc<Wire>>,
    protobuf: Option<Arc<Wire>>,
    history: Arc<History>,
    /// If streaming lists are compressed: the precompressed initial events of one format.
    gzip: Option<Vec<u8>>,
    /// Whether the last answer was protobuf.
    speaks_protobuf: AtomicBool,
    lists: AtomicU64,
    watches: AtomicU64,
    bytes: AtomicU64,
}

impl Answers {
    pub fn new(
        path: String,
        json: Option<Arc<Wire>>,
        protobuf: Option<Arc<Wire>>,
        history: Arc<History>,
        gzip: bool,
    ) -> Self {
        let packed = gzip.then(|| protobuf.as_ref().or(json.as_ref()).map(|wire| packed(wire, &history)));
        Self {
            path,
            json,
            protobuf,
            history,
            gzip: packed.flatten(),
            speaks_protobuf: AtomicBool::new(false),
            lists: AtomicU64::new(0),
            watches: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    pub fn history(&self) -> &Arc<History> {
        &self.history
    }

    /// Makes objects that are about to be sent.
    pub fn make_ahead(&self, objects: &[(usize, usize)]) {
        // Only the format of the client's watch.
        let wire = if self.speaks_protobuf.load(Ordering::Relaxed) { &self.protobuf } else { &self.json };
        if let Some(wire) = wire {
            wire.make_ahead(objects);
        }
    }

    pub fn counters(&self) -> Counters {
        Counters {
            lists: self.lists.load(Ordering::Relaxed),
            watches: self.watches.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    pub fn answer(&self, request: &Request, out: &mut Connection) -> io::Result<()> {
        if request.path == "/version" {
            return out.whole("200 OK", "application/json", VERSION.as_bytes());
        }
        let protobuf = self.protobuf.as_ref().filter(|_| request.accept.contains("protobuf"));
        self.speaks_protobuf.store(protobuf.is_some(), Ordering::Relaxed);
        let Some(wire) = protobuf.or(self.json.as_ref()).filter(|_| request.path == self.path) else {
            return out.whole("404 Not Found", "application/json", b"{}");
        };
        let truth = |name: &str| request.query.get(name).is_some_and(|value| value == "true" || value == "1");
        let done = if truth("watch") {
            self.watches.fetch_add(1, Ordering::Relaxed);
            self.watch(wire, request, truth("sendInitialEvents"), out)
        } else {
            self.lists.fetch_add(1, Ordering::Relaxed);
            self.list(wire, request, out)
        };
        self.count(out);
        done
    }

    fn list(&self, wire: &Wire, request: &Request, out: &mut Connection) -> io::Result<()> {
        let parameter = |name: &str| request.query.get(name).map_or("", |value| value.as_str());
        let (all, version) = self.history.everything();
        let from = parameter("continue").parse().unwrap_or(0).min(all.len());
        // As in a watch cache, resourceVersion 0 ignores the limit.
        let limit = match parameter("limit").parse() {
            Ok(limit) if limit > 0 && (parameter("resourceVersion") != "0" || from > 0) => limit,
            _ => all.len(),
        };
        let to = all.len().min(from + limit);
        let rest = (to < all.len()).then(|| (to.to_string(), all.len() - to));
        let mut packer = self.packs(request).then(packer);
        out.begin(wire.content_type(false), packer.is_some())?;
        wire.list(&all[from..to], &ListMeta { version, rest }, |piece| match &mut packer {
            Some(packer) => {
                packer.write_all(piece)?;
                out.chunk(&std::mem::take(packer.get_mut()))
            }
            None => out.chunk(piece),
        })?;
        if let Some(packer) = packer {
            out.chunk(&packer.finish()?)?;
        }
        out.end()
    }

    fn watch(&self, wire: &Wire, request: &Request, everything: bool, out: &mut Connection) -> io::Result<()> {
        let number = |name: &str| request.query.get(name).and_then(|value| value.parse().ok());
        let end = Instant::now() + Duration::from_secs(number("timeoutSeconds").unwrap_or(1_800));
        let gzip = everything && self.packs(request);
        out.begin(wire.content_type(true), gzip)?;
        let mut buffer = Vec::with_capacity(2 * CHUNK);
        let mut version = number("resourceVersion").unwrap_or(0);
        if everything {
            let (all, newest) = self.history.everything();
            version = newest;
            let in_advance = self.gzip.as_ref().filter(|_| gzip && newest == BASE_VERSION + all.len() as u64);
            if let Some(packed) = in_advance {
                packed.chunks(CHUNK).try_for_each(|chunk| out.chunk(chunk))?;
            } else {
                for at in all {
                    wire.event(&mut buffer, What::Added, at);
                    if buffer.len() >= CHUNK {
                        self.send(&mut buffer, gzip, out)?;
                    }
                }
                wire.bookmark(&mut buffer, newest);
                self.send(&mut buffer, gzip, out)?;
            }
            self.count(out);
        }
        loop {
            match self.history.after(version, 32, end.saturating_duration_since(Instant::now())) {
                LogRead::Changes(changes) => {
                    let now = now_nanos();
                    for (what, at) in changes {
                        wire.event(&mut buffer, what, at);
                        version = at.version;
                        self.history.written(version, now);
                    }
                    self.send(&mut buffer, gzip, out)?;
                    self.count(out);
                }
                LogRead::Expired => {
                    wire.expired(&mut buffer);
                    self.send(&mut buffer, gzip, out)?;
                    return out.end();
                }
                LogRead::Nothing => return out.end(),
            }
        }
    }

    fn send(&self, buffer: &mut Vec<u8>, gzip: bool, out: &mut Connection) -> io::Result<()> {
        if gzip {
            let mut packer = packer();
            packer.write_all(buffer)?;
            out.chunk(&member(packer)?)?;
        } else {
            out.chunk(buffer)?;
        }
        buffer.clear();
        Ok(())
    }

    fn packs(&self, request: &Request) -> bool {
        self.gzip.is_some() && request.accept_encoding.split(',').any(|each| each.trim() == "gzip")
    }

    fn count(&self, out: &mut Connection) {
        self.bytes.fetch_add(out.take_sent(), Ordering::Relaxed);
    }
}

/// The initial events of a streaming list as one gzip member, as kube-apiserver compresses them.
fn packed(wire: &Wire, history: &History) -> Vec<u8> {
    let (all, version) = history.everything();
    let mut packer = packer();
    let mut buffer = Vec::new();
    for at in all {
        wire.event(&mut buffer, What::Added, at);
        packer.write_all(&buffer).expect("writing to memory does not fail");
        buffer.clear();
    }
    wire.bookmark(&mut buffer, version);
    packer.write_all(&buffer).expect("writing to memory does not fail");
    member(packer).expect("writing to memory does not fail")
}

/// Ends a gzip member of a stream. It is flushed before it is closed, like in kube-apiserver: Go's
/// reader returns the last bytes of an unflushed member only when the next one begins. It is
/// flushed repeatedly: if 32 KB do not suffice, flate2 requests the rest, but without a flush.
fn member(mut packer: GzEncoder<Vec<u8>>) -> io::Result<Vec<u8>> {
    packer.flush()?;
    while !packer.get_ref().ends_with(&[0, 0, 0xff, 0xff]) {
        packer.flush()?;
    }
    packer.finish()
}

/// The compression level of kube-apiserver.
fn packer() -> GzEncoder<Vec<u8>> {
    GzEncoder::new(Vec::new(), Compression::new(1))
}
