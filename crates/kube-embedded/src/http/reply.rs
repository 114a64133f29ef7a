//! Responses: the result of a verb, and how it is written.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, VARY};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use serde_json::Value;

use super::body::Body;
use super::gzip;
use super::negotiate::{Encoding, Form, Layout, Negotiated, Writing, indent};
use super::status::{Details, Status};
use crate::api::verbs::list::Listing;
use crate::api::view::View;
use crate::encoding::protobuf;
use crate::kinds;
use crate::storage::Object;

/// Longer bodies are compressed for clients that accept gzip.
const GZIP_BEYOND: usize = 128 * 1024;

/// Bodies up to this size get a `Content-Length` header.
const SIZED_UP_TO: usize = 2048;

/// If the warnings of a response have more characters than this together, they are shortened.
const MAX_WARNINGS_LENGTH: usize = 4 * 1024;

/// The length in characters to which they are shortened.
const MAX_WARNING_LENGTH: usize = 256;

const WARNING: HeaderName = HeaderName::from_static("warning");
const FLOW_SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const PRIORITY_LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// The result of a verb.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) content: Content,
    /// Each becomes a separate `Warning` header.
    pub(crate) warnings: Vec<String>,
}

/// The filter that rejects a request before it is routed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filter {
    Authentication,
    Impersonation,
    Authorization,
}

/// The content of a response.
#[derive(Debug)]
pub(crate) enum Content {
    /// A stored object.
    Object(Arc<Object>),
    /// An object of the view's kind that is not stored, such as the result of a dry run; written
    /// unchanged.
    Unsaved(Value),
    /// The scale of an object of the view's kind, as JSON.
    Scale(Vec<u8>),
    /// A document that has no other form, as JSON.
    Document(Vec<u8>),
    /// A `Status` with `status: Success`.
    Success(Details),
    List(Listing),
}

impl Reply {
    pub(crate) fn new(code: u16, content: Content) -> Self {
        Self { code, content, warnings: Vec::new() }
    }

    pub(crate) fn ok(content: Content) -> Self {
        Self::new(200, content)
    }

    pub(crate) fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.warnings.splice(0..0, warnings);
        self
    }

    /// Builds the HTTP response.
    pub(crate) fn respond(self, view: &View, wish: &Negotiated) -> Response<Body> {
        let mut response = match self.content {
            Content::Object(object) => shown(self.code, view.show(&object), wish),
            Content::Unsaved(value) => shown(self.code, view.show_unsaved(&value).into(), wish),
            Content::Document(json) => document(self.code, &json, wish, wish.writing),
            Content::Scale(json) => match view.form {
                Form::Full => document(self.code, &json, wish, wish.writing),
                Form::Metadata(_) | Form::MetadataList(_) | Form::Table(..) => {
                    let object = serde_json::from_slice(&json).unwrap_or_default();
                    shown(self.code, view.of(kinds::scale()).show_unsaved(&object).into(), wish)
                }
            },
            Content::Success(details) => document(self.code, &success(&details), wish, wish.writing),
            Content::List(listing) => list_response(listing, view, wish),
        };
        for warning in limited(self.warnings) {
            // The warning text is a quoted string: quotes and backslashes in it are escaped.
            let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
                response.headers_mut().append(WARNING, value);
            }
        }
        response
    }
}

/// The warnings as the real server limits them: each once, and if they are too long together, the
/// first of them, with their beginnings only.
fn limited(warnings: Vec<String>) -> Vec<String> {
    let length = |warning: &String| warning.chars().count();
    let mut known = HashSet::new();
    let mut warnings: Vec<String> = warnings.into_iter().filter(|warning| known.insert(warning.clone())).collect();
    if warnings.iter().map(length).sum::<usize>() <= MAX_WARNINGS_LENGTH {
        return warnings;
    }
    let mut total = 0;
    warnings.retain_mut(|warning| {
        *warning = warning.chars().take(MAX_WARNING_LENGTH).collect();
        let fits = total < MAX_WARNINGS_LENGTH;
        total += length(warning);
        fits
    });
    warnings
}

fn success(details: &Details) -> Vec<u8> {
    let mut out = br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":"#.to_vec();
    details.push_json(&mut out);
    out.push(b'}');
    out
}

/// A complete document, converted from JSON to the requested encoding.
pub(crate) fn document(code: u16, json: &[u8], wish: &Negotiated, writing: Writing) -> Response<Body> {
    match writing.encoding {
        Encoding::Json => json_response(code, json, wish, writing.layout),
        Encoding::Protobuf => match protobuf::transcode(json) {
            Some(bytes) => whole(code, protobuf::MEDIA, bytes, wish),
            None => json_response(code, json, wish, writing.layout),
        },
    }
}

/// An object already encoded by a view.
fn shown(code: u16, bytes: Bytes, wish: &Negotiated) -> Response<Body> {
    match wish.writing.encoding {
        Encoding::Json => json_response(code, &bytes, wish, wish.writing.layout),
        Encoding::Protobuf => whole(code, protobuf::MEDIA, bytes.into(), wish),
    }
}

/// A complete JSON document in the requested layout, with the trailing line break of the compact
/// one.
pub(crate) fn json_response(code: u16, json: &[u8], wish: &Negotiated, layout: Layout) -> Response<Body> {
    let body = match layout {
        Layout::Pretty => indent(json),
        Layout::Compact => {
            let mut body = Vec::with_capacity(json.len() + 1);
            body.extend_from_slice(json);
            body.push(b'\n');
            body
        }
    };
    whole(code, JSON, body, wish)
}

const JSON: &str = "application/json";

/// A complete body, compressed above `GZIP_BEYOND`.
fn whole(code: u16, content_type: &'static str, body: Vec<u8>, wish: &Negotiated) -> Response<Body> {
    let mut response = response(code, content_type);
    if wish.gzip && body.len() > GZIP_BEYOND {
        compressed(&mut response);
        *response.body_mut() = Body::whole(gzip::gzip(&body));
        return response;
    }
    sized(&mut response, body);
    response
}

/// Sets a body. Short ones have a `Content-Length`, longer ones are chunked, as from the real
/// server.
fn sized(response: &mut Response<Body>, body: Vec<u8>) {
    if body.len() <= SIZED_UP_TO {
        response.headers_mut().insert(CONTENT_LENGTH, body.len().into());
        *response.body_mut() = Body::whole(body);
    } else {
        *response.body_mut() = Body::chunks(std::iter::once(body.into()));
    }
}

fn list_response(listing: Listing, view: &View, wish: &Negotiated) -> Response<Body> {
    match view.encoding {
        Encoding::Json => {
            let chunks = listing.write(view.clone());
            if wish.writing.layout == Layout::Pretty {
                let json: Vec<u8> = chunks.flatten().collect();
                return json_response(200, &json, wish, Layout::Pretty);
            }
            chunked(JSON, chunks.chain(std::iter::once(Bytes::from_static(b"\n"))), wish)
        }
        Encoding::Protobuf => chunked(protobuf::MEDIA, listing.write_messages(view), wish),
    }
}

/// A lazily generated body. Short ones are collected; of long ones only one chunk is in memory at a
/// time.
fn chunked(
    content_type: &'static str,
    mut chunks: impl Iterator<Item = Bytes> + Send + 'static,
    wish: &Negotiated,
) -> Response<Body> {
    let mut start = Vec::new();
    for chunk in chunks.by_ref() {
        start.extend_from_slice(&chunk);
        if start.len() > GZIP_BEYOND {
            let mut response = response(200, content_type);
            let body = std::iter::once(Bytes::from(start)).chain(chunks);
            *response.body_mut() = if wish.gzip {
                compressed(&mut response);
                Body::chunks(gzip::gzip_chunks(body))
            } else {
                Body::chunks(body)
            };
            return response;
        }
    }
    whole(200, content_type, start, wish)
}

pub(crate) fn compressed(response: &mut Response<Body>) {
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
}

/// The encoding of a response.
pub(crate) fn encoding_of(response: &Response<Body>) -> Encoding {
    let content_type = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    match content_type.starts_with(protobuf::MEDIA.as_bytes()) {
        true => Encoding::Protobuf,
        false => Encoding::Json,
    }
}

/// The response for a failure.
pub(crate) fn failure(status: &Status, wish: &Negotiated) -> Response<Body> {
    let mut response = match status.is_bare() {
        // This status comes from a filter of the real server that does no content negotiation.
        true => {
            let mut json = status.to_json();
            json.push(b'\n');
            whole(status.code(), "text/plain; charset=utf-8", json, wish)
        }
        false => document(status.code(), &status.to_json(), wish, wish.failure()),
    };
    if let Some(seconds) = status.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// The response for a request rejected before it is handled: authentication or authorization
/// failed.
pub(crate) fn denial(filter: Filter, status: &Status, wish: &Negotiated) -> Response<Body> {
    let mut response = failure(status, wish);
    if filter != Filter::Authorization {
        // Rejected before API Priority and Fairness, which sets these headers.
        response.headers_mut().remove(FLOW_SCHEMA);
        response.headers_mut().remove(PRIORITY_LEVEL);
    }
    if filter != Filter::Authentication {
        no_sniffing(&mut response);
    }
    response
}

/// Plain text, as returned by handlers of the real server that write no `Status`.
pub(crate) fn text_response(code: u16, text: impl Into<Vec<u8>>) -> Response<Body> {
    let mut response = response(code, "text/plain; charset=utf-8");
    no_sniffing(&mut response);
    sized(&mut response, text.into());
    response
}

fn no_sniffing(response: &mut Response<Body>) {
    let name = HeaderName::from_static("x-content-type-options");
    response.headers_mut().insert(name, HeaderValue::from_static("nosniff"));
}

/// An empty response with the headers that all responses have.
pub(crate) fn response(code: u16, content_type: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(FLOW_SCHEMA, HeaderValue::from_static("6f1e8a52-2d39-4e43-9b0e-3f2f2f1f7c10"));
    headers.insert(PRIORITY_LEVEL, HeaderValue::from_static("b5b1a2c7-0c57-4b52-8a63-4c1de9a1d9f4"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_sent_once_and_not_without_end() {
        let few = vec!["a".to_owned(), "x".repeat(4000), "a".to_owned()];
        assert_eq!(limited(few.clone()), few[..2]);
        let many: Vec<String> = (0..1000).map(|nth| format!("{nth} {}", "é".repeat(300))).collect();
        let sent = limited(many);
        assert_eq!(sent.len(), 16);
        assert!(sent.iter().all(|warning| warning.chars().count() == MAX_WARNING_LENGTH));
    }
}
