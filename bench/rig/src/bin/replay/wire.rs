//! Wire formats of objects, lists and events.

use std::io;

use rig::corpus::Corpus;
use rig::work::Work;

use crate::history::{At, What};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Json,
    Protobuf,
}

/// Bytes buffered before a write.
pub const CHUNK: usize = 128 << 10;

/// One wire format of one kind.
pub struct Wire {
    work: Work,
    format: Format,
    corpus: Corpus,
}

/// The metadata of a list.
pub struct ListMeta {
    pub version: u64,
    pub rest: Option<(String, usize)>,
}

impl Wire {
    pub fn new(work: Work, format: Format, corpus: Corpus) -> Self {
        Self { work, format, corpus }
    }

    pub fn count(&self) -> usize {
        self.corpus.count()
    }

    /// Makes objects that are about to be sent; see [`Corpus::make_ahead`].
    pub fn make_ahead(&self, objects: &[(usize, usize)]) {
        self.corpus.make_ahead(objects.iter().copied());
    }

    pub fn content_type(&self, watch: bool) -> &'static str {
        match (self.format, watch) {
            (Format::Json, _) => "application/json",
            (Format::Protobuf, false) => "application/vnd.kubernetes.protobuf",
            (Format::Protobuf, true) => "application/vnd.kubernetes.protobuf;stream=watch",
        }
    }

    /// Appends a watch event.
    pub fn event(&self, out: &mut Vec<u8>, what: What, at: At) {
        let (bytes, version_at) = self.corpus.object(at.object as usize, usize::from(at.state));
        let kind = match what {
            What::Added => "ADDED",
            What::Modified => "MODIFIED",
            What::Deleted => "DELETED",
        };
        match self.format {
            Format::Json => {
                out.extend_from_slice(br#"{"type":""#);
                out.extend_from_slice(kind.as_bytes());
                out.extend_from_slice(br#"","object":"#);
                push_versioned(out, &bytes, version_at, at.version);
                out.extend_from_slice(b"}\n");
            }
            Format::Protobuf => {
                let head = unknown_head(self.work.api_version(), self.work.kind(), bytes.len());
                self.protobuf_event(
                    out,
                    kind,
                    &head,
                    |out| push_versioned(out, &bytes, version_at, at.version),
                    bytes.len(),
                );
            }
        }
    }

    /// Appends the bookmark that ends the initial events of a streaming list.
    pub fn bookmark(&self, out: &mut Vec<u8>, version: u64) {
        match self.format {
            Format::Json => out.extend_from_slice(
                format!(
                    r#"{{"type":"BOOKMARK","object":{{"kind":"{}","apiVersion":"{}","metadata":{{"resourceVersion":"{version}","annotations":{{"k8s.io/initial-events-end":"true"}}}}}}}}{}"#,
                    self.work.kind(),
                    self.work.api_version(),
                    "\n"
                )
                .as_bytes(),
            ),
            Format::Protobuf => {
                let mut entry = Vec::new();
                push_field(&mut entry, 1, b"k8s.io/initial-events-end");
                push_field(&mut entry, 2, b"true");
                let mut meta = Vec::new();
                push_field(&mut meta, 6, version.to_string().as_bytes());
                push_field(&mut meta, 12, &entry);
                let mut object = Vec::new();
                push_field(&mut object, 1, &meta);
                let head = unknown_head(self.work.api_version(), self.work.kind(), object.len());
                self.protobuf_event(out, "BOOKMARK", &head, |out| out.extend_from_slice(&object), object.len());
            }
        }
    }

    /// Appends the error for an expired resource version.
    pub fn expired(&self, out: &mut Vec<u8>) {
        const MESSAGE: &str = "too old resource version";
        match self.format {
            Format::Json => out.extend_from_slice(
                format!(
                    r#"{{"type":"ERROR","object":{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{MESSAGE}","reason":"Expired","code":410}}}}{}"#,
                    "\n"
                )
                .as_bytes(),
            ),
            Format::Protobuf => {
                let mut status = Vec::new();
                push_field(&mut status, 1, b"");
                push_field(&mut status, 2, b"Failure");
                push_field(&mut status, 3, MESSAGE.as_bytes());
                push_field(&mut status, 4, b"Expired");
                status.push(6 << 3);
                push_varint(&mut status, 410);
                let head = unknown_head("v1", "Status", status.len());
                self.protobuf_event(out, "ERROR", &head, |out| out.extend_from_slice(&status), status.len());
            }
        }
    }

    /// Writes a list in pieces.
    pub fn list(&self, items: &[At], meta: &ListMeta, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let mut out = Vec::with_capacity(2 * CHUNK);
        let mut take_full = |out: &mut Vec<u8>, full: usize| {
            if out.len() >= full {
                take(out)?;
                out.clear();
            }
            io::Result::Ok(())
        };
        match self.format {
            Format::Json => {
                let rest = meta
                    .rest
                    .as_ref()
                    .map(|(token, count)| format!(r#","continue":"{token}","remainingItemCount":{count}"#));
                out.extend_from_slice(
                    format!(
                        r#"{{"kind":"{}List","apiVersion":"{}","metadata":{{"resourceVersion":"{}"{}}},"items":["#,
                        self.work.kind(),
                        self.work.api_version(),
                        meta.version,
                        rest.unwrap_or_default()
                    )
                    .as_bytes(),
                );
                // Items of built-in kinds omit kind and apiVersion.
                let skipped = match self.work {
                    Work::Certificates => 0,
                    _ => format!(r#""kind":"{}","apiVersion":"{}","#, self.work.kind(), self.work.api_version()).len(),
                };
                for (nth, at) in items.iter().enumerate() {
                    let (bytes, version_at) = self.corpus.object(at.object as usize, usize::from(at.state));
                    out.extend_from_slice(if nth == 0 { b"{" } else { b",{" });
                    push_versioned(&mut out, &bytes[1 + skipped..], version_at - 1 - skipped, at.version);
                    take_full(&mut out, CHUNK)?;
                }
                out.extend_from_slice(b"]}");
            }
            Format::Protobuf => {
                let mut list_meta = Vec::new();
                push_field(&mut list_meta, 1, b"");
                push_field(&mut list_meta, 2, meta.version.to_string().as_bytes());
                push_field(&mut list_meta, 3, meta.rest.as_ref().map_or("", |(token, _)| token).as_bytes());
                let size = |at: &At| self.corpus.len(at.object as usize, usize::from(at.state));
                let field = |len: usize| 1 + varint_len(len) + len;
                let len = field(list_meta.len()) + items.iter().map(|at| field(size(at))).sum::<usize>();
                out.extend_from_slice(&unknown_head(
                    self.work.api_version(),
                    &format!("{}List", self.work.kind()),
                    len,
                ));
                push_field(&mut out, 1, &list_meta);
                for at in items {
                    let (bytes, version_at) = self.corpus.object(at.object as usize, usize::from(at.state));
                    out.push(2 << 3 | 2);
                    push_varint(&mut out, bytes.len());
                    push_versioned(&mut out, &bytes, version_at, at.version);
                    take_full(&mut out, CHUNK)?;
                }
                out.extend_from_slice(UNKNOWN_TAIL);
            }
        }
        take_full(&mut out, 0)
    }

    /// Appends a frame of a protobuf watch: its length, then type and object.
    fn protobuf_event(
        &self,
        out: &mut Vec<u8>,
        kind: &str,
        head: &[u8],
        push_raw: impl FnOnce(&mut Vec<u8>),
        raw: usize,
    ) {
        let object = head.len() + raw + UNKNOWN_TAIL.len();
        let extension = 1 + varint_len(object) + object;
        let event = 1 + varint_len(kind.len()) + kind.len() + 1 + varint_len(extension) + extension;
        out.extend_from_slice(&(event as u32).to_be_bytes());
        push_field(out, 1, kind.as_bytes());
        out.push(2 << 3 | 2);
        push_varint(out, extension);
        out.push(1 << 3 | 2);
        push_varint(out, object);
        out.extend_from_slice(head);
        push_raw(out);
        out.extend_from_slice(UNKNOWN_TAIL);
    }
}

/// The empty content encoding and content type after every object.
const UNKNOWN_TAIL: &[u8] = &[3 << 3 | 2, 0, 4 << 3 | 2, 0];

/// The bytes before an object: magic, type, and the length of the object.
fn unknown_head(api_version: &str, kind: &str, raw: usize) -> Vec<u8> {
    let mut meta = Vec::new();
    push_field(&mut meta, 1, api_version.as_bytes());
    push_field(&mut meta, 2, kind.as_bytes());
    let mut out = b"k8s\0".to_vec();
    push_field(&mut out, 1, &meta);
    out.push(2 << 3 | 2);
    push_varint(&mut out, raw);
    out
}

fn push_versioned(out: &mut Vec<u8>, bytes: &[u8], version_at: usize, version: u64) {
    let at = out.len() + version_at;
    out.extend_from_slice(bytes);
    let mut rest = version;
    for digit in out[at..at + 10].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

fn push_field(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push(field << 3 | 2);
    push_varint(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn push_varint(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn varint_len(number: usize) -> usize {
    (usize::BITS - (number | 1).leading_zeros()).div_ceil(7) as usize
}
