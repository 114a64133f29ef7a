//! Recordings of changes: a file with one JSON object per line.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use kube_informer::{Obj, ObjectKey, Origin};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Change, What};
use crate::client::kind_info::KindInfo;
use crate::failure::Failure;
use crate::object::redaction::without_secrets;
use crate::object::whole::whole;
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
    /// Creates the file. Only its owner can read it: it may hold what is confidential without being
    /// a Secret.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let mut options = File::options();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(|error| failure("--record", path, &error))?;
        let mut recorder = Self { file: BufWriter::new(file), path: path.to_owned() };
        recorder.write(&Header { recording: NAME.to_owned(), format: FORMAT })?;
        Ok(recorder)
    }

    pub(crate) fn record(&mut self, change: &Change) -> Result<(), Failure> {
        if change.is_resync() {
            return Ok(());
        }
        let Ok(object) = whole(&change.object) else { return Ok(()) };
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

/// Reads a recording, the oldest change first. A last line that was not written to its end, as
/// after a crash, is left out.
pub(crate) fn read(path: &Path) -> Result<Vec<Change>, Failure> {
    let _waiting = Waiting::on(format!("reading {}", path.display()));
    let file = File::open(path).map_err(|error| failure("--replay", path, &error))?;
    let mut reader = BufReader::new(file);
    let mut line = String::new();
    let mut next = |line: &mut String| -> Result<bool, Failure> {
        line.clear();
        std::io::Read::take(&mut reader, MAX_LINE)
            .read_line(line)
            .map_err(|error| failure("--replay", path, &error))?;
        Ok(line.ends_with('\n'))
    };
    let is_recording = next(&mut line)?
        && serde_json::from_str(&line).is_ok_and(|header: Header| header.recording == NAME && header.format == FORMAT);
    if !is_recording {
        return Err(failure("--replay", path, &"not a recording of kubectl-informer (format 1)"));
    }
    let (mut changes, mut states, mut number) = (Vec::new(), HashMap::new(), 1);
    while next(&mut line)? {
        number += 1;
        let change =
            change(&line, &mut states).map_err(|why| failure("--replay", path, &format!("line {number}: {why}")))?;
        changes.push(change);
    }
    Ok(changes)
}

/// The change on a line, given the states of the objects before it.
fn change(line: &str, states: &mut HashMap<(Arc<KindInfo>, ObjectKey), Obj<Value>>) -> Result<Change, String> {
    let Line { time, r#type, initial, kind, object } = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let kind = Arc::new(kind);
    let object = Obj::<Value>::from_json(object.to_string()).map_err(|error| error.to_string())?;
    let id = (Arc::clone(&kind), object.key().clone());
    let what = match (r#type, states.remove(&id)) {
        (Type::Deleted, _) => What::Deleted { note: None },
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
        fuzz(1000, |source| drop(change(&source.text(&pieces, 9), &mut HashMap::new())));
    }
}
