//! The lines of a table: columns as wide as they have to be, with colours.

use std::iter;

use super::tone::tone_of;
use crate::terminal::paint::Tone;
use crate::terminal::styled_line::{StyledLine, columns};

/// The space between columns.
const GAP: &str = "   ";

/// Formats a header, if any, and rows.
pub(crate) fn lines<'r>(
    head: Option<&'r Vec<String>>,
    names: &'r [String],
    rows: impl Iterator<Item = &'r Vec<String>> + Clone + 'r,
) -> impl Iterator<Item = StyledLine> + 'r {
    let widths = widths(head.into_iter().chain(rows.clone()));
    let head = head.map(|head| StyledLine::default().toned(Tone::Quiet, &padded(head, &widths)));
    head.into_iter().chain(rows.map(move |row| line(names, row, &widths)))
}

/// The width of each column in columns of a terminal.
pub(crate) fn widths<'r>(rows: impl Iterator<Item = &'r Vec<String>>) -> Vec<usize> {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(columns(cell));
        }
    }
    widths
}

/// The cells of a row, padded to their widths.
pub(crate) fn padded(row: &[String], widths: &[usize]) -> String {
    let cells = row.iter().zip(widths).map(|(cell, &width)| pad(cell, width));
    cells.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
}

fn line(names: &[String], row: &[String], widths: &[usize]) -> StyledLine {
    let last = row.iter().rposition(|cell| !cell.is_empty()).unwrap_or(0);
    let mut line = StyledLine::default();
    for (nth, (cell, &width)) in row.iter().zip(widths).enumerate().take(last + 1) {
        line = match names.get(nth).and_then(|name| tone_of(name, cell)) {
            Some(tone) => line.toned(tone, cell),
            None => line.plain(cell),
        };
        if nth < last {
            line = line.plain(&iter::repeat_n(" ", width - columns(cell)).collect::<String>()).plain(GAP);
        }
    }
    line
}

fn pad(cell: &str, width: usize) -> String {
    let missing = width.saturating_sub(columns(cell));
    format!("{cell}{:missing$}", "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::paint::Paint;

    #[test]
    fn columns_are_as_wide_as_they_have_to_be_on_a_terminal() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let head = row(["NAMESPACE", "NAME", "STATUS"]);
        let rows = [row(["web", "世界", "Running"]), row(["web", "longer", ""])];
        let rendered: Vec<String> =
            lines(Some(&head), &head, rows.iter()).map(|line| line.render(Paint::Plain)).collect();
        assert_eq!(rendered, ["NAMESPACE   NAME     STATUS", "web         世界     Running", "web         longer"]);
    }
}
