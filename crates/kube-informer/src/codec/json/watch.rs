//! Decoding of a watch frame.

use bytes::Bytes;
use serde::Deserialize;

use super::cursor::{Broken, Cursor, Text};
use super::scan::{Extent, scan};
use crate::codec::protobuf;
use crate::object::Version;

/// A frame of a watch. Its object is not decoded.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum WatchFrame {
    /// An object has changed.
    Changed(Change, Bytes),
    /// Nothing else has changed up to this resource version.
    Bookmark {
        /// The resource version reached.
        version: Version,
        /// Whether this bookmark ends the initial events of a streaming list.
        initial_events_end: bool,
    },
    /// The watch has failed.
    Failed(ServerStatus),
}

/// The event type of a frame. Whether the object is new to the cache is decided by the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// The object entered the watched set.
    Added,
    /// The object was changed.
    Modified,
    /// The object left the watched set; the frame contains its last state.
    Deleted,
}

/// The `Status` that a server returns on failure.
///
/// ```
/// use kube_informer::codec::ServerStatus;
///
/// let status = ServerStatus::of_json(br#"{"kind":"Status","code":410,"reason":"Expired","message":"too old","details":null}"#);
/// assert_eq!(status.unwrap().reason, "Expired");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ServerStatus {
    /// The HTTP status code.
    pub code: u16,
    /// Machine-readable reason, such as `Expired`.
    pub reason: String,
    /// Human-readable message.
    pub message: String,
    /// Further details.
    pub details: StatusDetails,
}

/// The details of a status that clients act upon.
///
/// ```
/// use kube_informer::codec::ServerStatus;
///
/// let status = ServerStatus::of_json(br#"{"code":429,"details":{"retryAfterSeconds":5}}"#).unwrap();
/// assert_eq!(status.details.retry_after_seconds, 5);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct StatusDetails {
    /// Seconds to wait before the next request; 0 if the server sets none.
    pub retry_after_seconds: u32,
    /// The causes of the failure.
    pub causes: Vec<StatusCause>,
}

/// One cause of a failure.
///
/// ```
/// use kube_informer::codec::ServerStatus;
///
/// let json = br#"{"code":504,"details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}}"#;
/// assert_eq!(ServerStatus::of_json(json).unwrap().details.causes[0].reason, "ResourceVersionTooLarge");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StatusCause {
    /// Machine-readable reason, such as `ResourceVersionTooLarge`.
    pub reason: String,
    /// Human-readable message.
    pub message: String,
}

impl ServerStatus {
    /// Decodes a status from a response body; none if it is not a status.
    #[must_use]
    pub fn of_json(json: &[u8]) -> Option<Self> {
        // Go encodes nil as null; `serde(default)` covers only absent fields.
        let mut value: serde_json::Value = serde_json::from_slice(json).ok()?;
        without_nulls(&mut value);
        serde_json::from_value(value).ok()
    }
}

fn without_nulls(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(without_nulls);
        }
        serde_json::Value::Array(elements) => elements.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

/// The annotation of the bookmark that ends a streaming list.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

impl WatchFrame {
    /// Reads `{"type":…,"object":…}`.
    ///
    /// If the fields are in this order, as every server writes them, the object extends from its
    /// opening brace to before the last brace of the frame, and is not scanned. In any other order
    /// it is found by skipping values.
    pub fn read(frame: &Bytes) -> Result<Self, Broken> {
        let (kind, object) = parts(frame)?;
        let change = match &*kind.read()? {
            "ADDED" => Change::Added,
            "MODIFIED" => Change::Modified,
            "DELETED" => Change::Deleted,
            "BOOKMARK" => return bookmark(object),
            "ERROR" => return ServerStatus::of_json(object).map(Self::Failed).ok_or(Broken::Event),
            _ => return Err(Broken::Event),
        };
        Ok(Self::Changed(change, frame.slice_ref(object)))
    }

    /// Reads a watch frame in protobuf.
    pub fn read_protobuf(frame: &Bytes) -> Result<Self, Broken> {
        protobuf::read_frame(frame)
    }
}

fn parts(frame: &[u8]) -> Result<(Text<'_>, &[u8]), Broken> {
    let mut cursor = Cursor::new(frame);
    let mut members = cursor.object()?;
    let (mut kind, mut object) = (None, None);
    while let Some(name) = cursor.field(&mut members)? {
        if name.is("type") {
            kind = Some(cursor.text()?);
        } else if name.is("object") {
            if let (Some(kind), b'{') = (kind, cursor.peek()?) {
                return Ok((kind, to_the_end(&frame[cursor.at()..])?));
            }
            object = Some(cursor.value()?);
        } else {
            cursor.skip()?;
        }
    }
    Ok((kind.ok_or(Broken::Event)?, object.ok_or(Broken::Event)?))
}

/// The rest of a frame without the closing brace of the frame.
fn to_the_end(rest: &[u8]) -> Result<&[u8], Broken> {
    let object = rest.trim_ascii_end().strip_suffix(b"}").ok_or(Broken::Short)?.trim_ascii_end();
    if object.len() > 1 && object.ends_with(b"}") { Ok(object) } else { Err(Broken::Short) }
}

pub(in crate::codec) fn bookmark(object: &[u8]) -> Result<WatchFrame, Broken> {
    let found = scan(object, Extent::Metadata)?;
    let version = Version::new(found.version.ok_or(Broken::Event)?.read()?);
    let mut initial_events_end = false;
    found.each_annotation(|name, value| {
        initial_events_end |= name.is(INITIAL_EVENTS_END) && value.is("true");
        Ok(())
    })?;
    Ok(WatchFrame::Bookmark { version, initial_events_end })
}
