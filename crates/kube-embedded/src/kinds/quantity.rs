//! Canonical form of quantities: `1000m` is stored as `1`, `0.5Gi` as `512Mi`.

/// The server's error message for an invalid quantity.
pub(crate) const NOT_A_QUANTITY: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

const NANOS: i128 = 1_000_000_000;
const DECIMAL: [(&str, i32); 9] =
    [("n", -9), ("u", -6), ("m", -3), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

#[derive(Clone, Copy)]
enum Format {
    Binary,
    Decimal,
    Exponent,
}

/// The amount of a quantity in billionths. `None` for what is no quantity or does not fit.
pub(crate) fn nanos_of(text: &str) -> Option<i128> {
    let (whole, fraction, suffix) = parts(text)?;
    let (_, exponent, factor) = scale(suffix)?;
    let sign = if text.starts_with('-') { -1 } else { 1 };
    nanos(whole, fraction, exponent, factor).map(|nanos| sign * nanos)
}

/// The digits before and after the point of a quantity, and its suffix.
fn parts(text: &str) -> Option<(&str, &str, &str)> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (digits, suffix) = unsigned.split_at(end);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = !(fraction.contains('.') || whole.is_empty() && fraction.is_empty());
    is_number.then_some((whole, fraction, suffix))
}

/// The canonical form of a quantity. `None` if it is invalid.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let (whole, fraction, suffix) = parts(text)?;
    let (format, exponent, factor) = scale(suffix)?;
    // Values that overflow keep their text.
    let Some(nanos) = nanos(whole, fraction, exponent, factor) else { return Some(text.to_owned()) };
    let sign = if text.starts_with('-') && nanos != 0 { "-" } else { "" };
    Some(format!("{sign}{}", spell(nanos, format)))
}

fn scale(suffix: &str) -> Option<(Format, i32, i128)> {
    if suffix.is_empty() {
        return Some((Format::Decimal, 0, 1));
    }
    if let Some(&(_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((Format::Decimal, exponent, 1));
    }
    if let Some(power) = BINARY.iter().position(|name| *name == suffix) {
        return Some((Format::Binary, 0, 1 << (10 * (power + 1))));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    Some((Format::Exponent, exponent.parse().ok()?, 1))
}

/// The value in billionths, rounded up. `None` on overflow.
fn nanos(whole: &str, fraction: &str, exponent: i32, factor: i128) -> Option<i128> {
    let digits = format!("{whole}{}", fraction.trim_end_matches('0'));
    let fraction_digits = i32::try_from(fraction.trim_end_matches('0').len()).ok()?;
    let mantissa: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    let scaled = mantissa.checked_mul(factor)?;
    let power = exponent.checked_sub(fraction_digits)?.checked_add(9)?;
    let ten = 10_i128.checked_pow(power.unsigned_abs())?;
    if power >= 0 { scaled.checked_mul(ten) } else { Some(scaled / ten + i128::from(scaled % ten != 0)) }
}

fn spell(nanos: i128, format: Format) -> String {
    if nanos == 0 {
        return "0".to_owned();
    }
    if matches!(format, Format::Binary) && nanos >= 1024 * NANOS && nanos % NANOS == 0 {
        let (mut number, mut power) = (nanos / NANOS, 0);
        while number % 1024 == 0 && power < BINARY.len() {
            number /= 1024;
            power += 1;
        }
        let suffix = power.checked_sub(1).map_or("", |at| BINARY[at]);
        return format!("{number}{suffix}");
    }
    let (mut number, mut exponent) = (nanos, -9);
    while number % 1000 == 0 && exponent < 18 {
        number /= 1000;
        exponent += 3;
    }
    if exponent == 0 {
        return number.to_string();
    }
    match format {
        Format::Exponent => format!("{number}e{exponent}"),
        Format::Binary | Format::Decimal => {
            let suffix = DECIMAL.iter().find(|(_, each)| *each == exponent).map_or("", |(name, _)| name);
            format!("{number}{suffix}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_spelled_as_the_server_spells_them() {
        for (sent, stored) in [
            ("1", "1"),
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1500m", "1500m"),
            ("0.1Gi", "107374182400m"),
            ("0.5Gi", "512Mi"),
            ("1024Mi", "1Gi"),
            ("1500Mi", "1500Mi"),
            ("1Ki", "1Ki"),
            ("0.5Ki", "512"),
            ("1000k", "1M"),
            ("1e3", "1e3"),
            ("12E", "12E"),
            ("+1", "1"),
            ("-1.5", "-1500m"),
            ("-0", "0"),
            ("0.0000000001", "1n"),
            (".5", "500m"),
            ("5.", "5"),
        ] {
            assert_eq!(canonical(sent).as_deref(), Some(stored), "{sent}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for bad in ["", "a", "1x", "1.2.3", "Ki", "1 ", "1e", "--1", "."] {
            assert_eq!(canonical(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_left_alone() {
        for huge in ["1e400", "999999999999999999999999999999999999999999"] {
            assert_eq!(canonical(huge).as_deref(), Some(huge));
        }
    }
}
