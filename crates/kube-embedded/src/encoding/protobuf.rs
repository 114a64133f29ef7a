//! Protobuf, as client-go's typed clients speak it: messages to and from the JSON that everything else here works on.
//!
//! Nothing here is generated: what is known about the messages (`data/messages.txt`) and about the Go structs of the kinds
//! (`data/types.txt`) is put together into plans, by which objects are written and read.

mod duration;
mod messages;
mod plan;
mod read;
mod wire;
mod write;

use std::borrow::Cow;

use serde_json::{Map, Value};

use self::plan::{Plan, Plans};
use self::wire::{Fields, Wire, field_length, push_bytes, push_length, push_message, push_number, push_varint};

/// The media type of these bodies.
pub(crate) const MEDIA: &str = "application/vnd.kubernetes.protobuf";

/// The media type of a watch.
pub(crate) const STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// What every one of them begins with.
const MAGIC: &[u8] = b"k8s\0";

/// What every one of them ends with: neither encoding nor type of its content is told.
const TAIL: &[u8] = b"\x1a\0\x22\0";

/// Bytes that are no message, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Unreadable(Cow<'static, str>);

/// Why a body cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    /// It does not even say what it is.
    Body(Cow<'static, str>),
    /// It is of a kind, but not as that kind's message says.
    Object { api_version: String, kind: String, why: Cow<'static, str> },
}

/// Reads a body. What it does not say about its kind is taken to be as expected; of a kind that is not known here only
/// that is read, so that it can be refused by its name.
///
/// # Errors
///
/// What is no message.
pub(crate) fn read(body: &[u8], api_version: &str, kind: &str) -> Result<Value, Problem> {
    let envelope = match body.strip_prefix(MAGIC) {
        _ if body.is_empty() => return Err(Problem::Body("empty data".into())),
        None => {
            const NONE: &str = "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]";
            return Err(Problem::Body(NONE.into()));
        }
        Some([]) => return Err(Problem::Body("empty body".into())),
        Some(envelope) => envelope,
    };
    let envelope = Envelope::open(envelope).map_err(|Unreadable(why)| Problem::Body(why))?;
    let said = |said: &[u8], expected: &str| match said {
        [] => expected.to_owned(),
        said => String::from_utf8_lossy(said).into_owned(),
    };
    let (api_version, kind) = (said(envelope.api_version, api_version), said(envelope.kind, kind));
    let mut object = Map::new();
    if let Some(plan) = Plans::get().of_kind(&api_version, &kind)
        && let Err(Unreadable(why)) = read::fill(&mut object, plan, envelope.message, 0)
    {
        return Err(Problem::Object { api_version, kind, why });
    }
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    Ok(Value::Object(object))
}

/// A message with what is said about it.
#[derive(Debug, Default)]
struct Envelope<'b> {
    api_version: &'b [u8],
    kind: &'b [u8],
    message: &'b [u8],
}

impl<'b> Envelope<'b> {
    fn open(bytes: &'b [u8]) -> Result<Self, Unreadable> {
        let mut envelope = Self::default();
        for field in Fields(bytes) {
            match field? {
                (1, Wire::Bytes(types)) => {
                    for field in Fields(types) {
                        match field? {
                            (1, Wire::Bytes(text)) => envelope.api_version = text,
                            (2, Wire::Bytes(text)) => envelope.kind = text,
                            _ => {}
                        }
                    }
                }
                (2, Wire::Bytes(message)) => envelope.message = message,
                _ => {}
            }
        }
        Ok(envelope)
    }
}

/// An object as a message, without an envelope; `None` if there is no message of its kind.
pub(crate) fn message(api_version: &str, kind: &str, object: &Value) -> Option<Vec<u8>> {
    Plans::get().of_kind(api_version, kind).map(|plan| written(plan, object))
}

/// The message of a `PartialObjectMetadata`; of the object only its metadata is looked at.
pub(crate) fn metadata_message(object: &Value) -> Vec<u8> {
    message("meta.k8s.io/v1", "PartialObjectMetadata", object).unwrap_or_default()
}

/// The part of an object's message that is the message of its `PartialObjectMetadata`: metadata is the first field of both.
pub(crate) fn metadata_of(message: &[u8]) -> &[u8] {
    let mut fields = Fields(message);
    match fields.next() {
        Some(Ok((1, Wire::Bytes(_)))) => &message[..message.len() - fields.0.len()],
        _ => &[],
    }
}

fn written(plan: &Plan, object: &Value) -> Vec<u8> {
    let mut out = Vec::with_capacity(2048);
    write::push(&mut out, plan, object);
    out
}

/// A JSON document in protobuf, if it is one that has such a form.
pub(crate) fn transcode(json: &[u8]) -> Option<Vec<u8>> {
    let object: Value = serde_json::from_slice(json).ok()?;
    let said = |part: &str| object[part].as_str().unwrap_or_default();
    let (api_version, kind) = (said("apiVersion"), said("kind"));
    Some(enclose(api_version, kind, &message(api_version, kind, &object)?))
}

/// A message in its envelope.
pub(crate) fn enclose(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len() + 64);
    push_head(&mut out, api_version, kind, message.len());
    out.extend_from_slice(message);
    out.extend_from_slice(TAIL);
    out
}

/// Appends what stands before a message of that length; [`TAIL`] stands behind it.
fn push_head(out: &mut Vec<u8>, api_version: &str, kind: &str, length: usize) {
    out.extend_from_slice(MAGIC);
    push_message(out, 1, |out| {
        push_bytes(out, 1, api_version.as_bytes());
        push_bytes(out, 2, kind.as_bytes());
    });
    push_length(out, 2, length);
}

/// The fields of a list, which are the same for every kind but one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListFields {
    metadata: u32,
    items: u32,
}

impl ListFields {
    pub(crate) const USUAL: Self = Self { metadata: 1, items: 2 };
    /// Those of the older `PartialObjectMetadataList`, whose items came first.
    pub(crate) const ITEMS_FIRST: Self = Self { metadata: 2, items: 1 };
}

/// A list in its envelope, in parts: what stands before the first item and after the last. Items are messages of these
/// lengths.
pub(crate) fn list(
    (api_version, kind): (&str, &str),
    fields: ListFields,
    revision: u64,
    continue_token: Option<&str>,
    remaining: Option<usize>,
    items: impl Iterator<Item = usize>,
) -> (Vec<u8>, Vec<u8>) {
    let mut metadata = Vec::new();
    push_message(&mut metadata, fields.metadata, |out| {
        push_bytes(out, 1, b"");
        push_bytes(out, 2, revision.to_string().as_bytes());
        push_bytes(out, 3, continue_token.unwrap_or_default().as_bytes());
        if let Some(remaining) = remaining {
            push_number(out, 4, i64::try_from(remaining).unwrap_or(i64::MAX));
        }
    });
    let mut out = Vec::with_capacity(128);
    push_head(&mut out, api_version, kind, metadata.len() + items.map(field_length).sum::<usize>());
    let mut tail = TAIL.to_vec();
    if fields.metadata < fields.items {
        out.append(&mut metadata);
    } else {
        tail.splice(..0, metadata);
    }
    (out, tail)
}

/// Appends an item of a list.
pub(crate) fn push_item(out: &mut Vec<u8>, fields: ListFields, message: &[u8]) {
    push_bytes(out, fields.items, message);
}

/// Appends an event of a watch, whose object is in its envelope.
pub(crate) fn push_frame(out: &mut Vec<u8>, kind: &str, object: &[u8]) {
    let length = field_length(kind.len()) + field_length(field_length(object.len()));
    // A frame that is longer than its length can tell would be longer than memory.
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    push_bytes(out, 1, kind.as_bytes());
    push_varint(out, 2 << 3 | 2);
    push_varint(out, field_length(object.len()) as u64);
    push_bytes(out, 1, object);
}

/// How long the frame is that begins here, if that can be told yet.
pub(crate) fn frame_length(bytes: &[u8]) -> Option<usize> {
    let length = bytes.first_chunk::<4>()?;
    usize::try_from(u32::from_be_bytes(*length)).ok()?.checked_add(length.len())
}

/// Whether a frame is an event of that kind.
pub(crate) fn is_frame_of(frame: &[u8], kind: &str) -> bool {
    let first = frame.get(4..).and_then(|event| Fields(event).next());
    matches!(first, Some(Ok((1, Wire::Bytes(said)))) if said == kind.as_bytes())
}

#[cfg(test)]
mod tests;
