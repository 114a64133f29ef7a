//! Validation of values against a schema, with the messages of kube-apiserver.

use std::collections::HashMap;

use regex::Regex;
use serde_json::{Map, Value};

use super::formats;
use super::{Counterparts, joined, properties, shown};
use crate::http::status::Cause;

/// The field path of errors that have none.
pub(super) const NO_FIELD: &str = "<nil>";

/// The compiled patterns of a schema. Invalid patterns match nothing.
#[derive(Debug, Default)]
pub(super) struct Patterns(HashMap<String, Option<Regex>>);

impl Patterns {
    pub(super) fn of(schema: &Value) -> Self {
        let mut patterns = Self::default();
        patterns.gather(schema);
        patterns
    }

    fn gather(&mut self, schema: &Value) {
        match schema {
            Value::Object(map) => {
                if let Some(Value::String(pattern)) = map.get("pattern") {
                    self.0.entry(pattern.clone()).or_insert_with(|| Regex::new(pattern).ok());
                }
                map.values().for_each(|part| self.gather(part));
            }
            Value::Array(parts) => parts.iter().for_each(|part| self.gather(part)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn fits(&self, pattern: &str, text: &str) -> bool {
        self.0.get(pattern).and_then(Option::as_ref).is_some_and(|pattern| pattern.is_match(text))
    }
}

/// The result of checking a value.
#[derive(Debug, Default)]
struct Outcome {
    causes: Vec<Cause>,
    /// Number of checks performed; the schema of several with the most checks is the closest match.
    checks: usize,
}

impl Outcome {
    fn add(&mut self, other: Self) {
        self.causes.extend(other.causes);
        self.checks += other.checks;
    }

    fn is_fine(&self) -> bool {
        self.causes.is_empty()
    }
}

/// Validation errors of a value. Unchanged parts are not checked (ratcheting).
pub(super) fn problems(
    patterns: &Patterns,
    schema: &Value,
    value: &Value,
    old: Option<&Value>,
    path: &str,
) -> Vec<Cause> {
    check(patterns, schema, value, old, path).causes
}

fn check(patterns: &Patterns, schema: &Value, value: &Value, old: Option<&Value>, path: &str) -> Outcome {
    if old == Some(value) {
        return Outcome { causes: Vec::new(), checks: 1 };
    }
    let mut outcome = Outcome::default();
    check_type(schema, value, path, &mut outcome);
    if !value.is_null() {
        outcome.checks += 1;
        check_combinations(patterns, schema, value, old, path, &mut outcome);
        match value {
            Value::String(text) => check_text(patterns, schema, text, path, &mut outcome),
            Value::Number(_) => check_number(schema, value, path, &mut outcome),
            Value::Array(items) => check_items(patterns, schema, items, old, path, &mut outcome),
            Value::Null | Value::Bool(_) | Value::Object(_) => {}
        }
    }
    check_enum(schema, value, path, &mut outcome);
    if let Value::Object(map) = value {
        check_fields(patterns, schema, map, old, path, &mut outcome);
    }
    outcome
}

fn check_type(schema: &Value, value: &Value, path: &str, outcome: &mut Outcome) {
    let expected = match schema["x-kubernetes-int-or-string"] == true {
        true => "integer,string",
        false => schema["type"].as_str().unwrap_or_default(),
    };
    let fits = match value {
        _ if expected.is_empty() => return,
        Value::Null => schema["nullable"] == true,
        _ => expected.split(',').any(|expected| is_of_type(expected, value)),
    };
    outcome.checks += 1;
    if fits {
        outcome.checks += 1;
        return;
    }
    let found = type_of(value);
    let why = format!("Invalid value: {found:?}: {path} in body must be of type {expected}: {found:?}");
    outcome.causes.push(Cause::new("FieldValueTypeInvalid", path, why));
}

fn check_combinations(
    patterns: &Patterns,
    schema: &Value,
    value: &Value,
    old: Option<&Value>,
    path: &str,
    outcome: &mut Outcome,
) {
    let among = |name: &str| schema[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let outcomes = |schemas: &[Value]| -> Vec<Outcome> {
        schemas.iter().map(|schema| check(patterns, schema, value, old, path)).collect()
    };
    let complain = |outcome: &mut Outcome, why: String| {
        outcome.causes.push(Cause::invalid(NO_FIELD, "\"\"", format!("{path:?} {why}")));
    };
    outcome.checks += 1;
    let any = outcomes(among("anyOf"));
    if !any.is_empty() && !any.iter().any(Outcome::is_fine) {
        complain(outcome, "must validate at least one schema (anyOf)".to_owned());
        outcome.add(nearest(any));
    }
    let one = outcomes(among("oneOf"));
    match one.iter().filter(|outcome| outcome.is_fine()).count() {
        1 => {}
        _ if one.is_empty() => {}
        0 => {
            complain(outcome, "must validate one and only one schema (oneOf). Found none valid".to_owned());
            outcome.add(nearest(one));
        }
        several => complain(
            outcome,
            format!("must validate one and only one schema (oneOf). Found {several} valid alternatives"),
        ),
    }
    let all = outcomes(among("allOf"));
    let (fine, count) = (all.iter().filter(|outcome| outcome.is_fine()).count(), all.len());
    all.into_iter().for_each(|one| outcome.add(one));
    if fine != count {
        let none = if fine == 0 { ". None validated" } else { "" };
        complain(outcome, format!("must validate all the schemas (allOf){none}"));
    }
    if let Some(not) = schema.get("not").filter(|not| not.is_object())
        && check(patterns, not, value, old, path).is_fine()
    {
        complain(outcome, "must not validate the schema (not)".to_owned());
    }
}

/// The outcome with the most checks.
fn nearest(outcomes: Vec<Outcome>) -> Outcome {
    let furthest = |best: Outcome, next: Outcome| if next.checks > best.checks { next } else { best };
    outcomes.into_iter().reduce(furthest).unwrap_or_default()
}

fn check_text(patterns: &Patterns, schema: &Value, text: &str, path: &str, outcome: &mut Outcome) {
    outcome.checks += 1;
    let length = text.chars().count() as u64;
    let value = || shown(&text.into());
    let bound = |name: &str| schema[name].as_u64();
    if let Some(most) = bound("maxLength").filter(|most| length > *most) {
        let why = format!("Too long: may not be more than {most} bytes");
        outcome.causes.push(Cause::new("FieldValueTooLong", path, why));
    } else if let Some(least) = bound("minLength").filter(|least| length < *least) {
        let why = format!("{path} in body should be at least {least} chars long");
        outcome.causes.push(Cause::invalid(path, value(), why));
    } else if let Some(pattern) = schema["pattern"].as_str().filter(|pattern| !patterns.fits(pattern, text)) {
        let why = format!("{path} in body should match '{pattern}'");
        outcome.causes.push(Cause::invalid(path, value(), why));
    }
    if let Some(format) = schema["format"].as_str().filter(|format| !formats::fits(format, text)) {
        let value = value();
        let why = format!("Invalid value: {value}: {path} in body must be of type {format}: {value}");
        outcome.causes.push(Cause::new("FieldValueTypeInvalid", path, why));
    }
}

fn check_number(schema: &Value, value: &Value, path: &str, outcome: &mut Outcome) {
    outcome.checks += 2;
    let whole = value.as_i64();
    let number = value.as_f64().unwrap_or_default();
    let out_of_range = schema["type"] == "integer" && schema["format"] == "int32";
    if out_of_range && whole.is_some_and(|whole| i32::try_from(whole).is_err()) {
        let why = format!("Checked value must be of type integer with format int32 in {path}");
        outcome.causes.push(Cause::invalid(NO_FIELD, "\"\"", why));
    }
    // For an integer, bounds are truncated to integers.
    let bound = |name: &str| schema[name].as_f64().map(|bound| if whole.is_some() { bound.trunc() } else { bound });
    let mut complain = |value: String, why: String| outcome.causes.push(Cause::invalid(path, value, why));
    if let Some(factor) = bound("multipleOf") {
        if factor <= 0.0 {
            complain(factor.to_string(), format!("factor MultipleOf declared for {path} must be positive: {factor}"));
        } else if (number / factor).fract().abs() > 1e-9 {
            complain(shown(value), format!("{path} in body should be a multiple of {factor}"));
        }
    }
    if let Some(least) = bound("minimum") {
        let exclusive = schema["exclusiveMinimum"] == true;
        if number < least || exclusive && number <= least {
            let than = if exclusive { "greater than" } else { "greater than or equal to" };
            complain(shown(value), format!("{path} in body should be {than} {least}"));
        }
    }
    if let Some(most) = bound("maximum") {
        let exclusive = schema["exclusiveMaximum"] == true;
        if number > most || exclusive && number >= most {
            let than = if exclusive { "less than" } else { "less than or equal to" };
            complain(shown(value), format!("{path} in body should be {than} {most}"));
        }
    }
}

fn check_items(
    patterns: &Patterns,
    schema: &Value,
    items: &[Value],
    old: Option<&Value>,
    path: &str,
    outcome: &mut Outcome,
) {
    let old = Counterparts::of(schema, old);
    for (at, item) in items.iter().enumerate() {
        let old = old.get(schema, item);
        outcome.add(check(patterns, &schema["items"], item, old, &format!("{path}[{at}]")));
    }
    check_count(schema, ("minItems", "maxItems"), "items", items.len(), path, outcome);
    outcome.checks += 1;
}

fn check_fields(
    patterns: &Patterns,
    schema: &Value,
    map: &Map<String, Value>,
    old: Option<&Value>,
    path: &str,
    outcome: &mut Outcome,
) {
    check_count(schema, ("minProperties", "maxProperties"), "properties", map.len(), path, outcome);
    let before = |name: &str| old.and_then(|old| old.get(name));
    for (key, value) in map {
        let named = schema["properties"].get(key);
        let other = schema.get("additionalProperties").filter(|other| other.is_object());
        if let Some(schema) = named.or(other) {
            outcome.add(check(patterns, schema, value, before(key), &joined(path, key)));
        }
    }
    let whole = (schema["x-kubernetes-embedded-resource"] == true).then_some(["apiVersion", "kind"]);
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    for name in required.chain(whole.into_iter().flatten()).filter(|name| !map.contains_key(*name)) {
        outcome.causes.push(Cause::new("FieldValueRequired", joined(path, name), "Required value"));
    }
}

fn check_count(
    schema: &Value,
    (least, most): (&str, &str),
    what: &str,
    count: usize,
    path: &str,
    outcome: &mut Outcome,
) {
    let count = count as u64;
    if let Some(least) = schema[least].as_u64().filter(|least| count < *least) {
        outcome.causes.push(Cause::invalid(path, count, format!("{path} in body should have at least {least} {what}")));
    }
    if let Some(most) = schema[most].as_u64().filter(|most| count > *most) {
        let items = if most == 1 { "item" } else { "items" };
        let why = format!("Too many: {count}: must have at most {most} {items}");
        outcome.causes.push(Cause::new("FieldValueTooMany", path, why));
    }
}

fn check_enum(schema: &Value, value: &Value, path: &str, outcome: &mut Outcome) {
    outcome.checks += usize::from(!value.is_null());
    let Some(allowed) = schema["enum"].as_array().filter(|allowed| !allowed.is_empty()) else { return };
    if allowed.contains(value) {
        return;
    }
    let quoted = |allowed: &Value| match allowed {
        Value::String(_) => shown(allowed),
        other => shown(&shown(other).into()),
    };
    let supported: Vec<String> = allowed.iter().map(quoted).collect();
    outcome.causes.push(Cause::unsupported(path, shown(value), &supported.join(", ")));
}

fn is_of_type(expected: &str, value: &Value) -> bool {
    match expected {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Validates apiVersion and kind of embedded resources.
pub(super) fn embedded(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    match value {
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                embedded(&schema["items"], item, &format!("{path}[{at}]"), causes);
            }
        }
        Value::Object(map) => {
            if schema["x-kubernetes-embedded-resource"] == true && !path.is_empty() {
                type_problems(map, path, causes);
            }
            for (key, schema) in properties(schema) {
                if let Some(value) = map.get(key) {
                    embedded(schema, value, &joined(path, key), causes);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn type_problems(map: &Map<String, Value>, path: &str, causes: &mut Vec<Cause>) {
    let text_of = |name: &str| map.get(name).and_then(Value::as_str);
    match text_of("apiVersion") {
        Some("") => causes.push(Cause::required(&joined(path, "apiVersion"), "must not be empty")),
        Some(version) if version.matches('/').count() > 1 => {
            let why = format!("unexpected GroupVersion string: {version}");
            causes.push(Cause::invalid(&joined(path, "apiVersion"), shown(&version.into()), why));
        }
        _ => {}
    }
    match text_of("kind") {
        Some("") => causes.push(Cause::required(&joined(path, "kind"), "must not be empty")),
        Some(kind) => {
            let problems = crate::kinds::NameRule::Dns1035Label.problems(&kind.to_ascii_lowercase());
            causes.extend(problems.into_iter().map(|problem| {
                let why = format!("may have mixed case, but should otherwise match: {problem}");
                Cause::invalid(&joined(path, "kind"), shown(&kind.into()), why)
            }));
        }
        None => {}
    }
}

/// Reports duplicates in lists of type `set` or `map`.
pub(super) fn repeated(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    match value {
        Value::Array(items) => {
            let list_type = schema["x-kubernetes-list-type"].as_str().unwrap_or_default();
            let mut seen: HashMap<Value, usize> = HashMap::new();
            for (at, item) in items.iter().enumerate().filter(|_| matches!(list_type, "set" | "map")) {
                let key = super::key_of(schema, item);
                let times = seen.get(&key).copied().unwrap_or_default() + 1;
                if times == 2 {
                    let why = format!("Duplicate value: {}", shown(&key));
                    causes.push(Cause::new("FieldValueDuplicate", format!("{path}[{at}]"), why));
                }
                seen.insert(key, times);
            }
            for (at, item) in items.iter().enumerate() {
                repeated(&schema["items"], item, &format!("{path}[{at}]"), causes);
            }
        }
        Value::Object(map) => {
            for (key, value) in map {
                let other = schema.get("additionalProperties").filter(|other| other.is_object());
                match (schema["properties"].get(key), other) {
                    (Some(schema), _) => repeated(schema, value, &joined(path, key), causes),
                    (None, Some(schema)) => repeated(schema, value, &format!("{path}[{key}]"), causes),
                    (None, None) => {}
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
