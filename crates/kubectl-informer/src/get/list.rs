//! JSON and YAML lists, of which one item at a time is in memory.

use serde::Serialize as _;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

use crate::failure::Failure;
use crate::terminal::document::Document;
use crate::terminal::output::Output;
use crate::terminal::yaml;

/// Writes objects as kubectl does: one as it is, several as a list.
pub(super) struct ListWriter {
    format: Format,
    /// Whether a single object is printed without a list.
    is_single: bool,
    count: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Yaml,
}

impl ListWriter {
    pub(super) fn json(is_single: bool) -> Self {
        Self { format: Format::Json, is_single, count: 0 }
    }

    pub(super) fn yaml(is_single: bool) -> Self {
        Self { format: Format::Yaml, is_single, count: 0 }
    }

    pub(super) fn print(&mut self, out: &mut Output, object: &Value) -> Result<(), Failure> {
        let text = match self.format {
            Format::Json => json(object)?,
            Format::Yaml => yaml::write(object).map_err(Failure::Other)?,
        };
        let text = match (self.format, self.is_single) {
            (Format::Json, true) => text + "\n",
            (Format::Yaml, true) => text,
            (Format::Json, false) => {
                let before = if self.count == 0 { "{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n" } else { ",\n" };
                format!("{before}        {}", text.replace('\n', "\n        "))
            }
            (Format::Yaml, false) => {
                let before = if self.count == 0 { "apiVersion: v1\nitems:\n" } else { "" };
                format!("{before}- {}\n", text.trim_end_matches('\n').replace('\n', "\n  "))
            }
        };
        self.count += 1;
        Ok(out.document(&Document::escaped(text, self.format == Format::Json))?)
    }

    pub(super) fn end(&mut self, out: &mut Output) -> Result<(), Failure> {
        let text = match (self.format, self.is_single, self.count) {
            (_, true, _) => return Ok(()),
            (Format::Json, false, 0) => "{\n    \"apiVersion\": \"v1\",\n    \"items\": [],\n",
            (Format::Json, false, _) => "\n    ],\n",
            (Format::Yaml, false, 0) => "apiVersion: v1\nitems: []\n",
            (Format::Yaml, false, _) => "",
        };
        let end = match self.format {
            Format::Json => {
                "    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n    }\n}\n"
            }
            Format::Yaml => "kind: List\nmetadata:\n  resourceVersion: \"\"\n",
        };
        Ok(out.document(&Document::own(format!("{text}{end}")))?)
    }
}

/// JSON with kubectl's indent of four and Go's escapes, which matter to no reader but a comparison.
fn json(object: &Value) -> Result<String, Failure> {
    let mut text = Vec::new();
    object
        .serialize(&mut Serializer::with_formatter(&mut text, PrettyFormatter::with_indent(b"    ")))
        .map_err(|error| Failure::Other(error.to_string()))?;
    let text = String::from_utf8(text).map_err(|error| Failure::Other(error.to_string()))?;
    if !text.contains(['<', '>', '&']) {
        return Ok(text);
    }
    // These occur in strings only.
    Ok(text.replace('<', r"\u003c").replace('>', r"\u003e").replace('&', r"\u0026"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_escaped_as_kubectls() {
        let text = json(&json!({"a": "<b> & \\ \"c\""})).unwrap();
        assert_eq!(text, "{\n    \"a\": \"\\u003cb\\u003e \\u0026 \\\\ \\\"c\\\"\"\n}");
    }
}
