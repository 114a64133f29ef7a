//! Reading a response: its encoding, its wire format, its bytes.

use bytes::{Bytes, BytesMut};
use futures_util::stream::StreamExt;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, VARY};
use http_body_util::BodyExt;

use super::body::Body;
use crate::client::Failure;
use crate::client::server_error::answer::MAX_FAILURE_SIZE;
use crate::codec::{Gunzip, Wire};

#[derive(Clone, Copy)]
pub(super) enum Encoding {
    Identity,
    Gzip,
}

impl Encoding {
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Failure> {
        match headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
            None | Some(b"" | b"identity") => Ok(Self::Identity),
            Some(b"gzip" | b"x-gzip") => Ok(Self::Gzip),
            Some(_) => Err(Failure::Gzip),
        }
    }
}

/// The state of reading a response.
pub(super) enum Reading {
    Open { body: kube::client::Body, gunzip: Option<Box<Gunzip>> },
    Done,
}

impl Reading {
    pub(super) async fn next(self) -> Option<(Result<Bytes, Failure>, Self)> {
        let Self::Open { mut body, mut gunzip } = self else { return None };
        loop {
            if let Some(plain) = gunzip.as_mut().and_then(|gunzip| gunzip.next()) {
                return Some(match plain {
                    Ok(plain) => (Ok(plain), Self::Open { body, gunzip }),
                    Err(error) => (Err(error.into()), Self::Done),
                });
            }
            match body.frame().await {
                Some(Ok(frame)) => {
                    let Ok(bytes) = frame.into_data() else { continue };
                    match &mut gunzip {
                        Some(gunzip) => gunzip.push(bytes),
                        None => return Some((Ok(bytes), Self::Open { body, gunzip })),
                    }
                }
                Some(Err(error)) => return Some((Err(Failure::of_body(&error)), Self::Done)),
                None => {
                    let truncated = gunzip.and_then(|gunzip| gunzip.finish().err())?;
                    return Some((Err(Failure::BodyCut(truncated.to_string().into())), Self::Done));
                }
            }
        }
    }
}

/// Reads the beginning of an error response, as far as it is available.
pub(super) async fn read_prefix(body: &mut Body) -> Bytes {
    let mut prefix = BytesMut::new();
    while let Some(Ok(bytes)) = body.next().await {
        let room = MAX_FAILURE_SIZE - prefix.len();
        prefix.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() >= room {
            break;
        }
    }
    prefix.freeze()
}

/// The wire format by the content type; the content type itself if it is neither JSON nor protobuf.
pub(super) fn content_wire(headers: &HeaderMap) -> Result<Wire, Box<str>> {
    let Some(content_type) = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return Ok(Wire::Json);
    };
    match content_type.split(';').next().unwrap_or_default().trim() {
        "application/vnd.kubernetes.protobuf" => Ok(Wire::Protobuf),
        json if json.ends_with("json") => Ok(Wire::Json),
        other => Err(other.into()),
    }
}

/// Whether a response was compressed by the server and decompressed before it reached this client.
pub(super) fn was_decompressed(headers: &HeaderMap) -> bool {
    !headers.contains_key(CONTENT_ENCODING)
        && headers.get_all(VARY).iter().any(|value| value.as_bytes().eq_ignore_ascii_case(b"accept-encoding"))
}
