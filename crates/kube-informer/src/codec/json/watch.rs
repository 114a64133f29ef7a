//! One frame of a watch.

use bytes::Bytes;
use serde::Deserialize;

use super::cursor::{Broken, Cursor, Text};
use super::scan::{Extent, scan};
use crate::codec::protobuf;
use crate::object::Version;

/// A frame of a watch, its object still bytes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum WatchFrame {
    /// An object has changed.
    Changed(Change, Bytes),
    /// Nothing has changed up to this version.
    Bookmark {
        /// The version reached.
        version: Version,
        /// Whether this ends the first phase of a streaming list.
        initial_events_end: bool,
    },
    /// The watch has failed.
    Failed(ServerStatus),
}

/// What a frame says has happened to its object. Whether it is new to us is for the store to say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It entered what is watched.
    Added,
    /// It was changed.
    Modified,
    /// It left what is watched; the frame holds its last state.
    Deleted,
}

/// The `Status` a server answers with when something is wrong.
///
/// ```
/// use kube_informer::ServerStatus;
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
    /// A word for programs, such as `Expired`.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// More of it.
    pub details: StatusDetails,
}

/// The part of a status's details that clients act upon.
///
/// ```
/// use kube_informer::ServerStatus;
///
/// let status = ServerStatus::of_json(br#"{"code":429,"details":{"retryAfterSeconds":5}}"#).unwrap();
/// assert_eq!(status.details.retry_after_seconds, 5);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[non_exhaustive]
pub struct StatusDetails {
    /// How long the server asks us to stay away.
    pub retry_after_seconds: u32,
    /// Reasons, in more detail.
    pub causes: Vec<StatusCause>,
}

/// One cause of a failure.
///
/// ```
/// use kube_informer::ServerStatus;
///
/// let json = br#"{"code":504,"details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}}"#;
/// assert_eq!(ServerStatus::of_json(json).unwrap().details.causes[0].reason, "ResourceVersionTooLarge");
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct StatusCause {
    /// A word for programs, such as `ResourceVersionTooLarge`.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

impl ServerStatus {
    /// Reads a status out of an answer's body, if it is one.
    #[must_use]
    pub fn of_json(json: &[u8]) -> Option<Self> {
        // Nulls stand where Go has nothing; serde's default takes only absence.
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
    /// Written in that order, as every server does, the object is what stands between its opening brace and the frame's last one,
    /// and is not looked through. In any other order it is found by skipping.
    pub fn read(frame: &Bytes) -> Result<Self, Broken> {
        let (kind, object) = parts(frame)?;
        let change = match &*kind.read()? {
            "ADDED" => Change::Added,
            "MODIFIED" => Change::Modified,
            "DELETED" => Change::Deleted,
            "BOOKMARK" => return bookmark(object),
            "ERROR" => return ServerStatus::of_json(object).map(Self::Failed).ok_or(Broken::Shape),
            _ => return Err(Broken::Shape),
        };
        Ok(Self::Changed(change, frame.slice_ref(object)))
    }

    /// Reads the same out of protobuf.
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
    Ok((kind.ok_or(Broken::Shape)?, object.ok_or(Broken::Shape)?))
}

/// What is left of a frame without its own closing brace.
fn to_the_end(rest: &[u8]) -> Result<&[u8], Broken> {
    let object = rest.trim_ascii_end().strip_suffix(b"}").ok_or(Broken::Short)?.trim_ascii_end();
    if object.len() > 1 && object.ends_with(b"}") { Ok(object) } else { Err(Broken::Short) }
}

pub(in crate::codec) fn bookmark(object: &[u8]) -> Result<WatchFrame, Broken> {
    let found = scan(object, Extent::Metadata)?;
    let version = Version::new(found.version.ok_or(Broken::Shape)?.read()?);
    let mut initial_events_end = false;
    found.each_annotation(|name, value| {
        initial_events_end |= name.is(INITIAL_EVENTS_END) && value.is("true");
        Ok(())
    })?;
    Ok(WatchFrame::Bookmark { version, initial_events_end })
}
