//! Reads and writes YAML.

use std::fmt::Write as _;

use serde_json::Value;

use crate::terminal::terminal_text::is_hidden;

/// Serializes an object as YAML, with every hidden character but line breaks and tabs escaped.
///
/// The serializer escapes control characters, and writes others, such as direction controls, as
/// they are.
pub(crate) fn write(object: &Value) -> Result<String, String> {
    let text = serialize(object)?;
    if text.contains(is_raw) { write_escaped(object, &text) } else { Ok(text) }
}

/// Parses all documents of a text, without empty ones.
pub(crate) fn read(text: &str) -> Result<Vec<Value>, String> {
    let documents: Vec<Value> = serde_saphyr::from_str_multiple(text).map_err(|error| error.to_string())?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
}

fn serialize(object: &Value) -> Result<String, String> {
    serde_saphyr::to_string(object).map_err(|error| error.to_string())
}

fn is_raw(c: char) -> bool {
    !matches!(c, '\n' | '\t') && is_hidden(c)
}

/// Serializes the object with a placeholder for each raw character, and replaces those in the text.
///
/// A placeholder is U+0007, for which the serializer chooses double quotes around keys and values
/// and writes `\a`, a name that does not occur in the object, and the escape without its backslash.
fn write_escaped(object: &Value, text: &str) -> Result<String, String> {
    let mut name = "hidden-".to_owned();
    while text.contains(&name) {
        name.insert(0, 'x');
    }
    let marked = serialize(&with_placeholders(object, &name))?;
    Ok(marked.replace(&format!("\\a{name}"), "\\"))
}

fn with_placeholders(value: &Value, name: &str) -> Value {
    match value {
        Value::String(text) => Value::String(mark(text, name)),
        Value::Array(items) => items.iter().map(|item| with_placeholders(item, name)).collect(),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| (mark(key, name), with_placeholders(value, name))).collect()
        }
        other => other.clone(),
    }
}

fn mark(text: &str, name: &str) -> String {
    let mut marked = String::with_capacity(text.len());
    for c in text.chars() {
        // Writing into a string cannot fail.
        let _ = match (is_raw(c), u32::from(c)) {
            (false, _) => marked.write_char(c),
            (true, code @ ..=0xffff) => write!(marked, "\u{7}{name}u{code:04x}"),
            (true, code) => write!(marked, "\u{7}{name}U{code:08x}"),
        };
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_is_read_again() {
        let object = json!({"a": "yes", "b": "1", "c": 1, "d": null, "e": ["x: y", "", "~", "line\nbreak\n"], "f": {"g/h.i": {}}});
        assert_eq!(read(&write(&object).unwrap()).unwrap(), [object]);
    }

    #[test]
    fn empty_documents_are_left_out() {
        assert_eq!(read("---\n# nothing\n---\na: 1\n---\n").unwrap(), [json!({"a": 1})]);
    }

    #[test]
    fn hidden_characters_are_escaped_in_keys_and_values_and_read_again() {
        let long = "a long text with spaces in it, and a hidden character: \u{200b} ".repeat(8);
        let object = json!({
            "plain": "\u{202e}gpj.exe", "key\u{200f}": {"nested\u{e0041}": ["\x1b[2J", "\r", "\0", "\u{7f}", "\u{9b}31m", "\u{feff}"]},
            "lines": "one\ntwo\u{2066}\n\tthree \u{7}\n", "name": "hidden-u202e \\ahidden-u202e \u{202e}", "long": long, "visible": "é, 世界",
        });
        let text = write(&object).unwrap();
        assert!(!text.contains(is_raw), "{text}");
        assert_eq!(read(&text).unwrap(), [object]);
        let controls: String = ('\0'..=' ').chain('\u{7f}'..='\u{a0}').collect();
        let text = write(&json!({ controls.as_str(): controls })).unwrap();
        assert!(!text.contains(is_raw), "{text}");
        assert_eq!(read(&text).unwrap(), [json!({ controls.as_str(): controls })]);
    }
}
