//! Conditions of rules.

use serde_json::Value;

use super::Site;
use super::path::Path;

/// Tests that must all hold, separated by commas: `create`, `update`, `kind=Job`, `part=resize` (of
/// a subresource; `part=` of none), `type=A|B`, `type!=A|B`, `has:a|b` (one of them is set), `no:a`
/// (it is not), `zero:a`, `nonzero:a`.
#[derive(Debug)]
pub(super) struct Condition(Vec<Test>);

#[derive(Debug)]
enum Test {
    Create,
    Update,
    Kind(&'static str),
    Part(&'static str),
    Is(Path, Vec<&'static str>),
    IsNot(Path, Vec<&'static str>),
    Has(Vec<Path>),
    Lacks(Path),
    Zero(Path),
    NotZero(Path),
}

impl Condition {
    pub(super) fn parse(text: &'static str) -> Condition {
        Condition(text.split(',').filter(|test| !test.is_empty()).map(Test::parse).collect())
    }

    pub(super) fn holds(&self, site: &Site<'_>) -> bool {
        self.0.iter().all(|test| test.holds(site))
    }

    /// The paths that the condition is about.
    #[cfg(test)]
    pub(super) fn paths(&self) -> Vec<&Path> {
        let paths = self.0.iter().flat_map(|test| match test {
            Test::Create | Test::Update | Test::Kind(_) | Test::Part(_) => Vec::new(),
            Test::Has(paths) => paths.iter().collect(),
            Test::Is(path, _) | Test::IsNot(path, _) | Test::Lacks(path) | Test::Zero(path) | Test::NotZero(path) => {
                vec![path]
            }
        });
        paths.collect()
    }
}

impl Test {
    fn parse(text: &'static str) -> Test {
        if let Some((word, path)) = text.split_once(':') {
            return match word {
                "has" => Test::Has(path.split('|').map(Path::parse).collect()),
                "no" => Test::Lacks(Path::parse(path)),
                "zero" => Test::Zero(Path::parse(path)),
                _ => Test::NotZero(Path::parse(path)),
            };
        }
        if let Some((path, values)) = text.split_once("!=") {
            return Test::IsNot(Path::parse(path), values.split('|').collect());
        }
        match text.split_once('=') {
            Some(("kind", kind)) => Test::Kind(kind),
            Some(("part", part)) => Test::Part(part),
            Some((path, values)) => Test::Is(Path::parse(path), values.split('|').collect()),
            None if text == "create" => Test::Create,
            None => Test::Update,
        }
    }

    fn holds(&self, site: &Site<'_>) -> bool {
        match self {
            Test::Create => !site.is_update,
            Test::Update => site.is_update,
            Test::Kind(kind) => site.kind == *kind,
            Test::Part(part) => site.part == *part,
            Test::Is(path, values) => values.contains(&&*text(path.first(site.value))),
            Test::IsNot(path, values) => !values.contains(&&*text(path.first(site.value))),
            Test::Has(paths) => paths.iter().any(|path| is_set(path.first(site.value))),
            Test::Lacks(path) => !is_set(path.first(site.value)),
            Test::Zero(path) => is_zero(path.first(site.value)),
            Test::NotZero(path) => !is_zero(path.first(site.value)),
        }
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// Whether a field has a value; an empty struct is one.
pub(super) fn is_set(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

/// Whether a value is 0 or `0%`, or missing.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.trim_end_matches('%').parse() == Ok(0),
        _ => false,
    }
}
