//! Human-readable ages with at most two units.

use std::time::SystemTime;

use jiff::Timestamp;
use serde_json::Value;

const SECONDS_OF_MINUTE: i64 = 60;
const SECONDS_OF_HOUR: i64 = 3600;

/// The time relative to which ages are computed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment(Timestamp);

impl Moment {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self(now)
    }

    /// The age of a timestamp; `<unknown>` if it is missing.
    pub(super) fn since(self, time: &Value) -> String {
        match parse(time) {
            Some(time) => seconds(self.0.duration_since(time).as_secs()),
            None => "<unknown>".to_owned(),
        }
    }
}

impl From<SystemTime> for Moment {
    fn from(now: SystemTime) -> Self {
        Self(Timestamp::try_from(now).unwrap_or(Timestamp::UNIX_EPOCH))
    }
}

pub(super) fn parse(time: &Value) -> Option<Timestamp> {
    time.as_str()?.parse().ok()
}

/// Formats a duration: `45s`, `3m10s`, `5h2m`, `3d4h`, `2y12d`.
pub(super) fn seconds(total: i64) -> String {
    let (minutes, hours, days) = (total / SECONDS_OF_MINUTE, total / SECONDS_OF_HOUR, total / (24 * SECONDS_OF_HOUR));
    // The smaller unit is omitted if it is zero.
    let both = |coarse: i64, unit: char, fine: i64, fine_unit: char| match fine {
        0 => format!("{coarse}{unit}"),
        fine => format!("{coarse}{unit}{fine}{fine_unit}"),
    };
    match total {
        // Tolerates a small clock difference.
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{total}s"),
        _ if minutes < 10 => both(minutes, 'm', total % 60, 's'),
        _ if minutes < 3 * 60 => format!("{minutes}m"),
        _ if hours < 8 => both(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => both(days, 'd', hours % 24, 'h'),
        _ if days < 2 * 365 => format!("{days}d"),
        _ if days < 8 * 365 => both(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_two_or_three_figures() {
        let hour = 3600;
        let day = 24 * hour;
        for (age, shown) in [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (130, "2m10s"),
            (600, "10m"),
            (3 * hour - 1, "179m"),
            (3 * hour, "3h"),
            (3 * hour + 65, "3h1m"),
            (8 * hour, "8h"),
            (47 * hour, "47h"),
            (2 * day, "2d"),
            (2 * day + 3 * hour, "2d3h"),
            (8 * day + hour, "8d"),
            (729 * day, "729d"),
            (730 * day, "2y"),
            (735 * day, "2y5d"),
            (8 * 365 * day + day, "8y"),
        ] {
            assert_eq!(seconds(age), shown, "{age} s");
        }
    }
}
