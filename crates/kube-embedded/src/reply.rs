//! Answers: what a verb found or did, and how it goes over the wire.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, VARY};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use serde_json::Value;

use crate::body::Body;
use crate::gzip;
use crate::json;
use crate::negotiate::{Form, Include, Layout, Wish, indent};
use crate::status::{Details, Status};
use crate::storage::Object;
use crate::tabulate::{self, Headers};
use crate::verbs::list::Listing;
use crate::view::{View, push_metadata};

/// Bodies beyond this are compressed for clients that like it.
const GZIP_BEYOND: usize = 128 * 1024;

/// Bodies up to this say how long they are.
const SIZED_UP_TO: usize = 2048;

const WARNING: HeaderName = HeaderName::from_static("warning");
const FLOW_SCHEMA: HeaderName = HeaderName::from_static("x-kubernetes-pf-flowschema-uid");
const PRIORITY_LEVEL: HeaderName = HeaderName::from_static("x-kubernetes-pf-prioritylevel-uid");

/// What a verb answers.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) content: Content,
    /// Each goes into a `Warning` header of its own.
    pub(crate) warnings: Vec<String>,
}

/// The content of an answer.
#[derive(Debug)]
pub(crate) enum Content {
    /// An object as it is stored.
    Object(Arc<Object>),
    /// An object of the view's kind that is not stored, as a dry run has it: written as it stands.
    Unsaved(Value),
    /// An object of some other kind than the view's, in its final form.
    Other(Vec<u8>),
    /// A `Status` of success.
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
        self.warnings = warnings;
        self
    }

    /// The answer on the wire.
    pub(crate) fn respond(self, view: &View, wish: &Wish) -> Response<Body> {
        let mut response = match self.content {
            Content::Object(object) => json_response(self.code, &view.show(&object), wish, wish.layout),
            Content::Unsaved(value) => {
                let bytes = unsaved(view, &value);
                json_response(self.code, &bytes, wish, wish.layout)
            }
            Content::Other(bytes) => json_response(self.code, &bytes, wish, wish.layout),
            Content::Success(details) => json_response(self.code, &success(&details), wish, wish.layout),
            Content::List(listing) => list_response(listing, view, wish),
        };
        for warning in &self.warnings {
            // A warning is quoted once more: its own quotes and backslashes are escaped.
            let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
                response.headers_mut().append(WARNING, value);
            }
        }
        response
    }
}

fn unsaved(view: &View, value: &Value) -> Vec<u8> {
    match view.form {
        Form::Full => json::encode_as_is(&view.kind, value),
        Form::Metadata(version) | Form::MetadataList(version) => {
            let mut out = Vec::new();
            push_metadata(&mut out, version, &json::encode_metadata(&value["metadata"]));
            out
        }
        Form::Table(..) => unsaved_table(view, value, Headers::Shown),
    }
}

/// A table of one object that is not stored.
pub(crate) fn unsaved_table(view: &View, value: &Value, headers: Headers) -> Vec<u8> {
    let Form::Table(version, include) = view.form else { return Vec::new() };
    let mut out = tabulate::start(version, crate::metadata::text(value, "resourceVersion"));
    tabulate::push_columns(&mut out, view.kind.columns(), headers);
    tabulate::push_row(&mut out, &view.kind.columns().row_at(value, view.moment(), None));
    // The end of the initial events must be found whatever the client wants to see.
    let marks_end = value["metadata"]["annotations"].get("k8s.io/initial-events-end").is_some();
    match include {
        Include::Object => out.extend_from_slice(&json::encode_as_is(&view.kind, value)),
        Include::Nothing | Include::Unknown if !marks_end => out.extend_from_slice(b"null"),
        _ => push_metadata(&mut out, version, &json::encode_metadata(&value["metadata"])),
    }
    out.push(b'}');
    tabulate::end(&mut out);
    out
}

fn success(details: &Details) -> Vec<u8> {
    let mut out = br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":"#.to_vec();
    details.push_json(&mut out);
    out.push(b'}');
    out
}

/// A whole JSON document: laid out, ended, compressed if that pays.
pub(crate) fn json_response(code: u16, json: &[u8], wish: &Wish, layout: Layout) -> Response<Body> {
    let body = match layout {
        Layout::Pretty => indent(json),
        Layout::Compact => {
            let mut body = Vec::with_capacity(json.len() + 1);
            body.extend_from_slice(json);
            body.push(b'\n');
            body
        }
    };
    let mut response = response(code, "application/json");
    if wish.gzip && body.len() > GZIP_BEYOND {
        compressed(&mut response);
        *response.body_mut() = Body::whole(gzip::gzip(&body));
        return response;
    }
    sized(&mut response, body);
    response
}

/// Sets a body. Short ones tell their length, longer ones come in chunks, as from the real server.
fn sized(response: &mut Response<Body>, body: Vec<u8>) {
    if body.len() <= SIZED_UP_TO {
        response.headers_mut().insert(CONTENT_LENGTH, body.len().into());
        *response.body_mut() = Body::whole(body);
    } else {
        *response.body_mut() = Body::chunks(std::iter::once(body.into()));
    }
}

fn list_response(listing: Listing, view: &View, wish: &Wish) -> Response<Body> {
    let mut chunks = listing.write(view.clone());
    // Short lists are put together; of long ones only a chunk is ever there.
    let mut start = Vec::new();
    let mut ended = true;
    for chunk in chunks.by_ref() {
        start.extend_from_slice(&chunk);
        if start.len() > GZIP_BEYOND {
            ended = false;
            break;
        }
    }
    if ended || wish.layout == Layout::Pretty {
        start.extend(chunks.flatten());
        return json_response(200, &start, wish, wish.layout);
    }
    let mut response = response(200, "application/json");
    let body = std::iter::once(Bytes::from(start)).chain(chunks).chain(std::iter::once(Bytes::from_static(b"\n")));
    *response.body_mut() = if wish.gzip {
        compressed(&mut response);
        Body::chunks(gzip::gzip_chunks(body))
    } else {
        Body::chunks(body)
    };
    response
}

pub(crate) fn compressed(response: &mut Response<Body>) {
    response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
}

/// A failure on the wire.
pub(crate) fn failure(status: &Status, wish: &Wish) -> Response<Body> {
    let mut response = json_response(status.code(), &status.to_json(), wish, wish.error_layout);
    if let Some(seconds) = status.retry_after() {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// A failure on the wire that came before the request was looked at: who sent it was unknown, or may not send it.
pub(crate) fn denial(status: &Status, wish: &Wish) -> Response<Body> {
    let mut response = failure(status, wish);
    match status.code() {
        // Refused before it came to be queued.
        401 => {
            response.headers_mut().remove(FLOW_SCHEMA);
            response.headers_mut().remove(PRIORITY_LEVEL);
        }
        403 => no_sniffing(&mut response),
        _ => {}
    }
    response
}

/// Plain text, as the parts of the real server that know no Status answer.
pub(crate) fn text_response(code: u16, text: &'static str) -> Response<Body> {
    let mut response = response(code, "text/plain; charset=utf-8");
    no_sniffing(&mut response);
    sized(&mut response, text.as_bytes().to_vec());
    response
}

fn no_sniffing(response: &mut Response<Body>) {
    let name = HeaderName::from_static("x-content-type-options");
    response.headers_mut().insert(name, HeaderValue::from_static("nosniff"));
}

/// An empty response with the headers that all of them have.
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
