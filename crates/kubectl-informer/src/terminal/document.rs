//! JSON, YAML and scripts on their way to standard output.

use std::fmt::Write as _;

use serde_json::Value;

use crate::failure::Failure;
use crate::terminal::terminal_text::is_hidden;
use crate::terminal::yaml;

/// A text of one or more lines that a program reads. Hidden characters in it are escaped as its
/// format does, which changes no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Document(String);

impl Document {
    /// JSON on one line.
    pub(crate) fn json(value: &Value) -> Self {
        Self(escape(value.to_string()) + "\n")
    }

    /// YAML without a line `---` before it.
    pub(crate) fn yaml(value: &Value) -> Result<Self, Failure> {
        yaml::write(value).map(Self).map_err(Failure::Other)
    }

    /// JSON in any layout, or what [`yaml::write`] returned.
    pub(crate) fn escaped(text: String, is_json: bool) -> Self {
        Self(if is_json { escape(text) } else { text })
    }

    /// Text that the program composes, such as a completion script. What came from outside has to
    /// be made visible by the caller.
    pub(crate) fn own(text: String) -> Self {
        Self(text)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Escapes hidden characters in JSON. Apart from line breaks, they occur in its strings only, where
/// the serializer has escaped those below U+0020.
fn escape(json: String) -> String {
    let is_raw = |c: char| c != '\n' && is_hidden(c);
    if !json.contains(is_raw) {
        return json;
    }
    let mut escaped = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        if is_raw(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing into a string cannot fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn hidden_characters_are_escaped_in_json_and_read_again() {
        let value = json!({"a\u{7f}": ["\x1b[2J\n", "\u{9b}\u{202e}", "\u{e0041}", "plain"]});
        for document in [Document::json(&value), Document::escaped(format!("{value:#}"), true)] {
            let text = document.as_str();
            assert!(!text.contains(|c: char| c != '\n' && is_hidden(c)), "{text:?}");
            assert_eq!(serde_json::from_str::<Value>(text).unwrap(), value);
        }
        assert!(Document::json(&value).as_str().contains(r#""\u009b\u202e","\udb40\udc41""#));
    }
}
