//! Shifts the timestamps in an object.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

/// Lengths of a timestamp with second and with microsecond precision.
const SECONDS: usize = "2026-06-01T00:00:00Z".len();
const MICROS: usize = "2026-06-01T00:00:00.000000Z".len();

/// Shifts every timestamp in an object by this many seconds.
pub(crate) fn shift(value: &mut Value, seconds: i64) {
    match value {
        Value::String(text) => {
            if let Some(moved) = moved(text, seconds) {
                *text = moved;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| shift(item, seconds)),
        Value::Object(fields) => fields.values_mut().for_each(|field| shift(field, seconds)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn moved(text: &str, seconds: i64) -> Option<String> {
    let bytes = text.as_bytes();
    if !matches!(bytes.len(), SECONDS | MICROS) || bytes[10] != b'T' || !bytes.ends_with(b"Z") {
        return None;
    }
    let time: Timestamp = text.parse().ok()?;
    let by = Duration::from_secs(seconds.unsigned_abs());
    let moved = if seconds < 0 { time.checked_sub(by) } else { time.checked_add(by) }.ok()?;
    Some(if bytes.len() == MICROS { format!("{moved:.6}") } else { moved.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_times_move() {
        let mut value =
            json!({"a": ["2026-06-01T00:00:00Z", "twenty characters: Z"], "b": {"c": "2026-06-01T00:00:00.250000Z"}});
        shift(&mut value, -1);
        assert_eq!(
            value,
            json!({"a": ["2026-05-31T23:59:59Z", "twenty characters: Z"], "b": {"c": "2026-05-31T23:59:59.250000Z"}})
        );
    }
}
