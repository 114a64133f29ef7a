//! Encoding of tables (`meta.k8s.io` Table) as JSON.

use serde_json::Value;

use crate::encoding::escape::push_string;
use crate::encoding::json::encode_sorted;
use crate::http::negotiate::MetaVersion;
use crate::kinds::table::{Columns, Completed, Row};

/// Whether a table contains its column definitions. A watch sends them once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnDefinitions {
    Included,
    Omitted,
}

/// The beginning of a table, up to the resource version. [`push_columns`] closes the metadata.
pub(crate) fn start(version: MetaVersion, revision: &str) -> Vec<u8> {
    let mut out = open(version);
    if !revision.is_empty() {
        out.extend_from_slice(b"\"resourceVersion\":");
        push_string(&mut out, revision);
    }
    out
}

fn open(version: MetaVersion) -> Vec<u8> {
    let mut out = br#"{"kind":"Table","apiVersion":""#.to_vec();
    out.extend_from_slice(version.api_version().as_bytes());
    out.extend_from_slice(br#"","metadata":{"#);
    out
}

/// Closes the metadata, appends the column definitions and opens the rows.
pub(crate) fn push_columns(out: &mut Vec<u8>, columns: &Columns, headers: ColumnDefinitions) {
    out.extend_from_slice(br#"},"columnDefinitions":"#);
    match headers {
        ColumnDefinitions::Omitted => out.extend_from_slice(b"null"),
        ColumnDefinitions::Included => {
            out.push(b'[');
            for (at, column) in columns.all().iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                for (open, text) in [
                    (r#"{"name":"#, &column.name),
                    (r#","type":"#, &column.r#type),
                    (r#","format":"#, &column.format),
                    (r#","description":"#, &column.description),
                ] {
                    out.extend_from_slice(open.as_bytes());
                    push_string(out, text);
                }
                out.extend_from_slice(format!(",\"priority\":{}}}", column.priority).as_bytes());
            }
            out.push(b']');
        }
    }
    out.extend_from_slice(br#","rows":["#);
}

/// Appends a row up to its object.
pub(crate) fn push_row(out: &mut Vec<u8>, row: &Row) {
    out.extend_from_slice(br#"{"cells":["#);
    for (at, cell) in row.cells.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        match cell {
            Value::String(text) => push_string(out, text),
            other => out.extend_from_slice(&encode_sorted(other)),
        }
    }
    out.push(b']');
    if let Some(completed) = row.completed {
        let (reason, message) = match completed {
            Completed::Succeeded => ("Succeeded", "The pod has completed successfully."),
            Completed::Failed => ("Failed", "The pod failed."),
        };
        out.extend_from_slice(
            format!(
                r#","conditions":[{{"type":"Completed","status":"True","reason":"{reason}","message":"{message}"}}]"#
            )
            .as_bytes(),
        );
    }
    out.extend_from_slice(br#","object":"#);
}

/// Closes the rows and the table.
pub(crate) fn end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"]}");
}
