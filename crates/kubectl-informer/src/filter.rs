//! CEL filter expressions over objects.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use cel::objects::{Key, Map};
use cel::{Context, Program};
use serde_json::Value;

/// A compiled CEL expression that is true or false for an object.
#[derive(Clone)]
pub(crate) struct Filter {
    text: Arc<str>,
    program: Arc<Program>,
    /// Variables that the expression references.
    variables: Arc<[String]>,
}

/// Variable bound to the whole object; other variables are its top-level fields.
const OBJECT: &str = "object";

impl FromStr for Filter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let program = Program::compile(text).map_err(|error| error.to_string())?;
        let variables = program.references().variables().into_iter().map(str::to_owned).collect();
        Ok(Self { text: text.into(), program: Arc::new(program), variables })
    }
}

impl Filter {
    /// Evaluates the expression for an object. Accessing a missing field makes it false.
    pub(crate) fn fits(&self, object: &Value) -> Result<bool, String> {
        let mut context = Context::default();
        for name in &*self.variables {
            let value = if name == OBJECT { Some(object) } else { object.get(name) };
            // A missing top-level field is an empty map, so that `status.phase` is a missing key.
            context.add_variable_from_value(name.as_str(), value.map_or_else(empty, convert));
        }
        match self.program.execute(&context) {
            Ok(cel::Value::Bool(fits)) => Ok(fits),
            Ok(other) => Err(format!("--where {}: gives {}, not true or false", self.text, other.type_of())),
            Err(cel::ExecutionError::NoSuchKey(_)) => Ok(false),
            Err(error) => Err(format!("--where {}: {error}", self.text)),
        }
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Filter").field(&self.text).finish()
    }
}

fn empty() -> cel::Value {
    cel::Value::Map(Map { map: Arc::new(HashMap::new()) })
}

/// Converts JSON to CEL. Integers become CEL's signed type, as CEL does not mix signed and
/// unsigned.
fn convert(value: &Value) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(truth) => cel::Value::Bool(*truth),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => cel::Value::Int(whole),
            None => cel::Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => cel::Value::String(Arc::new(text.clone())),
        Value::Array(items) => cel::Value::List(Arc::new(items.iter().map(convert).collect())),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| (Key::from(key.as_str()), convert(value)));
            cel::Value::Map(Map { map: Arc::new(fields.collect()) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_expression_is_true_of_some_objects() {
        let pod = json!({
            "metadata": {"name": "web-1", "labels": {"app": "web"}},
            "spec": {"replicas": 3},
            "status": {"phase": "Running", "readyReplicas": 2, "containerStatuses": [{"restartCount": 5}, {"restartCount": 0}]},
        });
        for (text, expected) in [
            ("status.phase == 'Running'", true),
            ("status.phase != 'Running'", false),
            ("status.readyReplicas < spec.replicas", true),
            ("spec.replicas == 3", true),
            ("status.containerStatuses.exists(c, c.restartCount > 3)", true),
            ("metadata.name.startsWith('web-') && metadata.labels['app'] == 'web'", true),
            ("metadata.name.matches('^web-[0-9]+$')", true),
            ("has(status.podIP)", false),
            ("status.podIP == '10.0.0.1'", false),
            ("data.key == 'x'", false),
            ("object.spec.replicas in [1, 3]", true),
        ] {
            assert_eq!(text.parse::<Filter>().unwrap().fits(&pod), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_question_is_an_error() {
        assert!("status.phase ==".parse::<Filter>().is_err());
        let error = "metadata.name".parse::<Filter>().unwrap().fits(&json!({"metadata": {"name": "a"}})).unwrap_err();
        assert_eq!(error, "--where metadata.name: gives string, not true or false");
    }
}
