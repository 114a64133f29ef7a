//! Recordings of changes: a file with one JSON object per line.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use kube_informer::{Obj, ObjectKey, Origin};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Change, Removal, What};
use crate::client::kind_info::KindInfo;
use crate::failure::Failure;
use crate::object::decode::with_managed_fields;
use crate::object::redaction::without_secrets;
use crate::terminal::progress::Waiting;

/// The first line of a file.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    recording: String,
    format: u32,
}

const NAME: &str = "kubectl-informer";
const FORMAT: u32 = 1;
/// The longest line that is read. The server's limit for an object is 1.5 MB in etcd.
const MAX_LINE: u64 = 64 << 20;

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    time: Timestamp,
    r#type: Type,
    /// Whether the object was there when the recording began.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    initial: bool,
    kind: KindInfo,
    object: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Type {
    Added,
    Modified,
    Deleted,
}

/// Writes changes to a file, without the data of Secrets.
#[derive(Debug)]
pub(crate) struct Recorder {
    file: BufWriter<File>,
    path: PathBuf,
}

impl Recorder {
    /// Creates the file, or empties one that exists. Only its owner can read it: it may hold what
    /// is confidential without being a Secret.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let file = private_file(path).map_err(|error| failure("--record", path, &error))?;
        let mut recorder = Self { file: BufWriter::new(file), path: path.to_owned() };
        recorder.write(&Header { recording: NAME.to_owned(), format: FORMAT })?;
        Ok(recorder)
    }

    pub(crate) fn record(&mut self, change: &Change) -> Result<(), Failure> {
        if change.is_resync() {
            return Ok(());
        }
        let Ok(object) = with_managed_fields(&change.object) else { return Ok(()) };
        let r#type = match change.what {
            What::Added => Type::Added,
            What::Updated { .. } => Type::Modified,
            What::Deleted { .. } => Type::Deleted,
        };
        self.write(&Line {
            time: change.at,
            r#type,
            initial: change.origin == Origin::Initial,
            kind: KindInfo::clone(&change.kind),
            object: without_secrets(&change.kind.kind, &object),
        })
    }

    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.file.flush().map_err(|error| failure("--record", &self.path, &error))
    }

    fn write(&mut self, line: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.file, line).map_err(|error| failure("--record", &self.path, &error))?;
        self.file.write_all(b"\n").map_err(|error| failure("--record", &self.path, &error))
    }
}

/// Opens an empty file that only its owner can read. What is no file, such as a pipe, is left as it
/// is.
fn private_file(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(path)?;
    if file.metadata()?.is_file() {
        // The mode above is that of a new file only.
        #[cfg(unix)]
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        file.set_len(0)?;
    }
    Ok(file)
}

/// Reads a recording, the oldest change first. A last line that was not written to its end, as
/// after a crash, is left out.
pub(crate) fn read(path: &Path) -> Result<Vec<Change>, Failure> {
    let _waiting = Waiting::on(format!("reading {}", path.display()));
    let file = File::open(path).map_err(|error| failure("--replay", path, &error))?;
    changes(BufReader::new(file), MAX_LINE).map_err(|why| failure("--replay", path, &why))
}

/// The changes of a recording whose lines have at most `max_line` bytes.
fn changes(mut reader: impl BufRead, max_line: u64) -> Result<Vec<Change>, String> {
    let mut line = Vec::new();
    let mut number = 0;
    let mut next = |line: &mut Vec<u8>| -> Result<Option<usize>, String> {
        line.clear();
        number += 1;
        let read = io::Read::take(&mut reader, max_line).read_until(b'\n', line).map_err(|error| error.to_string())?;
        match line.last() {
            Some(b'\n') => Ok(Some(number)),
            _ if read as u64 == max_line => Err(format!("line {number} has more than {max_line} bytes")),
            _ => Ok(None),
        }
    };
    let is_recording = next(&mut line)?.is_some()
        && serde_json::from_slice(&line)
            .is_ok_and(|header: Header| header.recording == NAME && header.format == FORMAT);
    if !is_recording {
        return Err("not a recording of kubectl-informer (format 1)".to_owned());
    }
    let (mut changes, mut states) = (Vec::new(), HashMap::new());
    while let Some(number) = next(&mut line)? {
        changes.push(change(&line, &mut states).map_err(|why| format!("line {number}: {why}"))?);
    }
    Ok(changes)
}

/// The change on a line, given the states of the objects before it.
fn change(line: &[u8], states: &mut HashMap<(Arc<KindInfo>, ObjectKey), Obj<Value>>) -> Result<Change, String> {
    let Line { time, r#type, initial, kind, object } =
        serde_json::from_slice(line).map_err(|error| error.to_string())?;
    let kind = Arc::new(kind);
    let object = Obj::<Value>::from_json(object.to_string()).map_err(|error| error.to_string())?;
    let id = (Arc::clone(&kind), object.key().clone());
    let what = match (r#type, states.remove(&id)) {
        (Type::Deleted, _) => What::Deleted { why: Removal::Deleted },
        (Type::Added, _) | (Type::Modified, None) => What::Added,
        (Type::Modified, Some(old)) => What::Updated { old },
    };
    if r#type != Type::Deleted {
        states.insert(id, object.fresh_handle());
    }
    let origin = if initial { Origin::Initial } else { Origin::Live };
    Ok(Change { at: time, kind, what, origin, object })
}

fn failure(flag: &str, path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::Usage(format!("{flag} {}: {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_an_error_and_one_that_was_not_written_to_its_end_is_left_out() {
        let header = r#"{"recording":"kubectl-informer","format":1}"#;
        let line = |name: &str| {
            format!(
                r#"{{"time":"2026-01-01T00:00:00Z","type":"ADDED","kind":{{"version":"v1","kind":"A","plural":"as","namespaced":true}},"object":{{"metadata":{{"name":"{name}"}}}}}}"#
            )
        };
        let read = |text: String| changes(text.as_bytes(), 200).map(|changes| changes.len());
        assert_eq!(read(format!("{header}\n{}\n{}\n", line("a"), line("b"))), Ok(2));
        assert_eq!(read(format!("{header}\n{}\n{}", line("a"), line("b"))), Ok(1));
        let long = format!("{header}\n{}\n{}\n{}\n", line("a"), line(&"b".repeat(100)), line("c"));
        assert_eq!(read(long), Err("line 3 has more than 200 bytes".to_owned()));
    }
}

#[cfg(test)]
mod fuzz {
    use super::*;
    use crate::fuzzing::fuzz;

    #[test]
    fn any_line_is_read_or_refused() {
        let pieces = [
            "{",
            "}",
            "\"time\":\"2026-01-01T00:00:00Z\"",
            "\"type\":\"ADDED\"",
            "\"type\":\"MODIFIED\"",
            ",",
            "\"kind\":{\"version\":\"v1\",\"kind\":\"A\",\"plural\":\"as\",\"namespaced\":true}",
            "\"object\":{\"metadata\":{\"name\":\"a\"}}",
            "\"object\":{}",
            "null",
            "1",
        ];
        fuzz(1000, |source| drop(change(source.text(&pieces, 9).as_bytes(), &mut HashMap::new())));
    }
}
