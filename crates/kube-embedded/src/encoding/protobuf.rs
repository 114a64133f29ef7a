//! Protobuf as used by client-go's typed clients: conversion between messages and the JSON values
//! that the rest of the server works on.
//!
//! There is no generated code. The message descriptors (`data/messages.txt`) and the Go structs of
//! the kinds (`data/types.txt`) are combined into plans, which drive encoding and decoding.

mod duration;
mod messages;
pub(crate) mod openapi;
mod plan;
mod read;
mod wire;
mod write;

use std::borrow::Cow;

use serde_json::{Map, Value};

use self::plan::{Plan, Plans};
use self::wire::{Fields, Wire, field_length, push_bytes, push_length, push_message, push_number, push_varint};

/// The media type of protobuf bodies.
pub(crate) const MEDIA: &str = "application/vnd.kubernetes.protobuf";

/// The media type of a protobuf watch.
pub(crate) const STREAM: &str = "application/vnd.kubernetes.protobuf;stream=watch";

/// Prefix of every protobuf body.
const MAGIC: &[u8] = b"k8s\0";

/// Suffix of every protobuf body: the empty fields `contentEncoding` and `contentType` of
/// `runtime.Unknown`.
const TAIL: &[u8] = b"\x1a\0\x22\0";

/// A decoding error, with its message.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Unreadable(Cow<'static, str>);

/// Why a body cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The envelope cannot be decoded, so the kind is unknown.
    Body(Cow<'static, str>),
    /// The kind is known, but the message does not match that kind.
    Object { api_version: String, kind: String, why: Cow<'static, str> },
}

/// Decodes a body.
///
/// An apiVersion or kind missing from the envelope is replaced by the expected one. For a kind
/// without a plan only the type fields are decoded, so that the error can name the kind.
///
/// # Errors
///
/// If the body is not a valid message.
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
    let declared = |declared: &[u8], expected: &str| match declared {
        [] => expected.to_owned(),
        declared => String::from_utf8_lossy(declared).into_owned(),
    };
    let (api_version, kind) = (declared(envelope.api_version, api_version), declared(envelope.kind, kind));
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

/// `runtime.Unknown`: a message with its apiVersion and kind.
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

/// Encodes an object as a message without an envelope. `None` if the kind has no message.
pub(crate) fn message(api_version: &str, kind: &str, object: &Value) -> Option<Vec<u8>> {
    Plans::get().of_kind(api_version, kind).map(|plan| written(plan, object))
}

/// Encodes the `PartialObjectMetadata` of an object. Only the object's metadata is read.
pub(crate) fn metadata_message(object: &Value) -> Vec<u8> {
    message("meta.k8s.io/v1", "PartialObjectMetadata", object).unwrap_or_default()
}

/// The prefix of an object's message that is the message of its `PartialObjectMetadata`: metadata
/// is the first field of both.
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

/// Converts a JSON document to protobuf. `None` if it is not valid JSON or its kind has no message.
pub(crate) fn transcode(json: &[u8]) -> Option<Vec<u8>> {
    let object: Value = serde_json::from_slice(json).ok()?;
    let declared = |part: &str| object[part].as_str().unwrap_or_default();
    let (api_version, kind) = (declared("apiVersion"), declared("kind"));
    Some(enclose(api_version, kind, &message(api_version, kind, &object)?))
}

/// Wraps a message in an envelope.
pub(crate) fn enclose(api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len() + 64);
    push_head(&mut out, api_version, kind, message.len());
    out.extend_from_slice(message);
    out.extend_from_slice(TAIL);
    out
}

/// Appends the envelope's bytes up to a message of that length; the message and [`TAIL`] follow.
fn push_head(out: &mut Vec<u8>, api_version: &str, kind: &str, length: usize) {
    out.extend_from_slice(MAGIC);
    push_message(out, 1, |out| {
        push_bytes(out, 1, api_version.as_bytes());
        push_bytes(out, 2, kind.as_bytes());
    });
    push_length(out, 2, length);
}

/// Field numbers of a list message, the same for all kinds but one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListFields {
    metadata: u32,
    items: u32,
}

impl ListFields {
    pub(crate) const USUAL: Self = Self { metadata: 1, items: 2 };
    /// Field numbers of the v1beta1 `PartialObjectMetadataList`, whose items come first.
    pub(crate) const ITEMS_FIRST: Self = Self { metadata: 2, items: 1 };
}

/// The metadata of a list.
#[derive(Debug)]
pub(crate) struct ListMetadata<'l> {
    pub(crate) revision: u64,
    pub(crate) continue_token: Option<&'l str>,
    pub(crate) remaining: Option<usize>,
    /// The shard selector that was applied.
    pub(crate) shard_info: Option<&'l str>,
}

/// Encodes a list in its envelope without its items: the bytes before the first item and after the
/// last. `items` yields the message lengths of the items.
pub(crate) fn list(
    (api_version, kind): (&str, &str),
    fields: ListFields,
    list: &ListMetadata<'_>,
    items: impl Iterator<Item = usize>,
) -> (Vec<u8>, Vec<u8>) {
    let mut metadata = Vec::new();
    push_message(&mut metadata, fields.metadata, |out| {
        push_bytes(out, 1, b"");
        push_bytes(out, 2, list.revision.to_string().as_bytes());
        push_bytes(out, 3, list.continue_token.unwrap_or_default().as_bytes());
        if let Some(remaining) = list.remaining {
            push_number(out, 4, i64::try_from(remaining).unwrap_or(i64::MAX));
        }
        if let Some(selector) = list.shard_info {
            push_message(out, 5, |out| push_bytes(out, 1, selector.as_bytes()));
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

/// Appends one item of a list.
pub(crate) fn push_item(out: &mut Vec<u8>, fields: ListFields, message: &[u8]) {
    push_bytes(out, fields.items, message);
}

/// Appends a watch event, whose object is already in its envelope.
pub(crate) fn push_frame(out: &mut Vec<u8>, kind: &str, object: &[u8]) {
    let length = field_length(kind.len()) + field_length(field_length(object.len()));
    // Cannot overflow in practice: such a frame would exceed 4 GiB.
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    push_bytes(out, 1, kind.as_bytes());
    push_varint(out, 2 << 3 | 2);
    push_varint(out, field_length(object.len()) as u64);
    push_bytes(out, 1, object);
}

/// The length of the frame at the start of `bytes`, including its length prefix. `None` if the
/// prefix is incomplete.
pub(crate) fn frame_length(bytes: &[u8]) -> Option<usize> {
    let length = bytes.first_chunk::<4>()?;
    usize::try_from(u32::from_be_bytes(*length)).ok()?.checked_add(length.len())
}

/// Whether a frame is a watch event of that type.
pub(crate) fn is_frame_of(frame: &[u8], kind: &str) -> bool {
    let first = frame.get(4..).and_then(|event| Fields(event).next());
    matches!(first, Some(Ok((1, Wire::Bytes(declared)))) if declared == kind.as_bytes())
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod fuzz {
    use super::*;
    use crate::fuzzing::{fuzz, recorded};

    /// A definition whose schema is nested that deep, as a message without its envelope.
    fn nested_schema(depth: usize) -> Vec<u8> {
        let mut schema = Vec::new();
        for _ in 0..depth {
            let mut outer = Vec::new();
            // `not` of JSONSchemaProps.
            push_bytes(&mut outer, 28, &schema);
            schema = outer;
        }
        let mut version = Vec::new();
        push_message(&mut version, 4, |out| push_bytes(out, 1, &schema));
        let mut crd = Vec::new();
        push_message(&mut crd, 2, |out| push_bytes(out, 7, &version));
        crd
    }

    #[test]
    fn messages_are_nested_up_to_a_limit() {
        fuzz(1, |_| {
            let read = |depth| {
                let (group, kind) = ("apiextensions.k8s.io/v1", "CustomResourceDefinition");
                read(&enclose(group, kind, &nested_schema(depth)), group, kind)
            };
            let shallow = read(3).expect("a message");
            let schema = &shallow["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
            assert!(schema["not"]["not"]["not"].is_object(), "{shallow}");
            for depth in [101, 5_000] {
                assert!(matches!(read(depth), Err(Problem::Object { why, .. }) if why == "exceeded max depth"));
            }
        });
    }

    #[test]
    fn any_message_is_decoded_or_refused() {
        let (_, bodies) = recorded();
        fuzz(300, |source| {
            let body = if source.one_in(8) { source.bytes(300) } else { source.mutated(&bodies) };
            if let Ok(object) = read(&body, "v1", "Pod") {
                let json = serde_json::to_vec(&object).expect("JSON");
                transcode(&json);
            }
        });
    }
}
