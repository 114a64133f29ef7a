//! Redacts the data of Secrets.

use serde_json::Value;

/// Whether the data of Secrets is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secrets {
    Redacted,
    Shown,
}

const REDACTED: &str = "***";
/// Annotation with the whole object as kubectl applied it.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

impl Secrets {
    /// Replaces the values of a Secret by a fixed text, so that their lengths are not shown.
    pub(crate) fn redact(self, kind: &str, object: &mut Value) {
        if self == Self::Shown || kind != "Secret" {
            return;
        }
        for part in ["data", "stringData"] {
            let values = object.get_mut(part).and_then(Value::as_object_mut);
            for value in values.into_iter().flat_map(|part| part.values_mut()) {
                *value = Value::from(REDACTED);
            }
        }
        let metadata = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("annotations"));
        if let Some(applied) = metadata.and_then(|annotations| annotations.get_mut(LAST_APPLIED)) {
            *applied = Value::from(REDACTED);
        }
    }

    /// Returns whether the values at a path are redacted in the output.
    pub(crate) fn hides(self, kind: &str, path: &str) -> bool {
        self == Self::Redacted
            && kind == "Secret"
            && (path.starts_with("data") || path.starts_with("stringData") || path.contains(LAST_APPLIED))
    }
}

/// A copy to be kept in a file: the values of a Secret are replaced in their own encoding, so that
/// the object is still valid.
pub(crate) fn without_secrets(kind: &str, object: &Value) -> Value {
    /// The redacted text in base64.
    const ENCODED: &str = "Kioq";
    let mut copy = object.clone();
    Secrets::Redacted.redact(kind, &mut copy);
    if kind == "Secret"
        && let Some(data) = copy.get_mut("data").and_then(Value::as_object_mut)
    {
        data.values_mut().for_each(|value| *value = Value::from(ENCODED));
    }
    copy
}

/// What is shown of a redacted value: whether there is one.
pub(crate) fn redacted(value: Option<&Value>) -> String {
    value.map_or("∅", |_| REDACTED).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn no_value_of_a_secret_is_left() {
        let secret = json!({"metadata": {"name": "a", "annotations": {LAST_APPLIED: "hunter2", "b": "c"}}, "data": {"k": "hunter2"}, "stringData": {"k": "hunter2"}});
        let mut redacted = secret.clone();
        Secrets::Redacted.redact("Secret", &mut redacted);
        assert!(!redacted.to_string().contains("hunter2"));
        assert_eq!(redacted["metadata"]["annotations"]["b"], "c");
        let kept = without_secrets("Secret", &secret);
        assert!(!kept.to_string().contains("hunter2") && kept["data"]["k"] == "Kioq", "{kept}");
        let mut other = secret.clone();
        Secrets::Redacted.redact("ConfigMap", &mut other);
        assert_eq!(other, secret);
    }
}
