//! Query strings. The first value of a name wins, as with the real server.

use std::time::Duration;

use super::status::{Cause, Status};

/// The parameters of a request, decoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: &str) -> Self {
        Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect())
    }

    /// The first value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// All values of a parameter.
    pub(crate) fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        self.0.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The value; empty if the parameter is absent.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Whether a parameter is present with any value but a false one: the real server treats
    /// `watch=abc` as true.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !matches!(value, "false" | "False" | "FALSE" | "0"))
    }

    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, Status> {
        match self.get(name) {
            None => Ok(None),
            Some(text) => match text.parse() {
                Ok(number) => Ok(Some(number)),
                Err(error) => {
                    let why = match error.kind() {
                        std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => {
                            "value out of range"
                        }
                        _ => "invalid syntax",
                    };
                    Err(Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}")))
                }
            },
        }
    }
}

/// How `resourceVersion` applies to a list (`resourceVersionMatch`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Match {
    Exact,
    NotOlderThan,
}

/// Whether a watch begins with the current state (`sendInitialEvents`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InitialEvents {
    /// Depends on the version: all initial events for "" and "0", none for others.
    Default,
    Send,
    Skip,
}

/// The options of list and watch requests, with the version options validated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListOptions {
    /// Unparsed; parsed only after all other options are valid, because that is the order of the
    /// real server's errors.
    pub(crate) resource_version: String,
    pub(crate) version_match: Option<Match>,
    pub(crate) limit: Option<usize>,
    pub(crate) continue_token: String,
    pub(crate) label_selector: String,
    pub(crate) field_selector: String,
    pub(crate) shard_selector: String,
    pub(crate) initial_events: InitialEvents,
    pub(crate) bookmarks: bool,
    pub(crate) watch_timeout: Option<Duration>,
}

/// The verb of the options: the validation rules differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListVerb {
    List,
    Watch,
}

impl ListOptions {
    pub(crate) fn parse(query: &Query, verb: ListVerb) -> Result<Self, Status> {
        let limit = query.integer("limit")?;
        let timeout = query.integer("timeoutSeconds")?;
        let initial_events = match query.get("sendInitialEvents") {
            None | Some("") => InitialEvents::Default,
            Some("false" | "False" | "FALSE" | "0") => InitialEvents::Skip,
            Some(_) => InitialEvents::Send,
        };
        let version = query.text("resourceVersion");
        let version_match = query.text("resourceVersionMatch");
        let token = query.text("continue");
        let causes = match verb {
            ListVerb::List => list_causes(version, version_match, token, initial_events),
            ListVerb::Watch => watch_causes(version, version_match, token, initial_events),
        };
        if !causes.is_empty() {
            return Err(Status::invalid_list_options(causes));
        }
        Ok(Self {
            resource_version: version.to_owned(),
            version_match: match version_match {
                "Exact" => Some(Match::Exact),
                "NotOlderThan" => Some(Match::NotOlderThan),
                _ => None,
            },
            limit: limit.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0),
            continue_token: token.to_owned(),
            label_selector: query.text("labelSelector").to_owned(),
            field_selector: query.text("fieldSelector").to_owned(),
            shard_selector: query.text("shardSelector").to_owned(),
            initial_events,
            bookmarks: query.flag("allowWatchBookmarks"),
            watch_timeout: timeout.and_then(go_seconds),
        })
    }
}

/// The timeout of a watch. A negative one expires at once; zero leaves it to the server.
///
/// Go counts nanoseconds in 64 bits, which wrap around: the largest numbers of seconds are
/// negative.
fn go_seconds(seconds: i64) -> Option<Duration> {
    let nanos = seconds.wrapping_mul(1_000_000_000);
    (nanos != 0).then(|| Duration::from_nanos(nanos.try_into().unwrap_or(0)))
}

const MATCH: &str = "resourceVersionMatch";

fn list_causes(version: &str, version_match: &str, token: &str, initial_events: InitialEvents) -> Vec<Cause> {
    let mut causes = Vec::new();
    if !version_match.is_empty() {
        if version.is_empty() {
            causes
                .push(Cause::forbidden(MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided"));
        }
        if !token.is_empty() {
            causes.push(Cause::forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
        }
        if !matches!(version_match, "Exact" | "NotOlderThan") {
            let value = format!("{version_match:?}");
            causes.push(Cause::unsupported(MATCH, value, "\"Exact\", \"NotOlderThan\", \"\""));
        }
        if version_match == "Exact" && version == "0" {
            let why = "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"";
            causes.push(Cause::forbidden(MATCH, why));
        }
    }
    if initial_events != InitialEvents::Default {
        causes.push(Cause::forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"));
    }
    causes
}

fn watch_causes(version: &str, version_match: &str, token: &str, initial_events: InitialEvents) -> Vec<Cause> {
    let mut causes = Vec::new();
    match initial_events {
        InitialEvents::Default if !version_match.is_empty() => {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
            causes.push(Cause::forbidden(MATCH, why));
        }
        InitialEvents::Send | InitialEvents::Skip if version_match != "NotOlderThan" => {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            causes.push(Cause::forbidden(MATCH, why));
        }
        InitialEvents::Default | InitialEvents::Send | InitialEvents::Skip => {}
    }
    if !matches!(version_match, "" | "NotOlderThan") {
        causes.push(Cause::unsupported(MATCH, format!("{version_match:?}"), "\"NotOlderThan\""));
    }
    // A watch of the current state is treated as a streaming list, whose match is `NotOlderThan`.
    let promoted = initial_events == InitialEvents::Default && matches!(version, "" | "0");
    if (promoted || !version_match.is_empty()) && !token.is_empty() {
        causes.push(Cause::forbidden(MATCH, "resourceVersionMatch is forbidden when continue is provided"));
    }
    causes
}

/// Parses a resource version, with the error message of the real server's storage.
pub(crate) fn parse_version(text: &str) -> Result<u64, String> {
    parse_uint(text).map_err(|why| format!("resourceVersion: Invalid value: {text:?}: {why}"))
}

/// Parses a number as Go's `ParseUint` does, with its error messages.
pub(crate) fn parse_uint(text: &str) -> Result<u64, String> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let why = match digits.then(|| text.parse::<u64>()) {
        Some(Ok(version)) => return Ok(version),
        Some(Err(_)) => "value out of range",
        None => "invalid syntax",
    };
    Err(format!("strconv.ParseUint: parsing {text:?}: {why}"))
}

/// Parses a timeout in Go's notation, as in `?timeout=`: `1s`, `1m30s`, `100ms`.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|n| *n > 0)?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let units = [("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
        let (unit, seconds) = units.into_iter().find(|(unit, _)| rest.starts_with(unit))?;
        rest = &rest[unit.len()..];
        total = total.checked_add(Duration::try_from_secs_f64(number * seconds).ok()?)?;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(query: &str) -> Result<ListOptions, Status> {
        ListOptions::parse(&Query::parse(query), ListVerb::List)
    }

    #[test]
    fn the_first_value_wins_and_odd_words_are_a_yes() {
        let query = Query::parse("watch=abc&limit=1&limit=2&x=%2F+a");
        assert!(query.flag("watch"));
        assert_eq!(query.get("limit"), Some("1"));
        assert_eq!(query.get("x"), Some("/ a"));
        assert!(!Query::parse("watch=0").flag("watch"));
        assert!(Query::parse("watch").flag("watch"));
    }

    #[test]
    fn a_match_without_a_version_is_refused_and_so_is_an_unknown_one() {
        assert!(list("resourceVersionMatch=Exact").unwrap_err().message().contains("forbidden unless"));
        let both = list("resourceVersionMatch=Bogus&continue=x").unwrap_err();
        assert!(
            both.message().starts_with("ListOptions.meta.k8s.io \"\" is invalid: [resourceVersionMatch: Forbidden")
        );
        assert!(list("resourceVersion=0&resourceVersionMatch=Exact").is_err());
        assert!(list("resourceVersion=5&resourceVersionMatch=").is_ok());
    }

    #[test]
    fn limits_that_are_no_limits_are_none() {
        assert_eq!(list("limit=0").unwrap().limit, None);
        assert_eq!(list("limit=-4").unwrap().limit, None);
        assert_eq!(list("limit=5").unwrap().limit, Some(5));
        assert_eq!(list("limit=abc").unwrap_err().code(), 400);
        assert_eq!(list("limit=").unwrap_err().code(), 400);
    }

    #[test]
    fn timeouts_wrap_around_as_gos() {
        let timeout = |query: &str| ListOptions::parse(&Query::parse(query), ListVerb::Watch).unwrap().watch_timeout;
        assert_eq!(timeout("timeoutSeconds=30"), Some(Duration::from_secs(30)));
        assert_eq!(timeout("timeoutSeconds=0"), None);
        for at_once in [-1, i64::MAX] {
            assert_eq!(timeout(&format!("timeoutSeconds={at_once}")), Some(Duration::ZERO), "{at_once}");
        }
        assert_eq!(timeout("timeoutSeconds=9223372036"), Some(Duration::from_secs(9_223_372_036)));
    }

    #[test]
    fn versions_are_parsed_with_gos_words() {
        assert_eq!(parse_version("007"), Ok(7));
        assert!(parse_version("abc").unwrap_err().ends_with("parsing \"abc\": invalid syntax"));
        assert!(parse_version("99999999999999999999").unwrap_err().ends_with("value out of range"));
        assert!(parse_version("+1").is_err());
    }

    #[test]
    fn durations_are_gos() {
        assert_eq!(parse_duration("1m30s"), Some(Duration::from_secs(90)));
        assert_eq!(parse_duration("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(parse_duration("abc"), None);
        assert_eq!(parse_duration("1"), None);
    }
}

#[cfg(test)]
mod fuzz {
    use std::time::Duration;

    use http::{HeaderMap, HeaderValue};
    use tokio::time::Instant;

    use super::*;
    use crate::api::delete_options::DeleteOptions;
    use crate::api::write_options::{OptionsOf, WriteOptions};
    use crate::fuzzing::{fuzz, recorded};
    use crate::http::negotiate::{Negotiated, Served};
    use crate::http::request::Target;

    #[test]
    fn any_query_is_parsed_or_refused() {
        let names = [
            "limit",
            "timeoutSeconds",
            "watch",
            "resourceVersion",
            "resourceVersionMatch",
            "continue",
            "timeout",
            "dryRun",
            "sendInitialEvents",
            "gracePeriodSeconds",
            "propagationPolicy",
            "orphanDependents",
            "fieldManager",
            "fieldValidation",
            "force",
            "pretty",
            "labelSelector",
            "includeObject",
            "as",
        ];
        let values = [
            "",
            "0",
            "1",
            "-1",
            "9223372036854775807",
            "-9223372036854775808",
            "18446744073709551615",
            "1e9",
            "true",
            "abc",
            "Exact",
            "NotOlderThan",
            "All",
            "Orphan",
            "1s",
            "1.5h",
            "9999999999999h",
            "%00",
            "%ff",
            "+",
            "é",
            "Table",
        ];
        let media = [
            "application/json",
            "application/*",
            "*/*",
            ";as=Table",
            ";g=meta.k8s.io",
            ";v=v1",
            ",",
            ";q=0.1",
            " ",
            ";stream=watch",
            "é",
        ];
        let paths =
            ["/", "api", "apis", "v1", "apps", "namespaces", "watch", "pods", "x", "status", "%2f", "%", "é", ".."];
        fuzz(500, |source| {
            let parameter =
                |source: &mut crate::fuzzing::Source| format!("{}={}", source.choose(&names), source.text(&values, 2));
            let text: Vec<String> = (0..source.below(8)).map(|_| parameter(source)).collect();
            let query = Query::parse(&text.join(*source.choose(&["&", "&&", ";"])));
            for verb in [ListVerb::List, ListVerb::Watch] {
                if let Ok(ListOptions { watch_timeout: Some(timeout), .. }) = ListOptions::parse(&query, verb) {
                    // As a watch does, and a second more for the bookmarks.
                    let _end = Instant::now() + timeout + Duration::from_secs(1);
                }
            }
            for of in [OptionsOf::Create, OptionsOf::Update, OptionsOf::Patch, OptionsOf::Apply] {
                drop(WriteOptions::parse(&query, of));
            }
            drop(DeleteOptions::parse(&query, b""));
            parse_duration(query.text("timeout"));
            parse_version(query.text("resourceVersion")).ok();
            let mut headers = HeaderMap::new();
            if let Ok(accept) = HeaderValue::from_str(&source.text(&media, 8)) {
                headers.insert(http::header::ACCEPT, accept);
            }
            let _form = Negotiated::read(&headers, &query, Served::BuiltIn);
            Target::parse(&source.text(&paths, 12));
        });
    }

    #[test]
    fn any_options_of_a_deletion_are_parsed_or_refused() {
        let mut bodies = recorded().0;
        let options = r#"{"kind":"DeleteOptions","gracePeriodSeconds":1,"preconditions":{"uid":"x"},"dryRun":["All"]}"#;
        bodies.splice(1.., [options.as_bytes().to_vec()]);
        fuzz(500, |source| {
            let body = if source.one_in(4) { source.nested(300) } else { source.mutated(&bodies) };
            drop(DeleteOptions::parse(&Query::default(), &body));
        });
    }
}
