//! Label selectors: `app=web,tier in (a,b),!canary`.

use serde_json::Value;

use crate::encoding::value::{items, text};
use crate::http::status::Status;
use crate::storage::Labels;

use super::validate::{label_value_problem, qualified_name_problems};

/// A label selector. An empty selector matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector(Vec<Requirement>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Requirement {
    name: String,
    test: Test,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Exists,
    Missing,
    /// Present with one of these values.
    In(Vec<String>),
    /// Absent, or present with another value.
    NotIn(Vec<String>),
    Greater(i64),
    Less(i64),
}

impl LabelSelector {
    pub(crate) fn parse(text: &str) -> Result<Self, Status> {
        Parser { tokens: tokens(text), at: 0 }.selector().map_err(Status::bad_request)
    }

    /// The selector that a `LabelSelector` object describes. `None` if it is not valid.
    pub(crate) fn of(selector: &Value) -> Option<Self> {
        let labels = selector["matchLabels"].as_object().into_iter().flatten();
        let equal = labels.map(|(name, value)| Requirement::valid(name, Test::In(vec![text(value).to_owned()])));
        let expressions = items(&selector["matchExpressions"]).iter().map(|expression| {
            let values: Vec<String> = items(&expression["values"]).iter().map(|value| text(value).to_owned()).collect();
            let test = match (text(&expression["operator"]), values.is_empty()) {
                ("In", false) => Test::In(values),
                ("NotIn", false) => Test::NotIn(values),
                ("Exists", true) => Test::Exists,
                ("DoesNotExist", true) => Test::Missing,
                _ => return None,
            };
            Requirement::valid(text(&expression["key"]), test)
        });
        equal.chain(expressions).collect::<Option<_>>().map(Self)
    }

    pub(crate) fn is_everything(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|requirement| requirement.matches(labels))
    }
}

impl Requirement {
    fn valid(name: &str, test: Test) -> Option<Self> {
        let are_valid = match &test {
            Test::In(values) | Test::NotIn(values) => values.iter().all(|value| label_value_problem(value).is_none()),
            _ => true,
        };
        let is_valid = are_valid && qualified_name_problems(name).is_empty();
        is_valid.then(|| Self { name: name.to_owned(), test })
    }

    fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.name);
        let number = || value?.parse::<i64>().ok();
        match &self.test {
            Test::Exists => value.is_some(),
            Test::Missing => value.is_none(),
            Test::In(values) => value.is_some_and(|value| values.iter().any(|v| v == value)),
            Test::NotIn(values) => value.is_none_or(|value| values.iter().all(|v| v != value)),
            Test::Greater(bound) => number().is_some_and(|number| number > *bound),
            Test::Less(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Identifier(String),
    /// `=`, `==`, `!=`, `!`, `(`, `)`, `,`, `>` or `<`.
    Symbol(String),
    End,
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Self::Identifier(text) | Self::Symbol(text) => text,
            Self::End => "",
        }
    }
}

fn tokens(text: &str) -> Vec<Token> {
    let special = |c: char| matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<');
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let Some(first) = rest.chars().next() else { break };
        let end = if special(first) {
            // The longest operator wins; otherwise a symbol is one character: "!(" is "!" and "(".
            ["==", "!="].iter().find(|op| rest.starts_with(**op)).map_or(1, |op| op.len())
        } else {
            rest.find(|c: char| special(c) || matches!(c, ' ' | '\t' | '\r' | '\n')).unwrap_or(rest.len())
        };
        let (token, tail) = rest.split_at(end);
        let token = token.to_owned();
        tokens.push(if special(first) { Token::Symbol(token) } else { Token::Identifier(token) });
        rest = tail;
    }
    tokens.push(Token::End);
    tokens
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn takes(&mut self, symbol: &str) -> bool {
        let found = matches!(self.peek(), Token::Symbol(s) if s == symbol);
        if found {
            self.at += 1;
        }
        found
    }

    fn selector(mut self) -> Result<LabelSelector, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                Token::Identifier(_) => {}
                Token::Symbol(symbol) if symbol == "!" => {}
                Token::End => return Ok(LabelSelector(requirements)),
                Token::Symbol(found) => {
                    return Err(format!("found '{found}', expected: !, identifier, or 'end of string'"));
                }
            }
            requirements.push(self.requirement().map_err(|why| format!("unable to parse requirement: {why}"))?);
            match self.next() {
                Token::End => return Ok(LabelSelector(requirements)),
                Token::Symbol(symbol) if symbol == "," => match self.peek() {
                    Token::Identifier(_) => {}
                    Token::Symbol(symbol) if symbol == "!" => {}
                    other => return Err(format!("found '{}', expected: identifier after ','", other.text())),
                },
                other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let missing = self.takes("!");
        let name = match self.next() {
            Token::Identifier(name) => name,
            other => return Err(format!("found '{}', expected: identifier", other.text())),
        };
        let problems = qualified_name_problems(&name);
        if !problems.is_empty() {
            return Err(format!("<nil>: Invalid value: {name:?}: {}", problems.join("; ")));
        }
        if missing {
            return Ok(Requirement { name, test: Test::Missing });
        }
        let ends = |token: &Token| matches!(token, Token::End) || matches!(token, Token::Symbol(s) if s == ",");
        if ends(self.peek()) {
            return Ok(Requirement { name, test: Test::Exists });
        }
        let operator = self.next();
        let test = match operator.text() {
            "in" if matches!(operator, Token::Identifier(_)) => Test::In(self.values(&name)?),
            "notin" if matches!(operator, Token::Identifier(_)) => Test::NotIn(self.values(&name)?),
            "=" | "==" => Test::In(vec![checked(&name, 0, self.value()?)?]),
            "!=" => Test::NotIn(vec![checked(&name, 0, self.value()?)?]),
            ">" => Test::Greater(self.number()?),
            "<" => Test::Less(self.number()?),
            other => return Err(format!("found '{other}', expected: in, notin, =, ==, !=, gt, lt")),
        };
        Ok(Requirement { name, test })
    }

    /// Parses a single value; a missing one is the empty string.
    fn value(&mut self) -> Result<String, String> {
        Ok(match self.peek() {
            Token::Identifier(_) => self.next().text().to_owned(),
            Token::End => String::new(),
            Token::Symbol(symbol) if symbol == "," => String::new(),
            Token::Symbol(other) => return Err(format!("found '{other}', expected: identifier")),
        })
    }

    fn number(&mut self) -> Result<i64, String> {
        let value = self.value()?;
        value.parse().map_err(|_| {
            format!("values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer")
        })
    }

    fn values(&mut self, name: &str) -> Result<Vec<String>, String> {
        if !self.takes("(") {
            return Err(format!("found '{}' expected: '('", self.next().text()));
        }
        let mut values = Vec::new();
        loop {
            match self.next() {
                Token::Identifier(value) => {
                    values.push(value);
                    match self.next() {
                        Token::Symbol(s) if s == "," => {
                            // A trailing comma adds the empty value.
                            if self.takes(")") {
                                values.push(String::new());
                                break;
                            }
                        }
                        Token::Symbol(s) if s == ")" => break,
                        other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
                    }
                }
                Token::Symbol(s) if s == ")" => {
                    // `a in ()` selects the empty value.
                    values.push(String::new());
                    break;
                }
                Token::Symbol(s) if s == "," => values.push(String::new()),
                other => return Err(format!("found '{}', expected: ',', ')' or identifier", other.text())),
            }
        }
        values.sort();
        values.dedup();
        values.into_iter().enumerate().map(|(i, value)| checked(name, i, value)).collect()
    }
}

fn checked(name: &str, at: usize, value: String) -> Result<String, String> {
    match label_value_problem(&value) {
        Some(problem) => Err(format!("values[{at}][{name}]: Invalid value: {value:?}: {problem}")),
        None => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn matches(selector: &str, labels: &[(&str, &str)]) -> bool {
        let labels = labels.iter().copied().collect();
        LabelSelector::parse(selector).unwrap().matches(&labels)
    }

    #[test]
    fn every_operator_selects() {
        let labels = [("app", "web"), ("size", "7"), ("empty", "")];
        for selector in [
            "",
            "app",
            "!none",
            "app=web",
            "app==web",
            "app!=db",
            "none!=x",
            "app in (db,web)",
            "app notin (db)",
            "size>6",
            "size<8",
            "empty=",
            "empty in ()",
            "app=web,size=7",
        ] {
            assert!(matches(selector, &labels), "{selector}");
        }
        for selector in [
            "none",
            "!app",
            "app=db",
            "app!=web",
            "app in (db)",
            "app notin (web)",
            "size>7",
            "app>1",
            "none=",
            "none in ()",
        ] {
            assert!(!matches(selector, &labels), "{selector}");
        }
    }

    #[test]
    fn a_selector_object_selects_like_its_text() {
        for (object, text) in [
            (json!({}), ""),
            (json!({"matchLabels": {"app": "web", "size": ""}}), "app=web,size="),
            (json!({"matchExpressions": [{"key": "a", "operator": "In", "values": ["x", "y"]}]}), "a in (x,y)"),
            (json!({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["x"]}]}), "a notin (x)"),
            (json!({"matchExpressions": [{"key": "a", "operator": "Exists"}]}), "a"),
            (json!({"matchExpressions": [{"key": "a.b/c", "operator": "DoesNotExist", "values": []}]}), "!a.b/c"),
        ] {
            assert_eq!(LabelSelector::of(&object), LabelSelector::parse(text).ok(), "{text}");
        }
        for wrong in [
            json!({"matchLabels": {"app": "web,size=1"}}),
            json!({"matchLabels": {"a b": ""}}),
            json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
            json!({"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["x"]}]}),
            json!({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}),
        ] {
            assert_eq!(LabelSelector::of(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn wrong_selectors_are_refused_in_the_servers_words() {
        let why = |text: &str| LabelSelector::parse(text).unwrap_err().message().to_owned();
        assert_eq!(why("a b"), "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt");
        assert_eq!(why("=a"), "found '=', expected: !, identifier, or 'end of string'");
        assert_eq!(
            why("a>b"),
            "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer"
        );
        assert!(
            why("a=$")
                .starts_with("unable to parse requirement: values[0][a]: Invalid value: \"$\": a valid label must")
        );
    }
}

#[cfg(test)]
mod fuzz {
    use super::*;
    use crate::fuzzing::fuzz;

    #[test]
    fn any_selector_is_parsed_or_refused() {
        let pieces = [
            "a", "b", "=", "==", "!=", "!", "(", ")", ",", "<", ">", " ", "in", "notin", "1", "é", "/", ".", "-", "\t",
        ];
        fuzz(1000, |source| {
            let longest = if source.one_in(50) { 10_000 } else { 12 };
            let text = source.text(&pieces, longest);
            drop(LabelSelector::parse(&text));
            drop(LabelSelector::parse(&String::from_utf8_lossy(&source.bytes(40))));
        });
    }
}
