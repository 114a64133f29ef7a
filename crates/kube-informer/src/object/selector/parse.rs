//! The grammar of label selectors, and the words in which the server refuses.

use super::rules::{key_problems, value_problems};
use super::{Requirement, Test};

/// Reads all requirements of a selector.
pub(super) fn requirements(text: &str) -> Result<Vec<Requirement>, String> {
    let mut tokens = Tokens::of(text);
    let mut all = Vec::new();
    if tokens.peek().is_end() {
        return Ok(all);
    }
    loop {
        if all.is_empty() && !tokens.peek().begins() {
            return Err(format!("found '{}', expected: !, identifier, or 'end of string'", tokens.peek().text()));
        }
        all.push(requirement(&mut tokens).map_err(|why| format!("unable to parse requirement: {why}"))?);
        match tokens.next() {
            Token::End => return Ok(all),
            Token::Mark(",") if tokens.peek().begins() => {}
            Token::Mark(",") => {
                return Err(format!("found '{}', expected: identifier after ','", tokens.peek().text()));
            }
            other => return Err(format!("found '{}', expected: ',' or 'end of string'", other.text())),
        }
    }
}

/// As Go's `ParseInt`: a sign is allowed, in front of at least one digit.
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
    if matches!(tokens.peek(), Token::End | Token::Mark(",")) {
        return Ok(Test::Exists);
    }
    Ok(match tokens.next() {
        Token::Mark("=" | "==") => Test::Equal(value(key, tokens)?),
        Token::Mark("!=") => Test::NotEqual(value(key, tokens)?),
        Token::Mark(">") => Test::Above(bound(tokens)?),
        Token::Mark("<") => Test::Below(bound(tokens)?),
        Token::Word("in") => Test::In(values(key, tokens)?),
        Token::Word("notin") => Test::NotIn(values(key, tokens)?),
        other => return Err(format!("found '{}', expected: in, notin, =, ==, !=, gt, lt", other.text())),
    })
}

/// One value; nothing at all stands for the empty one.
fn value(key: &str, tokens: &mut Tokens<'_>) -> Result<Box<str>, String> {
    let value = exact(tokens)?;
    check(key, 0, value)?;
    Ok(value.into())
}

fn bound(tokens: &mut Tokens<'_>) -> Result<i64, String> {
    let value = exact(tokens)?;
    integer(value).ok_or_else(|| {
        format!("values[0]: Invalid value: {value:?}: for 'Gt', 'Lt' operators, the value must be an integer")
    })
}

fn exact<'a>(tokens: &mut Tokens<'a>) -> Result<&'a str, String> {
    match tokens.peek() {
        Token::End | Token::Mark(",") => Ok(""),
        Token::Word(value) => {
            tokens.next();
            Ok(value)
        }
        Token::Mark(other) => Err(format!("found '{other}', expected: identifier")),
    }
}

/// `(a,b)`. Where a value is missing it is the empty one: `()`, `(a,)`, `(,a)`, `(a,,b)`.
fn values(key: &str, tokens: &mut Tokens<'_>) -> Result<Vec<Box<str>>, String> {
    if !tokens.take("(") {
        return Err(format!("found '{}' expected: '('", tokens.peek().text()));
    }
    if !matches!(tokens.peek(), Token::Word(_) | Token::Mark("," | ")")) {
        return Err(format!("found '{}', expected: ',', ')' or identifier", tokens.peek().text()));
    }
    let mut all = Vec::new();
    loop {
        match tokens.peek() {
            Token::Word(value) => {
                tokens.next();
                all.push(value);
            }
            Token::Mark("," | ")") => all.push(""),
            other => return Err(format!("found '{}', expected: ',', or identifier", other.text())),
        }
        match tokens.next() {
            Token::Mark(",") => {}
            Token::Mark(")") => break,
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
    Mark(&'a str),
    End,
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Word(text) | Self::Mark(text) => text,
            Self::End => "",
        }
    }

    fn is_end(self) -> bool {
        matches!(self, Self::End)
    }

    /// Whether a requirement can begin here.
    fn begins(self) -> bool {
        matches!(self, Self::Word(_) | Self::Mark("!"))
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
        let mark = ['=', '!', '(', ')', ',', '>', '<'];
        let text = self.rest.trim_start_matches(blank);
        let scanned = match text.chars().next() {
            None => Token::End,
            Some(first) if mark.contains(&first) => {
                Token::Mark(&text[..if text.starts_with("==") || text.starts_with("!=") { 2 } else { 1 }])
            }
            Some(_) => {
                Token::Word(&text[..text.find(|c| blank.contains(&c) || mark.contains(&c)).unwrap_or(text.len())])
            }
        };
        self.rest = &text[scanned.text().len()..];
        std::mem::replace(&mut self.next, scanned)
    }

    fn take(&mut self, mark: &str) -> bool {
        let found = matches!(self.next, Token::Mark(next) if next == mark);
        if found {
            self.next();
        }
        found
    }
}
