//! CEL rules of a schema, in builds without the feature that evaluates them.

use serde_json::Value;

use super::Findings;

/// Fails: conditions are not evaluated.
pub(crate) fn are_met(_: &[&str], _: &[(&str, &Value)]) -> Result<bool, String> {
    Err("this server is built without the feature cel".to_owned())
}

/// The source texts of a schema's rules.
#[derive(Debug, Default)]
pub(super) struct Rules {
    found: Vec<String>,
}

impl Rules {
    pub(super) fn of(schema: &Value) -> Self {
        let mut rules = Self::default();
        rules.gather(schema);
        rules
    }

    fn gather(&mut self, schema: &Value) {
        match schema {
            Value::Object(map) => {
                let own = map.get("x-kubernetes-validations").and_then(Value::as_array).into_iter().flatten();
                self.found.extend(own.filter_map(|rule| rule["rule"].as_str()).map(str::to_owned));
                map.values().for_each(|part| self.gather(part));
            }
            Value::Array(parts) => parts.iter().for_each(|part| self.gather(part)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Warnings about rules that are not checked, which are all of them.
    pub(super) fn unreadable(&self) -> Vec<String> {
        let warning =
            |rule| format!("this server does not check the rule {rule:?}: it is built without the feature cel");
        self.found.iter().map(warning).collect()
    }

    pub(super) fn check(&self, _: &Value, _: &Value, _: Option<&Value>) -> Findings {
        Findings::default()
    }
}
