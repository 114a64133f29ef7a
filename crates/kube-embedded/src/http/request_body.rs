//! Converts request bodies (JSON, YAML or protobuf) to JSON.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::CONTENT_TYPE;

use super::status::Status;
use crate::admission::decode::unrecognized;
use crate::encoding::protobuf::{self, Problem};
use crate::encoding::yaml;
use crate::kinds::Kind;

/// The message type expected in a protobuf body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary<'k> {
    /// An object of this kind, unless the body names another.
    Of { api_version: &'k str, kind: &'k str },
    /// `DeleteOptions`.
    Options,
    /// None: custom kinds have no protobuf messages.
    Refused,
}

impl<'k> Binary<'k> {
    /// An object of a kind.
    pub(crate) fn of(kind: &'k Kind) -> Self {
        match kind.is_custom() {
            true => Self::Refused,
            false => Self::Of { api_version: kind.api_version(), kind: &kind.kind },
        }
    }
}

/// A request's body as JSON. A missing content type means JSON.
///
/// # Errors
///
/// 415 for an unsupported content type, 400 for a body that cannot be decoded.
pub(crate) fn json_body<'b>(headers: &HeaderMap, body: &'b [u8], binary: Binary<'_>) -> Result<Cow<'b, [u8]>, Status> {
    let (api_version, kind) = match (media_type(headers), binary) {
        (None, _) => return Ok(body.into()),
        (Some(media), _) if media.eq_ignore_ascii_case("application/json") => return Ok(body.into()),
        (Some(media), _) if media.eq_ignore_ascii_case(yaml::MEDIA) => return from_yaml(body, binary),
        (Some(media), binary) if media.eq_ignore_ascii_case(protobuf::MEDIA) => match binary {
            Binary::Of { api_version, kind } => (api_version, kind),
            Binary::Options => ("v1", "DeleteOptions"),
            Binary::Refused => return Err(Status::unsupported_media_type()),
        },
        (Some(_), _) => return Err(Status::unsupported_media_type()),
    };
    match protobuf::read(body, api_version, kind) {
        Ok(object) => Ok(serde_json::to_vec(&object).unwrap_or_default().into()),
        // Options of another kind are rejected later by their kind, whatever their content.
        Err(Problem::Object { api_version, kind: found, .. }) if binary == Binary::Options && found != kind => {
            Ok(serde_json::json!({"apiVersion": api_version, "kind": found}).to_string().into_bytes().into())
        }
        Err(Problem::Body(why) | Problem::Object { why, .. }) if binary == Binary::Options => {
            Err(Status::bad_request(why))
        }
        Err(Problem::Body(why)) => Err(unrecognized(kind, &why, body)),
        Err(Problem::Object { api_version, kind: found, why }) => {
            let version = api_version.rsplit('/').next().unwrap_or_default();
            let why = format!("{found} in version {version:?} cannot be handled as a {kind}: {why}");
            Err(Status::bad_request(why))
        }
    }
}

fn from_yaml<'b>(body: &[u8], expected: Binary<'_>) -> Result<Cow<'b, [u8]>, Status> {
    match (yaml::read(body), expected) {
        (Ok(object), _) => Ok(serde_json::to_vec(&object).unwrap_or_default().into()),
        (Err(why), Binary::Of { kind, .. }) => Err(unrecognized(kind, &why, body)),
        (Err(why), Binary::Options) => Err(Status::bad_request(why)),
        (Err(why), Binary::Refused) => Err(Status::bad_request(format!("the object provided is unrecognized: {why}"))),
    }
}

/// The media type of a request's body, without parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let media = text.split(';').next().unwrap_or_default().trim();
    (!media.is_empty()).then_some(media)
}
