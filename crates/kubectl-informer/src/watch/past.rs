//! What was written before the start, out of `managedFields`: which manager wrote which fields
//! when.
//!
//! The values before are not known, nor is what was written and overwritten since, nor what was
//! deleted.

use std::io;

use jiff::Timestamp;

use crate::history::Change;
use crate::line::{Style, second};
use crate::object::decode::with_managed_fields;
use crate::object::field_managers::writes_since;
use crate::terminal::output::Output;
use crate::terminal::paint::Tone;
use crate::terminal::styled_line::StyledLine;

/// The most paths that are named on a line.
const MAX_PATHS: usize = 6;

/// Writes since a time, until all are known and can be sorted.
pub(super) struct Past {
    since: String,
    writes: Vec<(String, StyledLine)>,
}

impl Past {
    pub(super) fn new(since: Timestamp) -> Self {
        Self { since: second(since), writes: Vec::new() }
    }

    /// Adds the writes of an object that exists.
    pub(super) fn add(&mut self, style: &Style, change: &Change) {
        let Ok(object) = with_managed_fields(&change.object) else { return };
        let (kind, key) = (change.kind.kind.to_lowercase(), change.object.key());
        let subject = format!(" {kind:<0$} {key}  ", style.kind_width);
        let created = object["metadata"]["creationTimestamp"].as_str().unwrap_or_default();
        if created >= self.since.as_str() {
            self.push(created, StyledLine::default().toned(Tone::Added, "+").plain(&subject).plain("created"));
        }
        for write in writes_since(&object, &self.since) {
            let more = write.paths.len().saturating_sub(MAX_PATHS);
            let mut paths = write.paths[..write.paths.len() - more].join(", ");
            if more > 0 {
                paths.push_str(&format!(", {more} more"));
            }
            let line = StyledLine::default().toned(Tone::Updated, "~").plain(&subject).plain(&paths);
            self.push(write.by.time, line.toned(Tone::Quiet, &format!("  ({})", write.by.manager)));
        }
    }

    fn push(&mut self, time: &str, line: StyledLine) {
        self.writes.push((time.to_owned(), StyledLine::default().toned(Tone::Quiet, time).plain(" ").then(line)));
    }

    pub(super) fn print(mut self, out: &mut Output) -> io::Result<()> {
        self.writes.sort_by(|(one, _), (other, _)| one.cmp(other));
        self.writes.iter().try_for_each(|(_, line)| out.styled(line))
    }
}
