//! The part of CEL's syntax that shard selectors are made of: calls, paths, literals and `||`.
//!
//! The real server parses a whole CEL expression and refuses all but these; here other operators
//! are errors of syntax. The crate's CEL interpreter is optional, so it is not used.

/// The maximum nesting of an expression, as in the real server's parser.
const MAX_DEPTH: usize = 250;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expression {
    Or(Vec<Expression>),
    /// A call. The target of `target.function(…)` is checked and dropped: the real server does not
    /// look at it.
    Call {
        function: String,
        arguments: Vec<Expression>,
    },
    Field(Box<Expression>, String),
    Identifier(String),
    /// A string literal.
    Text(String),
    /// A literal of another type, named as in Go.
    OtherLiteral(&'static str),
}

/// Why a text is not an expression.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SyntaxError(pub(super) String);

impl Expression {
    pub(super) fn parse(text: &str) -> Result<Self, SyntaxError> {
        let mut parser = Parser { rest: text, depth: 0 };
        let expression = parser.or()?;
        match parser.peek() {
            None => Ok(expression),
            Some(_) => Err(parser.unexpected()),
        }
    }

    /// The operands of `||`, from left to right.
    pub(super) fn operands<'e>(&'e self, operands: &mut Vec<&'e Self>) {
        match self {
            Self::Or(parts) => parts.iter().for_each(|part| part.operands(operands)),
            other => operands.push(other),
        }
    }

    /// The number of the expression's kind in the real server's errors.
    pub(super) fn kind(&self) -> u8 {
        match self {
            Self::Or(_) | Self::Call { .. } => 1,
            Self::Identifier(_) => 3,
            Self::Text(_) | Self::OtherLiteral(_) => 5,
            Self::Field(..) => 7,
        }
    }
}

struct Parser<'t> {
    /// What is not parsed yet.
    rest: &'t str,
    depth: usize,
}

impl Parser<'_> {
    fn or(&mut self) -> Result<Expression, SyntaxError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(too_deep());
        }
        let mut parts = vec![self.member()?];
        while self.take("||") {
            parts.push(self.member()?);
        }
        self.depth -= 1;
        Ok(match parts.len() {
            1 => parts.remove(0),
            _ => Expression::Or(parts),
        })
    }

    /// A primary expression with the fields and calls that follow it.
    fn member(&mut self) -> Result<Expression, SyntaxError> {
        let mut expression = self.primary()?;
        let mut levels = 0;
        while self.take(".") {
            levels += 1;
            if self.depth + levels > MAX_DEPTH {
                return Err(too_deep());
            }
            let name = self.identifier()?;
            expression = match self.take("(") {
                true => Expression::Call { function: name, arguments: self.arguments()? },
                false => Expression::Field(Box::new(expression), name),
            };
        }
        Ok(expression)
    }

    fn primary(&mut self) -> Result<Expression, SyntaxError> {
        if self.take("(") {
            let inner = self.or()?;
            return if self.take(")") { Ok(inner) } else { Err(self.unexpected()) };
        }
        let root = if self.take(".") { "." } else { "" };
        let c = self.peek().ok_or_else(|| self.unexpected())?;
        if root.is_empty() {
            if let Some(literal) = self.quoted()? {
                return Ok(literal);
            }
            if c.is_ascii_digit() || c == '-' {
                return self.number();
            }
        }
        let name = self.identifier_or_keyword()?;
        match name.as_str() {
            "true" | "false" if root.is_empty() => return Ok(Expression::OtherLiteral("bool")),
            "null" if root.is_empty() => return Ok(Expression::OtherLiteral("structpb.NullValue")),
            _ if is_keyword(&name) => return Err(self.unexpected()),
            _ => {}
        }
        let name = format!("{root}{name}");
        Ok(match self.take("(") {
            true => Expression::Call { function: name, arguments: self.arguments()? },
            false => Expression::Identifier(name),
        })
    }

    /// The arguments of a call and the bracket after them.
    fn arguments(&mut self) -> Result<Vec<Expression>, SyntaxError> {
        let mut arguments = Vec::new();
        if self.take(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.or()?);
            if self.take(")") {
                return Ok(arguments);
            }
            if !self.take(",") {
                return Err(self.unexpected());
            }
        }
    }

    fn identifier(&mut self) -> Result<String, SyntaxError> {
        let name = self.identifier_or_keyword()?;
        if is_keyword(&name) { Err(self.unexpected()) } else { Ok(name) }
    }

    fn identifier_or_keyword(&mut self) -> Result<String, SyntaxError> {
        if !self.peek().is_some_and(|c| c.is_ascii_alphabetic() || c == '_') {
            return Err(self.unexpected());
        }
        Ok(self.while_next(|c| c.is_ascii_alphanumeric() || c == '_'))
    }

    /// A number: an integer with an optional minus, `0x` or `u`, or one with a fraction or
    /// exponent.
    fn number(&mut self) -> Result<Expression, SyntaxError> {
        let minus = self.take("-");
        let digits = self.while_next(|c| c.is_ascii_alphanumeric() || c == '.');
        let unsigned = digits.strip_suffix(['u', 'U']);
        let whole = unsigned.unwrap_or(&digits);
        let value = match whole.strip_prefix("0x") {
            Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok(),
            None => whole.parse().ok(),
        };
        match (value, unsigned) {
            (Some(_), Some(_)) if !minus => Ok(Expression::OtherLiteral("uint64")),
            (Some(value), None) if value <= i64::MAX as u64 => Ok(Expression::OtherLiteral("int64")),
            (None, None) if digits.contains(['.', 'e', 'E']) && digits.parse::<f64>().is_ok() => {
                Ok(Expression::OtherLiteral("float64"))
            }
            _ => Err(self.unexpected()),
        }
    }

    /// A string or bytes literal, if one begins here.
    fn quoted(&mut self) -> Result<Option<Expression>, SyntaxError> {
        self.peek();
        let prefix = &self.rest[..self.rest.len() - self.rest.trim_start_matches(['r', 'R', 'b', 'B']).len()];
        if !self.rest[prefix.len()..].starts_with(['\'', '"']) {
            return Ok(None);
        }
        let (is_raw, is_bytes) = match prefix.to_ascii_lowercase().as_str() {
            "" => (false, false),
            "r" => (true, false),
            "b" => (false, true),
            "br" | "rb" => (true, true),
            _ => return Ok(None),
        };
        self.rest = &self.rest[prefix.len()..];
        let quotes = ["'''", "\"\"\"", "'"];
        let quote = quotes.into_iter().find(|quote| self.rest.starts_with(quote)).unwrap_or("\"");
        self.rest = &self.rest[quote.len()..];
        let mut text = String::new();
        while !self.take_here(quote) {
            match self.next() {
                Some('\\') if !is_raw => text.push(self.escaped()?),
                Some('\n' | '\r') if quote.len() == 1 => return Err(self.unexpected()),
                Some(c) => text.push(c),
                None => return Err(self.unexpected()),
            }
        }
        Ok(Some(if is_bytes { Expression::OtherLiteral("[]uint8") } else { Expression::Text(text) }))
    }

    /// The character of an escape sequence, after the backslash.
    fn escaped(&mut self) -> Result<char, SyntaxError> {
        let c = self.next().ok_or_else(|| self.unexpected())?;
        let (radix, digits, first) = match c {
            '\\' | '\'' | '"' | '`' | '?' => return Ok(c),
            'a' => return Ok('\u{7}'),
            'b' => return Ok('\u{8}'),
            'f' => return Ok('\u{c}'),
            'n' => return Ok('\n'),
            'r' => return Ok('\r'),
            't' => return Ok('\t'),
            'v' => return Ok('\u{b}'),
            'x' | 'X' => (16, 2, 0),
            'u' => (16, 4, 0),
            'U' => (16, 8, 0),
            '0'..='3' => (8, 2, c.to_digit(8).unwrap_or(0)),
            _ => return Err(self.unexpected()),
        };
        let mut code = first;
        for _ in 0..digits {
            let digit = self.next().and_then(|c| c.to_digit(radix)).ok_or_else(|| self.unexpected())?;
            code = code.wrapping_mul(radix).wrapping_add(digit);
        }
        char::from_u32(code).ok_or_else(|| self.unexpected())
    }

    /// The next character that is neither white space nor part of a comment.
    fn peek(&mut self) -> Option<char> {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r', '\u{c}']);
            let Some(comment) = self.rest.strip_prefix("//") else { return self.rest.chars().next() };
            self.rest = comment.find('\n').map_or("", |end| &comment[end..]);
        }
    }

    /// Takes a token, after white space.
    fn take(&mut self, token: &str) -> bool {
        self.peek();
        self.take_here(token)
    }

    fn take_here(&mut self, token: &str) -> bool {
        let after = self.rest.strip_prefix(token);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn while_next(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let end = self.rest.find(|c| !belongs(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken.to_owned()
    }

    fn unexpected(&self) -> SyntaxError {
        SyntaxError(match self.rest.chars().next() {
            None => "Syntax error: mismatched input '<EOF>'".to_owned(),
            Some(c) => format!("Syntax error: unexpected {:?}", c.to_string()),
        })
    }
}

fn too_deep() -> SyntaxError {
    SyntaxError(format!("expression recursion limit exceeded: {MAX_DEPTH}"))
}

/// Words that cannot be names. Other reserved words can be fields only, which no selector needs.
fn is_keyword(name: &str) -> bool {
    matches!(name, "in" | "true" | "false" | "null")
}
