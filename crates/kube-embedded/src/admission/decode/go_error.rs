//! Error messages of Go's JSON decoder.

/// Go's message for a syntax error.
pub(crate) fn explain(json: &[u8], error: &serde_json::Error) -> String {
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    let text = error.to_string();
    let place = match text.split(" at line ").next().unwrap_or_default() {
        "key must be a string" | "trailing comma" => "looking for beginning of object key string",
        "expected `:`" => "after object key",
        "expected `,` or `}`" => "after object key:value pair",
        "expected `,` or `]`" => "after array element",
        "trailing characters" => "after top-level value",
        "control character (\\u0000-\\u001F) found while parsing a string" => "in string literal",
        "invalid escape" => "in string escape code",
        "expected ident" => "in literal",
        "recursion limit exceeded" => return "exceeded max depth".to_owned(),
        "invalid number" => "in numeric literal",
        _ => "looking for beginning of value",
    };
    match byte_at(json, error.line(), error.column()) {
        Some(byte) => format!("invalid character {} {place}", quoted(byte)),
        None => "unexpected end of JSON input".to_owned(),
    }
}

/// The byte at a line and column, both counted from 1.
fn byte_at(json: &[u8], line: usize, column: usize) -> Option<u8> {
    let start = match line {
        0 | 1 => 0,
        _ => json.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(line - 2).map(|(at, _)| at + 1)?,
    };
    json.get(start + column.saturating_sub(1)).copied()
}

fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\n' => "'\\n'".to_owned(),
        b'\r' => "'\\r'".to_owned(),
        b'\t' => "'\\t'".to_owned(),
        0x20..=0x7e => format!("'{}'", byte as char),
        0x80.. => format!("'{}'", char::from(byte)),
        _ => format!("'\\x{byte:02x}'"),
    }
}
