//! Rows of tables, kept as text until the widths of the columns are known.

use std::time::SystemTime;

use kube_embedded::table::JsonPath;
use serde_json::Value;

use super::Rank;
use crate::failure::Failure;
use crate::table::grid::Grid;
use crate::table::lines::lines;
use crate::terminal::output::Output;
use crate::terminal::styled_line::StyledLine;
use crate::terminal::terminal_text::visible;

/// The tables of several kinds, one after the other.
pub(super) struct Rows {
    no_headers: bool,
    now: SystemTime,
    grid: Option<Grid>,
    rows: Vec<(Option<Rank>, Vec<String>)>,
    /// Objects of a kind whose rows depend on each other.
    whole: Vec<Value>,
    /// Whether a table has been printed.
    is_second: bool,
}

impl Rows {
    pub(super) fn new(no_headers: bool) -> Self {
        let now = SystemTime::now();
        Self { no_headers, now, grid: None, rows: Vec::new(), whole: Vec::new(), is_second: false }
    }

    pub(super) fn begin(&mut self, grid: Grid) {
        self.grid = Some(grid);
    }

    pub(super) fn add(&mut self, rank: Option<Rank>, object: Value) {
        match &self.grid {
            Some(grid) if grid.needs_all_objects() => self.whole.push(object),
            Some(grid) => self.rows.push((rank, grid.row(&object, self.now))),
            None => {}
        }
    }

    /// Prints the table of the kind, unless it is empty.
    pub(super) fn print(&mut self, out: &mut Output) -> Result<(), Failure> {
        let Some(grid) = self.grid.take() else { return Ok(()) };
        let whole = std::mem::take(&mut self.whole);
        self.rows.extend(grid.rows(&whole, self.now).into_iter().map(|row| (None, row)));
        let mut rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(());
        }
        rows.sort_by(|(one, _), (other, _)| one.cmp(other));
        // As in kubectl, there is an empty line between tables.
        if std::mem::replace(&mut self.is_second, true) {
            out.line("")?;
        }
        let head = grid.head();
        for line in lines((!self.no_headers).then_some(&head), &head, rows.iter().map(|(_, row)| row)) {
            out.styled(&line)?;
        }
        Ok(())
    }
}

/// kubectl's `-o custom-columns`.
pub(super) struct CustomColumns {
    no_headers: bool,
    head: Vec<String>,
    paths: Vec<JsonPath>,
    rows: Vec<Vec<String>>,
}

impl CustomColumns {
    /// Parses `NAME:PATH,NAME:PATH`.
    pub(super) fn parse(text: &str, no_headers: bool) -> Result<Self, Failure> {
        let mut columns = Self { no_headers, head: Vec::new(), paths: Vec::new(), rows: Vec::new() };
        for column in text.split(',') {
            let Some((name, path)) = column.split_once(':') else {
                return Err(Failure::Usage(format!("-o custom-columns: {column:?} is not of the form NAME:PATH")));
            };
            // kubectl accepts `metadata.name` and `{.metadata.name}`, too.
            let bare = path.trim_start_matches('{').trim_end_matches('}');
            let dotted = if bare.starts_with(['.', '[']) { bare.to_owned() } else { format!(".{bare}") };
            let parsed = JsonPath::parse(&dotted).ok_or_else(|| {
                Failure::Usage(format!("-o custom-columns: {path:?} is not a JSON path of kubectl's"))
            })?;
            columns.head.push(visible(name).into_owned());
            columns.paths.push(parsed);
        }
        Ok(columns)
    }

    pub(super) fn add(&mut self, object: &Value) {
        let cell = |path: &JsonPath| {
            let found = path.find(object);
            match found.is_empty() {
                true => "<none>".to_owned(),
                false => visible(&found.into_iter().map(go_text).collect::<Vec<_>>().join(",")).into_owned(),
            }
        };
        self.rows.push(self.paths.iter().map(cell).collect());
    }

    pub(super) fn print(&mut self, out: &mut Output) -> Result<(), Failure> {
        let head = (!self.no_headers).then_some(&self.head);
        for line in lines(head, &self.head, self.rows.iter()) {
            out.styled(&line)?;
        }
        if self.rows.is_empty()
            && let Some(head) = head
        {
            out.styled(&StyledLine::from(head.join("   ").as_str()))?;
        }
        Ok(())
    }
}

/// A value as Go prints it, which kubectl does in custom columns.
fn go_text(value: &Value) -> String {
    let joined = |texts: Vec<String>| texts.join(" ");
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", joined(items.iter().map(go_text).collect())),
        Value::Object(fields) => {
            format!("map[{}]", joined(fields.iter().map(|(key, value)| format!("{key}:{}", go_text(value))).collect()))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn custom_columns_are_printed_as_kubectl_prints_them() {
        let mut columns =
            CustomColumns::parse("NAME:.metadata.name,IMAGES:{.spec.c[*].image},L:metadata.labels,N:.no", false)
                .unwrap();
        columns.add(&json!({"metadata": {"name": "a", "labels": {"b": "1", "a": 2}}, "spec": {"c": [{"image": "i"}, {"image": "j"}]}}));
        assert_eq!(columns.head, ["NAME", "IMAGES", "L", "N"]);
        assert_eq!(columns.rows, [["a", "i,j", "map[a:2 b:1]", "<none>"]]);
        assert!(CustomColumns::parse("NAME", false).is_err());
        assert!(CustomColumns::parse("NAME:.a[", false).is_err());
    }
}

#[cfg(test)]
mod fuzz {
    use serde_json::json;

    use super::*;
    use crate::fuzzing::fuzz;
    use crate::terminal::terminal_text::is_hidden;

    #[test]
    fn any_columns_are_parsed_or_refused() {
        let pieces =
            ["NAME", ":", ",", ".a", "{", "}", "metadata.name", "[*]", "[0]", "..", "[?(@.a==1)]", "\u{9b}", "é", "$"];
        let object = json!({"metadata": {"name": "\u{1b}[2J"}, "a": [{"a": 1}, {"b": "\u{202e}"}]});
        fuzz(1_000, |source| {
            if let Ok(mut columns) = CustomColumns::parse(&source.text(&pieces, 12), false) {
                columns.add(&object);
                let texts = columns.head.iter().chain(columns.rows.iter().flatten());
                texts.for_each(|text| assert!(!text.contains(is_hidden), "{text:?}"));
            }
        });
    }
}
