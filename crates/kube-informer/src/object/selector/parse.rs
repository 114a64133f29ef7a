//! Parser of label selectors, with the error messages of the API server.

use super::rules::{key_problems, value_problems};
use super::{Requirement, Test};

/// Parses all requirements of a selector.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, String> {
    let mut tokens = Tokens::of(text);
    let mut all = Vec::new();
    if tokens.peek().is_end() {
        return Ok(all);
    }
    loop {
        if all.is_empty() && !tokens.peek().starts_requirement() {
            return Err(format!("found '{}', expected: !, identifier, or 'end of string'", tokens.peek().text()));
        }
        all.push(requirement(&mut tokens).map_err(|why| format!("unable to parse requirement: {why}"))?);
        match tokens.next() {
            Token::End => return Ok(all),
            Token::Symbol(",") if tokens.peek().starts_requirement() => {}
            Token::Symbol(",") => {
                return Err(format!("found '{}', expected: identifier after ','", tokens.peek().text()));
            }
            other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
        }
    }
}

/// As `ParseInt` of Go: an optional sign and at least one digit.
pub(super) fn integer(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn requirement(tokens: &mut Tokens<'_>) -> Result<Requirement, String> {
    let missing = tokens.take("!");
    let key = match tokens.next() {
        Token::Word(key) => key,
        other => return Err(format!("found '{}', expected: identifier", other.text())),
    };
    if let Some(problems) = key_problems(key) {
        return Err(format!("<nil>: Invalid value: {key:?}: {problems}"));
    }
    let test = if missing { Test::Missing } else { test(key, tokens)? };
    Ok(Requirement { key: key.into(), test })
}

fn test(key: &str, tokens: &mut Tokens<'_>) -> Result<Test, String> {
    if matches!(tokens.peek(), Token::End | Token::Symbol(",")) {
        return Ok(Test::Exists);
    }
    Ok(match tokens.next() {
        Token::Symbol("=" | "==") => Test::Equal(value(key, tokens)?),
        Token::Symbol("!=") => Test::NotEqual(value(key, tokens)?),
        Token::Symbol(">") => Test::GreaterThan(bound(tokens)?),
        Token::Symbol("<") => Test::LessThan(bound(tokens)?),
        Token::Word("in") => Test::In(values(key, tokens)?),
        Token::Word("notin") => Test::NotIn(values(key, tokens)?),
        other => return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text())),
    })
}

/// Parses one value; a missing one is the empty string.
fn value(key: &str, tokens: &mut Tokens<'_>) -> Result<Box<str>, String> {
    let value = optional_word(tokens)?;
    check(key, 0, value)?;
    Ok(value.into())
}

fn bound(tokens: &mut Tokens<'_>) -> Result<i64, String> {
    let value = optional_word(tokens)?;
    integer(value).ok_or_else(|| {
        format!("values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer")
    })
}

fn optional_word<'a>(tokens: &mut Tokens<'a>) -> Result<&'a str, String> {
    match tokens.peek() {
        Token::End | Token::Symbol(",") => Ok(""),
        Token::Word(value) => {
            tokens.next();
            Ok(value)
        }
        Token::Symbol(other) => Err(format!("found '{other}', expected: identifier")),
    }
}

/// Parses `(a,b)`. A missing value is the empty string: `()`, `(a,)`, `(,a)`, `(a,,b)`.
fn values(key: &str, tokens: &mut Tokens<'_>) -> Result<Vec<Box<str>>, String> {
    if !tokens.take("(") {
        return Err(format!("found '{}' expected: '('", tokens.peek().text()));
    }
    if !matches!(tokens.peek(), Token::Word(_) | Token::Symbol("," | ")")) {
        return Err(format!("found '{}', expected: ',', ')' or identifier", tokens.peek().text()));
    }
    let mut all = Vec::new();
    loop {
        match tokens.peek() {
            Token::Word(value) => {
                tokens.next();
                all.push(value);
            }
            Token::Symbol("," | ")") => all.push(""),
            other => return Err(format!("found '{}', expected: ',', or identifier", other.text())),
        }
        match tokens.next() {
            Token::Symbol(",") => {}
            Token::Symbol(")") => break,
            other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
        }
    }
    all.sort_unstable();
    all.dedup();
    all.iter().enumerate().try_for_each(|(at, value)| check(key, at, value))?;
    Ok(all.into_iter().map(Box::from).collect())
}

fn check(key: &str, at: usize, value: &str) -> Result<(), String> {
    match value_problems(value) {
        Some(problems) => Err(format!("values[{at}][{key}]: Invalid value: {value:?}: {problems}")),
        None => Ok(()),
    }
}

#[derive(Debug, Clone, Copy)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'a str),
    End,
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Word(text) | Self::Symbol(text) => text,
            Self::End => "",
        }
    }

    fn is_end(self) -> bool {
        matches!(self, Self::End)
    }

    /// Whether a requirement can start with this token.
    fn starts_requirement(self) -> bool {
        matches!(self, Self::Word(_) | Self::Symbol("!"))
    }
}

struct Tokens<'a> {
    next: Token<'a>,
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn of(text: &'a str) -> Self {
        let mut tokens = Self { next: Token::End, rest: text };
        tokens.next();
        tokens
    }

    fn peek(&self) -> Token<'a> {
        self.next
    }

    fn next(&mut self) -> Token<'a> {
        let blank = [' ', '\t', '\r', '\n'];
        let symbols = ['=', '!', '(', ')', ',', '>', '<'];
        let text = self.rest.trim_start_matches(blank);
        let scanned = match text.chars().next() {
            None => Token::End,
            Some(first) if symbols.contains(&first) => {
                Token::Symbol(&text[..if text.starts_with("==") || text.starts_with("!=") { 2 } else { 1 }])
            }
            Some(_) => {
                Token::Word(&text[..text.find(|c| blank.contains(&c) || symbols.contains(&c)).unwrap_or(text.len())])
            }
        };
        self.rest = &text[scanned.text().len()..];
        std::mem::replace(&mut self.next, scanned)
    }

    fn take(&mut self, symbol: &str) -> bool {
        let found = matches!(self.next, Token::Symbol(next) if next == symbol);
        if found {
            self.next();
        }
        found
    }
}
