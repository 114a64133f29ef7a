//! Exact comparison of texts, except for parts that differ between runs.

/// Whether `text` matches `template`, whose placeholders match variable parts: `<n>` a number,
/// `<uid>` a uid, `<time>` a timestamp in whole seconds, `<token>` a continue token, `<id>` a
/// random suffix or identifier, `<*>` anything.
///
/// JSON from an API server escapes `<`, so a placeholder never conflicts with a literal.
pub(crate) fn matches(template: &str, text: &str) -> bool {
    let Some((literal, placeholder, rest)) = split(template) else {
        return template == text;
    };
    let Some(text) = text.strip_prefix(literal) else {
        return false;
    };
    let longest = text.char_indices().find(|&(_, c)| !placeholder.takes(c)).map_or(text.len(), |(at, _)| at);
    (0..=longest)
        .rev()
        .filter(|&at| text.is_char_boundary(at) && placeholder.fits(&text[..at]))
        .any(|at| matches(rest, &text[at..]))
}

#[derive(Clone, Copy)]
enum Placeholder {
    Number,
    Uid,
    Time,
    Token,
    Id,
    Anything,
}

const PLACEHOLDERS: [(&str, Placeholder); 6] = [
    ("<n>", Placeholder::Number),
    ("<uid>", Placeholder::Uid),
    ("<time>", Placeholder::Time),
    ("<token>", Placeholder::Token),
    ("<id>", Placeholder::Id),
    ("<*>", Placeholder::Anything),
];

/// The text before the first placeholder, the placeholder, and the text after it.
fn split(template: &str) -> Option<(&str, Placeholder, &str)> {
    PLACEHOLDERS
        .iter()
        .filter_map(|&(mark, placeholder)| template.find(mark).map(|at| (at, mark, placeholder)))
        .min_by_key(|&(at, ..)| at)
        .map(|(at, mark, placeholder)| (&template[..at], placeholder, &template[at + mark.len()..]))
}

impl Placeholder {
    fn takes(self, c: char) -> bool {
        match self {
            Self::Number => c.is_ascii_digit(),
            Self::Uid => c.is_ascii_hexdigit() || c == '-',
            Self::Time => c.is_ascii_digit() || "-:TZ".contains(c),
            Self::Token => c.is_ascii_alphanumeric() || c == '-' || c == '_',
            Self::Id => c.is_ascii_alphanumeric(),
            Self::Anything => true,
        }
    }

    fn fits(self, text: &str) -> bool {
        match self {
            Self::Uid => text.len() == 36,
            Self::Time => text.len() == "2026-01-01T00:00:00Z".len(),
            Self::Number | Self::Token | Self::Id => !text.is_empty(),
            Self::Anything => true,
        }
    }
}

/// `text` without managedFields, which other cases check.
pub(crate) fn without_managed_fields(text: &str) -> String {
    const START: &str = "\"managedFields\":[";
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(START) {
        let after = &rest[at + START.len() - 1..];
        let after = &after[array_length(after)..];
        let before = &rest[..at];
        // One of the two adjacent commas is removed too.
        if let Some(before) = before.strip_suffix(',') {
            kept.push_str(before);
            rest = after;
        } else {
            kept.push_str(before);
            rest = after.strip_prefix(',').unwrap_or(after);
        }
    }
    kept.push_str(rest);
    kept
}

/// The length in bytes of the JSON array at the start of `text`.
fn array_length(text: &str) -> usize {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' if !in_string => depth += 1,
            b']' if !in_string => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}
