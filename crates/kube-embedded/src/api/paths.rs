//! Paths that are not resources: version, health probes and aggregated discovery.

use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use ring::digest::{SHA512, digest};

use super::discovery::{self, Root};
use crate::encoding::protobuf;
use crate::http::body::Body;
use crate::http::negotiate::{Encoding, EndpointKind, Layout, Unacceptable, accepts_json};
use crate::http::reply;
use crate::http::request::Head;
use crate::http::status::Status;
use crate::kinds::Registry;

/// The emulated release, in the format of the real server.
const VERSION: &[u8] = br#"{"major":"1","minor":"37","emulationMajor":"1","emulationMinor":"37","minCompatibilityMajor":"1","minCompatibilityMinor":"36","gitVersion":"v1.37.1+embedded","gitCommit":"","gitTreeState":"clean","buildDate":"2026-10-01T00:00:00Z","goVersion":"","compiler":"","platform":""}"#;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const AGGREGATED_PROTOBUF: &str =
    "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Whether a path is a health probe: probes accept any method.
pub(crate) fn is_probe(path: &str) -> bool {
    matches!(path, "/livez" | "/readyz" | "/healthz" | "/livez/ping" | "/readyz/ping" | "/healthz/ping")
}

/// Whether a path accepts only GET: other methods are rejected there, while on other paths they get
/// 404.
pub(crate) fn is_read_only(path: &str) -> bool {
    path.trim_end_matches('/') == "/version"
}

/// The response for a path, if it is one of these.
pub(crate) fn answer(head: &Head) -> Result<Option<Response<Body>>, Status> {
    let path = head.uri.path();
    if is_read_only(path) {
        if !accepts_json(&head.headers) {
            return Err(Unacceptable::Media.status(EndpointKind::Document));
        }
        // The only document that is always indented, regardless of the client.
        return Ok(Some(reply::json_response(200, VERSION, &head.wish, Layout::Pretty)));
    }
    if !is_probe(path) {
        return Ok(None);
    }
    let verbose = head.query.get("verbose").is_some();
    Ok(Some(reply::text_response(
        200,
        match path {
            "/livez" if verbose => "[+]ping ok\nlivez check passed\n",
            "/readyz" if verbose => "[+]ping ok\nreadyz check passed\n",
            "/healthz" if verbose => "[+]ping ok\nhealthz check passed\n",
            _ => "ok",
        },
    )))
}

/// Aggregated discovery of a root, with an `ETag` for conditional requests.
pub(crate) fn aggregated(registry: &Registry, root: Root, headers: &HeaderMap, encoding: Encoding) -> Response<Body> {
    let mut document = discovery::aggregated(registry, root);
    document.push(b'\n');
    let hash: String = digest(&SHA512, &document).as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
    let tag = HeaderValue::try_from(format!("\"{hash}\"")).expect("hexadecimal digits are a header value");
    let (content_type, document) = match encoding {
        Encoding::Json => (AGGREGATED, document),
        // The ETag is that of the JSON, in every encoding.
        Encoding::Protobuf => (AGGREGATED_PROTOBUF, protobuf::transcode(&document).unwrap_or_default()),
    };
    let mut response = reply::response(200, content_type);
    let unchanged = headers.get(IF_NONE_MATCH) == Some(&tag);
    if unchanged {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response.headers_mut().remove(CONTENT_TYPE);
    } else {
        *response.body_mut() = Body::whole(document);
    }
    let headers = response.headers_mut();
    headers.insert(ETAG, tag);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    response
}
