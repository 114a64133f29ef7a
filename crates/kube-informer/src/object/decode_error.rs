//! Decoding errors.

use std::any::type_name;
use std::fmt;
use std::sync::Arc;

use super::path::FieldPath;
use crate::codec::{Broken, path_to};

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
    /// Not an object that can be stored.
    Broken(Broken),
}

impl DecodeError {
    /// Converts an error of serde. Its message is dropped, because it quotes values.
    pub(crate) fn of_json<K>(error: &serde_json::Error, json: &[u8]) -> Self {
        use serde_json::error::Category;
        let at = offset(json, error.line(), error.column());
        let cause = match error.classify() {
            Category::Data => Cause::Shape { path: path_to(json, at.saturating_sub(1)) },
            Category::Eof => Cause::Truncated,
            Category::Syntax | Category::Io => Cause::Syntax { at },
        };
        Self(Arc::new(Inner { target: type_name::<K>(), cause }))
    }

    pub(crate) fn broken<K>(broken: Broken) -> Self {
        Self(Arc::new(Inner { target: type_name::<K>(), cause: Cause::Broken(broken) }))
    }

    /// The field that does not fit, if the bytes were JSON and a single field is wrong.
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

/// Byte offset of a line and column, both counted from one.
fn offset(json: &[u8], line: usize, column: usize) -> usize {
    let newlines = memchr::memchr_iter(b'\n', json);
    let begin =
        line.checked_sub(2).and_then(|before| newlines.into_iter().nth(before)).map_or(0, |newline| newline + 1);
    begin + column
}
