//! Parses the text of a shard selector.

use super::hash_range::{HashRange, bound};
use super::hash_ranges::HashRanges;
use super::{Shard, ShardKey};
use crate::object::ParseError;

pub(super) fn parse(text: &str) -> Result<Shard, ParseError> {
    let mut shard: Option<Shard> = None;
    for call in text.split("||") {
        let (key, range) = shard_range(call).ok_or_else(|| {
            let example = Shard::new(ShardKey::Uid, HashRange::ALL);
            ParseError::new(format!("not a range of a shard selector: {call:?}; write it as {example}"))
        })?;
        let known = shard.get_or_insert_with(|| Shard::new(key, HashRanges::NONE));
        if known.key != key {
            let (one, other) = (known.key.path(), key.path());
            let message = format!("the ranges of a shard selector are of one field, not of {one} and of {other}");
            return Err(ParseError::new(message));
        }
        known.ranges = known.ranges.union(&range.into());
    }
    // `split` returns at least one part, so that there is a range.
    shard.ok_or_else(|| ParseError::new("an empty shard selector"))
}

/// One `shardRange(field, start, end)`.
fn shard_range(call: &str) -> Option<(ShardKey, HashRange)> {
    let arguments = call.trim().strip_prefix("shardRange")?.trim_start().strip_prefix('(')?.strip_suffix(')')?;
    let mut arguments = arguments.split(',').map(str::trim);
    let path = arguments.next()?;
    let key = [ShardKey::Uid, ShardKey::Namespace].into_iter().find(|key| key.path() == path)?;
    let start = bound(quoted(arguments.next()?)?)?;
    let end = bound(quoted(arguments.next()?)?)?;
    if arguments.next().is_some() {
        return None;
    }
    Some((key, HashRange::new(u64::try_from(start).ok()?, end)?))
}

fn quoted(literal: &str) -> Option<&str> {
    ['\'', '"'].into_iter().find_map(|quote| literal.strip_prefix(quote)?.strip_suffix(quote))
}
