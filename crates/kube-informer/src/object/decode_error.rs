//! Decoding errors.

use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use super::path::{FieldPath, Step};
use crate::codec::{Broken, JsonError, JsonFault, steps_to};

/// A body that does not fit the type it is read as, or bytes that are not an object.
///
/// The message names the field and the type, never the value: objects hold secrets.
///
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Obj;
///
/// let map = Obj::<ConfigMap>::from_json(r#"{"metadata":{"name":"a"},"data":{"password":1234}}"#)?;
/// let error = map.get().unwrap_err();
/// assert_eq!(error.path().unwrap().to_string(), "data.password");
/// assert!(!error.to_string().contains("1234"));
/// # Ok::<_, kube_informer::DecodeError>(())
/// ```
#[derive(Clone)]
pub struct DecodeError(Arc<Inner>);

struct Inner {
    target: &'static str,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    /// Not JSON.
    Syntax { at: usize },
    /// Ends too early.
    Truncated,
    /// Valid JSON that does not fit the type at this path.
    Shape { path: Option<FieldPath> },
    /// A field that the type requires is absent.
    Missing { path: FieldPath },
    /// The type has no such field.
    Unknown { path: FieldPath },
    /// Not an object that can be stored.
    Broken(Broken),
}

impl DecodeError {
    pub(crate) fn of_json<K>(error: &JsonError, json: &[u8]) -> Self {
        let path = |field: Option<&str>| {
            let mut steps = steps_to(json, error.at.saturating_sub(1));
            steps.extend(field.map(|field| Step::Field(field.into())));
            FieldPath::of_steps(steps)
        };
        let cause = match error.fault {
            JsonFault::Broken(Broken::Short) => Cause::Truncated,
            JsonFault::Broken(_) => Cause::Syntax { at: error.at },
            JsonFault::Missing(field) => {
                path(Some(field)).map_or(Cause::Shape { path: None }, |path| Cause::Missing { path })
            }
            JsonFault::Unknown => path(None).map_or(Cause::Shape { path: None }, |path| Cause::Unknown { path }),
            JsonFault::Shape | JsonFault::NotOmitted => Cause::Shape { path: path(None) },
        };
        Self(Arc::new(Inner { target: type_name::<K>(), cause }))
    }

    pub(crate) fn broken<K>(broken: Broken) -> Self {
        Self(Arc::new(Inner { target: type_name::<K>(), cause: Cause::Broken(broken) }))
    }

    /// The field that does not fit, is missing, or is unknown to the type, if the bytes were JSON
    /// and a single field is wrong.
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use kube_informer::Obj;
    ///
    /// let odd = Obj::<ConfigMap>::from_json(r#"{"metadata":{"name":"b"},"data":{"k":7}}"#)?;
    /// assert_eq!(odd.get().unwrap_err().path().unwrap().to_string(), "data.k");
    /// # Ok::<_, kube_informer::DecodeError>(())
    /// ```
    #[must_use]
    pub fn path(&self) -> Option<&FieldPath> {
        match &self.0.cause {
            Cause::Shape { path } => path.as_ref(),
            Cause::Missing { path } | Cause::Unknown { path } => Some(path),
            Cause::Syntax { .. } | Cause::Truncated | Cause::Broken(_) => None,
        }
    }

    /// The name of the type that the bytes were decoded into.
    #[must_use]
    pub fn target(&self) -> &'static str {
        self.0.target
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let target = self.0.target;
        match &self.0.cause {
            Cause::Syntax { at } => write!(f, "not JSON at byte {at} (wanted {target})"),
            Cause::Truncated => write!(f, "the JSON ends too early (wanted {target})"),
            Cause::Shape { path: Some(path) } => write!(f, "{path} does not fit {target}"),
            Cause::Shape { path: None } => write!(f, "does not fit {target}"),
            Cause::Missing { path } => write!(f, "{path} is missing (wanted {target})"),
            Cause::Unknown { path } => write!(f, "{path} is unknown (wanted {target})"),
            Cause::Broken(broken) => write!(f, "{broken}"),
        }
    }
}

impl fmt::Debug for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DecodeError").field("target", &self.0.target).field("cause", &self.0.cause).finish()
    }
}

impl std::error::Error for DecodeError {}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use crate::Object;
    use crate::codec::Envelope;
    use crate::object::Encoded;

    #[derive(Debug, Deserialize)]
    struct Deployment {
        #[expect(dead_code, reason = "only decoded")]
        spec: Spec,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Spec {
        #[expect(dead_code, reason = "only decoded")]
        min_ready: u32,
        #[expect(dead_code, reason = "only decoded")]
        #[serde(default)]
        ports: Vec<Port>,
    }

    #[derive(Debug, Deserialize)]
    struct Port {
        #[expect(dead_code, reason = "only decoded")]
        number: u16,
    }

    fn error(json: &str) -> (String, String) {
        let error = Deployment::decode(Encoded::Json(json.as_bytes())).unwrap_err();
        let text = error.to_string();
        assert!(!text.contains("secret"), "{text}");
        let (path, rest) = text.split_once(' ').unwrap();
        assert_eq!(error.path().map(ToString::to_string).as_deref(), Some(path));
        (path.to_owned(), rest.split(" (").next().unwrap().to_owned())
    }

    #[test]
    fn an_error_names_the_field_that_is_missing_unknown_or_of_another_type() {
        let cases = [
            (r#"{"metadata":{"name":"secret"}}"#, "spec", "is missing"),
            (r#"{"spec":{}}"#, "spec.minReady", "is missing"),
            ("{\n \"spec\" : { \"ports\": [ ] \n } ,\"a\":{}}", "spec.minReady", "is missing"),
            (
                r#"{"spec":{"minReady":1,"ports":[{"number":1},{"name":"secret"}]}}"#,
                "spec.ports[1].number",
                "is missing",
            ),
            (r#"{"spec":{"minReady":1,"minRedy":"secret"}}"#, "spec.minRedy", "is unknown"),
            (r#"{"spec":{"minRedy" : {"secret":"secret"},"minReady":1}}"#, "spec.minRedy", "is unknown"),
        ];
        for (json, path, what) in cases {
            assert_eq!(error(json), (path.to_owned(), what.to_owned()), "{json}");
        }
        let (path, rest) = error(r#"{"spec":{"minReady":"secret"}}"#);
        assert!(path == "spec.minReady" && rest.starts_with("does not fit "), "{path} {rest}");
    }

    #[test]
    fn a_field_that_protobuf_lacks_is_named_as_well() {
        #[derive(Debug, Deserialize)]
        struct Pod {
            #[expect(dead_code, reason = "only decoded")]
            spec: PodSpec,
        }

        #[derive(Debug, Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct PodSpec {
            #[expect(dead_code, reason = "only decoded")]
            node_name: String,
        }

        let pod = Envelope { api_version: b"v1", kind: b"Pod", raw: b"\x0a\x03\x0a\x01a\x12\0" }.close();
        let error = Pod::decode(Encoded::Protobuf(&pod)).unwrap_err();
        assert_eq!(error.path().unwrap().to_string(), "spec.nodeName", "{error}");
    }
}
