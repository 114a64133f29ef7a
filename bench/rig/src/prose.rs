//! Line wrapping of the generated pages.

/// Maximum columns of a line of prose.
const COLUMNS: usize = 110;

/// Wraps the lines of prose of a page in Markdown; headings, tables and pictures stay as they are.
pub fn wrap(page: &str) -> String {
    let mut wrapped = String::with_capacity(page.len());
    for line in page.lines() {
        wrap_line(&mut wrapped, line);
    }
    wrapped
}

fn wrap_line(out: &mut String, line: &str) {
    if line.starts_with(['#', '|', '!']) {
        out.push_str(line);
        out.push('\n');
        return;
    }
    let indent = if line.starts_with("- ") { "  " } else { "" };
    let mut columns = 0;
    for word in line.split(' ') {
        let width = word.chars().count();
        if columns > 0 && columns + 1 + width > COLUMNS {
            out.push('\n');
            out.push_str(indent);
            columns = indent.len();
        } else if columns > 0 {
            out.push(' ');
            columns += 1;
        }
        out.push_str(word);
        columns += width;
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::wrap;

    #[test]
    fn prose_is_wrapped_and_tables_are_not() {
        let long = ["word"; 30].join(" ");
        let page = format!("# {long}\n\n- {long}\n\n| {long} |\n");

        let wrapped = wrap(&page);
        let lines: Vec<&str> = wrapped.lines().collect();

        assert_eq!(lines[0], format!("# {long}"));
        assert!(lines[2].len() <= 110 && lines[2].starts_with("- word"));
        assert!(lines[3].starts_with("  word"));
        assert_eq!(*lines.last().unwrap(), format!("| {long} |"));
        assert_eq!(wrapped.split_whitespace().count(), page.split_whitespace().count());
    }
}
