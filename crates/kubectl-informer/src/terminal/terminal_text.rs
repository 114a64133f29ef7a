//! Makes characters visible that act on a terminal or hide text.
//!
//! Names, labels, messages and custom columns hold what any writer of an object put into them.
//! Written as they are, escape sequences rewrite the screen, a carriage return overwrites the
//! beginning of the line, and direction controls display text in another order (kubectl's
//! CVE-2021-25743). [`visible`] is applied at the sinks, `Output` and `stderr`, and not by their
//! callers: text reaches them as `&str`, `StyledLine` or `Document`. Colours and cursor movements
//! are no text there, but a `Tone` and a `Control`.

use std::borrow::Cow;

/// Replaces each hidden character by `\n`, `\r`, `\t` or its code point, as in `\u{1b}`.
///
/// Applied twice, it gives the same as applied once. A backslash stays as it is, so that paths and
/// regular expressions can be read; text that contains such a sequence itself looks the same as
/// the escaped character.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_hidden(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    Cow::Owned(shown)
}

/// Returns whether a character acts on a terminal, or changes or hides text without being seen.
///
/// These are Unicode's control characters (C0 with line breaks and tabs, DEL, C1), format
/// characters (bidirectional controls, zero-width characters, tags), line and paragraph separators,
/// and what is ignorable by default, such as the Hangul fillers. Zero-width joiners are among them:
/// an emoji that is made of several is shown as its parts. Variation selectors 1 to 16 are not:
/// they select how the visible character before them looks.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{34f}'
                | '\u{600}'..='\u{605}'
                | '\u{61c}'
                | '\u{6dd}'
                | '\u{70f}'
                | '\u{890}'..='\u{891}'
                | '\u{8e2}'
                | '\u{115f}'..='\u{1160}'
                | '\u{17b4}'..='\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{3164}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{110bd}'
                | '\u{110cd}'
                | '\u{13430}'..='\u{1343f}'
                | '\u{1bca0}'..='\u{1bca3}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0000}'..='\u{e0fff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use regex::Regex;

    #[test]
    fn what_acts_on_a_terminal_is_shown_by_its_code_point() {
        for (text, expected) in [
            ("web-1", "web-1"),
            ("a\x1b[2Jb", r"a\u{1b}[2Jb"),
            ("a\rb\nc\td", r"a\rb\nc\td"),
            ("\u{9b}31m\u{7f}", r"\u{9b}31m\u{7f}"),
            ("user\u{202e}gpj.exe", r"user\u{202e}gpj.exe"),
            ("a\u{200b}b\u{feff}", r"a\u{200b}b\u{feff}"),
            ("Grüße, 世界, e\u{301}, ⚠\u{fe0f}, C:\\n", "Grüße, 世界, e\u{301}, ⚠\u{fe0f}, C:\\n"),
        ] {
            assert_eq!(visible(text), expected);
            assert_eq!(visible(&visible(text)), expected);
        }
    }

    #[test]
    fn hidden_characters_are_those_of_unicode() {
        let class = r"^[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}--\x{fe00}-\x{fe0f}]$";
        let class = Regex::new(class).unwrap();
        for c in '\0'..=char::MAX {
            assert_eq!(is_hidden(c), class.is_match(c.encode_utf8(&mut [0; 4])), "{}", c.escape_unicode());
        }
    }
}
