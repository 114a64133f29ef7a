//! Arguments that may be text to parse.

use super::{FieldPath, FieldSelector, ParseError, Selector};

/// An argument that is either a parsed `P` or text.
///
/// What takes it returns its result as such for a parsed argument, and in a `Result` for text,
/// which may not be parsable.
///
/// ```
/// use kube_informer::Obj;
/// use kube_informer::object::FieldPath;
///
/// let pod: Obj = Obj::from_json(r#"{"metadata":{"name":"a"},"spec":{"nodeName":"n1"}}"#).unwrap();
/// assert_eq!(pod.value_at("spec.nodeName")?.as_deref(), Some("n1"));
/// assert!(pod.value_at("spec..nodeName").is_err());
///
/// // Parsed once, for many objects.
/// let path: FieldPath = "spec.nodeName".parse()?;
/// assert_eq!(pod.value_at(&path).as_deref(), Some("n1"));
/// # Ok::<_, kube_informer::object::ParseError>(())
/// ```
pub trait OrText<P> {
    /// `T`, or a `Result` of it if the argument has to be parsed first.
    type Checked<T>;

    /// Parses the argument if it is text, and calls `take` with it.
    fn checked<T>(self, take: impl FnOnce(&P) -> T) -> Self::Checked<T>;
}

macro_rules! or_text {
    ($($parsed:ty),*) => {$(
        impl OrText<$parsed> for &$parsed {
            type Checked<T> = T;

            fn checked<T>(self, take: impl FnOnce(&$parsed) -> T) -> T {
                take(self)
            }
        }

        impl OrText<$parsed> for $parsed {
            type Checked<T> = T;

            fn checked<T>(self, take: impl FnOnce(&$parsed) -> T) -> T {
                take(&self)
            }
        }

        impl OrText<$parsed> for &str {
            type Checked<T> = Result<T, ParseError>;

            fn checked<T>(self, take: impl FnOnce(&$parsed) -> T) -> Result<T, ParseError> {
                self.parse().map(|parsed| take(&parsed))
            }
        }

        impl OrText<$parsed> for &String {
            type Checked<T> = Result<T, ParseError>;

            fn checked<T>(self, take: impl FnOnce(&$parsed) -> T) -> Result<T, ParseError> {
                OrText::<$parsed>::checked(self.as_str(), take)
            }
        }

        impl TryFrom<&str> for $parsed {
            type Error = ParseError;

            fn try_from(text: &str) -> Result<Self, ParseError> {
                text.parse()
            }
        }

        impl TryFrom<&String> for $parsed {
            type Error = ParseError;

            fn try_from(text: &String) -> Result<Self, ParseError> {
                text.parse()
            }
        }

        impl TryFrom<String> for $parsed {
            type Error = ParseError;

            fn try_from(text: String) -> Result<Self, ParseError> {
                text.parse()
            }
        }

        impl From<&$parsed> for $parsed {
            fn from(parsed: &$parsed) -> Self {
                parsed.clone()
            }
        }
    )*};
}

or_text!(Selector, FieldSelector, FieldPath);
