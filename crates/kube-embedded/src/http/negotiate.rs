//! Content negotiation: `Accept`, `Accept-Encoding`, `?pretty`.

use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING, USER_AGENT};

use super::query::Query;
use super::status::{Details, Status};
use crate::encoding::protobuf;

/// The form of an object or list in the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The complete object.
    Full,
    /// `PartialObjectMetadata`: the metadata alone.
    Metadata(MetaVersion),
    /// `PartialObjectMetadataList`.
    MetadataList(MetaVersion),
    /// `Table`: a row for each object, with this part of the object embedded.
    Table(MetaVersion, Include),
}

/// The part of an object that a table row embeds (`includeObject`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
    /// The client requested an unknown value.
    Unknown,
}

impl Include {
    fn read(query: &Query) -> Self {
        match query.text(INCLUDE) {
            "" | "Metadata" => Self::Metadata,
            "None" => Self::Nothing,
            "Object" => Self::Object,
            _ => Self::Unknown,
        }
    }
}

const INCLUDE: &str = "includeObject";

/// Returns 400 for a table request with an unknown `includeObject`.
pub(crate) fn check_table(form: Form, query: &Query) -> Result<(), Status> {
    match form {
        Form::Table(_, Include::Unknown) => {
            let why = format!(
                "Unable to convert to Table as requested: {INCLUDE}: Invalid value: {:?}: must be 'Metadata', 'Object', 'None', or empty",
                query.text(INCLUDE)
            );
            Err(Status::bad_request(why))
        }
        _ => Ok(()),
    }
}

/// The version of `meta.k8s.io` that the client requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetaVersion {
    V1,
    V1Beta1,
}

impl MetaVersion {
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// The layout of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One line, ended by a line break.
    Compact,
    /// Indented, without a line break at the end.
    Pretty,
}

/// The encoding of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Json,
    Protobuf,
}

/// The encoding and layout of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Writing {
    pub(crate) encoding: Encoding,
    /// Ignored for protobuf.
    pub(crate) layout: Layout,
}

/// The result of content negotiation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Negotiated {
    /// How the requested object is written.
    pub(crate) writing: Writing,
    /// How an object without conversions is written, such as a `Status` or a document. `None` if
    /// the client accepts no such object.
    pub(crate) plain: Option<Writing>,
    pub(crate) gzip: bool,
    /// The encoding of aggregated discovery, if the client prefers it to unaggregated discovery.
    pub(crate) aggregated: Option<Encoding>,
}

/// Whether a built-in or a custom kind is requested: custom kinds have no protobuf messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Served {
    BuiltIn,
    Custom,
}

/// No form that the client accepts is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unacceptable {
    /// No accepted media type is served.
    Media,
    /// The media type is served, the requested conversion is not.
    Transform,
}

/// The type of endpoint that returns 406: the real server lists different media types for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndpointKind {
    Object,
    /// A collection that can be watched.
    Collection,
    /// A document that has one representation only.
    Document,
}

impl Unacceptable {
    pub(crate) fn status(self, place: EndpointKind) -> Status {
        const MEDIA: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
        const STREAMS: &str = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
        let message = match (self, place) {
            (Self::Media | Self::Transform, EndpointKind::Document) => {
                "406: Not Acceptable\n\nAvailable representations: application/json".to_owned()
            }
            (Self::Transform, _) => format!("only the following media types are accepted: {MEDIA}"),
            (Self::Media, EndpointKind::Object) => format!("406: Not Acceptable\n\nAvailable representations: {MEDIA}"),
            (Self::Media, EndpointKind::Collection) => {
                format!("406: Not Acceptable\n\nAvailable representations: {MEDIA}{STREAMS}")
            }
        };
        let status = Status::new(406, "NotAcceptable", message);
        match (self, place) {
            (Self::Media, _) | (_, EndpointKind::Document) => status.with_details(Details::default()),
            (Self::Transform, _) => status,
        }
    }
}

impl Negotiated {
    /// Reads the request's headers; the second value is the form, or the reason why no form is
    /// acceptable.
    pub(crate) fn read(headers: &HeaderMap, query: &Query, served: Served) -> (Self, Result<Form, Unacceptable>) {
        let pretty = wants_pretty(headers, query);
        let alternatives = alternatives(headers);
        let writing = |each: &Alternative<'_>, encoding| {
            let pretty = pretty || each.parameter("pretty") == Some("1");
            Writing { encoding, layout: if pretty { Layout::Pretty } else { Layout::Compact } }
        };
        let chosen = alternatives.iter().find_map(|each| each.form(query, served).map(|found| (each, found)));
        let plain = alternatives.iter().find_map(|each| each.plain().map(|encoding| writing(each, encoding)));
        // Routes of built-in kinds check media types before any handler runs, and do not match
        // `application/*`.
        let routed = served == Served::Custom || alternatives.iter().any(Alternative::is_routed);
        let form = match chosen {
            Some((_, (form, _))) if routed => Ok(form),
            _ if routed => Err(Unacceptable::Transform),
            _ => Err(Unacceptable::Media),
        };
        let fallback = Writing { encoding: Encoding::Json, layout: Layout::Compact };
        let aggregated = alternatives.iter().find(|each| each.aggregated().is_some() || each.plain().is_some());
        let wish = Self {
            writing: chosen.map_or(fallback, |(each, (_, encoding))| writing(each, encoding)),
            plain,
            gzip: header_text(headers, ACCEPT_ENCODING).is_some_and(accepts_gzip),
            aggregated: aggregated.and_then(Alternative::aggregated),
        };
        (wish, form)
    }

    /// How a failure is written: if the client accepts no plain object, as indented JSON.
    pub(crate) fn failure(&self) -> Writing {
        self.plain.unwrap_or(Writing { encoding: Encoding::Json, layout: Layout::Pretty })
    }
}

/// Whether a client accepts JSON, in any form.
pub(crate) fn accepts_json(headers: &HeaderMap) -> bool {
    alternatives(headers).iter().any(|each| matches!(each.media, JSON | "*/*"))
}

/// The first of the offered media types that a client accepts, in the order of its preference.
pub(crate) fn preferred<'o>(headers: &HeaderMap, offered: &[&'o str]) -> Option<&'o str> {
    alternatives(headers).iter().find_map(|accepted| {
        let accepts_any = matches!(accepted.media, "*/*" | "application/*");
        offered.iter().find(|media| accepts_any || **media == accepted.media).copied()
    })
}

pub(crate) const JSON: &str = "application/json";

fn header_text(headers: &HeaderMap, name: http::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn wants_pretty(headers: &HeaderMap, query: &Query) -> bool {
    match query.get("pretty") {
        Some(pretty) => matches!(pretty, "true" | "1"),
        None => header_text(headers, USER_AGENT)
            .is_some_and(|agent| ["curl", "Wget", "Mozilla/5.0"].iter().any(|prefix| agent.starts_with(prefix))),
    }
}

/// As in the real server, a quality value disables the match: `gzip;q=1.0` does not request gzip.
fn accepts_gzip(value: &str) -> bool {
    value.split(',').any(|part| part.trim() == "gzip")
}

/// One alternative of an `Accept` header.
struct Alternative<'h> {
    media: &'h str,
    parameters: Vec<(&'h str, &'h str)>,
    quality: f32,
}

impl<'h> Alternative<'h> {
    fn parse(text: &'h str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        // Parameters without a value are ignored.
        let parameters: Vec<_> = parts
            .filter_map(|part| part.split_once('='))
            .map(|(name, value)| (name.trim(), value.trim()))
            .filter(|(_, value)| !value.is_empty())
            .collect();
        let quality = parameters.iter().find(|(n, _)| *n == "q").and_then(|(_, v)| v.parse().ok()).unwrap_or(1.0);
        Self { media, parameters, quality }
    }

    fn parameter(&self, name: &str) -> Option<&'h str> {
        self.parameters.iter().find(|(n, _)| *n == name).map(|(_, value)| *value)
    }

    /// The encodings that match this media type, the preferred first.
    fn encodings(&self) -> &'static [Encoding] {
        match self.media {
            JSON => &[Encoding::Json],
            protobuf::MEDIA => &[Encoding::Protobuf],
            "*/*" | "application/*" => &[Encoding::Json, Encoding::Protobuf],
            _ => &[],
        }
    }

    /// Whether a route of a built-in kind accepts this media type.
    fn is_routed(&self) -> bool {
        matches!(self.media, JSON | protobuf::MEDIA | "*/*")
    }

    /// Whether the client requests a conversion to another type.
    fn converts(&self) -> bool {
        ["as", "g", "v"].iter().any(|part| self.parameter(part).is_some())
    }

    fn streams_as_known(&self) -> bool {
        matches!(self.parameter("stream"), None | Some("watch"))
    }

    fn aggregated(&self) -> Option<Encoding> {
        let asked = [("as", "APIGroupDiscoveryList"), ("g", "apidiscovery.k8s.io"), ("v", "v2")];
        let aggregated = self.is_routed() && asked.iter().all(|(name, value)| self.parameter(name) == Some(value));
        self.encodings().first().copied().filter(|_| aggregated)
    }

    /// The encoding of an object without conversions, if this alternative accepts one.
    fn plain(&self) -> Option<Encoding> {
        self.encodings().first().copied().filter(|_| !self.converts() && self.streams_as_known())
    }

    /// The form and its encoding, if the server supports this alternative.
    fn form(&self, query: &Query, served: Served) -> Option<(Form, Encoding)> {
        let form = match (self.converts(), self.parameter("g"), self.parameter("v")) {
            (false, ..) => Form::Full,
            (true, Some("meta.k8s.io"), Some(version)) => {
                let version = match version {
                    "v1" => MetaVersion::V1,
                    "v1beta1" => MetaVersion::V1Beta1,
                    _ => return None,
                };
                match self.parameter("as")? {
                    "PartialObjectMetadata" => Form::Metadata(version),
                    "PartialObjectMetadataList" => Form::MetadataList(version),
                    "Table" => Form::Table(version, Include::read(query)),
                    _ => return None,
                }
            }
            _ => return None,
        };
        let is_served = |encoding: &&Encoding| match (form, encoding) {
            (_, Encoding::Json) => true,
            (Form::Full, Encoding::Protobuf) => served == Served::BuiltIn,
            (Form::Metadata(_) | Form::MetadataList(_), Encoding::Protobuf) => true,
            // `Table` has no protobuf message.
            (Form::Table(..), Encoding::Protobuf) => false,
        };
        let encoding = self.encodings().iter().find(is_served).filter(|_| self.streams_as_known())?;
        Some((form, *encoding))
    }
}

/// The alternatives of the `Accept` header, the preferred first. A missing header accepts anything.
fn alternatives(headers: &HeaderMap) -> Vec<Alternative<'_>> {
    let text = header_text(headers, ACCEPT).filter(|text| !text.trim().is_empty()).unwrap_or("*/*");
    let mut alternatives: Vec<_> = text.split(',').map(Alternative::parse).collect();
    // At equal quality a more specific media type comes first.
    let breadth = |each: &Alternative<'_>| (each.media.starts_with('*'), each.media.ends_with('*'));
    alternatives.sort_by(|a, b| b.quality.total_cmp(&a.quality).then_with(|| breadth(a).cmp(&breadth(b))));
    alternatives
}

/// Indents JSON as Go does. Input that is not JSON is returned unchanged.
pub(crate) fn indent(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() * 3 / 2);
    let mut depth = 0_usize;
    let mut in_string = false;
    let mut escaped = false;
    let break_line = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', depth * 2));
    };
    for (at, byte) in json.iter().copied().enumerate() {
        if in_string {
            out.push(byte);
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match byte {
            b'"' => {
                in_string = true;
                out.push(byte);
            }
            b'{' | b'[' => {
                out.push(byte);
                // Empty objects and arrays stay on one line.
                if !matches!(json.get(at + 1), Some(b'}' | b']')) {
                    depth += 1;
                    break_line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                if !matches!(json.get(at.wrapping_sub(1)), Some(b'{' | b'[')) {
                    depth = depth.saturating_sub(1);
                    break_line(&mut out, depth);
                }
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                break_line(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            _ => out.push(byte),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(accept: &'static str, served: Served) -> (Negotiated, Result<Form, Unacceptable>) {
        let headers = HeaderMap::from_iter([(ACCEPT, http::HeaderValue::from_static(accept))]);
        Negotiated::read(&headers, &Query::default(), served)
    }

    fn wish(accept: &'static str) -> Result<Form, Unacceptable> {
        read(accept, Served::BuiltIn).1
    }

    /// The form and the encoding of the response.
    fn answer(accept: &'static str, served: Served) -> Result<(Form, Encoding), Unacceptable> {
        let (wish, form) = read(accept, served);
        form.map(|form| (form, wish.writing.encoding))
    }

    #[test]
    fn the_first_form_that_is_served_wins() {
        assert_eq!(wish("*/*"), Ok(Form::Full));
        assert_eq!(
            wish("application/json;as=Table;v=v1;g=meta.k8s.io,application/json"),
            Ok(Form::Table(MetaVersion::V1, Include::Metadata))
        );
        assert_eq!(wish("application/json;as=Table;v=v2;g=meta.k8s.io,application/json"), Ok(Form::Full));
        assert_eq!(
            wish("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
            Ok(Form::Metadata(MetaVersion::V1))
        );
        assert_eq!(
            wish("application/json;q=0.1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
            Ok(Form::MetadataList(MetaVersion::V1))
        );
        assert_eq!(wish("application/json;stream=watch"), Ok(Form::Full));
        assert_eq!(wish("application/json;as="), Ok(Form::Full));
    }

    #[test]
    fn what_is_not_served_is_not_acceptable() {
        assert_eq!(wish("application/yaml"), Err(Unacceptable::Media));
        assert_eq!(wish("application/*"), Err(Unacceptable::Media));
        assert_eq!(wish("application/json;as=Bogus"), Err(Unacceptable::Transform));
        assert_eq!(wish("application/json;stream=bogus"), Err(Unacceptable::Transform));
        assert_eq!(wish("application/vnd.kubernetes.protobuf;g=meta.k8s.io;v=v1"), Err(Unacceptable::Transform));
        assert_eq!(read("nope/x", Served::Custom).1, Err(Unacceptable::Transform));
    }

    #[test]
    fn protobuf_is_for_those_who_prefer_it_where_there_is_a_message() {
        use Encoding::{Json, Protobuf};
        const BOTH: &str = "application/vnd.kubernetes.protobuf,application/json";
        let (full, metadata) = (Form::Full, Form::Metadata(MetaVersion::V1));
        for (accept, built_in, custom) in [
            ("application/vnd.kubernetes.protobuf", Ok((full, Protobuf)), Err(Unacceptable::Transform)),
            ("application/vnd.kubernetes.protobuf;stream=watch", Ok((full, Protobuf)), Err(Unacceptable::Transform)),
            ("application/vnd.kubernetes.protobuf;q=0", Ok((full, Protobuf)), Err(Unacceptable::Transform)),
            (BOTH, Ok((full, Protobuf)), Ok((full, Json))),
            ("application/json,application/vnd.kubernetes.protobuf", Ok((full, Json)), Ok((full, Json))),
            ("application/vnd.kubernetes.protobuf;q=0.1,application/json", Ok((full, Json)), Ok((full, Json))),
            ("*/*,application/vnd.kubernetes.protobuf", Ok((full, Protobuf)), Ok((full, Json))),
            ("*/*", Ok((full, Json)), Ok((full, Json))),
            (
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
                Ok((metadata, Protobuf)),
                Ok((metadata, Protobuf)),
            ),
            (
                "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1",
                Err(Unacceptable::Transform),
                Err(Unacceptable::Transform),
            ),
        ] {
            assert_eq!(answer(accept, Served::BuiltIn), built_in, "{accept}");
            assert_eq!(answer(accept, Served::Custom), custom, "{accept}");
        }
        assert_eq!(read(BOTH, Served::Custom).0.failure().encoding, Protobuf);
    }

    #[test]
    fn a_failure_is_plain_or_for_people() {
        let (wish, _) =
            read("application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", Served::BuiltIn);
        assert_eq!(wish.failure(), Writing { encoding: Encoding::Json, layout: Layout::Pretty });
        let (wish, _) = read("application/json;pretty=1", Served::BuiltIn);
        assert_eq!(wish.failure(), Writing { encoding: Encoding::Json, layout: Layout::Pretty });
        let (wish, _) = read("application/vnd.kubernetes.protobuf;stream=watch", Served::BuiltIn);
        assert_eq!(wish.failure().encoding, Encoding::Protobuf);
    }

    #[test]
    fn gzip_must_be_named_and_wanted() {
        assert!(accepts_gzip("deflate, gzip"));
        assert!(!accepts_gzip("*"));
        assert!(!accepts_gzip("gzip;q=0"));
        assert!(!accepts_gzip("gzip;q=1.0"));
        assert!(!accepts_gzip("GZIP"));
    }

    #[test]
    fn indented_json_reads_as_go_prints_it() {
        assert_eq!(
            String::from_utf8(indent(br#"{"a":{},"b":["x:{",1]}"#)).unwrap(),
            "{\n  \"a\": {},\n  \"b\": [\n    \"x:{\",\n    1\n  ]\n}"
        );
    }
}
