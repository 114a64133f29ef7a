//! Which form of an answer a client wants: Accept, Accept-Encoding, `?pretty`.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, USER_AGENT};

use crate::protobuf;
use crate::query::Query;
use crate::status::{Details, Status};

/// The form of an object or list in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// All of it.
    Full,
    /// `PartialObjectMetadata`: the metadata alone.
    Metadata(MetaVersion),
    /// `PartialObjectMetadataList`.
    MetadataList(MetaVersion),
    /// `Table`: a row for each object, and this much of the object beside it.
    Table(MetaVersion, Include),
}

/// How much of an object comes with its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
    /// The client named something that there is not.
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

/// 400 for a table beside whose rows something unknown is to stand.
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

/// The version of `meta.k8s.io` that metadata is asked for in.
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

/// How JSON is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// One line, ended by a line break.
    Compact,
    /// Indented, without a line break at the end.
    Pretty,
}

/// What the client asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) form: Form,
    pub(crate) layout: Layout,
    pub(crate) error_layout: Layout,
    pub(crate) gzip: bool,
    /// Discovery in one document rather than many.
    pub(crate) aggregated: bool,
}

/// No form that the client accepts is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unacceptable {
    /// A media type nobody has.
    Media,
    /// A form of JSON that is not served.
    Transform,
}

/// Where something was not acceptable: the real server lists other media types in other places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Object,
    /// A collection that can be watched.
    Collection,
    /// A document that has one representation only.
    Document,
}

impl Unacceptable {
    pub(crate) fn status(self, place: Place) -> Status {
        const MEDIA: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
        const STREAMS: &str = ", application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
        let message = match (self, place) {
            (Self::Media | Self::Transform, Place::Document) => {
                "406: Not Acceptable\n\nAvailable representations: application/json".to_owned()
            }
            (Self::Transform, _) => format!("only the following media types are accepted: {MEDIA}"),
            (Self::Media, Place::Object) => format!("406: Not Acceptable\n\nAvailable representations: {MEDIA}"),
            (Self::Media, Place::Collection) => {
                format!("406: Not Acceptable\n\nAvailable representations: {MEDIA}{STREAMS}")
            }
        };
        let status = Status::new(406, "NotAcceptable", message);
        match (self, place) {
            (Self::Media, _) | (_, Place::Document) => status.with_details(Details::default()),
            (Self::Transform, _) => status,
        }
    }
}

impl Wish {
    /// Reads the request's headers; the second value is the form, or the reason why no form will do.
    pub(crate) fn read(headers: &HeaderMap, query: &Query) -> (Self, Result<Form, Unacceptable>) {
        let layout = if wants_pretty(headers, query) { Layout::Pretty } else { Layout::Compact };
        let alternatives = alternatives(headers);
        // A failure is a plain object: where none is accepted, it is written for people.
        let error_layout = if alternatives.iter().any(Alternative::is_plain) { layout } else { Layout::Pretty };
        let form = alternatives.iter().find_map(|each| each.form(query)).ok_or_else(|| {
            let transforms = alternatives.iter().any(|a| a.parameter("as").is_some());
            if transforms { Unacceptable::Transform } else { Unacceptable::Media }
        });
        let gzip = header_text(headers, ACCEPT_ENCODING).is_some_and(accepts_gzip);
        let aggregated = alternatives.iter().find(|a| a.is_aggregated() || a.form(query) == Some(Form::Full));
        let aggregated = aggregated.is_some_and(Alternative::is_aggregated);
        (Self { form: form.unwrap_or(Form::Full), layout, error_layout, gzip, aggregated }, form)
    }
}

fn header_text(headers: &HeaderMap, name: http::HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn wants_pretty(headers: &HeaderMap, query: &Query) -> bool {
    match query.get("pretty") {
        Some(pretty) => matches!(pretty, "true" | "1"),
        None => header_text(headers, USER_AGENT)
            .is_some_and(|agent| ["curl", "Wget", "Mozilla/5.0"].iter().any(|people| agent.starts_with(people))),
    }
}

/// The real server knows no qualities here: gzip with one, whichever, is not gzip.
fn accepts_gzip(value: &str) -> bool {
    value.split(',').any(|part| part.trim() == "gzip")
}

/// One alternative of an Accept header.
struct Alternative<'h> {
    media: &'h str,
    parameters: Vec<(&'h str, &'h str)>,
    quality: f32,
}

impl<'h> Alternative<'h> {
    fn parse(text: &'h str) -> Self {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next().unwrap_or_default();
        let parameters: Vec<_> =
            parts.filter_map(|part| part.split_once('=')).map(|(n, v)| (n.trim(), v.trim())).collect();
        let quality = parameters.iter().find(|(n, _)| *n == "q").and_then(|(_, v)| v.parse().ok()).unwrap_or(1.0);
        Self { media, parameters, quality }
    }

    fn parameter(&self, name: &str) -> Option<&'h str> {
        self.parameters.iter().find(|(n, _)| *n == name).map(|(_, value)| *value)
    }

    fn is_aggregated(&self) -> bool {
        self.media == "application/json"
            && self.parameter("as") == Some("APIGroupDiscoveryList")
            && self.parameter("g") == Some("apidiscovery.k8s.io")
            && self.parameter("v") == Some("v2")
    }

    /// Whether a plain JSON object would do.
    fn is_plain(&self) -> bool {
        matches!(self.media, "application/json" | "*/*" | "application/*")
            && self.parameter("as").is_none_or(str::is_empty)
    }

    /// The form, if this server has it.
    fn form(&self, query: &Query) -> Option<Form> {
        if !matches!(self.media, "application/json" | "*/*") {
            return None;
        }
        let version = match (self.parameter("g"), self.parameter("v")) {
            _ if self.parameter("as").is_none_or(str::is_empty) => return Some(Form::Full),
            (Some("meta.k8s.io"), Some("v1")) => MetaVersion::V1,
            (Some("meta.k8s.io"), Some("v1beta1")) => MetaVersion::V1Beta1,
            _ => return None,
        };
        match self.parameter("as")? {
            "PartialObjectMetadata" => Some(Form::Metadata(version)),
            "PartialObjectMetadataList" => Some(Form::MetadataList(version)),
            "Table" => Some(Form::Table(version, Include::read(query))),
            _ => None,
        }
    }
}

/// What the Accept header lists, the most wanted first. None at all accepts anything.
fn alternatives(headers: &HeaderMap) -> Vec<Alternative<'_>> {
    let text = header_text(headers, ACCEPT).filter(|text| !text.trim().is_empty()).unwrap_or("*/*");
    let mut alternatives: Vec<_> = text.split(',').map(Alternative::parse).collect();
    alternatives.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    alternatives
}

/// A request's body as JSON. No type at all is taken for that.
///
/// # Errors
///
/// 415 for a type that is not read, 400 for a message that cannot be.
pub(crate) fn json_body<'b>(headers: &HeaderMap, body: &'b [u8], binary: Binary) -> Result<Cow<'b, [u8]>, Status> {
    match media_type(headers) {
        None => Ok(body.into()),
        Some(media) if media.eq_ignore_ascii_case("application/json") => Ok(body.into()),
        Some(protobuf::MEDIA) if binary == Binary::Read => match protobuf::read(body) {
            Ok(object) => Ok(serde_json::to_vec(&object).unwrap_or_default().into()),
            Err(why) => Err(Status::bad_request(why.to_string())),
        },
        Some(_) => Err(Status::unsupported_media_type()),
    }
}

/// Whether bodies in protobuf are read: those of custom kinds have no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    Read,
    Refused,
}

/// The media type of a request's body, without parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<&str> {
    let text = header_text(headers, CONTENT_TYPE)?;
    let media = text.split(';').next().unwrap_or_default().trim();
    (!media.is_empty()).then_some(media)
}

/// Indents JSON as Go does. Anything that is no JSON comes back as it was.
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
                // An empty one stays on its line.
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

    fn wish(accept: &'static str) -> Result<Form, Unacceptable> {
        let headers = HeaderMap::from_iter([(ACCEPT, http::HeaderValue::from_static(accept))]);
        Wish::read(&headers, &Query::default()).1
    }

    #[test]
    fn the_first_form_that_is_served_wins() {
        assert_eq!(wish("*/*"), Ok(Form::Full));
        assert_eq!(wish("application/vnd.kubernetes.protobuf,application/json"), Ok(Form::Full));
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
    }

    #[test]
    fn what_is_not_served_is_not_acceptable() {
        assert_eq!(wish("application/yaml"), Err(Unacceptable::Media));
        assert_eq!(wish("application/*"), Err(Unacceptable::Media));
        assert_eq!(wish("application/json;as=Bogus"), Err(Unacceptable::Transform));
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
