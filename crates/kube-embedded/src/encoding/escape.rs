//! JSON string escaping, identical to Go's `encoding/json`.

/// Appends `text` as a JSON string with the escapes of Go's encoder: `<`, `>`, `&`, U+2028 and
/// U+2029 are escaped too, all other non-ASCII characters are not.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut from = 0;
    let mut at = 0;
    while at < bytes.len() {
        let byte = bytes[at];
        // U+2028 and U+2029 are E2 80 A8 and E2 80 A9.
        let separator =
            byte == 0xE2 && bytes.get(at + 1) == Some(&0x80) && matches!(bytes.get(at + 2), Some(0xA8 | 0xA9));
        if !separator && !NEEDS_ESCAPE[byte as usize] {
            at += 1;
            continue;
        }
        out.extend_from_slice(&bytes[from..at]);
        if separator {
            out.extend_from_slice(if bytes[at + 2] == 0xA8 { b"\\u2028" } else { b"\\u2029" });
            at += 3;
        } else {
            push_escaped(out, byte);
            at += 1;
        }
        from = at;
    }
    out.extend_from_slice(&bytes[from..]);
    out.push(b'"');
}

fn push_escaped(out: &mut Vec<u8>, byte: u8) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        0x08 => out.extend_from_slice(b"\\b"),
        0x0C => out.extend_from_slice(b"\\f"),
        _ => out.extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[(byte >> 4) as usize], HEX[(byte & 15) as usize]]),
    }
}

/// Bytes that require an escape sequence.
static NEEDS_ESCAPE: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 0x20 {
        table[byte] = true;
        byte += 1;
    }
    table[b'"' as usize] = true;
    table[b'\\' as usize] = true;
    table[b'<' as usize] = true;
    table[b'>' as usize] = true;
    table[b'&' as usize] = true;
    table
};

#[cfg(test)]
mod tests {
    use super::push_string;

    #[test]
    fn strings_are_escaped_as_go_does_it() {
        let mut out = Vec::new();
        push_string(&mut out, "a\"\\<b>&\u{2028}ä\n\u{1}\u{7f}");
        assert_eq!(String::from_utf8(out).unwrap(), "\"a\\\"\\\\\\u003cb\\u003e\\u0026\\u2028ä\\n\\u0001\u{7f}\"");
    }
}
