//! Formatting of times and durations as the server writes them in JSON.

use std::fmt::Write as _;

/// Maximum length of a formatted time.
const MAX_LEN: usize = "2026-11-15T18:00:00.000000Z".len();

/// A time formatted as text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    text: [u8; MAX_LEN],
    len: usize,
}

/// Precision of a formatted time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Precision {
    Seconds,
    Micros,
}

impl Moment {
    /// Formats a time; none for a time outside of the years 0 to 9999.
    pub(super) fn of(seconds: i64, nanos: i32, precision: Precision) -> Option<Self> {
        let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = civil(days)?;
        let mut moment = Self { text: *b"0000-00-00T00:00:00.000000Z", len: MAX_LEN };
        moment.digits(0, 4, year);
        moment.digits(5, 2, month);
        moment.digits(8, 2, day);
        let rest = u32::try_from(rest).ok()?;
        moment.digits(11, 2, rest / 3600);
        moment.digits(14, 2, rest / 60 % 60);
        moment.digits(17, 2, rest % 60);
        match precision {
            Precision::Micros => moment.digits(20, 6, u32::try_from(nanos).ok().filter(|n| *n < 1_000_000_000)? / 1000),
            Precision::Seconds => {
                moment.text[19] = b'Z';
                moment.len = 20;
            }
        }
        Some(moment)
    }

    pub(super) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text[..self.len]).unwrap_or_default()
    }

    fn digits(&mut self, at: usize, width: usize, mut number: u32) {
        for place in (at..at + width).rev() {
            self.text[place] = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }
}

/// Year, month and day of a number of days since 1970. Years are counted from March, so that the
/// leap day is the last day of a year.
fn civil(days: i64) -> Option<(u32, u32, u32)> {
    // The years 0 to 9999.
    if !(-719_528..2_932_897).contains(&days) {
        return None;
    }
    let days = u32::try_from(days + 719_468 + 146_097).ok()?;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = (era * 400 + year_of_era + u32::from(month <= 2)).checked_sub(400)?;
    Some((year, month, day))
}

/// Nanoseconds as Go writes a duration: `1m30s`, `1.5s`, `100ms`.
pub(super) fn duration(nanos: i64) -> String {
    let mut text = String::new();
    if nanos < 0 {
        text.push('-');
    }
    let nanos = nanos.unsigned_abs();
    let (unit, name) = match nanos {
        0 => return "0s".to_owned(),
        1..1_000 => (1, "ns"),
        1_000..1_000_000 => (1_000, "µs"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let mut whole = nanos / unit;
    if name == "s" && whole >= 60 {
        let minutes = whole / 60;
        whole %= 60;
        if minutes >= 60 {
            let _ = write!(text, "{}h", minutes / 60);
        }
        let _ = write!(text, "{}m", minutes % 60);
    }
    let _ = write!(text, "{whole}");
    let fraction = nanos % unit;
    if fraction > 0 {
        let width = unit.ilog10() as usize;
        text.push('.');
        text.push_str(format!("{fraction:0width$}").trim_end_matches('0'));
    }
    text.push_str(name);
    text
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;

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
            (5, "5ns"),
        ] {
            assert_eq!(duration(nanos), text);
        }
    }

    proptest! {
        #[test]
        fn times_are_what_a_calendar_says(seconds in -62_167_219_200_i64..253_402_207_200, nanos in 0..1_000_000_000_i32) {
            let moment = Moment::of(seconds, nanos, Precision::Micros).unwrap();
            let read: Timestamp = moment.as_str().parse().unwrap();
            prop_assert_eq!(read.as_nanosecond(), i128::from(seconds) * 1_000_000_000 + i128::from(nanos / 1000 * 1000));
            let moment = Moment::of(seconds, nanos, Precision::Seconds).unwrap();
            prop_assert_eq!(moment.as_str().parse::<Timestamp>().unwrap().as_second(), seconds);
        }

        #[test]
        fn no_number_makes_it_panic(seconds: i64, nanos: i32) {
            let _ = Moment::of(seconds, nanos, Precision::Micros);
            duration(seconds);
        }
    }
}
