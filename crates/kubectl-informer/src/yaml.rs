//! Reads and writes YAML.

use serde_json::Value;

/// Serializes an object as YAML.
pub(crate) fn write(object: &Value) -> Result<String, String> {
    serde_saphyr::to_string(object).map_err(|error| error.to_string())
}

/// Parses all documents of a text, without empty ones.
pub(crate) fn read(text: &str) -> Result<Vec<Value>, String> {
    let documents: Vec<Value> = serde_saphyr::from_str_multiple(text).map_err(|error| error.to_string())?;
    Ok(documents.into_iter().filter(|document| !document.is_null()).collect())
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
}
