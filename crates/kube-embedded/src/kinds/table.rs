//! Objects as rows of a table, as `kubectl get` shows them: the columns and cells that the real
//! server prints.
//!
//! No server is needed: an object's JSON, its kind and the time are enough.
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
use self::json_path::JsonPath;
use crate::encoding::json;

/// One column of a kind's table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Column {
    /// What stands above it.
    pub name: String,
    /// `string`, `integer`, `number`, `boolean` or `date`.
    pub r#type: String,
    /// `name` for the column of the object's name; mostly nothing.
    pub format: String,
    /// What it tells.
    pub description: String,
    /// 0 for columns that are always shown; the others are shown in wide tables.
    pub priority: i32,
}

/// One object in a table.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Row {
    /// One for each column: a string, a number, a bool, or null.
    pub cells: Vec<Value>,
    /// Whether the object has come to its end, as pods do.
    pub completed: Option<Completed>,
}

/// How an object came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Completed {
    /// All was well.
    Succeeded,
    /// It failed.
    Failed,
}

/// The columns of a kind's table, and how its objects fill them.
#[derive(Debug, Clone)]
pub struct Columns {
    all: Arc<[Column]>,
    filling: Filling,
}

/// Where cells come from.
#[derive(Debug, Clone)]
enum Filling {
    /// Rules for the kind.
    BuiltIn { cells: Cells, order: Order },
    /// Paths into the object, behind its name.
    Paths(Arc<[Option<JsonPath>]>),
}

/// What the objects of one list have to do with one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// Nothing.
    Plain,
    /// They may say how they ended.
    Ending,
    /// One of them is the default.
    DefaultMarked,
    /// They are sorted by precedence.
    ByPrecedence,
}

impl Columns {
    /// The columns of a built-in kind; `None` if it is none.
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

    /// The columns of a custom kind in one of the versions that its `CustomResourceDefinition` has:
    /// those the definition asks for, or else name and age. `None` if it has no such version.
    #[must_use]
    pub fn custom(definition: &Value, version: &str) -> Option<Self> {
        let versions = definition["spec"]["versions"].as_array()?;
        let version = versions.iter().find(|each| each["name"] == version)?;
        Some(Self::of_version(version))
    }

    /// Name and age: what there is to say about objects of any kind.
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

    /// Every column, those of wide tables included.
    #[must_use]
    pub fn all(&self) -> &[Column] {
        &self.all
    }

    /// One object by itself.
    #[must_use]
    pub fn row(&self, object: &Value, now: SystemTime) -> Row {
        self.row_at(object, now.into(), None)
    }

    /// The objects of a list, which may have to do with one another: some kinds sort them or mark
    /// one of them.
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

    /// Whether the objects of a list must be looked at together before any of them is shown.
    pub(crate) fn looks_at_all(&self) -> bool {
        matches!(self.filling, Filling::BuiltIn { order: Order::DefaultMarked | Order::ByPrecedence, .. })
    }

    /// The name of the object that is marked as the default one: of several the youngest.
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

    /// The places of a list's objects in the order in which they are shown.
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

    /// Whether an empty list has no rows rather than none of them: Go tells the two apart.
    pub(crate) fn empty_is_null(&self) -> bool {
        let is_named = |name: &str| self.all.iter().any(|column| column.name == name);
        matches!(self.filling, Filling::BuiltIn { .. }) && is_named("Created At")
    }

    fn found(&self, paths: &[Option<JsonPath>], object: &Value, now: Moment) -> Vec<Value> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let columns = self.all.iter().skip(1).zip(paths);
        let found = columns.map(|(column, path)| match path.as_ref().and_then(|path| path.first(object)) {
            Some(value) => cell(&column.r#type, value, now),
            None => Value::Null,
        });
        std::iter::once(name.into()).chain(found).collect()
    }
}

/// A value in a column of a type; null if it does not fit.
fn cell(kind: &str, value: &Value, now: Moment) -> Value {
    match (kind, value) {
        ("string", Value::Null) => "<no value>".into(),
        ("string", Value::String(_)) => value.clone(),
        ("string", other) => String::from_utf8_lossy(&json::encode_sorted(other)).into_owned().into(),
        ("integer", Value::Number(number)) => match number.as_i64() {
            Some(whole) => whole.into(),
            // Go cuts off what is behind the point.
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
