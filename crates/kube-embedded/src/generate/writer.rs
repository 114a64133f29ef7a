//! A JSON writer that writes front to back, in the order of the calls.

use std::ops::Range;

use crate::encoding::escape::push_string;

/// A JSON document being written. Commas are inserted automatically.
#[derive(Debug, Default)]
pub(super) struct Writer {
    out: Vec<u8>,
    given: Vec<Range<usize>>,
}

impl Writer {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes), given: Vec::with_capacity(2) }
    }

    /// The document, and the byte ranges of the fields set by the server, each including the comma
    /// before it.
    pub(super) fn finish(self) -> (Vec<u8>, Vec<Range<usize>>) {
        (self.out, self.given)
    }

    /// Writes a string that only a server sets: uid or resourceVersion. It must not be the first
    /// field of its object.
    pub(super) fn given(&mut self, key: &str, value: &str) {
        let start = self.out.len();
        self.text(key, value);
        self.given.push(start..self.out.len());
    }

    /// Writes an object, as a whole document or as an array item.
    pub(super) fn object(&mut self, content: impl FnOnce(&mut Self)) {
        self.comma();
        self.out.push(b'{');
        content(self);
        self.out.push(b'}');
    }

    pub(super) fn object_at(&mut self, key: &str, content: impl FnOnce(&mut Self)) {
        self.key(key);
        self.out.push(b'{');
        content(self);
        self.out.push(b'}');
    }

    pub(super) fn array_at(&mut self, key: &str, content: impl FnOnce(&mut Self)) {
        self.key(key);
        self.out.push(b'[');
        content(self);
        self.out.push(b']');
    }

    /// Writes a string as an array item.
    pub(super) fn item(&mut self, value: &str) {
        self.comma();
        self.quoted(value);
    }

    pub(super) fn text(&mut self, key: &str, value: &str) {
        self.key(key);
        self.quoted(value);
    }

    pub(super) fn texts<'a>(&mut self, key: &str, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) {
        self.object_at(key, |w| pairs.into_iter().for_each(|(key, value)| w.text(key, value)));
    }

    /// Writes a string concatenated from parts that need no escaping.
    pub(super) fn joined(&mut self, key: &str, parts: &[&str]) {
        self.key(key);
        self.out.push(b'"');
        for part in parts {
            self.out.extend_from_slice(part.as_bytes());
        }
        self.out.push(b'"');
    }

    pub(super) fn number(&mut self, key: &str, value: u64) {
        self.key(key);
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = value;
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.out.extend_from_slice(&digits[at..]);
    }

    pub(super) fn truth(&mut self, key: &str, value: bool) {
        self.raw(key, if value { "true" } else { "false" });
    }

    /// Writes a value that is already JSON.
    pub(super) fn raw(&mut self, key: &str, json: &str) {
        self.key(key);
        self.out.extend_from_slice(json.as_bytes());
    }

    pub(super) fn time(&mut self, key: &str, seconds: i64) {
        self.key(key);
        self.out.push(b'"');
        self.out.extend_from_slice(&rfc3339(seconds));
        self.out.push(b'"');
    }

    /// Writes `"f:name":{}`, the most frequent part of managedFields.
    pub(super) fn owned(&mut self, name: &str) {
        self.comma();
        self.out.extend_from_slice(b"\"f:");
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":{}");
    }

    /// Writes `"k:{\"by\":\"value\"}":{…}`, which identifies a list item in managedFields. Neither
    /// part needs escaping.
    pub(super) fn keyed_at(&mut self, by: &str, value: &str, content: impl FnOnce(&mut Self)) {
        self.comma();
        for part in ["\"k:{\\\"", by, "\\\":\\\"", value, "\\\"}\":{"] {
            self.out.extend_from_slice(part.as_bytes());
        }
        content(self);
        self.out.push(b'}');
    }

    /// Keys are constants of this crate, already escaped where necessary.
    fn key(&mut self, key: &str) {
        self.comma();
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn comma(&mut self) {
        if !matches!(self.out.last(), None | Some(b'{' | b'[' | b':')) {
            self.out.push(b',');
        }
    }

    fn quoted(&mut self, value: &str) {
        // No early exit, so that the compiler vectorizes the loop; nearly all values are plain.
        let plain = value.bytes().fold(true, |plain, byte| {
            plain & (b' '..0x80).contains(&byte) & !matches!(byte, b'"' | b'\\' | b'<' | b'>' | b'&')
        });
        if plain {
            self.out.push(b'"');
            self.out.extend_from_slice(value.as_bytes());
            self.out.push(b'"');
        } else {
            push_string(&mut self.out, value);
        }
    }
}

/// Formats a time like `2026-06-01T12:00:00Z`, the format of all times in metadata.
pub(super) fn rfc3339(seconds: i64) -> [u8; 20] {
    let days = seconds.div_euclid(86_400);
    let second = seconds.rem_euclid(86_400);
    // Converts days to a civil date, in eras of 400 years that begin in March.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);

    let mut out = *b"0000-00-00T00:00:00Z";
    put(&mut out[0..4], year);
    put(&mut out[5..7], month);
    put(&mut out[8..10], day);
    put(&mut out[11..13], second / 3_600);
    put(&mut out[14..16], second / 60 % 60);
    put(&mut out[17..19], second % 60);
    out
}

fn put(digits: &mut [u8], mut value: i64) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_the_calendar_says() {
        for seconds in [0, 951_782_400, 951_868_799, 1_780_272_000, 1_798_761_599, 4_102_444_800] {
            let expected = jiff::Timestamp::from_second(seconds).unwrap().to_string();
            assert_eq!(String::from_utf8(rfc3339(seconds).to_vec()).unwrap(), expected);
        }
    }

    #[test]
    fn commas_and_escapes_come_by_themselves() {
        let mut w = Writer::default();
        w.object(|w| {
            w.text("a", "say \"no\"\\\n");
            w.array_at("b", |w| {
                w.item("x");
                w.object(|w| w.number("c", 1_090));
                w.object(|_| ());
            });
            w.truth("d", true);
        });
        let expected = r#"{"a":"say \"no\"\\\n","b":["x",{"c":1090},{}],"d":true}"#;
        assert_eq!(String::from_utf8(w.finish().0).unwrap(), expected);
    }
}
