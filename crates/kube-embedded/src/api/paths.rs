//! Paths that are not resources: the list of all paths, version, health probes, metrics and
//! aggregated discovery.

use std::collections::BTreeSet;

use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use ring::digest::{SHA512, digest};
use serde_json::json;

use super::discovery::{self, Root};
use super::tokens::ISSUER;
use crate::cluster::Cluster;
use crate::encoding::protobuf;
use crate::http::body::Body;
use crate::http::negotiate::{Encoding, EndpointKind, Layout, Negotiated, Unacceptable, accepts_json};
use crate::http::reply;
use crate::http::request::Head;
use crate::http::status::Status;
use crate::kinds::Registry;

/// The emulated release, in the format of the real server.
const VERSION: &[u8] = br#"{"major":"1","minor":"37","emulationMajor":"1","emulationMinor":"37","minCompatibilityMajor":"1","minCompatibilityMinor":"36","gitVersion":"v1.37.1+embedded","gitCommit":"","gitTreeState":"clean","buildDate":"2026-10-01T00:00:00Z","goVersion":"","compiler":"","platform":""}"#;

/// The paths besides those of groups and versions.
const PATHS: [&str; 14] = [
    OPENID,
    "/api",
    "/api/v1",
    "/apis",
    "/apis/",
    HEALTHZ,
    LIVEZ,
    READYZ,
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    KEYS,
    "/version",
];

/// The description of the issuer of tokens, and its keys.
const OPENID: &str = "/.well-known/openid-configuration";
const KEYS: &str = "/openid/v1/jwks";

const HEALTHZ: &str = "/healthz";
const LIVEZ: &str = "/livez";
const READYZ: &str = "/readyz";

/// The media type of metrics.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const AGGREGATED_PROTOBUF: &str =
    "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Whether a path accepts only GET: other methods are rejected there, while on other paths they get
/// 404.
pub(crate) fn is_read_only(path: &str) -> bool {
    path.trim_end_matches('/') == "/version"
}

/// The response for a path, if it is one of these.
pub(crate) fn answer(
    cluster: &Cluster,
    registry: &Registry,
    address: &str,
    head: &Head,
) -> Result<Option<Response<Body>>, Status> {
    let path = head.uri.path();
    if is_read_only(path) {
        if !accepts_json(&head.headers) {
            return Err(Unacceptable::Media.status(EndpointKind::Document));
        }
        // The only document that is always indented, regardless of the client.
        return Ok(Some(reply::json_response(200, VERSION, &head.wish, Layout::Pretty)));
    }
    Ok(match path {
        "/" | "/index.html" => {
            let paths = serde_json::json!({"paths": all(registry)}).to_string();
            Some(reply::json_response(200, paths.as_bytes(), &head.wish, Layout::Pretty))
        }
        OPENID | KEYS => Some(openid(cluster, path == KEYS, address, &head.wish)),
        "/metrics" => {
            let mut response = reply::response(200, METRICS);
            *response.body_mut() = Body::whole(metrics(cluster, registry).into_bytes());
            Some(response)
        }
        _ => probe(path, head),
    })
}

/// What verifiers of tokens read.
fn openid(cluster: &Cluster, asks_for_keys: bool, address: &str, wish: &Negotiated) -> Response<Body> {
    let (media_type, document) = match asks_for_keys {
        true => {
            let keys: Vec<_> = cluster.tokens.web_key().into_iter().collect();
            ("application/jwk-set+json", json!({"keys": keys}))
        }
        false => {
            let document = json!({
                "issuer": ISSUER, "jwks_uri": format!("https://{address}{KEYS}"),
                "response_types_supported": ["id_token"], "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["ES256"],
            });
            ("application/json", document)
        }
    };
    let mut response = reply::json_response(200, document.to_string().as_bytes(), wish, Layout::Compact);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"));
    response
}

/// The paths that the server serves, sorted.
fn all(registry: &Registry) -> BTreeSet<String> {
    let probes = [HEALTHZ, LIVEZ, READYZ]
        .into_iter()
        .flat_map(|probe| checks(probe).into_iter().map(move |check| format!("{probe}/{check}")));
    let versions = registry.group_versions();
    let groups = versions.iter().filter(|each| !each.group.is_empty()).flat_map(|each| {
        let group = format!("/apis/{}", each.group);
        [format!("{group}/{}", each.version), group]
    });
    PATHS.into_iter().map(str::to_owned).chain(probes).chain(groups).collect()
}

/// The checks of all health probes, in order, as recorded. All pass: the server is ready once it
/// has started.
const CHECKS: [&str; 34] = [
    "ping",
    "log",
    "loopback-serving-certificate",
    "etcd",
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
];

/// The checks of a probe. Readiness includes the informers and the shutdown, but no certificate.
fn checks(probe: &str) -> Vec<&'static str> {
    if probe != READYZ {
        return CHECKS.to_vec();
    }
    let (first, hooks) = CHECKS.split_at(4);
    let first = first.iter().filter(|check| **check != "loopback-serving-certificate");
    let more = ["etcd-readiness", "informer-sync"];
    first.chain(&more).chain(hooks).chain(&["shutdown"]).copied().collect()
}

/// The response of a health probe or of one of its checks. Probes accept any method.
fn probe(path: &str, head: &Head) -> Option<Response<Body>> {
    let probe = [HEALTHZ, LIVEZ, READYZ].into_iter().find(|probe| path.starts_with(probe))?;
    let checks = checks(probe);
    match path[probe.len()..].strip_prefix('/') {
        Some(check) if checks.contains(&check) => return Some(reply::text_response(200, "ok")),
        None if path == probe => {}
        _ => return None,
    }
    if head.query.get("verbose").is_none() {
        return Some(reply::text_response(200, "ok"));
    }
    let excluded: Vec<&str> = head.query.all("exclude").collect();
    let mut text = String::new();
    for check in &checks {
        let result = if excluded.contains(check) { "excluded: ok" } else { "ok" };
        text += &format!("[+]{check} {result}\n");
    }
    let unknown: Vec<String> =
        excluded.iter().filter(|name| !checks.contains(name)).map(|name| format!("{name:?}")).collect();
    if !unknown.is_empty() {
        text += &format!("warn: some health checks cannot be excluded: no matches for {}\n", unknown.join(","));
    }
    text += &format!("{} check passed\n", &probe[1..]);
    Some(reply::text_response(200, text))
}

/// A few of the real server's metrics, in the Prometheus text format.
fn metrics(cluster: &Cluster, registry: &Registry) -> String {
    let mut out = String::from(
        "# HELP apiserver_resource_objects Number of stored objects by resource.\n\
         # TYPE apiserver_resource_objects gauge\n",
    );
    let resources: BTreeSet<_> = registry.kinds().map(|kind| &kind.storage).collect();
    for resource in resources {
        let (group, plural, count) = (&resource.group, &resource.resource, cluster.storage.count(resource));
        out += &format!("apiserver_resource_objects{{group=\"{group}\",resource=\"{plural}\"}} {count}\n");
    }
    out += "# HELP kubernetes_build_info The version of the server; the value is always 1.\n\
            # TYPE kubernetes_build_info gauge\n";
    let version: serde_json::Value = serde_json::from_slice(VERSION).unwrap_or_default();
    let label = |name: &str| version[name].as_str().unwrap_or_default().to_owned();
    out += &format!(
        "kubernetes_build_info{{major=\"{}\",minor=\"{}\",git_version=\"{}\"}} 1\n",
        label("major"),
        label("minor"),
        label("gitVersion")
    );
    out
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
