//! Durations in Go's format: `1m30s`, `1.5s`, `100ms`.

/// Formats nanoseconds like Go's `Duration.String`.
pub(super) fn format(nanos: i64) -> String {
    let sign = if nanos < 0 { "-" } else { "" };
    let all = nanos.unsigned_abs();
    let fraction = |whole: u64, rest: u64, width: usize| match rest {
        0 => whole.to_string(),
        rest => format!("{whole}.{}", format!("{rest:0width$}").trim_end_matches('0')),
    };
    let text = match all {
        0 => "0s".to_owned(),
        1..1_000 => format!("{all}ns"),
        1_000..1_000_000 => format!("{}µs", fraction(all / 1_000, all % 1_000, 3)),
        1_000_000..1_000_000_000 => format!("{}ms", fraction(all / 1_000_000, all % 1_000_000, 6)),
        _ => {
            let (seconds, rest) = (all / 1_000_000_000, all % 1_000_000_000);
            let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
            let seconds = fraction(seconds % 60, rest, 9);
            match (hours, minutes) {
                (0, 0) => format!("{seconds}s"),
                (0, minutes) => format!("{minutes}m{seconds}s"),
                (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
            }
        }
    };
    format!("{sign}{text}")
}

/// Parses a duration into nanoseconds, like Go's `time.ParseDuration`. `None` if it is invalid.
pub(super) fn read(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    match rest {
        "" => return None,
        "0" => return Some(0),
        _ => {}
    }
    let mut nanos: i128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let (unit, after) = after.split_at(after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len()));
        nanos = nanos.checked_add(part(number, unit)?)?;
        rest = after;
    }
    i64::try_from(sign * nanos).ok()
}

fn part(number: &str, unit: &str) -> Option<i128> {
    let unit: i128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<i128>().ok() };
    // Digits after the 18th are below one nanosecond in every unit.
    let fraction = &fraction[..fraction.len().min(18)];
    let below = digits(fraction)?.checked_mul(unit)? / 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    match (whole, fraction) {
        ("", "") => None,
        _ => digits(whole)?.checked_mul(unit)?.checked_add(below),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_gos() {
        for (nanos, text) in [
            (0, "0s"),
            (1_500_000_000, "1.5s"),
            (90_000_000_000, "1m30s"),
            (3_600_000_000_000, "1h0m0s"),
            (100_000_000, "100ms"),
            (1_500, "1.5µs"),
            (-1_000_000_000, "-1s"),
        ] {
            assert_eq!(format(nanos), text);
            assert_eq!(read(text), Some(nanos));
        }
        assert_eq!(read("90s"), Some(90_000_000_000));
        assert_eq!(read(".5h"), Some(1_800_000_000_000));
        for none in ["", "-", "1", "s", "1x", ".s", "1.2.3s", "9223372037s", "1µ"] {
            assert_eq!(read(none), None, "{none}");
        }
    }

    proptest::proptest! {
        #[test]
        fn what_is_printed_is_parsed(nanos: i64) {
            assert_eq!(read(&format(nanos)), Some(nanos));
        }

        #[test]
        fn no_text_makes_it_panic(text: String) {
            read(&text);
        }
    }
}
