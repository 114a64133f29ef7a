//! Sizes in bytes, in text and in columns.

/// Formats a size with a decimal unit and at most three digits: `999 B`, `1.2 kB`, `12 MB`.
pub(crate) fn bytes(count: usize) -> String {
    let (number, unit) = scaled(count);
    format!("{number} {unit}")
}

/// As [`bytes()`], for a right-aligned column of seven: the numbers and the units are below each
/// other.
pub(crate) fn bytes_cell(count: usize) -> String {
    let (number, unit) = scaled(count);
    format!("{number} {unit:<2}")
}

fn scaled(count: usize) -> (String, &'static str) {
    let (mut number, mut unit) = (count as f64, "B");
    for next in ["kB", "MB", "GB", "TB"] {
        if number < 999.5 {
            break;
        }
        (number, unit) = (number / 1e3, next);
    }
    let decimals = usize::from(unit != "B" && number < 9.95);
    (format!("{number:.decimals$}"), unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_units_of_a_column_are_aligned() {
        let cells = [0, 999, 1_000, 9_960, 999_499, 999_500, 12_345_678, 5_000_000_000]
            .map(|count| format!("{:>7}", bytes_cell(count)));
        let expected = ["   0 B ", " 999 B ", " 1.0 kB", "  10 kB", " 999 kB", " 1.0 MB", "  12 MB", " 5.0 GB"];
        assert_eq!(cells, expected);
        assert_eq!(bytes(7), "7 B");
    }
}
