//! The responses of a source.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::stream::{self, BoxStream, Stream, StreamExt};

use crate::client::ServerError;
use crate::codec::Wire;
use crate::object::Version;

/// The bytes of a response, as they arrive. Dropping it closes its connection.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use futures_util::StreamExt as _;
/// use kube_informer::Version;
/// use kube_informer::client::Body;
///
/// let map = r#"{"metadata":{"name":"a","resourceVersion":"6"}}"#;
/// let mut list = Body::from_list(&Version::from(7), [map]);
/// let bytes = list.next().await.unwrap().unwrap();
/// assert!(bytes.starts_with(br#"{"kind":"List""#) && bytes.ends_with(br#""resourceVersion":"6"}}]}"#));
/// # }
/// ```
pub struct Body {
    bytes: BoxStream<'static, Result<Bytes, ServerError>>,
    wire: Wire,
}

impl Body {
    /// Creates a body from bytes as a server sends them: the JSON of a list, or one JSON event per
    /// line.
    pub fn from_stream(bytes: impl Stream<Item = Result<Bytes, ServerError>> + Send + 'static) -> Self {
        Self { bytes: bytes.boxed(), wire: Wire::Json }
    }

    /// Sets the wire format of the bytes: with [`Wire::Protobuf`] a list in its envelope, or
    /// length-prefixed watch frames.
    #[must_use]
    pub fn in_form(mut self, wire: Wire) -> Self {
        self.wire = wire;
        self
    }

    pub(crate) fn wire(&self) -> Wire {
        self.wire
    }

    /// Creates the body of a complete list from the JSON of its objects.
    pub fn from_list<I>(version: &Version, items: I) -> Self
    where
        I: IntoIterator<Item: AsRef<[u8]>>,
    {
        let mut json = BytesMut::new();
        json.put_slice(br#"{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"#);
        put_text(&mut json, &version.to_string());
        json.put_slice(br#"},"items":["#);
        for (nth, item) in items.into_iter().enumerate() {
            if nth > 0 {
                json.put_u8(b',');
            }
            json.put_slice(item.as_ref());
        }
        json.put_slice(b"]}");
        let json = json.freeze();
        Self::from_stream(stream::iter([Ok(json)]))
    }

    /// Creates the body of a watch from its events. It ends when they do.
    pub fn from_frames(frames: impl Stream<Item = Frame> + Send + 'static) -> Self {
        Self::from_stream(frames.map(|frame| Ok(frame.to_line())))
    }
}

impl Stream for Body {
    type Item = Result<Bytes, ServerError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.bytes.as_mut().poll_next(context)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").finish_non_exhaustive()
    }
}

/// A watch event, with its object as JSON.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// use futures_util::{StreamExt as _, stream};
/// use kube_informer::Version;
/// use kube_informer::client::{Body, Frame};
///
/// let map = r#"{"metadata":{"name":"a","resourceVersion":"6"}}"#;
/// let watch = Body::from_frames(stream::iter([Frame::Added(map.into()), Frame::Bookmark(Version::from(7))]));
/// let lines: Vec<_> = watch.map(Result::unwrap).collect().await;
/// assert_eq!(lines[0], format!("{{\"type\":\"ADDED\",\"object\":{map}}}\n"));
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Frame {
    /// The object was created, or entered the watched set.
    Added(Bytes),
    /// The object was changed.
    Modified(Bytes),
    /// The object was deleted, or left the watched set. Holds its last state, with the resource
    /// version of the deletion.
    Deleted(Bytes),
    /// A bookmark: there are no other changes up to this version.
    Bookmark(Version),
    /// The bookmark that ends the initial events of a streaming list, which is as of this version.
    InitialEventsEnd(Version),
    /// The watch has failed.
    Failed {
        /// An HTTP status code.
        code: u16,
        /// A machine-readable reason, such as `Expired`.
        reason: String,
        /// A human-readable message.
        message: String,
    },
}

impl Frame {
    /// An event for a version that is too old, which makes an informer relist.
    ///
    /// ```
    /// use kube_informer::client::Frame;
    ///
    /// let Frame::Failed { code, reason, .. } = Frame::expired("that is long ago") else { unreachable!() };
    /// assert_eq!((code, reason.as_str()), (410, "Expired"));
    /// ```
    pub fn expired(message: impl Into<String>) -> Self {
        Self::Failed { code: 410, reason: "Expired".to_owned(), message: message.into() }
    }

    fn to_line(&self) -> Bytes {
        let mut line = BytesMut::new();
        let (name, object) = match self {
            Self::Added(object) => ("ADDED", Some(object)),
            Self::Modified(object) => ("MODIFIED", Some(object)),
            Self::Deleted(object) => ("DELETED", Some(object)),
            Self::Bookmark(_) | Self::InitialEventsEnd(_) => ("BOOKMARK", None),
            Self::Failed { .. } => ("ERROR", None),
        };
        line.put_slice(br#"{"type":""#);
        line.put_slice(name.as_bytes());
        line.put_slice(br#"","object":"#);
        match (object, self) {
            // A JSON string cannot contain a raw line break; between tokens a space is equivalent.
            (Some(object), _) => line.extend(object.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte })),
            (None, Self::Failed { code, reason, message }) => {
                line.put_slice(br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"#);
                put_text(&mut line, message);
                line.put_slice(br#","reason":"#);
                put_text(&mut line, reason);
                line.put_slice(format!(r#","code":{code}}}"#).as_bytes());
            }
            (None, Self::Bookmark(version)) => put_bookmark(&mut line, version, ""),
            (None, Self::InitialEventsEnd(version)) => {
                put_bookmark(&mut line, version, r#","annotations":{"k8s.io/initial-events-end":"true"}"#);
            }
            (None, Self::Added(_) | Self::Modified(_) | Self::Deleted(_)) => {}
        }
        line.put_slice(b"}\n");
        line.freeze()
    }
}

fn put_bookmark(line: &mut BytesMut, version: &Version, further: &str) {
    line.put_slice(br#"{"metadata":{"resourceVersion":"#);
    put_text(line, &version.to_string());
    line.put_slice(further.as_bytes());
    line.put_slice(b"}}");
}

fn put_text(json: &mut BytesMut, text: &str) {
    json.put_slice(serde_json::Value::from(text).to_string().as_bytes());
}
