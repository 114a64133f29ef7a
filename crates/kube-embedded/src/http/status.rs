//! The `Status` of a failed request, byte for byte as the real server writes it.

use std::fmt;

use crate::encoding::escape::push_string;

/// A Kubernetes `Status` of a failure.
///
/// It is both the body that HTTP clients receive and the error of the server's Rust API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    code: u16,
    reason: &'static str,
    message: String,
    details: Option<Box<Details>>,
    continue_token: Option<String>,
    envelope: Envelope,
}

/// The `details` of a [`Status`]: the object or resource that the failure is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// The object's name.
    pub name: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource (plural), or the kind for failed validations.
    pub kind: String,
    /// The object's uid.
    pub uid: String,
    /// The individual causes, one for each invalid field.
    pub causes: Vec<Cause>,
    /// Seconds after which a retry may succeed; also sent as the `Retry-After` header.
    pub retry_after_seconds: u32,
}

/// One cause of a failure, usually an invalid field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// The reason in one word, such as `FieldValueInvalid`.
    pub reason: &'static str,
    /// The human-readable message.
    pub message: String,
    /// The field's path; empty if the cause is not about a field.
    pub field: String,
}

/// The reasons of failures.
const REASONS: [&str; 18] = [
    "AlreadyExists",
    "BadRequest",
    "Conflict",
    "Expired",
    "Forbidden",
    "Gone",
    "InternalError",
    "Invalid",
    "MethodNotAllowed",
    "NotAcceptable",
    "NotFound",
    "RequestEntityTooLarge",
    "ServerTimeout",
    "ServiceUnavailable",
    "Timeout",
    "TooManyRequests",
    "Unauthorized",
    "UnsupportedMediaType",
];

/// Whether the body contains kind and apiVersion: one timeout of the real server omits them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Envelope {
    Typed,
    Bare,
}

impl Status {
    /// A failure with a code, a reason (`""` for none) and a message.
    #[must_use]
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: None, continue_token: None, envelope: Envelope::Typed }
    }

    /// The HTTP status code.
    #[must_use]
    pub fn code(&self) -> u16 {
        self.code
    }

    /// The reason in one word (`NotFound`, `Conflict`, …); empty where the real server gives none.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.reason
    }

    /// The human-readable message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The object or resource that the failure is about.
    #[must_use]
    pub fn details(&self) -> Option<&Details> {
        self.details.as_deref()
    }

    /// The value of the `Retry-After` header, in seconds.
    #[must_use]
    pub fn retry_after(&self) -> Option<u32> {
        self.details.as_ref().map(|d| d.retry_after_seconds).filter(|s| *s > 0)
    }

    /// Whether the body contains neither kind nor apiVersion.
    pub(crate) fn is_bare(&self) -> bool {
        self.envelope == Envelope::Bare
    }

    pub(crate) fn with_details(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// An internal error; the real server gives no reason for it.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// An internal error whose words include that it is one.
    pub(crate) fn internal_error(why: &str) -> Self {
        let causes = vec![Cause::new("", "", why)];
        Self::new(500, "InternalError", format!("Internal error occurred: {why}"))
            .with_details(Details { causes, ..Details::default() })
    }

    /// The same with the reason that another program gave, if it is one of Kubernetes.
    pub(crate) fn with_reason(mut self, reason: &str) -> Self {
        self.reason = REASONS.into_iter().find(|known| *known == reason).unwrap_or_default();
        self
    }

    /// A resource that a known group does not serve.
    pub(crate) fn unknown_resource() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource").with_details(Details::default())
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
            .with_details(Details::default())
    }

    pub(crate) fn not_found(group: &str, plural: &str, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} \"{name}\" not found", qualified(group, plural)))
            .with_details(Details::about(group, plural, name))
    }

    pub(crate) fn already_exists(group: &str, plural: &str, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{} \"{name}\" already exists", qualified(group, plural)))
            .with_details(Details::about(group, plural, name))
    }

    pub(crate) fn conflict(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", qualified(group, plural));
        Self::new(409, "Conflict", message).with_details(Details::about(group, plural, name))
    }

    pub(crate) fn forbidden(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let subject = qualified(group, plural);
        let message = match name {
            "" => format!("{subject} is forbidden: {why}"),
            _ => format!("{subject} \"{name}\" is forbidden: {why}"),
        };
        Self::new(403, "Forbidden", message).with_details(Details::about(group, plural, name))
    }

    /// 422: one or more fields are invalid. `kind` is the Kind of an object, or the name of options
    /// such as `ListOptions`.
    pub(crate) fn invalid(group: &str, kind: &str, name: &str, causes: Vec<Cause>) -> Self {
        let listed: Vec<String> = causes.iter().map(|c| format!("{}: {}", c.field, c.message)).collect();
        let listed = match listed.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} \"{name}\" is invalid: {listed}", qualified(group, kind));
        Self::new(422, "Invalid", message).with_details(Details { causes, ..Details::about(group, kind, name) })
    }

    pub(crate) fn invalid_list_options(causes: Vec<Cause>) -> Self {
        Self::invalid("meta.k8s.io", "ListOptions", "", causes)
    }

    /// 500 of a list with an object that cannot be read.
    pub(crate) fn unreadable_list(group: &str, plural: &str, path: &str, why: &str) -> Self {
        let message = format!("failed to read one or more {} from the storage: {why}", qualified(group, plural));
        let causes = vec![Cause::new("UnexpectedServerResponse", path, why)];
        Self::new(500, "StorageReadError", message)
            .with_details(Details { causes, ..Details::about(group, plural, "list") })
    }

    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 410 of a compacted page; `token` continues the list at the latest version instead.
    pub(crate) fn expired_continue(token: String) -> Self {
        let mut status = Self::expired(
            "The provided continue parameter is too old to display a consistent list result. \
             You can start a new list without the continue parameter, or use the continue token in this response \
             to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent \
             list - objects that were created, modified, or deleted between the time the first chunk was returned \
             and now may show up in the list.",
        );
        status.continue_token = Some(token);
        status
    }

    /// 504 of a resource version that the server has not reached. Kinds without a watch cache set
    /// no retry delay.
    pub(crate) fn too_large_version(asked: u64, current: u64, retry_after_seconds: u32) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        Self::new(504, "Timeout", message).with_details(Details {
            causes: vec![Cause {
                reason: "ResourceVersionTooLarge",
                message: "Too large resource version".into(),
                field: String::new(),
            }],
            retry_after_seconds,
            ..Details::default()
        })
    }

    /// 504 of `?timeout=`: the only body without kind and apiVersion.
    pub(crate) fn request_timeout() -> Self {
        let message = "Timeout: request did not complete within the allotted timeout";
        let mut status = Self::new(504, "Timeout", message).with_details(Details::default());
        status.envelope = Envelope::Bare;
        status
    }

    pub(crate) fn too_many_requests(message: &str, retry_after_seconds: u32) -> Self {
        Self::new(429, "TooManyRequests", message).with_details(Details { retry_after_seconds, ..Details::default() })
    }

    pub(crate) fn unsupported_media_type() -> Self {
        Self::new(
            415,
            "UnsupportedMediaType",
            "the body of the request was in an unknown format - accepted media types include: application/json, \
             application/yaml, application/vnd.kubernetes.protobuf",
        )
    }

    pub(crate) fn body_too_large(limit: usize) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {limit}"))
    }

    /// The JSON body, without the line break that ends it on the wire.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(match self.envelope {
            Envelope::Typed => b"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{".as_slice(),
            Envelope::Bare => b"{\"metadata\":{",
        });
        if let Some(token) = &self.continue_token {
            out.extend_from_slice(b"\"continue\":");
            push_string(&mut out, token);
        }
        out.extend_from_slice(b"},\"status\":\"Failure\"");
        field(&mut out, "message", &self.message);
        field(&mut out, "reason", self.reason);
        if let Some(details) = &self.details {
            out.extend_from_slice(b",\"details\":");
            details.push_json(&mut out);
        }
        out.extend_from_slice(format!(",\"code\":{}}}", self.code).as_bytes());
        out
    }
}

impl Details {
    pub(crate) fn about(group: &str, kind: &str, name: &str) -> Self {
        Self { name: name.to_owned(), group: group.to_owned(), kind: kind.to_owned(), ..Self::default() }
    }

    pub(crate) fn push_json(&self, out: &mut Vec<u8>) {
        let mut object = Vec::new();
        field(&mut object, "name", &self.name);
        field(&mut object, "group", &self.group);
        field(&mut object, "kind", &self.kind);
        field(&mut object, "uid", &self.uid);
        if !self.causes.is_empty() {
            object.extend_from_slice(b",\"causes\":[");
            for (i, cause) in self.causes.iter().enumerate() {
                if i > 0 {
                    object.push(b',');
                }
                let mut one = Vec::new();
                field(&mut one, "reason", cause.reason);
                field(&mut one, "message", &cause.message);
                field(&mut one, "field", &cause.field);
                braced(&mut object, &one);
            }
            object.push(b']');
        }
        if self.retry_after_seconds > 0 {
            object.extend_from_slice(format!(",\"retryAfterSeconds\":{}", self.retry_after_seconds).as_bytes());
        }
        braced(out, &object);
    }
}

impl Cause {
    pub(crate) fn new(reason: &'static str, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), field: field.into() }
    }

    pub(crate) fn forbidden(field: &str, why: impl fmt::Display) -> Self {
        Self::new("FieldValueForbidden", field, format!("Forbidden: {why}"))
    }

    /// `why` may be empty.
    pub(crate) fn required(field: &str, why: &str) -> Self {
        let colon = if why.is_empty() { "" } else { ": " };
        Self::new("FieldValueRequired", field, format!("Required value{colon}{why}"))
    }

    /// `value` is shown verbatim: the caller quotes strings.
    pub(crate) fn duplicate(field: &str, value: impl fmt::Display) -> Self {
        Self::new("FieldValueDuplicate", field, format!("Duplicate value: {value}"))
    }

    pub(crate) fn too_long(field: &str, most_bytes: usize) -> Self {
        Self::new("FieldValueTooLong", field, format!("Too long: may not be more than {most_bytes} bytes"))
    }

    /// `value` is shown verbatim: the caller quotes strings.
    pub(crate) fn invalid(field: &str, value: impl fmt::Display, why: impl fmt::Display) -> Self {
        Self::new("FieldValueInvalid", field, format!("Invalid value: {value}: {why}"))
    }

    pub(crate) fn unsupported(field: &str, value: impl fmt::Display, supported: &str) -> Self {
        Self::new("FieldValueNotSupported", field, format!("Unsupported value: {value}: supported values: {supported}"))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for Status {}

/// `deployments.apps`, or the resource alone for the core group.
pub(crate) fn qualified(group: &str, resource: &str) -> String {
    match group {
        "" => resource.to_owned(),
        _ => format!("{resource}.{group}"),
    }
}

/// Appends `,"name":"value"` unless the value is empty.
fn field(out: &mut Vec<u8>, name: &str, value: &str) {
    if !value.is_empty() {
        out.extend_from_slice(format!(",\"{name}\":").as_bytes());
        push_string(out, value);
    }
}

/// Appends fields written by [`field`] as an object: strips the leading comma and adds braces.
fn braced(out: &mut Vec<u8>, fields: &[u8]) {
    out.push(b'{');
    out.extend_from_slice(fields.strip_prefix(b",").unwrap_or(fields));
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(status: &Status) -> String {
        String::from_utf8(status.to_json()).unwrap()
    }

    #[test]
    fn a_missing_object_reads_as_the_real_server_says_it() {
        assert_eq!(
            text(&Status::not_found("", "configmaps", "nope")),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"configmaps \"nope\" not found","reason":"NotFound","details":{"name":"nope","kind":"configmaps"},"code":404}"#
        );
    }

    #[test]
    fn empty_details_stay_and_an_empty_reason_goes() {
        assert!(text(&Status::unknown_resource()).ends_with(r#""reason":"NotFound","details":{},"code":404}"#));
        assert!(text(&Status::internal("no")).ends_with(r#""message":"no","code":500}"#));
    }

    #[test]
    fn several_causes_are_listed_in_brackets() {
        let causes = vec![Cause::forbidden("a", "x"), Cause::unsupported("b", "\"B\"", "\"A\"")];
        let listed = text(&Status::invalid_list_options(causes));
        assert!(listed.contains(r#"ListOptions.meta.k8s.io \"\" is invalid: [a: Forbidden: x, b: Unsupported value: \"B\": supported values: \"A\"]"#));
        assert!(listed.contains(r#""details":{"group":"meta.k8s.io","kind":"ListOptions","causes":[{"reason":"FieldValueForbidden","message":"Forbidden: x","field":"a"}"#));
    }

    #[test]
    fn a_version_too_large_says_when_to_retry() {
        let status = Status::too_large_version(999_999, 282, 1);
        assert_eq!(status.retry_after(), Some(1));
        assert_eq!(
            text(&status),
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Timeout: Too large resource version: 999999, current: 282","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}],"retryAfterSeconds":1},"code":504}"#
        );
    }
}
