//! The cells of a kind's table, as kubectl prints them.

use std::time::SystemTime;

use http::Request;
use kube_embedded::table::Columns;
use kube_informer::client::Served;
use serde_json::Value;

use crate::client::connection::Connected;
use crate::terminal::terminal_text::visible;

/// Display options of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct TableOptions {
    pub(crate) wide: bool,
    pub(crate) namespaces: bool,
    /// What is printed before each name, with a slash: the kind.
    pub(crate) prefix: Option<String>,
    /// Labels that have a column.
    pub(crate) label_columns: Vec<String>,
    /// Whether there is a column with all labels.
    pub(crate) show_labels: bool,
}

/// A kind's printer columns and which of them are shown.
#[derive(Debug, Clone)]
pub(crate) struct Grid {
    columns: Columns,
    options: TableOptions,
    shown: Vec<usize>,
}

impl Grid {
    pub(crate) fn new(columns: Columns, options: TableOptions) -> Self {
        let shown = columns.all().iter().enumerate().filter(|(_, column)| options.wide || column.priority == 0);
        let shown = shown.map(|(nth, _)| nth).collect();
        Self { columns, options, shown }
    }

    /// The columns of a kind: built-in, from its `CustomResourceDefinition`, or name and age.
    pub(crate) async fn of_kind(connected: &Connected, kind: &Served, options: TableOptions) -> Self {
        let columns = match Columns::built_in(kind.group(), kind.version(), kind.plural()) {
            Some(columns) => columns,
            None => defined(connected, kind).await.unwrap_or_else(Columns::generic),
        };
        Self::new(columns, options)
    }

    /// Whether rows depend on each other, so that all objects are needed before the first row.
    pub(crate) fn needs_all_objects(&self) -> bool {
        self.columns.needs_all_objects()
    }

    /// The cells of objects, in the order in which the kind is shown.
    pub(crate) fn rows(&self, objects: &[Value], now: SystemTime) -> Vec<Vec<String>> {
        let whole = self.columns.rows(objects, now);
        // Rows may be sorted differently from the objects, but only for FlowSchemas, whose names
        // are in the cells.
        let named = |row: &kube_embedded::table::Row| {
            let name = row.cells.first().and_then(Value::as_str).unwrap_or_default();
            let name = name.strip_suffix(" (default)").unwrap_or(name);
            objects.iter().find(|object| object["metadata"]["name"] == name).unwrap_or(&Value::Null)
        };
        whole.into_iter().map(|row| self.cells(&row.cells, named(&row))).collect()
    }

    /// The cells of one object.
    pub(crate) fn row(&self, object: &Value, now: SystemTime) -> Vec<String> {
        self.cells(&self.columns.row(object, now).cells, object)
    }

    /// The column names.
    pub(crate) fn head(&self) -> Vec<String> {
        let namespace = self.options.namespaces.then(|| "NAMESPACE".to_owned());
        let names = self.shown.iter().map(|&nth| visible(&self.columns.all()[nth].name.to_uppercase()).into_owned());
        let label = |key: &String| visible(&key.rsplit('/').next().unwrap_or(key).to_uppercase()).into_owned();
        let labels = self.options.label_columns.iter().map(label);
        let all = self.options.show_labels.then(|| "LABELS".to_owned());
        namespace.into_iter().chain(names).chain(labels).chain(all).collect()
    }

    fn cells(&self, cells: &[Value], object: &Value) -> Vec<String> {
        let metadata = &object["metadata"];
        let text = |value: &Value| visible(value.as_str().unwrap_or_default()).into_owned();
        let mut row = Vec::with_capacity(self.shown.len() + 2);
        if self.options.namespaces {
            row.push(text(&metadata["namespace"]));
        }
        let name_at = row.len();
        row.extend(self.shown.iter().map(|&nth| shown(cells.get(nth))));
        if let (Some(prefix), Some(name)) = (&self.options.prefix, row.get_mut(name_at)) {
            name.insert_str(0, &format!("{prefix}/"));
        }
        row.extend(self.options.label_columns.iter().map(|key| text(&metadata["labels"][key])));
        if self.options.show_labels {
            let labels = metadata["labels"].as_object().into_iter().flatten();
            let labels: Vec<String> = labels.map(|(key, value)| format!("{}={}", visible(key), text(value))).collect();
            row.push(if labels.is_empty() { "<none>".to_owned() } else { labels.join(",") });
        }
        row
    }
}

/// The columns of the kind's definition. Without permission to read it, the generic columns are
/// used.
async fn defined(connected: &Connected, kind: &Served) -> Option<Columns> {
    let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{}", kind.full_name());
    let request = Request::get(path).body(Vec::new()).ok()?;
    let definition: Value = connected.client.request(request).await.ok()?;
    Columns::custom(&definition, kind.version())
}

/// A cell as it is shown, which decides the width of its column.
fn shown(cell: Option<&Value>) -> String {
    match cell {
        // A column of a custom kind without a value, as kubectl prints it. Others have `<none>`
        // there.
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => visible(text).into_owned(),
        Some(other) => visible(&other.to_string()).into_owned(),
    }
}
