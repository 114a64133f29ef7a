//! OpenAPI documents: recorded from a real server for the built-in kinds, without descriptions, and
//! generated from the definitions for custom kinds.

mod version_2;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::OnceLock;

use flate2::read::GzDecoder;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, IF_NONE_MATCH, LOCATION, VARY};
use http::{HeaderValue, Response, StatusCode};
use jiff::ToSpan as _;
use ring::digest::{SHA512, digest};
use serde_json::{Map, Value, json};

use crate::clock::Clock;
use crate::encoding::protobuf;
use crate::http::body::Body;
use crate::http::negotiate::{JSON, preferred};
use crate::http::reply;
use crate::http::request::Head;
use crate::kinds::{Kind, Registry, ResourceScope};

const V2: &str = "/openapi/v2";
const V3: &str = "/openapi/v3";

/// The media type of the OpenAPI v2 document as protobuf, and the one that kubectl sends for it.
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const PROTOBUF_DEPRECATED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

/// The real server's OpenAPI v2 document of the built-in kinds, compressed with gzip.
const RECORDED_V2: &[u8] = include_bytes!("../../data/openapi-v2.json.gz");

/// A document and its hash, which is its `ETag`.
#[derive(Debug, Clone)]
struct Document {
    json: Vec<u8>,
    hash: String,
    protobuf: OnceLock<Vec<u8>>,
}

impl Document {
    fn new(json: Vec<u8>) -> Self {
        let hash = digest(&SHA512, &json).as_ref().iter().map(|byte| format!("{byte:02X}")).collect();
        Self { json, hash, protobuf: OnceLock::new() }
    }

    /// An OpenAPI v2 document as protobuf.
    fn protobuf(&self) -> &[u8] {
        self.protobuf.get_or_init(|| {
            let document: Value = serde_json::from_slice(&self.json).unwrap_or_default();
            protobuf::openapi::document(&document)
        })
    }
}

/// The document at a path, if there is one.
pub(crate) fn answer(registry: &Registry, head: &Head, clock: Clock) -> Option<Response<Body>> {
    let path = head.uri.path();
    if path == V2 {
        return Some(version_2(registry, head, clock));
    }
    let rest = path.strip_prefix(V3)?;
    if rest.trim_matches('/').is_empty() {
        let mut response = reply::response(200, "text/plain; charset=utf-8");
        *response.body_mut() = Body::whole(index(registry));
        return Some(response);
    }
    let place = rest.strip_prefix('/')?;
    let custom = custom(registry, place);
    let found = custom.as_ref().or_else(|| built_in().get(place));
    Some(match found {
        Some(document) => respond(document, JSON, &document.json, head, clock),
        None => without_content(404),
    })
}

/// The OpenAPI v2 document, as JSON or protobuf.
fn version_2(registry: &Registry, head: &Head, clock: Clock) -> Response<Body> {
    static BUILT_IN: OnceLock<Document> = OnceLock::new();
    let generated = version_2::document(registry);
    let document = generated.as_ref().unwrap_or_else(|| BUILT_IN.get_or_init(|| Document::new(unpack(RECORDED_V2))));
    match preferred(&head.headers, &[JSON, PROTOBUF_DEPRECATED, PROTOBUF]) {
        Some(JSON) => respond(document, JSON, &document.json, head, clock),
        Some(_) => respond(document, PROTOBUF, document.protobuf(), head, clock),
        None => {
            let mut response = without_content(406);
            response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
            response
        }
    }
}

fn without_content(code: u16) -> Response<Body> {
    let mut response = reply::response(code, "");
    response.headers_mut().remove(CONTENT_TYPE);
    response
}

/// The response with a document in one of its encodings. A request with its hash gets an immutable
/// response, one with another hash is redirected.
fn respond(document: &Document, content_type: &'static str, body: &[u8], head: &Head, clock: Clock) -> Response<Body> {
    let mut response = reply::response(200, content_type);
    // The ETag is that of the JSON, in every encoding.
    let tag = HeaderValue::try_from(format!("\"{}\"", document.hash)).expect("hexadecimal digits are a header value");
    let is_known = head.headers.get(IF_NONE_MATCH) == Some(&tag);
    let headers = response.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    headers.insert(ETAG, tag);
    match head.query.get("hash") {
        Some(hash) if hash != document.hash => {
            let right = format!("{}?hash={}", head.uri.path(), document.hash);
            if let Ok(right) = HeaderValue::try_from(right) {
                headers.insert(LOCATION, right);
            }
            *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
            return response;
        }
        Some(_) => {
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
            let expires = clock.now().checked_add((365 * 24).hours()).unwrap_or_else(|_| clock.now());
            let text = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&expires).ok();
            if let Some(expires) = text.and_then(|text| text.replace("GMT", "UTC").parse().ok()) {
                headers.insert(EXPIRES, expires);
            }
        }
        None => {}
    }
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response.headers_mut().remove(CONTENT_TYPE);
    } else {
        *response.body_mut() = Body::whole(body.to_vec());
    }
    response
}

/// The OpenAPI v3 documents of the built-in kinds, by path.
fn built_in() -> &'static BTreeMap<String, Document> {
    static DOCUMENTS: OnceLock<BTreeMap<String, Document>> = OnceLock::new();
    DOCUMENTS.get_or_init(|| {
        // One document per line: path, tab, JSON.
        let all = String::from_utf8_lossy(&unpack(include_bytes!("../../data/openapi-v3.txt.gz"))).into_owned();
        let documents = all.lines().filter_map(|line| line.split_once('\t'));
        documents.map(|(path, document)| (path.to_owned(), Document::new(document.as_bytes().to_vec()))).collect()
    })
}

fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(packed).read_to_end(&mut plain).expect("the recorded documents were packed whole");
    plain
}

/// The index of the OpenAPI v3 documents.
fn index(registry: &Registry) -> Vec<u8> {
    let mut hashes: BTreeMap<String, String> =
        built_in().iter().map(|(path, document)| (path.clone(), document.hash.clone())).collect();
    for version in registry.group_versions() {
        let place = format!("apis/{}/{}", version.group, version.version);
        if let Some(document) = custom(registry, &place) {
            hashes.insert(place, document.hash);
        }
    }
    let paths: Vec<String> = hashes
        .iter()
        .map(|(path, hash)| format!(r#""{path}":{{"serverRelativeURL":"{V3}/{path}?hash={hash}"}}"#))
        .collect();
    format!(r#"{{"paths":{{{}}}}}"#, paths.join(",")).into_bytes()
}

/// The OpenAPI v3 document of a group and version of custom kinds.
fn custom(registry: &Registry, place: &str) -> Option<Document> {
    let (group, version) = place.strip_prefix("apis/")?.split_once('/')?;
    let versions = registry.group_versions();
    let served = versions.iter().find(|each| each.group == group && each.version == version)?;
    let kinds: Vec<&Kind> = served.kinds.iter().filter(|kind| kind.is_custom()).map(|kind| &***kind).collect();
    if kinds.is_empty() {
        return None;
    }
    let (mut paths, mut schemas) = (Map::new(), shared_schemas());
    for kind in kinds {
        describe(kind, &mut paths, &mut schemas);
    }
    let document = json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
        "paths": paths,
        "components": {"schemas": schemas},
    });
    serde_json::to_vec(&document).ok().map(Document::new)
}

/// The schemas of metadata, which every kind references.
fn shared_schemas() -> Map<String, Value> {
    const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";
    static SHARED: OnceLock<Map<String, Value>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| {
        let apps = built_in().get("apis/apps/v1").map(|document| document.json.as_slice()).unwrap_or_default();
        let apps: Value = serde_json::from_slice(apps).unwrap_or_default();
        let all = apps["components"]["schemas"].as_object().cloned().unwrap_or_default();
        all.into_iter().filter(|(name, _)| name.starts_with(META)).collect()
    });
    shared.clone()
}

fn describe(kind: &Kind, paths: &mut Map<String, Value>, schemas: &mut Map<String, Value>) {
    let meta = |name: &str| {
        let reference = format!("#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.{name}");
        json!({"allOf": [{"$ref": reference}]})
    };
    let mut domain: Vec<&str> = kind.group.split('.').collect();
    domain.reverse();
    let name = format!("{}.{}", domain.join("."), kind.version);
    let identity = json!({"group": kind.group, "kind": kind.kind, "version": kind.version});
    let mut schema = kind.structure.as_ref().map_or_else(|| json!({}), |structure| structure.schema().clone());
    schema["x-kubernetes-group-version-kind"] = json!([identity]);
    if schema["properties"].is_object() || schema["x-kubernetes-preserve-unknown-fields"] != true {
        schema["properties"]["apiVersion"] = json!({"type": "string"});
        schema["properties"]["kind"] = json!({"type": "string"});
        schema["properties"]["metadata"] = meta("ObjectMeta");
    }
    let list = json!({
        "type": "object", "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": meta("ListMeta"),
            "items": {"type": "array", "items": {"$ref": format!("#/components/schemas/{name}.{}", kind.kind)}},
        },
        "x-kubernetes-group-version-kind":
            [{"group": kind.group, "kind": kind.list_kind, "version": kind.version}],
    });
    schemas.insert(format!("{name}.{}", kind.kind), schema);
    schemas.insert(format!("{name}.{}", kind.list_kind), list);
    let scope = if kind.scope == ResourceScope::Namespaced { "/namespaces/{namespace}" } else { "" };
    let collection = format!("/apis/{}/{}{scope}/{}", kind.group, kind.version, kind.plural);
    let reference = json!({"$ref": format!("#/components/schemas/{name}.{}", kind.kind)});
    let answer = json!({"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}});
    let parameters: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation"]
        .iter()
        .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}}))
        .collect();
    let operation = |action: &str, parameters: &[Value]| {
        json!({
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": identity,
            "parameters": parameters, "responses": answer,
        })
    };
    let one = json!({
        "get": operation("get", &[]), "put": operation("put", &parameters),
        "patch": operation("patch", &parameters), "delete": operation("delete", &[]),
    });
    paths.insert(format!("{collection}/{{name}}"), one);
    paths.insert(collection, json!({"get": operation("list", &[]), "post": operation("post", &parameters)}));
}
