//! String formats in schemas of custom resources.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::LazyLock;

use base64::Engine as _;
use regex::Regex;
use serde_json::Value;

use crate::kinds::NameRule;

/// Whether a text matches a format. Unknown formats, and those of ISBNs and credit cards, are not
/// checked.
pub(super) fn fits(format: &str, text: &str) -> bool {
    match format.replace('-', "").as_str() {
        "ipv4" => text.contains('.') && text.parse::<IpAddr>().is_ok(),
        "ipv6" => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => is_cidr(text),
        "datetime" => is_date_time(text),
        "date" => text.len() == 10 && text.parse::<jiff::civil::Date>().is_ok(),
        "duration" => is_duration(text),
        "byte" => base64::engine::general_purpose::STANDARD.decode(text).is_ok(),
        "uri" => is_uri(text),
        "email" => is_email(text),
        "hostname" => text.len() <= 255 && text.split('.').all(|part| part.len() <= 63) && HOST.is_match(text),
        "uuid" => is_uuid(text, None),
        "uuid3" => is_uuid(text, Some('3')),
        "uuid4" => is_uuid(text, Some('4')),
        "uuid5" => is_uuid(text, Some('5')),
        "mac" => MAC.is_match(text),
        "hexcolor" => HEX_COLOR.is_match(text),
        "rgbcolor" => RGB_COLOR.is_match(text),
        "ssn" => SSN.is_match(text),
        "bsonobjectid" => text.len() == 24 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "k8sshortname" => NameRule::DnsLabel.problems(text).is_empty(),
        "k8slongname" => NameRule::DnsSubdomain.problems(text).is_empty(),
        _ => true,
    }
}

/// All known string formats, without dashes.
const STRING_FORMATS: [&str; 26] = [
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "datetime",
    "k8sshortname",
    "k8slongname",
];

/// Collects the unknown formats of a schema.
pub(super) fn unknown(schema: &Value, found: &mut Vec<String>) {
    let Value::Object(map) = schema else { return };
    if let (Some(format), Some(kind)) =
        (map.get("format").and_then(Value::as_str), map.get("type").and_then(Value::as_str))
    {
        let known = match kind {
            "string" => STRING_FORMATS.contains(&format.replace('-', "").as_str()),
            "integer" => matches!(format, "int32" | "int64"),
            "number" => matches!(format, "float" | "double"),
            _ => true,
        };
        if !known && !found.iter().any(|other| other == format) {
            found.push(format.to_owned());
        }
    }
    let below = map.get("properties").and_then(Value::as_object).into_iter().flat_map(|properties| properties.values());
    let others = ["items", "additionalProperties"].into_iter().filter_map(|part| map.get(part));
    below.chain(others).for_each(|schema| unknown(schema, found));
}

macro_rules! pattern {
    ($name:ident, $pattern:literal) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($pattern).expect("the pattern is one"));
    };
}

// A single label, or several labels of which the last has at least two letters.
pattern!(
    HOST,
    r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$"
);
pattern!(
    MAC,
    r"^(?i)([0-9a-f]{2}([:-][0-9a-f]{2}){5}([:-][0-9a-f]{2}){0,2}|[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}(\.[0-9a-f]{4})?)$"
);
pattern!(HEX_COLOR, r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$");
pattern!(RGB_COLOR, r"^rgb\(\s*\d{1,3}\s*,\s*\d{1,3}\s*,\s*\d{1,3}\s*\)$");
pattern!(SSN, r"^\d{3}[- ]?\d{2}[- ]?\d{4}$");
pattern!(
    DURATION,
    r"^[+-]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h)(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))*)$"
);
pattern!(
    DURATION_WITH_UNIT_NAMES,
    r"(?i)[0-9]+\s*(ns|nanos|us|µs|micros|ms|millis|s|sec|m|min|h|hr|hour|d|day|w|wk|week)"
);

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else { return false };
    let Ok(address) = address.parse::<IpAddr>() else { return false };
    let longest = if address.is_ipv4() { 32 } else { 128 };
    length.bytes().all(|byte| byte.is_ascii_digit()) && length.parse::<u8>().is_ok_and(|length| length <= longest)
}

fn is_date_time(text: &str) -> bool {
    text.len() > 10 && text.as_bytes()[10].eq_ignore_ascii_case(&b't') && text.parse::<jiff::Timestamp>().is_ok()
}

fn is_duration(text: &str) -> bool {
    DURATION.is_match(text) || DURATION_WITH_UNIT_NAMES.is_match(text)
}

/// A URI with a scheme, or an absolute path.
fn is_uri(text: &str) -> bool {
    let clean = !text.is_empty() && text.bytes().all(|byte| byte > b' ' && byte != 0x7f);
    let schemed = text.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    });
    clean && (text.starts_with('/') || schemed)
}

/// An email address, with or without a display name.
fn is_email(text: &str) -> bool {
    let address = match text.trim().strip_suffix('>').and_then(|text| text.rsplit_once('<')) {
        Some((_, address)) => address,
        None => text.trim(),
    };
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let fits = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.ends_with('.')
            && !part.contains(|c: char| c.is_whitespace() || "()<>,;:\\\"[]@".contains(c))
    };
    fits(local) && fits(domain)
}

/// Whether the text has 32 hexadecimal digits, with optional dashes between the groups. If a
/// version is given, the 13th digit must match it.
fn is_uuid(text: &str, version: Option<char>) -> bool {
    let mut rest = text;
    for (at, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if at > 0 {
            rest = rest.strip_prefix('-').unwrap_or(rest);
        }
        let Some(group) = rest.get(..length).filter(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit())) else {
            return false;
        };
        if at == 2 && version.is_some_and(|version| !group.starts_with(version)) {
            return false;
        }
        if at == 3 && matches!(version, Some('4' | '5')) && !group.starts_with(['8', '9', 'a', 'b', 'A', 'B']) {
            return false;
        }
        rest = &rest[length..];
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_of_their_formats() {
        for (format, right, wrong) in [
            ("ipv4", "10.0.0.1", "10.0.0"),
            ("ipv6", "::1", "10.0.0.1"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("date-time", "2020-01-01T00:00:00Z", "2020-01-01"),
            ("date", "2020-01-01", "2020-13-01"),
            ("duration", "1h30m", "soon"),
            ("duration", "22 ns", "1x"),
            ("byte", "YWJj", "%%"),
            ("uri", "http://a/b", "not a uri"),
            ("email", "Ann <a@b.c>", "a@"),
            ("hostname", "a.example", "-_"),
            ("uuid", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "6ba7b810"),
            ("uuid4", "6ba7b8109dad41d180b400c04fd430c8", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
            ("mac", "aa:bb:cc:dd:ee:ff", "aa:bb"),
            ("hexcolor", "#fff", "#ff"),
            ("k8s-short-name", "abc", "a.b"),
            ("k8s-long-name", "a.b", "A.b"),
        ] {
            assert!(fits(format, right), "{right} is a {format}");
            assert!(!fits(format, wrong), "{wrong} is no {format}");
        }
        assert!(fits("whatever", "anything"));
    }
}
