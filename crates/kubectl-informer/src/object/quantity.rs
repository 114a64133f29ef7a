//! Quantities of resources, as numbers: `500m` is 0.5, `1Ki` is 1024.

/// The number that a quantity stands for; large ones are rounded.
pub(super) fn quantity(text: &str) -> Option<f64> {
    let unit = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let factor = match unit {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1024.0_f64.powi(2),
        "Gi" => 1024.0_f64.powi(3),
        "Ti" => 1024.0_f64.powi(4),
        "Pi" => 1024.0_f64.powi(5),
        "Ei" => 1024.0_f64.powi(6),
        // An exponent, such as 1e3.
        _ => return text.parse().ok().filter(|number: &f64| number.is_finite()),
    };
    number.parse::<f64>().ok().map(|number| number * factor).filter(|number| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_decimal_or_binary() {
        for (text, number) in
            [("500m", 0.5), ("2", 2.0), ("1Ki", 1024.0), ("-1.5k", -1500.0), ("1e3", 1000.0), ("3E", 3e18)]
        {
            assert_eq!(quantity(text), Some(number), "{text}");
        }
        for text in ["", "m", "1Kb", "one", "1 G", "inf", "nan"] {
            assert_eq!(quantity(text), None, "{text}");
        }
    }
}
