//! Table representation of objects, as in `kubectl get`: the columns and cells that kube-apiserver
//! prints.
//!
//! Works without a server: it needs only an object's JSON, its kind and the time.
//!
//! ```
//! use std::time::{Duration, SystemTime};
//!
//! use kube_embedded::table::Columns;
//! use serde_json::json;
//!
//! let columns = Columns::built_in("", "v1", "pods").expect("pods are built in");
//! let names: Vec<&str> = columns.all().iter().filter(|column| column.priority == 0).map(|column| &*column.name).collect();
//! assert_eq!(names, ["Name", "Ready", "Status", "Restarts", "Age"]);
//!
//! let pod = json!({
//!     "metadata": {"name": "web", "creationTimestamp": "1970-01-01T00:00:00Z"},
//!     "spec": {"containers": [{"name": "c"}]},
//!     "status": {"phase": "Pending"},
//! });
//! let now = SystemTime::UNIX_EPOCH + Duration::from_secs(200);
//! let row = columns.row(&pod, now);
//! assert_eq!(row.cells[..5], [json!("web"), json!("0/1"), json!("Pending"), json!("0"), json!("3m20s")]);
//! ```

mod age;
pub(crate) mod cells;
mod columns;
mod json_path;

use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

pub(crate) use self::age::Moment;
use self::cells::Cells;
pub use self::json_path::JsonPath;
use self::json_path::Visits;
use crate::encoding::json;

/// A column of a kind's table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Column {
    /// The column header.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub r#type: String,
    /// `name` for the column with the object's name, otherwise usually empty.
    pub format: String,
    /// The description of the column.
    pub description: String,
    /// 0 if the column is always shown; other columns are shown only in wide tables.
    pub priority: i32,
}

/// A table row for one object.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Row {
    /// One value per column: a string, a number, a bool or null.
    pub cells: Vec<Value>,
    /// Whether and how the object completed. Only pods do.
    pub completed: Option<Completed>,
}

/// How an object completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Completed {
    /// It succeeded.
    Succeeded,
    /// It failed.
    Failed,
}

/// The columns of a kind's table, and how cells are computed from objects.
#[derive(Debug, Clone)]
pub struct Columns {
    all: Arc<[Column]>,
    filling: Filling,
}

/// How cells are computed.
#[derive(Debug, Clone)]
enum Filling {
    /// Built-in functions of the kind.
    BuiltIn { cells: Cells, order: Order },
    /// JSON paths of the columns after the name.
    Paths(Arc<[Option<JsonPath>]>),
}

/// How rows of one list depend on each other or on completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Rows are independent.
    Plain,
    /// Rows have a completion state.
    Ending,
    /// One of the objects is the default.
    DefaultMarked,
    /// Rows are sorted by precedence.
    ByPrecedence,
}

impl Columns {
    /// The columns of a built-in kind. `None` if there is no such kind.
    #[must_use]
    pub fn built_in(group: &str, version: &str, plural: &str) -> Option<Self> {
        let kind = if group.is_empty() { format!("{version}/{plural}") } else { format!("{group}/{version}/{plural}") };
        let all = columns::of(&kind)?;
        let order = match (group, plural) {
            ("", "pods") => Order::Ending,
            ("storage.k8s.io", "storageclasses") => Order::DefaultMarked,
            ("flowcontrol.apiserver.k8s.io", "flowschemas") => Order::ByPrecedence,
            _ => Order::Plain,
        };
        let cells = cells::of(group, plural).unwrap_or(cells::name_and_time);
        Some(Self { all, filling: Filling::BuiltIn { cells, order } })
    }

    /// The columns of a custom resource in one of the versions of its `CustomResourceDefinition`:
    /// its additional printer columns, or name and age if it has none. `None` if the version does
    /// not exist.
    #[must_use]
    pub fn custom(definition: &Value, version: &str) -> Option<Self> {
        let versions = definition["spec"]["versions"].as_array()?;
        let version = versions.iter().find(|each| each["name"] == version)?;
        Some(Self::of_version(version))
    }

    /// The name and age columns, which apply to objects of any kind.
    #[must_use]
    pub fn generic() -> Self {
        Self::of_version(&Value::Null)
    }

    pub(crate) fn of_version(version: &Value) -> Self {
        let wanted = version["additionalPrinterColumns"].as_array().map(Vec::as_slice).unwrap_or_default();
        let text = |column: &Value, part: &str| column[part].as_str().unwrap_or_default().to_owned();
        let mut all = vec![columns::name()];
        let mut paths = Vec::new();
        for column in wanted {
            let path = text(column, "jsonPath");
            let description = match text(column, "description") {
                none if none.is_empty() => format!("Custom resource definition column (in JSONPath format): {path}"),
                description => description,
            };
            all.push(Column {
                name: text(column, "name"),
                r#type: text(column, "type"),
                format: text(column, "format"),
                description,
                priority: column["priority"].as_i64().and_then(|priority| priority.try_into().ok()).unwrap_or(0),
            });
            paths.push(JsonPath::parse(&path));
        }
        if wanted.is_empty() {
            all.push(Column { r#type: "date".to_owned(), ..columns::age() });
            paths.push(JsonPath::parse(".metadata.creationTimestamp"));
        }
        Self { all: all.into(), filling: Filling::Paths(paths.into()) }
    }

    /// All columns, including those shown only in wide tables.
    #[must_use]
    pub fn all(&self) -> &[Column] {
        &self.all
    }

    /// The row of a single object.
    #[must_use]
    pub fn row(&self, object: &Value, now: SystemTime) -> Row {
        self.row_at(object, now.into(), None)
    }

    /// The rows of a list. Some kinds are sorted, or have one object shown as the default.
    #[must_use]
    pub fn rows(&self, objects: &[Value], now: SystemTime) -> Vec<Row> {
        let marked = self.marked(objects);
        let now = now.into();
        self.order(objects).into_iter().map(|at| self.row_at(&objects[at], now, marked)).collect()
    }

    pub(crate) fn row_at(&self, object: &Value, now: Moment, marked: Option<&str>) -> Row {
        let mut cells = match &self.filling {
            Filling::BuiltIn { cells, .. } => cells(object, now),
            Filling::Paths(paths) => self.found(paths, object, now),
        };
        if let Some(Value::String(name)) = cells.first_mut()
            && marked.is_some_and(|marked| marked == name)
        {
            *name += " (default)";
        }
        let ending = matches!(self.filling, Filling::BuiltIn { order: Order::Ending, .. });
        Row { cells, completed: if ending { cells::completed(object) } else { None } }
    }

    /// Whether the rows of a list depend on each other, so that all objects are needed before the
    /// first row is written.
    #[must_use]
    pub fn needs_all_objects(&self) -> bool {
        matches!(self.filling, Filling::BuiltIn { order: Order::DefaultMarked | Order::ByPrecedence, .. })
    }

    /// The name of the default object. If several are annotated as default, it is the youngest.
    pub(crate) fn marked<'o>(&self, objects: &'o [Value]) -> Option<&'o str> {
        if !matches!(self.filling, Filling::BuiltIn { order: Order::DefaultMarked, .. }) {
            return None;
        }
        let part = |object: &'o Value, part: &str| object["metadata"][part].as_str().unwrap_or_default();
        let marked = objects.iter().filter(|object| cells::is_marked_default(object));
        let best =
            marked.min_by_key(|object| (std::cmp::Reverse(part(object, "creationTimestamp")), part(object, "name")));
        best.map(|object| part(object, "name"))
    }

    /// The indexes of a list's objects in display order.
    pub(crate) fn order(&self, objects: &[Value]) -> Vec<usize> {
        let mut order: Vec<usize> = (0..objects.len()).collect();
        if matches!(self.filling, Filling::BuiltIn { order: Order::ByPrecedence, .. }) {
            order.sort_by_key(|at| {
                let object = &objects[*at];
                (object["spec"]["matchingPrecedence"].as_i64(), object["metadata"]["name"].as_str())
            });
        }
        order
    }

    /// Whether the rows of an empty list are null instead of an empty array: Go distinguishes nil
    /// from empty slices.
    pub(crate) fn empty_is_null(&self) -> bool {
        let is_named = |name: &str| self.all.iter().any(|column| column.name == name);
        matches!(self.filling, Filling::BuiltIn { .. }) && is_named("Created At")
    }

    fn found(&self, paths: &[Option<JsonPath>], object: &Value, now: Moment) -> Vec<Value> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let columns = self.all.iter().skip(1).zip(paths);
        let mut visits = Visits::of_a_row();
        let found = columns.map(|(column, path)| {
            // A path that visits too much finds nothing, as one that is invalid.
            let value = path.as_ref().and_then(|path| path.first(object, &mut visits).unwrap_or_default());
            value.map_or(Value::Null, |value| cell(&column.r#type, value, now))
        });
        std::iter::once(name.into()).chain(found).collect()
    }
}

/// Converts a value to the type of a column. Null if the type does not match.
fn cell(kind: &str, value: &Value, now: Moment) -> Value {
    match (kind, value) {
        ("string", Value::Null) => "<no value>".into(),
        ("string", Value::String(_)) => value.clone(),
        ("string", other) => String::from_utf8_lossy(&json::encode_sorted(other)).into_owned().into(),
        ("integer", Value::Number(number)) => match number.as_i64() {
            Some(whole) => whole.into(),
            // Go truncates to an integer.
            None => number.as_f64().map_or(Value::Null, |float| (float as i64).into()),
        },
        ("number", Value::Number(number)) => {
            number.as_f64().and_then(Number::from_f64).map_or(Value::Null, Value::Number)
        }
        ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(_)) => match age::parse(value) {
            Some(_) => now.since(value).into(),
            None => "<invalid>".into(),
        },
        _ => Value::Null,
    }
}
