//! Field selectors: `status.phase=Running,spec.nodeName!=n1`.

use crate::http::status::Status;

/// A field selector, not yet checked against the fields that a kind supports. An empty selector
/// matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector(Vec<Term>);

/// One comparison of a field with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Term {
    pub(crate) field: String,
    pub(crate) value: String,
    pub(crate) comparison: Comparison,
}

/// Whether the field must equal the value or differ from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
}

impl FieldSelector {
    pub(crate) fn parse(text: &str) -> Result<Self, Status> {
        let mut terms = Vec::new();
        for part in split_unescaped(text) {
            if part.is_empty() {
                continue;
            }
            let term = term(part)
                .ok_or_else(|| Status::bad_request(format!("invalid selector: '{text}'; can't understand '{part}'")))?;
            terms.push(term.map_err(Status::bad_request)?);
        }
        Ok(Self(terms))
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn terms(&self) -> &[Term] {
        &self.0
    }

    /// The value that the selector requires of a field, if any.
    pub(crate) fn fixed(&self, field: &str) -> Option<&str> {
        let term = self.0.iter().find(|term| term.field == field && term.comparison == Comparison::Equal)?;
        Some(&term.value)
    }
}

impl Term {
    /// Whether an object with this field value satisfies the term.
    pub(crate) fn accepts(&self, value: &str) -> bool {
        (value == self.value) == (self.comparison == Comparison::Equal)
    }
}

/// Splits at commas that are not escaped by a backslash.
fn split_unescaped(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut from, mut escaped) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[from..at]);
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[from..]);
    parts
}

fn term(part: &str) -> Option<Result<Term, String>> {
    for (at, _) in part.char_indices() {
        let rest = &part[at..];
        let found = [("!=", Comparison::NotEqual), ("==", Comparison::Equal), ("=", Comparison::Equal)]
            .into_iter()
            .find(|(operator, _)| rest.starts_with(operator));
        if let Some((operator, comparison)) = found {
            let value = unescape(&rest[operator.len()..]);
            return Some(value.map(|value| Term { field: part[..at].to_owned(), value, comparison }));
        }
    }
    None
}

fn unescape(value: &str) -> Result<String, String> {
    let mut out = String::with_capacity(value.len());
    let mut escaped = false;
    for c in value.chars() {
        match c {
            '\\' | ',' | '=' if escaped => out.push(c),
            _ if escaped => return Err(format!("invalid field selector: invalid escape sequence: \\{c}")),
            '\\' => {
                escaped = true;
                continue;
            }
            ',' | '=' => return Err(format!("invalid field selector: unescaped character in value: {c}")),
            _ => out.push(c),
        }
        escaped = false;
    }
    if escaped {
        return Err("invalid field selector: invalid escape sequence: \\".into());
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_forms_compare() {
        let selector = FieldSelector::parse("a=1,b==2,c!=3").unwrap();
        let value = |field: &str| match field {
            "a" => "1",
            "b" => "2",
            _ => "4",
        };
        assert!(selector.terms().iter().all(|term| term.accepts(value(&term.field))));
        assert_eq!(selector.fixed("a"), Some("1"));
        assert_eq!(selector.fixed("c"), None);
    }

    #[test]
    fn what_is_no_selector_is_refused() {
        let error = FieldSelector::parse("x").unwrap_err();
        assert_eq!((error.code(), error.message()), (400, "invalid selector: 'x'; can't understand 'x'"));
        assert!(FieldSelector::parse("").unwrap().is_everything());
        assert_eq!(FieldSelector::parse("a=b\\,c").unwrap().fixed("a"), Some("b,c"));
    }
}

#[cfg(test)]
mod fuzz {
    use super::*;
    use crate::fuzzing::fuzz;

    #[test]
    fn any_selector_is_parsed_or_refused() {
        let pieces = ["a", "b", "=", "==", "!=", "!", ",", "\\", " ", "metadata.name", "é", "1"];
        fuzz(1000, |source| {
            let longest = if source.one_in(50) { 10_000 } else { 12 };
            let text = source.text(&pieces, longest);
            drop(FieldSelector::parse(&text));
            drop(FieldSelector::parse(&String::from_utf8_lossy(&source.bytes(40))));
        });
    }
}
