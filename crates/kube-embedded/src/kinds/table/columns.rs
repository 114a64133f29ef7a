//! The columns of the built-in kinds, as recorded from kube-apiserver.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::Column;

/// The columns of a built-in kind, by `version/plural` or `group/version/plural`.
pub(super) fn of(kind: &str) -> Option<Arc<[Column]>> {
    static TABLES: OnceLock<HashMap<&'static str, Arc<[Column]>>> = OnceLock::new();
    TABLES.get_or_init(read).get(kind).cloned()
}

/// The name column, the first column of every kind.
pub(super) fn name() -> Column {
    first(&of("v1/configmaps"), 0)
}

/// The age column, the last column of most kinds.
pub(super) fn age() -> Column {
    first(&of("v1/configmaps"), 2)
}

fn first(columns: &Option<Arc<[Column]>>, at: usize) -> Column {
    columns.as_deref().and_then(|columns| columns.get(at)).cloned().unwrap_or_default()
}

fn read() -> HashMap<&'static str, Arc<[Column]>> {
    let mut descriptions: Vec<String> = Vec::new();
    let mut tables = HashMap::with_capacity(80);
    for line in include_str!("../../../data/tables.txt").lines() {
        if line.starts_with('"') {
            descriptions.push(serde_json::from_str(line).expect("a description is a JSON string"));
            continue;
        }
        let mut parts = line.split('\t');
        let kind = parts.next().expect("split gives at least one part");
        tables.insert(kind, parts.map(|part| column(part, &descriptions)).collect());
    }
    tables
}

fn column(text: &str, descriptions: &[String]) -> Column {
    let parts: Vec<&str> = text.split('|').collect();
    let &[name, r#type, format, priority, description] = parts.as_slice() else {
        panic!("a column of tables.txt has five parts");
    };
    let description: usize = description.parse().expect("a description is named by its number");
    Column {
        name: name.to_owned(),
        r#type: r#type.to_owned(),
        format: format.to_owned(),
        description: descriptions[description].clone(),
        priority: priority.parse().expect("a priority is a number"),
    }
}
