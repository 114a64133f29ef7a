//! Table layout, as kubectl prints it.

use std::time::SystemTime;

use kube_embedded::table::Columns;
use serde_json::Value;

use crate::terminal::terminal_text::visible;

/// Display options of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TableOptions {
    pub(crate) wide: bool,
    pub(crate) headers: bool,
    pub(crate) namespaces: bool,
}

/// A kind's printer columns and which of them are shown.
#[derive(Debug)]
pub(crate) struct Grid {
    columns: Columns,
    look: TableOptions,
    shown: Vec<usize>,
}

impl Grid {
    pub(crate) fn new(columns: Columns, look: TableOptions) -> Self {
        let shown = columns.all().iter().enumerate().filter(|(_, column)| look.wide || column.priority == 0);
        let shown = shown.map(|(nth, _)| nth).collect();
        Self { columns, look, shown }
    }

    /// The cells of objects, in the order in which the kind is shown.
    pub(crate) fn rows(&self, objects: &[Value], now: SystemTime) -> Vec<Vec<String>> {
        let whole = self.columns.rows(objects, now);
        // Rows may be sorted differently from the objects, but only for FlowSchemas, which have no
        // namespace.
        let namespaces = objects.iter().map(|object| object["metadata"]["namespace"].as_str().unwrap_or_default());
        whole.into_iter().zip(namespaces).map(|(row, namespace)| self.cells(&row.cells, namespace)).collect()
    }

    /// The cells of one object.
    pub(crate) fn row(&self, object: &Value, now: SystemTime) -> Vec<String> {
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
        self.cells(&self.columns.row(object, now).cells, namespace)
    }

    /// The column names, or `None` with `--no-headers`.
    pub(crate) fn head(&self) -> Option<Vec<String>> {
        let names = self.shown.iter().map(|&nth| visible(&self.columns.all()[nth].name.to_uppercase()).into_owned());
        let namespace = self.look.namespaces.then(|| "NAMESPACE".to_owned());
        self.look.headers.then(|| namespace.into_iter().chain(names).collect())
    }

    /// Formats rows as lines, below the header.
    pub(crate) fn lines(&self, rows: &[Vec<String>]) -> Vec<String> {
        let head = self.head();
        let widths = widths(head.iter().chain(rows));
        head.iter().chain(rows).map(|row| line(row, &widths)).collect()
    }

    fn cells(&self, cells: &[Value], namespace: &str) -> Vec<String> {
        let namespace = self.look.namespaces.then(|| visible(namespace).into_owned());
        let shown = self.shown.iter().map(|&nth| text(cells.get(nth)));
        namespace.into_iter().chain(shown).collect()
    }
}

/// The width of each column in characters.
pub(crate) fn widths<'r>(rows: impl Iterator<Item = &'r Vec<String>>) -> Vec<usize> {
    let mut widths: Vec<usize> = Vec::new();
    for row in rows {
        widths.resize(widths.len().max(row.len()), 0);
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    widths
}

/// Formats one row with three spaces between cells.
fn line(row: &[String], widths: &[usize]) -> String {
    let padded = row.iter().zip(widths).map(|(cell, &width)| format!("{cell:<width$}"));
    padded.collect::<Vec<_>>().join("   ").trim_end().to_owned()
}

/// A cell as it is shown, which decides the width of its column.
fn text(cell: Option<&Value>) -> String {
    match cell {
        // A column of a custom kind without a value, as kubectl prints it. Others have `<none>`
        // there.
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => visible(text).into_owned(),
        Some(other) => visible(&other.to_string()).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;

    #[test]
    fn columns_are_as_wide_as_they_have_to_be() {
        let look = TableOptions { wide: false, headers: true, namespaces: true };
        let grid = Grid::new(Columns::built_in("", "v1", "configmaps").unwrap(), look);
        let map = |name: &str| json!({"metadata": {"name": name, "namespace": "web", "creationTimestamp": "1970-01-01T00:00:00Z"}, "data": {"a": ""}});
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(90);
        let lines = grid.lines(&grid.rows(&[map("a"), map("longer")], now));
        assert_eq!(
            lines,
            ["NAMESPACE   NAME     DATA   AGE", "web         a        1      90s", "web         longer   1      90s"]
        );
    }
}
