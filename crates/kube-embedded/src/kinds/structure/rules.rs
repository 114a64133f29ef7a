//! The CEL rules of a schema (`x-kubernetes-validations`).

mod program;
mod value;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use cel::Context;
use serde_json::Value;

pub(crate) use self::program::are_met;
use self::program::{ENV, Program, TOO_COSTLY, compile, go_message, optional};
use self::value::convert;
use super::check::NO_FIELD;
use super::cost::{self, Exceeded};
use super::{Counterparts, Findings, joined, shown};
use crate::encoding::large_stack::with_large_stack;
use crate::http::status::Cause;

/// Maximum length in bytes of a message from `messageExpression`.
const MAX_MESSAGE_LENGTH: usize = 5 * 1024;

/// Maximum number of warnings about one object. The rest of them would not fit into the response.
const MAX_WARNINGS: usize = 100;

/// The rules of a schema. Each expression is compiled on first use.
#[derive(Default)]
pub(super) struct Rules {
    programs: HashMap<String, OnceLock<Result<Program, String>>>,
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.programs.keys()).finish()
    }
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
                for rule in rules_of(schema) {
                    for part in ["rule", "messageExpression"] {
                        if let Some(text) = rule[part].as_str().filter(|text| !text.trim().is_empty()) {
                            self.programs.entry(text.to_owned()).or_default();
                        }
                    }
                }
                map.values().for_each(|part| self.gather(part));
            }
            Value::Array(parts) => parts.iter().for_each(|part| self.gather(part)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    /// Warnings about rules that cannot be compiled.
    pub(super) fn unreadable(&self) -> Vec<String> {
        let mut unreadable: Vec<String> = self
            .programs
            .keys()
            .filter_map(|text| Some(unchecked(text, self.program(text)?.as_ref().err()?)))
            .collect();
        unreadable.sort();
        unreadable
    }

    /// Evaluates every rule on an object.
    pub(super) fn check(&self, schema: &Value, value: &Value, old: Option<&Value>) -> Findings {
        let check = || {
            let mut findings = Findings::default();
            cost::begin_object();
            self.walk(&Node { schema, path: "", is_root: true }, value, old, &mut findings);
            findings
        };
        with_large_stack(check).unwrap_or_else(|why| Findings {
            causes: Vec::new(),
            warnings: vec![format!("this server does not check the rules: {why}")],
        })
    }

    fn program(&self, text: &str) -> Option<&Result<Program, String>> {
        let program = self.programs.get(text)?;
        Some(program.get_or_init(|| compile(text)))
    }

    fn walk(&self, node: &Node<'_>, value: &Value, old: Option<&Value>, findings: &mut Findings) {
        let Node { schema, path, .. } = node;
        if value.is_null() {
            return;
        }
        for rule in rules_of(schema) {
            self.apply(rule, node, value, old.filter(|old| !old.is_null()), findings);
        }
        match value {
            Value::Array(items) => {
                let old = Counterparts::of(schema, old);
                for (at, item) in items.iter().enumerate() {
                    let path = format!("{path}[{at}]");
                    let node = Node { schema: &schema["items"], path: &path, is_root: false };
                    self.walk(&node, item, old.get(schema, item), findings);
                }
            }
            Value::Object(map) => {
                for (key, value) in map {
                    let other = schema.get("additionalProperties").filter(|other| other.is_object());
                    let (schema, path) = match (schema["properties"].get(key), other) {
                        (Some(schema), _) => (schema, joined(path, key)),
                        (None, Some(schema)) => (schema, format!("{path}[{key}]")),
                        (None, None) => continue,
                    };
                    let node = Node { schema, path: &path, is_root: false };
                    self.walk(&node, value, old.and_then(|old| old.get(key)), findings);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn apply(&self, rule: &Value, node: &Node<'_>, value: &Value, old: Option<&Value>, findings: &mut Findings) {
        let text = rule["rule"].as_str().unwrap_or_default();
        let program = match self.program(text) {
            None => return,
            Some(Ok(program)) => program,
            Some(Err(why)) => return findings.warn(unchecked(text, why)),
        };
        let is_transition = program.is_transition;
        let is_optional = rule["optionalOldSelf"] == true;
        if is_transition && old.is_none() && !is_optional {
            return;
        }
        if let Err(Exceeded) = cost::begin_rule([Some(value), old.filter(|_| is_transition)]) {
            return findings.warn(unchecked(text, TOO_COSTLY));
        }
        let mut context = Context::with_env(Arc::clone(&ENV));
        context.add_variable_from_value("self", node.convert(value));
        if is_transition {
            let old = old.map(|old| node.convert(old));
            let bound = if is_optional { optional(old) } else { old };
            context.add_variable_from_value("oldSelf", bound.unwrap_or(cel::Value::Null));
        }
        let result = context.resolve(&program.expression);
        // Also if there is a result: an operand that fails may not matter to CEL.
        if cost::is_exceeded() {
            return findings.warn(unchecked(text, TOO_COSTLY));
        }
        match result {
            Ok(cel::Value::Bool(true)) => {}
            Ok(cel::Value::Bool(false)) => {
                let cause = self.cause(rule, node, value, &context);
                // An unchanged value may stay invalid (ratcheting).
                match !is_transition && old == Some(value) {
                    true => findings.warn(format!("{}: {}", cause.field, cause.message)),
                    false => findings.causes.push(cause),
                }
            }
            Ok(other) => findings.warn(unchecked(text, &format!("it gives {}", other.type_of()))),
            Err(error) => match go_message(&error) {
                Some(error) => {
                    let kind = node.schema["type"].as_str().unwrap_or_default();
                    let rule = rule["message"].as_str().filter(|message| !message.is_empty()).unwrap_or(text).trim();
                    let why = format!("{error} evaluating rule: {rule}");
                    findings.causes.push(Cause::invalid(node.place(), format!("{kind:?}"), why));
                }
                None => findings.warn(unchecked(text, &error.to_string())),
            },
        }
    }

    /// The error for a value that violates a rule.
    fn cause(&self, rule: &Value, node: &Node<'_>, value: &Value, context: &Context<'_, '_>) -> Cause {
        let text_of = |part: &str| rule[part].as_str().map(str::trim).filter(|text| !text.is_empty());
        let computed = rule["messageExpression"].as_str().and_then(|text| self.message(text, context));
        let detail = computed
            .or_else(|| text_of("message").map(str::to_owned))
            .unwrap_or_else(|| format!("failed rule: {}", text_of("rule").unwrap_or_default()));
        let place = match rule["fieldPath"].as_str().filter(|path| !path.is_empty()) {
            Some(below) => joined(node.path, below.trim_start_matches('.')),
            None => node.place().to_owned(),
        };
        // Objects and lists are not included in the message.
        let compound = matches!(node.schema["type"].as_str(), Some("object" | "array"));
        match rule["reason"].as_str() {
            Some("FieldValueForbidden") => Cause::forbidden(&place, detail),
            Some("FieldValueRequired") => Cause::required(&place, &detail),
            Some("FieldValueDuplicate") if compound => Cause::new("FieldValueDuplicate", place, "Duplicate value"),
            Some("FieldValueDuplicate") => {
                Cause::new("FieldValueDuplicate", place, format!("Duplicate value: {}", shown(value)))
            }
            _ if compound => Cause::new("FieldValueInvalid", place, format!("Invalid value: {detail}")),
            _ => Cause::invalid(&place, shown(value), detail),
        }
    }

    /// Evaluates a `messageExpression`. `None` if the result is not usable as a message.
    fn message(&self, text: &str, context: &Context<'_, '_>) -> Option<String> {
        let Some(Ok(program)) = self.program(text) else { return None };
        match context.resolve(&program.expression) {
            Ok(cel::Value::String(message)) => {
                let message = message.trim().to_owned();
                let fits = !message.is_empty() && message.len() <= MAX_MESSAGE_LENGTH && !message.contains('\n');
                fits.then_some(message)
            }
            _ => None,
        }
    }
}

impl Findings {
    /// Adds a warning, unless it is there or there are too many.
    fn warn(&mut self, warning: String) {
        if self.warnings.len() < MAX_WARNINGS && !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
    }
}

/// A position in a schema, and the corresponding path in the object.
struct Node<'s> {
    schema: &'s Value,
    path: &'s str,
    is_root: bool,
}

impl Node<'_> {
    /// The field path in error messages.
    fn place(&self) -> &str {
        if self.path.is_empty() { NO_FIELD } else { self.path }
    }

    /// Converts a value to CEL.
    fn convert(&self, value: &Value) -> cel::Value {
        convert(self.schema, value, self.is_root)
    }
}

/// The warning that a rule is not checked.
fn unchecked(rule: &str, why: &str) -> String {
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("this server does not check the rule {rule:?}: {why}")
}

fn rules_of(schema: &Value) -> impl Iterator<Item = &Value> {
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    rules.into_iter().flatten().filter(|rule| rule.is_object())
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod fuzz {
    use serde_json::json;

    use super::*;
    use crate::fuzzing::fuzz;

    #[test]
    fn any_rule_is_evaluated_or_reported() {
        let pieces = [
            "self",
            ".a",
            ".b",
            "x",
            "y",
            "(",
            ")",
            "[",
            "]",
            "{",
            "}",
            ".all(x, ",
            ".exists(y, ",
            ".map(x, ",
            ".filter(x, ",
            ".exists_one(x, ",
            ".sortBy(x, ",
            " + ",
            " - ",
            " * ",
            " / ",
            " % ",
            " == ",
            " != ",
            " < ",
            " in ",
            " && ",
            " || ",
            "!",
            " ? ",
            " : ",
            ",",
            "0",
            "1",
            "9223372036854775807",
            "1.5",
            "'abc'",
            "''",
            "b'x'",
            "true",
            "null",
            "[1, 2]",
            "{'a': 1}",
            ".size()",
            ".matches('a+')",
            ".replace('a', 'b')",
            ".split('')",
            ".join()",
            ".format([1])",
            "lists.range(9)",
            "oldSelf",
            "math.greatest(1, 2)",
            "optional.of(1)",
            ".?a",
            ".orValue(1)",
            "has(self.a)",
            "string(",
            "int(",
            "type(",
            ".flatten()",
            ".distinct()",
            ".reverse()",
            ".sort()",
            ".substring(1)",
            ".charAt(0)",
            ".lowerAscii()",
            "strings.quote(",
            "é",
            "\\",
        ];
        fuzz(100, |source| {
            let rule = match source.below(8) {
                0 => source.text(&["(", "[", "!", "-", "{1:", "self.a(", "self["], 1_100),
                1 => {
                    source.text(&["r'\\'", "'", "\"\"\"", "'\\q'", "'\\''", "("], 3) + &"(".repeat(source.below(3_000))
                }
                2 => {
                    "1".to_owned()
                        + &source.choose(&[" in 1", "+1", "==1", "?1:1", "||1", ".a"]).repeat(source.below(1_100))
                }
                _ => source.text(&pieces, 14),
            };
            let rules = json!([{"rule": rule, "messageExpression": source.text(&pieces, 6)}]);
            let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-validations": rules,
                "properties": {"a": {"type": "array", "items": {"type": "integer"}}, "b": {"type": "string"}}});
            let value = json!({"a": [1, 2, 3], "b": "abc"});
            Rules::of(&schema).check(&schema, &value, Some(&value));
        });
    }
}
