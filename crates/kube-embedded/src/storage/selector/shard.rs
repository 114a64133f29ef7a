//! Shard selectors (KEP-5866): ranges of a hash over a field of the metadata.

mod expression;

use std::fmt;

use self::expression::{Expression, SyntaxError};
use crate::encoding::fnv::fnv_1a;
use crate::http::status::Status;
use crate::storage::Object;

/// The end of the last range: 2^64.
const END: &str = "0x10000000000000000";

/// The ranges of hashes of the objects that a list or watch is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShardSelector {
    field: ShardField,
    ranges: Vec<HashRange>,
}

/// The field whose value is hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShardField {
    Uid,
    Namespace,
}

/// Hashes from `start` to before `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HashRange {
    start: u128,
    end: u128,
}

impl ShardSelector {
    /// Parses a selector, with the real server's errors.
    pub(crate) fn parse(text: &str) -> Result<Self, Status> {
        let parsed = match text.trim() {
            "" => Err("empty shard selector is not allowed; omit the parameter for unfiltered lists".to_owned()),
            text => Expression::parse(text)
                .map_err(|SyntaxError(why)| format!("CEL parse error: {why}"))
                .and_then(|expression| Self::of(&expression)),
        };
        parsed.map_err(|why| Status::internal(format!("invalid shard selector: {why}")))
    }

    fn of(expression: &Expression) -> Result<Self, String> {
        let mut operands = Vec::new();
        expression.operands(&mut operands);
        let parsed: Vec<_> = operands.into_iter().map(shard_range).collect::<Result<_, _>>()?;
        let (field, _) = *parsed.first().ok_or_else(|| "no shard range".to_owned())?;
        if let Some((other, _)) = parsed.iter().find(|(other, _)| *other != field) {
            let (field, other) = (field.path(), other.path());
            return Err(format!("all shard ranges must use the same field, got {field:?} and {other:?}"));
        }
        Ok(Self { field, ranges: parsed.into_iter().map(|(_, range)| range).collect() })
    }

    pub(crate) fn matches(&self, object: &Object) -> bool {
        let hash = u128::from(match self.field {
            ShardField::Uid => object.uid_hash(),
            ShardField::Namespace => fnv_1a(object.key().namespace().unwrap_or_default().bytes()),
        });
        self.ranges.iter().any(|range| (range.start..range.end).contains(&hash))
    }
}

/// The selector as the real server returns it in `shardInfo`.
impl fmt::Display for ShardSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.field.path();
        for (at, HashRange { start, end }) in self.ranges.iter().enumerate() {
            let or = if at > 0 { " || " } else { "" };
            write!(f, "{or}shardRange({path}, '{start:#018x}', '{end:#018x}')")?;
        }
        Ok(())
    }
}

impl ShardField {
    fn path(self) -> &'static str {
        match self {
            Self::Uid => "object.metadata.uid",
            Self::Namespace => "object.metadata.namespace",
        }
    }
}

/// The field and the range of one `shardRange(field, start, end)`.
fn shard_range(expression: &Expression) -> Result<(ShardField, HashRange), String> {
    let Expression::Call { function, arguments } = expression else {
        let kind = expression.kind();
        return Err(format!("unexpected expression kind {kind}; expected shardRange() call or || operator"));
    };
    if function != "shardRange" {
        return Err(format!("unsupported function {function:?}; only shardRange() and || are allowed"));
    }
    let [path, start, end] = arguments.as_slice() else {
        return Err(format!("shardRange() requires exactly 3 arguments, got {}", arguments.len()));
    };
    let path = field_path(path).map_err(|why| format!("shardRange() first argument: {why}"))?;
    let field =
        [ShardField::Uid, ShardField::Namespace].into_iter().find(|field| field.path() == path).ok_or_else(|| {
            format!("unsupported field path {path:?}; supported: object.metadata.uid, object.metadata.namespace")
        })?;
    let range = HashRange { start: bound(start, "hexStart")?, end: bound(end, "hexEnd")? };
    match range.start < range.end {
        true => Ok((field, range)),
        false => {
            let HashRange { start, end } = range;
            Err(format!("shard range start {start:#018x} must be less than end {end:#018x}"))
        }
    }
}

fn field_path(expression: &Expression) -> Result<String, String> {
    match expression {
        Expression::Identifier(name) => Ok(name.clone()),
        Expression::Field(operand, field) => Ok(format!("{}.{field}", field_path(operand)?)),
        other => {
            let kind = other.kind();
            Err(format!("expected field path (e.g. object.metadata.uid), got expression kind {kind}"))
        }
    }
}

/// A bound of a range: 16 lowercase hexadecimal digits, or 2^64.
fn bound(expression: &Expression, name: &str) -> Result<u128, String> {
    let text = match expression {
        Expression::Text(text) => text,
        Expression::OtherLiteral(go_type) => return Err(format!("{name} must be a string literal, got {go_type}")),
        other => {
            let kind = other.kind();
            return Err(format!("{name} must be a string literal (e.g. '0xff'), got expression kind {kind}"));
        }
    };
    let Some(digits) = text.strip_prefix("0x") else {
        return Err(format!("{name} must have '0x' prefix, got {text:?}"));
    };
    if digits.is_empty() {
        return Err(format!("{name}: hex value is required after '0x'"));
    }
    if digits.len() > 17 {
        return Err(format!("{name}: hex value too long ({} chars, max 17): {digits:?}", digits.len()));
    }
    if let Some(c) = digits.chars().find(|c| !matches!(c, '0'..='9' | 'a'..='f')) {
        return Err(format!("{name}: invalid hex character {:?} in {text:?}", c.to_string()));
    }
    match digits.len() {
        17 if text != END => {
            Err(format!("{name}: 17-digit hex value must be '0x10000000000000000' (2^64), got {text:?}"))
        }
        16 | 17 => u128::from_str_radix(digits, 16).map_err(|error| format!("{name}: {error}")),
        _ => Err(format!(
            "{name} must be a 0x-prefixed 16-digit hex value, got {text:?} (did you mean {:?}?)",
            format!("0x{digits:0>16}")
        )),
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod fuzz {
    use super::*;
    use crate::fuzzing::fuzz;

    #[test]
    fn any_shard_selector_is_parsed_or_refused() {
        let pieces = [
            "shardRange(",
            "object.metadata.uid",
            "object.metadata.namespace",
            ", ",
            "'0x0'",
            "'0x10000000000000000'",
            "'0xffffffffffffffff'",
            "\"0x8\"",
            ")",
            " || ",
            "(",
            ".",
            "a",
            "r'\\'",
            "'''",
            "b'x'",
            "'\\u00e9'",
            "'\\q'",
            "1",
            "-1",
            "0x",
            "1e9",
            "// c\n",
            "in",
            "true",
            "é",
            "\0",
        ];
        fuzz(1_000, |source| {
            let text = match source.below(4) {
                0 => source.text(&["(", "f(", ".a", "a.b(", "a||"], 600),
                _ => source.text(&pieces, 12),
            };
            if let Ok(selector) = ShardSelector::parse(&text) {
                assert_eq!(ShardSelector::parse(&selector.to_string()).ok(), Some(selector), "{text:?}");
            }
        });
    }
}
