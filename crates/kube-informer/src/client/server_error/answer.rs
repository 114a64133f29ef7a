//! Interpretation of error responses.

use std::time::Duration;

use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use jiff::Timestamp;

use super::failure::{self, Failure};
use crate::codec::{ServerStatus, protobuf};

/// How many bytes of an error response are read.
pub(crate) const MAX_FAILURE_SIZE: usize = 64 << 10;

/// The maximum length of a server's error message that is kept.
const LONGEST_MESSAGE: usize = 1_000;

/// How many causes of a server's error are kept.
const MOST_CAUSES: usize = 16;

/// Converts an error response in any format to a failure.
pub(crate) fn failure(code: StatusCode, headers: &HeaderMap, body: &[u8], now: Timestamp) -> Failure {
    let status = status(code, headers, body);
    let retry_after = headers
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok())
        .and_then(|value| parse_retry_after(value, now))
        .or_else(|| failure::retry_after(&status));
    Failure::Answered { status: Box::new(status), retry_after }
}

fn status(code: StatusCode, headers: &HeaderMap, body: &[u8]) -> ServerStatus {
    let mut status = ServerStatus::of_json(body)
        .filter(|status| !status.message.is_empty() || !status.reason.is_empty())
        .or_else(|| protobuf::status(body))
        .unwrap_or_else(|| ServerStatus { message: message_of(headers, body), ..ServerStatus::default() });
    // The HTTP status takes precedence over the code in the body.
    status.code = code.as_u16();
    if status.reason.is_empty() {
        code.canonical_reason().unwrap_or_default().split(' ').for_each(|word| status.reason.push_str(word));
    }
    shorten(&mut status);
    status
}

/// The message of a body that is not a `Status`. Nothing of a JSON body is included, since it may
/// be an object, and nothing of an HTML page.
fn message_of(headers: &HeaderMap, body: &[u8]) -> String {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let text = body.trim_ascii();
    if text.is_empty() {
        return String::new();
    }
    let markup = content_type.contains("html") || text.starts_with(b"<");
    if markup {
        return format!("(a page of {} bytes, probably of a proxy)", body.len());
    }
    let json = content_type.contains("json") || text.starts_with(b"{") || text.starts_with(b"[");
    if json || !(content_type.is_empty() || content_type.starts_with("text/plain")) {
        return format!("(a body of {} bytes that is no Status)", body.len());
    }
    let first = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
    String::from_utf8_lossy(first).trim().chars().filter(|letter| !letter.is_control()).collect()
}

/// Bounds what is kept of a server's status, which may be as long as a frame.
pub(super) fn shorten(status: &mut ServerStatus) {
    status.details.causes.truncate(MOST_CAUSES);
    let causes = status.details.causes.iter_mut().flat_map(|cause| [&mut cause.reason, &mut cause.message]);
    causes.chain([&mut status.reason, &mut status.message]).for_each(shorten_text);
}

fn shorten_text(text: &mut String) {
    if text.len() > LONGEST_MESSAGE {
        let end = (0..=LONGEST_MESSAGE).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.shrink_to_fit();
        text.push('…');
    }
}

/// Parses `Retry-After`: a number of seconds, or a date.
fn parse_retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(value).ok()?;
    Some(Duration::try_from(date.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Operation, ServerError};

    fn error(code: u16, headers: &[(&'static str, &'static str)], body: &[u8]) -> ServerError {
        let code = StatusCode::from_u16(code).unwrap();
        let headers = headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        ServerError::new(Operation::List, "pods", failure(code, &headers, body, now))
    }

    #[test]
    fn the_servers_own_status_is_reported() {
        let error =
            error(403, &[], br#"{"kind":"Status","message":"pods is forbidden","reason":"Forbidden","code":403}"#);
        assert!(error.is_forbidden());
        assert_eq!(error.to_string(), "listing pods: the server answered 403 Forbidden: pods is forbidden");
    }

    #[test]
    fn retry_after_comes_from_the_header_or_from_the_status() {
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(error(429, &[("retry-after", "7")], b"").retry_after(), seconds(7));
        let dated = [("retry-after", "Sun, 15 Nov 2026 12:00:30 GMT")];
        assert_eq!(error(503, &dated, b"").retry_after(), seconds(30));
        let past = [("retry-after", "Sun, 15 Nov 2026 11:00:30 GMT")];
        assert_eq!(error(503, &past, b"").retry_after(), seconds(0));
        let status = br#"{"message":"storage is (re)initializing","reason":"TooManyRequests","details":{"retryAfterSeconds":3}}"#;
        assert_eq!(error(429, &[], status).retry_after(), seconds(3));
        assert_eq!(error(429, &[("retry-after", "soon")], b"").retry_after(), None);
    }

    #[test]
    fn plain_text_is_reported_and_pages_are_not() {
        let plain = error(
            429,
            &[("content-type", "text/plain; charset=utf-8")],
            b"Too many requests, please try again later.\n",
        );
        assert_eq!(
            plain.to_string(),
            "listing pods: the server answered 429 TooManyRequests: Too many requests, please try again later."
        );
        let page = error(502, &[("content-type", "text/html")], b"<html><title>Bad Gateway</title></html>");
        assert_eq!(
            page.to_string(),
            "listing pods: the server answered 502 BadGateway: (a page of 39 bytes, probably of a proxy)"
        );
    }

    #[test]
    fn nothing_of_an_object_is_in_the_message() {
        for headers in [&[("content-type", "application/json")][..], &[], &[("content-type", "application/yaml")]] {
            let error = error(500, headers, br#"{"kind":"Secret","data":{"password":"aHVudGVyMg=="}}"#);
            assert!(!format!("{error} {error:?}").contains("aHVudGVyMg"), "{error}");
        }
    }

    #[test]
    fn a_too_large_version_is_known_in_all_its_historic_shapes() {
        let shapes: [&[u8]; 3] = [
            br#"{"reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]},"code":504}"#,
            br#"{"reason":"Timeout","details":{"causes":[{"message":"Too large resource version"}]},"code":504}"#,
            br#"{"message":"Timeout: Too large resource version: 9, current: 2","reason":"Timeout","code":504}"#,
        ];
        for shape in shapes {
            assert!(error(504, &[], shape).is_too_large_version());
        }
        assert!(!error(504, &[], br#"{"message":"slow","reason":"Timeout","code":504}"#).is_too_large_version());
    }

    #[test]
    fn long_words_are_cut_at_a_letter() {
        let error = error(500, &[], "ä".repeat(5_000).as_bytes());
        assert!(error.status().unwrap().message.chars().count() < 600);
    }
}

#[cfg(test)]
mod fuzz {
    use super::*;
    use crate::fuzzing::{fuzz, recorded};
    use http::HeaderValue;

    #[test]
    fn any_error_response_is_a_short_failure() {
        let status = br#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no","reason":"Expired","details":{"retryAfterSeconds":7,"causes":[{"reason":"a","message":"b"}]},"code":410}"#;
        let (mut bodies, protobuf) = recorded();
        bodies.extend(protobuf);
        bodies.extend([status.to_vec(), b"<html>".to_vec(), b"no route\nto host".to_vec()]);
        fuzz(500, |source| {
            let mut headers = HeaderMap::new();
            let times = ["5", "-1", "1e9", "99999999999999999999", "Wed, 21 Oct 2015 07:28:00 GMT", "Wed", ":", "9999"];
            for (name, pieces) in
                [(RETRY_AFTER, &times[..]), (CONTENT_TYPE, &["application/", "json", "text/", "plain"])]
            {
                let value = source.text(pieces, 3);
                headers.extend(HeaderValue::from_str(&value).ok().map(|value| (name, value)));
            }
            let body = source.mutated(&bodies);
            let code = StatusCode::from_u16(100 + source.below(900) as u16).expect("a code");
            let now = Timestamp::from_second(source.below(4_000_000_000) as i64).expect("a time");
            let Failure::Answered { status, .. } = failure(code, &headers, &body, now) else { panic!("an answer") };
            assert!(status.message.len() <= LONGEST_MESSAGE + '…'.len_utf8() && status.code == code.as_u16());
        });
    }
}
