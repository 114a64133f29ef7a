//! Formats of strings and numbers, with the real server's error messages.

use std::net::IpAddr;

use serde_json::Value;

use crate::encoding::json;
use crate::http::status::Cause;
use crate::kinds::NameRule;
use crate::storage::selector::{label_value_problem, qualified_name_problems};

pub(super) const NO_PORT: &str = "must be between 1 and 65535, inclusive";
pub(super) const NO_PERCENT: &str = "a valid percent string must be a numeric string followed by an ending '%' \
     (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
const NO_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
     or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
const NO_WILDCARD: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which \
     must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. \
     '*.example.com', regex used for validation is \
     '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const MAX_ANNOTATIONS_BYTES: usize = 256 * 1024;

/// The errors of a string.
pub(super) type Format = fn(&str) -> Vec<String>;

/// The format with this name in the table.
pub(super) fn named(name: &str) -> Format {
    match name {
        "label" => |text| NameRule::DnsLabel.problems(text),
        "subdomain" | "subdomain-or-empty" => |text| NameRule::DnsSubdomain.problems(text),
        "webhook-name" => webhook_name,
        "path-segment" => |text| NameRule::PathSegment.problems(text),
        "qualified" => qualified_name_problems,
        "label-value" => |text| label_value_problem(text).into_iter().collect(),
        "port-name" => port_name,
        "env-name" => variable_name,
        "key" => key,
        "host" => host,
        "not-ip" => |text| one(text.parse::<IpAddr>().is_ok(), "must be a DNS name, not an IP address"),
        "cidr" => |text| one(!is_cidr(text), "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
        "cron" => cron,
        "field-path" => field_path,
        other => panic!("no rule and no format is called {other}"),
    }
}

pub(super) fn is_port(number: i64) -> bool {
    (1..=65_535).contains(&number)
}

pub(super) fn is_percent(text: &str) -> bool {
    text.strip_suffix('%').is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

pub(super) fn port_name(name: &str) -> Vec<String> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let checks = [
        (name.len() > 15, "must be no more than 15 characters"),
        (!name.bytes().all(fits), "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"),
        (!name.bytes().any(|byte| byte.is_ascii_lowercase()), "must contain at least one letter (a-z)"),
        (name.contains("--"), "must not contain consecutive hyphens"),
        (name.starts_with('-') || name.ends_with('-'), "must not begin or end with a hyphen"),
    ];
    checks.into_iter().flat_map(|(is_wrong, why)| one(is_wrong, why)).collect()
}

fn variable_name(name: &str) -> Vec<String> {
    let is_wrong = name.bytes().any(|byte| !(b' '..=b'~').contains(&byte) || byte == b'=');
    one(is_wrong, "a valid environment variable name must consist only of printable ASCII characters other than '='")
}

fn key(key: &str) -> Vec<String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let mut problems = one(key.len() > 253, "must be no more than 253 characters");
    problems.extend(one(!key.bytes().all(fits) || key.is_empty(), NO_KEY));
    problems.extend(
        match key {
            "." => Some("must not be '.'"),
            ".." => Some("must not be '..'"),
            key if key.starts_with("..") => Some("must not start with '..'"),
            _ => None,
        }
        .map(str::to_owned),
    );
    problems
}

fn host(host: &str) -> Vec<String> {
    if !host.contains('*') {
        return NameRule::DnsSubdomain.problems(host);
    }
    let fits = host.strip_prefix("*.").is_some_and(|rest| NameRule::DnsSubdomain.problems(rest).is_empty());
    one(!fits, NO_WILDCARD)
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let most = match address.parse() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    bits.parse::<u8>().is_ok_and(|bits| bits <= most)
}

/// The errors of a field of the pod that an environment variable shows.
fn field_path(path: &str) -> Vec<String> {
    let is_known = matches!(
        path,
        "metadata.name"
            | "metadata.namespace"
            | "metadata.uid"
            | "metadata.labels"
            | "metadata.annotations"
            | "spec.nodeName"
            | "spec.serviceAccountName"
            | "spec.restartPolicy"
            | "spec.schedulerName"
            | "status.phase"
            | "status.hostIP"
            | "status.hostIPs"
            | "status.podIP"
            | "status.podIPs"
            | "spec.host"
    );
    let is_known = is_known || path.starts_with("metadata.labels[") || path.starts_with("metadata.annotations[");
    if is_known { Vec::new() } else { vec![format!("error converting fieldPath: field label not supported: {path}")] }
}

/// The errors of a schedule, as far as its number of fields.
fn cron(schedule: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    if !schedule.starts_with('@') && !schedule.contains("TZ") && fields.len() != 5 {
        problems.push(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    problems.extend(one(schedule.contains("TZ"), "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"));
    problems
}

pub(crate) fn labels(path: &str, labels: &Value, causes: &mut Vec<Cause>) {
    for (name, value) in labels.as_object().into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        let problems = qualified_name_problems(name).into_iter().map(|why| Cause::invalid(path, quoted(name), why));
        causes.extend(problems);
        causes.extend(label_value_problem(value).map(|why| Cause::invalid(path, quoted(value), why)));
    }
}

pub(crate) fn annotations(path: &str, annotations: &Value, causes: &mut Vec<Cause>) {
    let mut size = 0;
    for (name, value) in annotations.as_object().into_iter().flatten() {
        // Names of annotations may contain upper-case letters, in the prefix too.
        let problems = qualified_name_problems(&name.to_lowercase()).into_iter();
        causes.extend(problems.map(|why| Cause::invalid(path, quoted(name), why)));
        size += name.len() + value.as_str().map_or(0, str::len);
    }
    if size > MAX_ANNOTATIONS_BYTES {
        causes.push(Cause::too_long(path, MAX_ANNOTATIONS_BYTES));
    }
}

pub(super) fn keys(path: &str, data: &Value, causes: &mut Vec<Cause>) {
    for name in data.as_object().into_iter().flatten().map(|(name, _)| name) {
        causes.extend(key(name).into_iter().map(|why| Cause::invalid(&format!("{path}[{name}]"), quoted(name), why)));
    }
}

/// A string as in Go's messages.
pub(super) fn quoted(text: &str) -> String {
    String::from_utf8_lossy(&json::encode_sorted(&Value::from(text))).into_owned()
}

/// The name of a webhook is a domain of its own.
fn webhook_name(name: &str) -> Vec<String> {
    let mut problems = NameRule::DnsSubdomain.problems(name);
    if problems.is_empty() && name.split('.').count() < 3 {
        problems.push("should be a domain with at least three segments separated by dots".to_owned());
    }
    problems
}

fn one(is_wrong: bool, why: &str) -> Vec<String> {
    if is_wrong { vec![why.to_owned()] } else { Vec::new() }
}
