//! Durations as written on the command line: `10s`, `5m`, `1h30m`, `250ms`.

use std::time::Duration;

/// A hundred years. Moments much later than that cannot be represented.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Parses a duration; a number without a unit is seconds.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let duration = parse_any(text)?;
    if duration > LONGEST { Err(format!("{text:?} is too long; at most 100 years")) } else { Ok(duration) }
}

fn parse_any(text: &str) -> Result<Duration, String> {
    let invalid = || format!("{text:?} is not a duration; write 10s, 5m, 1h30m or 250ms");
    let mut rest = text.trim();
    if let Ok(seconds) = rest.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return Err(invalid());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(invalid)?;
        let number: f64 = rest[..digits].parse().map_err(|_| invalid())?;
        rest = &rest[digits..];
        let unit_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let seconds = match &rest[..unit_end] {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => return Err(invalid()),
        };
        let part = Duration::try_from_secs_f64(number * seconds).map_err(|_| invalid())?;
        total = total.checked_add(part).ok_or_else(invalid)?;
        rest = &rest[unit_end..];
    }
    Ok(total)
}

/// Formats a duration as `mm:ss`.
pub(crate) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{:02}:{:02}", seconds / 60, seconds % 60)
}

/// Formats a duration in its two largest units: `7s`, `3m20s`, `2h5m`.
pub(crate) fn short(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m{}s", seconds / 60, seconds % 60),
        3_600..86_400 => format!("{}h{}m", seconds / 3_600, seconds / 60 % 60),
        _ => format!("{}d{}h", seconds / 86_400, seconds / 3_600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_kubectl_reads_them() {
        for (text, millis) in [("10s", 10_000), ("1h30m", 5_400_000), ("250ms", 250), ("3", 3_000), ("1.5s", 1_500)] {
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "s", "10x", "-1s", "1h-2m", "99999999999999999999h", "18446744073709551615", "36501d"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}

#[cfg(test)]
mod fuzz {
    use std::time::Instant;

    use super::*;
    use crate::fuzzing::fuzz;

    #[test]
    fn any_duration_is_parsed_or_refused() {
        let pieces =
            ["0", "1", "9", "9999999999999", "18446744073709551615", ".", "ms", "s", "m", "h", "d", "-", "e", " ", "é"];
        fuzz(1000, |source| {
            if let Ok(duration) = parse(&source.text(&pieces, 6)) {
                let _end = Instant::now() + duration;
                clock(duration);
            }
        });
    }
}
