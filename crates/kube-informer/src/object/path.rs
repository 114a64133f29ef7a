//! Field paths.

use std::fmt;
use std::str::FromStr;

use super::ParseError;

/// The path of a field: `metadata.managedFields`, `spec.containers[*].env`,
/// `metadata.labels['app.kubernetes.io/name']`.
///
/// A subset of the JSONPath of printer columns: names after dots, quoted names in brackets, one
/// element by index, all elements with `*`. A leading `$` or dot and surrounding braces are
/// optional; a dot in a name may be escaped with a backslash, as in kubectl.
///
/// ```
/// use kube_informer::object::FieldPath;
///
/// let path: FieldPath = "{.spec.containers[*].env}".parse()?;
/// assert_eq!(path.to_string(), "spec.containers[*].env");
/// assert_eq!(r"metadata.labels.a\.b".parse::<FieldPath>()?, "metadata.labels['a.b']".parse()?);
/// assert!("spec..x".parse::<FieldPath>().is_err());
/// # Ok::<_, kube_informer::object::ParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldPath {
    steps: Box<[Step]>,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Step {
    /// The field of this name.
    Field(Box<str>),
    /// The element at this index.
    Element(usize),
    /// Every element of a list.
    Every,
}

/// Maximum number of steps: more than any object has levels.
const MAX_STEPS: usize = 64;

impl FieldPath {
    /// Creates a path, unless there are no steps or too many.
    pub(crate) fn of_steps(steps: Vec<Step>) -> Option<Self> {
        (1..=MAX_STEPS).contains(&steps.len()).then(|| Self { steps: steps.into() })
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }
}

impl FromStr for FieldPath {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wrong = |what: &str| ParseError::new(format!("{what} in field path {text:?}"));
        let mut rest = text.trim();
        if let Some(inner) = rest.strip_prefix('{') {
            rest = inner.strip_suffix('}').ok_or_else(|| wrong("unclosed brace"))?;
        }
        rest = rest.strip_prefix('$').unwrap_or(rest);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            if let Some(inner) = rest.strip_prefix('[') {
                let (step, after) =
                    bracket(inner).ok_or_else(|| wrong("expected a number, '*' or a quoted name in brackets"))?;
                steps.push(step);
                rest = after;
            } else {
                let named = match rest.strip_prefix('.') {
                    Some(named) => named,
                    None if steps.is_empty() => rest,
                    None => return Err(wrong("expected '.' or '['")),
                };
                let (name, after) = split_name(named);
                if name.is_empty() {
                    return Err(wrong("empty name"));
                }
                steps.push(Step::Field(name.into()));
                rest = after;
            }
            if steps.len() > MAX_STEPS {
                return Err(wrong("too many steps"));
            }
        }
        if steps.is_empty() {
            return Err(wrong("no step"));
        }
        Ok(Self { steps: steps.into() })
    }
}

/// Splits off a name, up to the next unescaped dot or bracket.
fn split_name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '.' | '[' => return (name, &text[at..]),
            '\\' => name.extend(chars.next().map(|(_, escaped)| escaped)),
            char => name.push(char),
        }
    }
    (name, "")
}

/// Parses the content of brackets, after the opening one.
fn bracket(text: &str) -> Option<(Step, &str)> {
    if let Some(rest) = text.strip_prefix("*]") {
        return Some((Step::Every, rest));
    }
    let quote = text.chars().next()?;
    if !matches!(quote, '\'' | '"') {
        let (number, rest) = text.split_once(']')?;
        let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        return Some((Step::Element(number.parse().ok().filter(|_| digits)?), rest));
    }
    let mut name = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => name.push(chars.next()?.1),
            char if char == quote => return Some((Step::Field(name.into()), text[at + 1..].strip_prefix(']')?)),
            char => name.push(char),
        }
    }
    None
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.steps.iter().enumerate() {
            match step {
                Step::Field(name) if !is_plain(name) => {
                    write!(f, "['{}']", name.replace('\\', r"\\").replace('\'', r"\'"))?;
                }
                Step::Field(name) if at == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Element(index) => write!(f, "[{index}]")?,
                Step::Every => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

/// Whether a name can be written after a dot without quotes.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|char| char.is_alphanumeric() || matches!(char, '-' | '_' | '/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_read_in_every_spelling() {
        for (text, printed) in [
            ("metadata.managedFields", "metadata.managedFields"),
            (".metadata.name", "metadata.name"),
            ("$.spec['nodeName']", "spec.nodeName"),
            ("{.spec.containers[0].image}", "spec.containers[0].image"),
            ("spec.containers[*].env", "spec.containers[*].env"),
            (
                r"metadata.annotations.kubectl\.kubernetes\.io/last",
                "metadata.annotations['kubectl.kubernetes.io/last']",
            ),
            (r#"a["b\"]c"][2][*]"#, r#"a['b"]c'][2][*]"#),
            (r"a['it\'s']", r"a['it\'s']"),
        ] {
            let path: FieldPath = text.parse().unwrap();
            assert_eq!(path.to_string(), printed);
            assert_eq!(printed.parse::<FieldPath>().unwrap(), path);
        }
    }

    #[test]
    fn what_is_no_path_is_refused() {
        for text in
            ["", "$", "{}", ".", "a..b", "a.", "a[", "a[x]", "a[-1]", "a['b]", "a[0]b", "{a", "a[]", "a['b'x]", "a[+1]"]
        {
            assert!(text.parse::<FieldPath>().is_err(), "{text}");
        }
        assert!("a.".repeat(100).trim_end_matches('.').parse::<FieldPath>().is_err());
    }
}
