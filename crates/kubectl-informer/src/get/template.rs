//! kubectl's `-o jsonpath`: text with JSON paths in braces, and ranges.
//!
//! A template over a list is evaluated item by item where its paths begin with `.items[*]`, as
//! nearly all do; only for others all objects are kept.

use kube_embedded::table::JsonPath;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::terminal::document::Document;
use crate::terminal::output::Output;
use crate::terminal::terminal_text::is_hidden;

/// A parsed template, and its text so far.
pub(super) struct Template {
    parts: Vec<Part>,
    is_single: bool,
    /// The output of each part.
    texts: Vec<String>,
    /// All objects, if the template needs them.
    kept: Option<Vec<Value>>,
}

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    /// The path, and what is left of it after `.items[*]`.
    Path(JsonPath, Option<JsonPath>),
    Range(JsonPath, Option<JsonPath>, Vec<Part>),
}

const ITEMS: &str = ".items[*]";

impl Template {
    pub(super) fn parse(text: &str, is_single: bool) -> Result<Self, Failure> {
        let wrong = |why: &str| Failure::Usage(format!("-o jsonpath={text}: {why}"));
        let mut tokens = tokens(text).map_err(|why| wrong(&why))?.into_iter();
        let parts = parts(&mut tokens, 0).map_err(|why| wrong(&why))?;
        let is_by_item = parts.iter().all(|part| match part {
            Part::Text(_) => true,
            Part::Path(_, item) | Part::Range(_, item, _) => item.is_some(),
        });
        let texts = vec![String::new(); parts.len()];
        Ok(Self { parts, is_single, texts, kept: (!is_single && !is_by_item).then(Vec::new) })
    }

    pub(super) fn add(&mut self, object: Value) {
        if let Some(kept) = &mut self.kept {
            kept.push(object);
            return;
        }
        if self.is_single {
            self.evaluate(&object);
            return;
        }
        for (part, text) in self.parts.iter().zip(&mut self.texts) {
            match part {
                Part::Path(_, Some(path)) => append(text, &path.find(&object)),
                Part::Range(_, Some(path), parts) => {
                    for value in path.find(&object) {
                        parts.iter().for_each(|part| write(part, value, text));
                    }
                }
                Part::Text(_) | Part::Path(_, None) | Part::Range(_, None, _) => {}
            }
        }
    }

    pub(super) fn end(&mut self, out: &mut Output) -> Result<(), Failure> {
        if let Some(items) = self.kept.take() {
            self.evaluate(
                &json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items}),
            );
        }
        let mut whole = String::new();
        for (part, text) in self.parts.iter().zip(&self.texts) {
            match part {
                Part::Text(own) => whole.push_str(own),
                Part::Path(..) | Part::Range(..) => whole.push_str(text),
            }
        }
        Ok(out.document(&Document::own(whole))?)
    }

    fn evaluate(&mut self, whole: &Value) {
        for (part, text) in self.parts.iter().zip(&mut self.texts) {
            if !matches!(part, Part::Text(_)) {
                write(part, whole, text);
            }
        }
    }
}

fn write(part: &Part, value: &Value, text: &mut String) {
    match part {
        Part::Text(own) => text.push_str(own),
        Part::Path(path, _) => {
            let mut own = String::new();
            append(&mut own, &path.find(value));
            text.push_str(&own);
        }
        Part::Range(path, _, parts) => {
            for value in path.find(value) {
                parts.iter().for_each(|part| write(part, value, text));
            }
        }
    }
}

/// Appends results, separated by spaces as kubectl does.
fn append(text: &mut String, found: &[&Value]) {
    for value in found {
        if !text.is_empty() {
            text.push(' ');
        }
        let shown = match value {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        };
        // Line breaks and tabs of values are kept, as they are when a script reads them.
        for c in shown.chars() {
            if is_hidden(c) && !matches!(c, '\n' | '\t') { text.extend(c.escape_default()) } else { text.push(c) }
        }
    }
}

enum Token {
    Text(String),
    Expression(String),
}

/// Splits a template at its braces, ignoring those in quotes.
fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let (mut tokens, mut rest) = (Vec::new(), text);
    while let Some(open) = rest.find('{') {
        if open > 0 {
            tokens.push(Token::Text(rest[..open].to_owned()));
        }
        let (mut quote, mut escaped, mut end) = (None, false, None);
        for (at, c) in rest[open + 1..].char_indices() {
            match (quote, c) {
                _ if escaped => escaped = false,
                (_, '\\') => escaped = true,
                (None, '}') => {
                    end = Some(open + 1 + at);
                    break;
                }
                (None, '"' | '\'') => quote = Some(c),
                (Some(own), c) if own == c => quote = None,
                _ => {}
            }
        }
        let end = end.ok_or("a brace is not closed")?;
        tokens.push(Token::Expression(rest[open + 1..end].trim().to_owned()));
        rest = &rest[end + 1..];
    }
    if !rest.is_empty() {
        tokens.push(Token::Text(rest.to_owned()));
    }
    Ok(tokens)
}

fn parts(tokens: &mut impl Iterator<Item = Token>, depth: usize) -> Result<Vec<Part>, String> {
    const MAX_DEPTH: usize = 16;
    if depth > MAX_DEPTH {
        return Err(format!("more than {MAX_DEPTH} ranges within each other"));
    }
    let mut found = Vec::new();
    loop {
        let expression = match tokens.next() {
            None if depth > 0 => return Err("a range has no {end}".to_owned()),
            None => return Ok(found),
            Some(Token::Text(text)) => {
                found.push(Part::Text(text));
                continue;
            }
            Some(Token::Expression(expression)) => expression,
        };
        if expression == "end" {
            return if depth > 0 { Ok(found) } else { Err("{end} without a range".to_owned()) };
        }
        if let Some(path) = expression.strip_prefix("range ") {
            let (path, item) = paths(path.trim())?;
            found.push(Part::Range(path, item, parts(tokens, depth + 1)?));
        } else if expression.starts_with(['"', '\'']) {
            found.push(Part::Text(literal(&expression)?));
        } else {
            let (path, item) = paths(&expression)?;
            found.push(Part::Path(path, item));
        }
    }
}

fn paths(text: &str) -> Result<(JsonPath, Option<JsonPath>), String> {
    let text = text.strip_prefix(['$', '@']).unwrap_or(text);
    let parse = |text: &str| JsonPath::parse(text).ok_or_else(|| format!("{text:?} is not a JSON path of kubectl's"));
    let item = text.strip_prefix(ITEMS).map(parse).transpose()?;
    Ok((parse(text)?, item))
}

/// The text of a quoted literal, such as `"\n"`.
fn literal(quoted: &str) -> Result<String, String> {
    let inner = quoted
        .get(1..quoted.len().saturating_sub(1))
        .filter(|_| quoted.len() > 1 && quoted[..1] == quoted[quoted.len() - 1..]);
    let inner = inner.ok_or_else(|| format!("{quoted} is not closed"))?;
    let mut text = String::new();
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some('r') => text.push('\r'),
                Some(other) => text.push(other),
                None => text.push('\\'),
            },
            (c, false) => text.push(c),
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn print(template: &str, is_single: bool, objects: &[Value]) -> String {
        let mut template = Template::parse(template, is_single).unwrap();
        objects.iter().for_each(|object| template.add(object.clone()));
        if let Some(items) = template.kept.take() {
            template.evaluate(&json!({"kind": "List", "items": items}));
        }
        let texts = template.parts.iter().zip(&template.texts);
        texts.map(|(part, text)| if let Part::Text(own) = part { own.clone() } else { text.clone() }).collect()
    }

    #[test]
    fn templates_are_evaluated_as_kubectl_does() {
        let pod = |name: &str, ips: &[&str]| json!({"metadata": {"name": name}, "ips": ips, "labels": {"a": "1"}});
        let pods = [pod("a", &["1", "2"]), pod("b", &[])];
        for (template, expected) in [
            ("{.items[*].metadata.name}", "a b"),
            ("{.items[*].ips[*]}", "1 2"),
            ("{range .items[*]}{.metadata.name}{\"\\t\"}{.ips}{\"\\n\"}{end}", "a\t[\"1\",\"2\"]\nb\t[]\n"),
            ("{range .items[*]}{.metadata.name}:{range .ips[*]}<{@}>{end};{end}", "a:<1><2>;b:;"),
            ("{.items[0].metadata.name} of {.kind}", "a of List"),
            ("{.items[?(@.metadata.name==\"b\")].labels}", "{\"a\":\"1\"}"),
            ("names: {.items[*].metadata.name}, {.items[*].none}", "names: a b, "),
        ] {
            assert_eq!(print(template, false, &pods), expected, "{template}");
        }
        assert_eq!(print("{.metadata.name} {$.ips[1]}", true, &pods[..1]), "a 2");
        for wrong in ["{.a", "{end}", "{range .items[*]}", "{.a[}", "{\"a}"] {
            assert!(Template::parse(wrong, false).is_err(), "{wrong}");
        }
    }
}

#[cfg(test)]
mod fuzz {
    use super::*;
    use crate::fuzzing::fuzz;

    #[test]
    fn any_template_is_parsed_or_refused() {
        let pieces = [
            "{",
            "}",
            "range ",
            "end",
            ".items[*]",
            ".a",
            "[0]",
            "..",
            "\"",
            "\\",
            "'",
            "@",
            "$",
            " ",
            "é",
            "[?(@.a==1)]",
        ];
        let list = json!({"items": [{"a": 1}, {"a": [2]}]});
        fuzz(1000, |source| {
            if let Ok(mut template) = Template::parse(&source.text(&pieces, 12), false) {
                template.evaluate(&list);
            }
        });
    }
}
