//! Rules about certificate signing requests.

use base64::Engine as _;
use serde_json::Value;

use super::Site;
use super::checks::shown;
use super::formats::{self, quoted};
use crate::encoding::value::{items, text};
use crate::http::status::Cause;

/// The conditions that decide about a request, and that of a failure: they cannot be undone.
const FINAL: [&str; 3] = ["Approved", "Denied", "Failed"];

fn conditions(request: &Value) -> &[Value] {
    items(&request["status"]["conditions"])
}

/// What an update, of the object or of a subresource, may not change in the status.
pub(super) fn approval(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let Some(old) = site.old else { return };
    let field = "status.conditions";
    let has = |kind: &str| conditions(site.value).iter().any(|condition| condition["type"] == kind);
    if has("Approved") && has("Denied") {
        let [approved, denied] = ["Approved", "Denied"].map(|kind| format!("conditions[{{\"type\": {kind:?}}}]"));
        let why = format!("must specify at most one of: `{approved}`, `{denied}`");
        causes.push(Cause::invalid(field, format!("{:?}", format!("{{{approved}, {denied}}}")), why));
    }
    for kind in FINAL {
        let of = |object: &Value| conditions(object).iter().filter(|condition| condition["type"] == kind).count();
        let (before, after) = (of(old), of(site.value));
        let what = match after.cmp(&before) {
            std::cmp::Ordering::Less => "remove",
            std::cmp::Ordering::Greater if site.part != "approval" && kind != "Failed" => "add",
            _ => continue,
        };
        causes.push(Cause::forbidden(field, format!("updates may not {what} a condition of type {kind:?}")));
    }
    let (certificate, before) = (&site.value["status"]["certificate"], text(&old["status"]["certificate"]));
    if !before.is_empty() && text(certificate) != before {
        let why = "updates may not modify existing certificate content";
        causes.push(Cause::forbidden("status.certificate", why));
    }
}

/// The bytes of a PEM block of this type, in base64 as JSON has bytes.
fn has_block(encoded: &Value, kind: &str) -> bool {
    let bytes = base64::engine::general_purpose::STANDARD.decode(text(encoded)).unwrap_or_default();
    let pem = String::from_utf8_lossy(&bytes);
    let (begin, end) = (format!("-----BEGIN {kind}-----"), format!("-----END {kind}-----"));
    pem.split_once(&begin).is_some_and(|(_, rest)| rest.contains(&end))
}

pub(super) fn signing_request(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    if !has_block(site.value, "CERTIFICATE REQUEST") {
        causes.push(Cause::invalid(site.field, shown(site.value), "PEM block type must be CERTIFICATE REQUEST"));
    }
}

pub(super) fn certificate(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    if !text(site.value).is_empty() && !has_block(site.value, "CERTIFICATE") {
        let why = "must contain at least one CERTIFICATE PEM block";
        causes.push(Cause::invalid(site.field, "\"<certificate data>\"", why));
    }
}

pub(super) fn lifetime(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    if let Some(seconds) = site.value.as_i64().filter(|seconds| *seconds < 600) {
        let why = "may not specify a duration less than 600 seconds (10 minutes)";
        causes.push(Cause::invalid(site.field, seconds, why));
    }
}

/// A signer is a domain and a path.
pub(super) fn signer_name(site: &Site<'_>, _: &str, causes: &mut Vec<Cause>) {
    let name = text(site.value);
    if name.is_empty() {
        return;
    }
    let mut segments = name.split('/');
    let (Some(domain), Some(path), None) = (segments.next(), segments.next(), segments.next()) else {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return causes.push(Cause::invalid(site.field, quoted(name), why));
    };
    let mut parts = |segment: &str, format: &str| {
        let wrong = segment.split('.').map(|part| (part, formats::named(format)(part)));
        for (part, problems) in wrong.filter(|(_, problems)| !problems.is_empty()).take(1) {
            let why = problems.into_iter().map(|why| format!("validating label {part:?}: {why}"));
            causes.extend(why.map(|why| Cause::invalid(site.field, quoted(segment), why)));
        }
    };
    parts(domain, "label");
    parts(path, "subdomain");
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        causes.push(Cause::invalid(site.field, quoted(domain), why));
    }
}
