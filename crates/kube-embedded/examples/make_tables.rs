//! Generates `data/tables.txt`: the table columns of every built-in kind.
//!
//! ```text
//! cargo run -p kube-embedded --example make_tables -- FILE > crates/kube-embedded/data/tables.txt
//! ```
//!
//! FILE contains the column definitions returned by a kube-apiserver, by `version/plural` or
//! `group/version/plural`: `{"v1/pods": [{"name": "Name", "type": "string", "format": "name",
//! "description": "…", "priority": 0}, …], …}`.
//!
//! The descriptions come first, one JSON string per line, because most are shared by many columns.
//! Then one line per kind, its parts separated by tabs: its name, and for each column
//! `name|type|format|priority|description index`.

use std::collections::BTreeMap;
use std::error::Error;

use serde::Deserialize;

#[derive(Deserialize)]
struct Column {
    name: String,
    r#type: String,
    format: String,
    description: String,
    priority: i32,
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("the file of recordings is missing")?;
    let tables: BTreeMap<String, Vec<Column>> = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let mut descriptions: Vec<&str> = Vec::new();
    let mut lines = Vec::new();
    for (kind, columns) in &tables {
        let mut line = kind.clone();
        for column in columns {
            let number = descriptions.iter().position(|known| *known == column.description).unwrap_or_else(|| {
                descriptions.push(&column.description);
                descriptions.len() - 1
            });
            let Column { name, r#type: kind, format, priority, .. } = column;
            line += &format!("\t{name}|{kind}|{format}|{priority}|{number}");
        }
        lines.push(line);
    }
    for description in descriptions {
        println!("{}", serde_json::to_string(description)?);
    }
    for line in lines {
        println!("{line}");
    }
    Ok(())
}
