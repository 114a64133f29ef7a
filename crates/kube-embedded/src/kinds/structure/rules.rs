//! The CEL rules of a schema (`x-kubernetes-validations`).

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock};

use base64::Engine as _;
use cel::common::ast::IdedExpr;
use cel::objects::{Key, Map};
use cel::{Context, Env, ExecutionError};
use serde_json::Value;

use super::check::NO_FIELD;
use super::cost::{self, Exceeded};
use super::{Counterparts, Findings, joined, shown};
use crate::encoding::large_stack::with_large_stack;
use crate::http::status::Cause;

/// Reserved words of CEL. Rules refer to fields with these names by an escaped name.
const RESERVED: [&str; 21] = [
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// Maximum length in bytes of a message from `messageExpression`.
const MAX_MESSAGE_LENGTH: usize = 5 * 1024;

/// Maximum number of operators and brackets of a rule, those in strings included. Each can be a
/// level of nesting, and the stack is limited.
const MAX_OPERATORS: usize = 1_000;

/// Maximum number of warnings about one object. The rest of them would not fit into the response.
const MAX_WARNINGS: usize = 100;

/// The CEL environment: the standard library and extensions.
static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    for extension in [cel::extensions::strings, cel::extensions::lists, cel::extensions::math, cost::functions] {
        // Without an extension, rules that use it fail when they run, which is reported then.
        env.add_extension(extension).ok();
    }
    Arc::new(env)
});

/// The rules of a schema. Each expression is compiled on first use.
#[derive(Default)]
pub(super) struct Rules {
    programs: HashMap<String, OnceLock<Result<Program, String>>>,
}

/// A compiled expression.
#[derive(Debug)]
struct Program {
    expression: IdedExpr,
    /// Whether it refers to the old value.
    is_transition: bool,
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

/// Evaluates a condition on variables without a schema.
///
/// # Errors
///
/// The message of a condition that does not give a truth value.
pub(crate) fn condition(text: &str, variables: &[(&str, &Value)]) -> Result<bool, String> {
    let program = compile(text)?;
    with_large_stack(|| evaluate(&program, variables)).unwrap_or_else(Err)
}

fn evaluate(program: &Program, variables: &[(&str, &Value)]) -> Result<bool, String> {
    cost::begin_object();
    let values = [variables.first(), variables.get(1)].map(|each| each.map(|(_, value)| *value));
    cost::begin_rule(values).map_err(|Exceeded| TOO_COSTLY)?;
    let mut context = Context::with_env(Arc::clone(&ENV));
    for (name, value) in variables {
        context.add_variable_from_value(*name, plain(value));
    }
    let result = context.resolve(&program.expression);
    if cost::is_exceeded() {
        return Err(TOO_COSTLY.to_owned());
    }
    match result {
        Ok(cel::Value::Bool(truth)) => Ok(truth),
        Ok(other) => Err(format!("the condition gives {}", other.type_of())),
        Err(error) => Err(go_message(&error).unwrap_or_else(|| error.to_string())),
    }
}

/// Converts a value without a schema: all fields are visible, under their own names.
fn plain(value: &Value) -> cel::Value {
    match value {
        Value::Array(items) => cel::Value::List(Arc::new(items.iter().map(plain).collect())),
        Value::Object(map) => {
            let fields = map.iter().map(|(key, value)| (Key::from(key.clone()), plain(value)));
            cel::Value::Map(Map { map: Arc::new(fields.collect()) })
        }
        scalar => convert(&Value::Null, scalar, false),
    }
}

fn compile(text: &str) -> Result<Program, String> {
    if operators(text) > MAX_OPERATORS {
        return Err("it is too long".to_owned());
    }
    let compiled = with_large_stack(|| {
        let program = ENV.compile(text).map_err(|error| error.to_string())?;
        let is_transition = program.references().has_variable("oldSelf");
        Ok(Program { expression: cost::metered(program.expression()), is_transition })
    });
    compiled.unwrap_or_else(Err)
}

/// Why a rule is not checked whose evaluation exceeds the cost limit.
const TOO_COSTLY: &str = "it exceeds the cost limit";

/// The number of characters and words that may be operators or brackets. What is in strings counts
/// as well: the parser goes on after a string that is malformed or not closed.
fn operators(text: &str) -> usize {
    let signs = text.chars().filter(|sign| "([{!-+*/%.?&|=<>".contains(*sign)).count();
    let words = text.split(|sign: char| !sign.is_alphanumeric() && sign != '_').filter(|word| *word == "in").count();
    signs + words
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

/// Converts an old value to a CEL optional.
fn optional(value: Option<cel::Value>) -> Option<cel::Value> {
    let mut context = Context::with_env(Arc::clone(&ENV));
    let text = if value.is_some() { "optional.of(value)" } else { "optional.none()" };
    context.add_variable_from_value("value", value.unwrap_or(cel::Value::Null));
    ENV.compile(text).ok()?.execute(&context).ok()
}

/// The message of kube-apiserver for an evaluation error that the object caused.
fn go_message(error: &ExecutionError) -> Option<String> {
    match error {
        ExecutionError::NoSuchKey(key) => Some(format!("no such key: {key}")),
        ExecutionError::DivisionByZero(_) => Some("division by zero".to_owned()),
        ExecutionError::RemainderByZero(_) => Some("modulus by zero".to_owned()),
        ExecutionError::IndexOutOfBounds(cel::Value::Int(index)) => Some(format!("index out of bounds: {index}")),
        ExecutionError::Overflow(..) => Some("integer overflow".to_owned()),
        _ => None,
    }
}

fn convert(schema: &Value, value: &Value, is_root: bool) -> cel::Value {
    match value {
        Value::Null => cel::Value::Null,
        Value::Bool(truth) => cel::Value::Bool(*truth),
        Value::Number(number) => match number.as_i64() {
            Some(whole) if schema["type"] != "number" => cel::Value::Int(whole),
            _ => cel::Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => {
            let bytes = (schema["format"] == "byte")
                .then(|| base64::engine::general_purpose::STANDARD.decode(text).ok())
                .flatten();
            bytes.map_or_else(|| cel::Value::String(Arc::new(text.clone())), |bytes| cel::Value::Bytes(Arc::new(bytes)))
        }
        Value::Array(items) => {
            let items = items.iter().map(|item| convert(&schema["items"], item, false)).collect();
            cel::Value::List(Arc::new(items))
        }
        Value::Object(map) => {
            let whole = is_root || schema["x-kubernetes-embedded-resource"] == true;
            let other = schema.get("additionalProperties").filter(|other| other.is_object());
            let fields = map.iter().filter_map(|(key, value)| {
                let seen = match (schema["properties"].get(key), other) {
                    (_, Some(other)) => (key.clone(), convert(other, value, false)),
                    (_, None) if whole && key == "metadata" => (key.clone(), names(value)),
                    (_, None) if whole && matches!(key.as_str(), "apiVersion" | "kind") => {
                        (key.clone(), convert(&Value::Null, value, false))
                    }
                    (Some(schema), None) => (escaped(key), convert(schema, value, false)),
                    // Fields that are not in the schema are invisible to rules.
                    (None, None) => return None,
                };
                Some((Key::from(seen.0), seen.1))
            });
            cel::Value::Map(Map { map: Arc::new(fields.collect()) })
        }
    }
}

/// Of the metadata, rules can access only the names.
fn names(metadata: &Value) -> cel::Value {
    let names = ["name", "generateName"].into_iter();
    let names = names.filter_map(|name| Some((name, metadata[name].as_str()?)));
    let names = names.map(|(name, text)| (Key::from(name), cel::Value::String(Arc::new(text.to_owned()))));
    cel::Value::Map(Map { map: Arc::new(names.collect()) })
}

/// The escaped name of a field in rules.
fn escaped(name: &str) -> String {
    if RESERVED.contains(&name) {
        return format!("__{name}__");
    }
    let name = name.replace("__", "__underscores__").replace('.', "__dot__");
    name.replace('-', "__dash__").replace('/', "__slash__")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn evaluate(schema: &Value, value: &Value, old: Option<&Value>) -> (Vec<String>, Vec<String>) {
        let findings = Rules::of(schema).check(schema, value, old);
        let causes = findings.causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        (causes, findings.warnings)
    }

    #[test]
    fn fields_are_called_as_cel_can_call_them() {
        assert_eq!(escaped("a.b/c__d"), "a__dot__b__slash__c__underscores__d");
        let schema = json!({
            "type": "object", "properties": {"a-b": {"type": "integer"}, "namespace": {"type": "string"}},
            "x-kubernetes-validations": [{"rule": "self.a__dash__b > 1 && self.__namespace__ == 'n'"}],
        });
        assert_eq!(evaluate(&schema, &json!({"a-b": 2, "namespace": "n"}), None), (vec![], vec![]));
        assert_eq!(evaluate(&schema, &json!({"a-b": 1, "namespace": "n"}), None).0.len(), 1);
    }

    #[test]
    fn what_cannot_be_checked_is_reported_and_accepted() {
        for rule in ["self ==", "missing.method(self)", "self.size()", "quantity(self).isGreaterThan(quantity('1'))"] {
            let schema = json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]});
            let (causes, warnings) = evaluate(&schema, &json!("a"), None);
            assert!(causes.is_empty(), "{causes:?}");
            assert!(warnings.iter().any(|warning| warning.contains(rule)), "{rule}: {warnings:?}");
        }
        let schema = json!({"type": "string", "x-kubernetes-validations": [{"rule": "self =="}]});
        assert_eq!(Rules::of(&schema).unreadable().len(), 1);
    }

    #[test]
    fn rules_that_go_too_deep_are_not_checked() {
        for (opening, closing) in
            [("(", ")"), ("[", "]"), ("!", ""), ("-", ""), ("self.a(", ")"), ("{1:", "}"), ("1+", "1")]
        {
            for depth in [30, 50, 250, 20_000] {
                let rule = format!("{}self{} == self", opening.repeat(depth), closing.repeat(depth));
                let schema = json!({"type": "string", "x-kubernetes-validations": [{"rule": rule}]});
                evaluate(&schema, &json!("a"), None);
            }
        }
    }

    #[test]
    fn a_rule_that_costs_too_much_is_not_checked() {
        let numbers: Vec<u64> = (0..300).collect();
        for rule in [
            // Millions of iterations.
            "self.all(a, self.all(b, self.all(c, a + b + c >= 0)))",
            // When the limit is exceeded, the loops around must not go on to the end.
            &format!("{}false{}", "self.exists(x, ".repeat(30), ")".repeat(30)),
            // Texts and lists that double.
            &format!("['abc']{} != []", ".map(x, x + x)".repeat(60)),
            &format!("[self]{}.all(x, x == x)", ".map(x, {'a': x, 'b': x})".repeat(60)),
            "lists.range(1000000).map(x, lists.range(1000000)).size() > 0",
            "self.map(x, 'abcdefghij').join('abcdefghij').replace('a', self.map(x, 'abcdefghij').join('x')) != ''",
            "self.all(x, 'x'.matches('(a{100}){50}' + string(x)) || true)",
        ] {
            let schema =
                json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": rule}]});
            let (causes, warnings) = evaluate(&schema, &json!(numbers), None);
            assert_eq!((causes.len(), warnings.len()), (0, 1), "{rule}: {causes:?} {warnings:?}");
            assert!(warnings[0].ends_with("it exceeds the cost limit"), "{}", warnings[0]);
        }
    }

    #[test]
    fn rules_of_common_sizes_are_checked() {
        let numbers: Vec<u64> = (0..300).collect();
        for rule in [
            "self.all(a, self.exists(b, a == b))",
            "self.map(x, x * 2).filter(x, x > 3).size() == 298",
            "self.all(x, string(x).matches('^[0-9]{1,63}$'))",
            "self.sortBy(x, -x)[0] == 299",
            "self.map(x, string(x)).join(',').split(',').size() == 300",
            "math.greatest(self) == 299 && optional.of(self).hasValue() && !(400 in self) && self.exists_one(x, x == 3)",
        ] {
            let schema =
                json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": [{"rule": rule}]});
            assert_eq!(evaluate(&schema, &json!(numbers), None), (vec![], vec![]), "{rule}");
        }
    }

    #[test]
    fn the_rules_of_an_object_have_a_limit_together() {
        // Each row has other regular expressions, which are expensive, but not for one rule.
        let rule = json!([{"rule": "self.all(x, 'x'.matches(string(x)) || true)"}]);
        let row = json!({"type": "array", "items": {"type": "integer"}, "x-kubernetes-validations": rule});
        let schema = json!({"type": "array", "items": row});
        let rows =
            |rows: u64| json!((0..rows).map(|row| (90 * row..90 * (row + 1)).collect()).collect::<Vec<Vec<u64>>>());
        assert_eq!(evaluate(&schema, &rows(5), None), (vec![], vec![]));
        let (causes, warnings) = evaluate(&schema, &rows(20), None);
        assert_eq!((causes.len(), warnings.len()), (0, 1), "{warnings:?}");
    }

    #[test]
    fn an_old_value_may_be_optional() {
        let rule =
            json!({"rule": "!oldSelf.hasValue() || self >= oldSelf.value()", "optionalOldSelf": true, "message": "up"});
        let schema = json!({"type": "integer", "x-kubernetes-validations": [rule]});
        assert_eq!(evaluate(&schema, &json!(1), None), (vec![], vec![]));
        assert_eq!(evaluate(&schema, &json!(1), Some(&json!(2))).0, ["<nil>: Invalid value: 1: up"]);
    }

    #[test]
    fn what_was_wrong_before_is_only_warned_of() {
        let schema = json!({"type": "integer", "x-kubernetes-validations": [{"rule": "self > 5"}]});
        let (causes, warnings) = evaluate(&schema, &json!(1), Some(&json!(1)));
        assert_eq!((causes, warnings), (vec![], vec!["<nil>: Invalid value: 1: failed rule: self > 5".to_owned()]));
    }
}

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
