//! Formats one event in the requested output format.

use clap::ValueEnum;
use jiff::Timestamp;
use kube_informer::client::Served;
use kube_informer::{DecodeError, Event, FinalState, Obj, Origin};
use serde_json::{Value, json};

use crate::object::change::{headline, summary, whole};
use crate::object::diff::{Difference, diff, path_text};
use crate::terminal::document::Document;
use crate::failure::Failure;
use crate::object::field_managers::writer;
use crate::client::kinds::singular_name;
use crate::terminal::output::Output;
use crate::terminal::paint::Tone;
use crate::object::redaction::{Secrets, redacted};
use crate::terminal::styled_line::StyledLine;

/// Output format of `watch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// `+`, `~` or `-`, the kind, the name, and what happened.
    Line,
    /// As line, with the time, the version and the origin of the event.
    Wide,
    /// One JSON object a line: {"type": "ADDED", "object": …}, as kubectl get --watch
    /// --output-watch-events has it.
    Json,
    /// One YAML document each.
    Yaml,
    /// kind/name and nothing else.
    Name,
}

/// How events are printed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) form: Form,
    pub(crate) secrets: Secrets,
    pub(crate) detail: Detail,
    /// Width of the kind column.
    pub(crate) kind_width: usize,
}

/// Whether an update is followed by one line per changed field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    Summary,
    Fields,
}

impl Style {
    /// Prints an event.
    pub(crate) fn print(&self, out: &mut Output, kind: &Served, event: &Event<Value>) -> Result<(), Failure> {
        match self.form {
            Form::Line | Form::Wide => {
                out.styled(&self.line(kind, event))?;
                if self.detail == Detail::Fields {
                    for line in self.fields(kind, event) {
                        out.styled(&line)?;
                    }
                }
            }
            Form::Json => out.document(&Document::json(&self.whole(kind, event)))?,
            Form::Yaml => {
                out.line("---")?;
                out.document(&Document::yaml(&self.whole(kind, event))?)?;
            }
            Form::Name => out.line(&format!("{}/{}", singular_name(kind), event.object().name()))?,
        }
        Ok(())
    }

    /// Formats an event as a line.
    pub(crate) fn line(&self, kind: &Served, event: &Event<Value>) -> StyledLine {
        let (sign, tone) = match event {
            Event::Added { .. } => ("+", Tone::Added),
            Event::Updated { .. } => ("~", Tone::Updated),
            Event::Deleted { .. } => ("-", Tone::Deleted),
        };
        let description = match self.description(kind, event) {
            Ok(description) => description,
            Err(error) => format!("(cannot be read: {error})"),
        };
        let (mut line, mut version) = (StyledLine::default(), String::new());
        if self.form == Form::Wide {
            let origin = match event.origin() {
                Origin::Initial => "initial",
                Origin::Live => "live",
                Origin::Relist => "relist",
                _ => "resync",
            };
            line = line.toned(Tone::Quiet, &time_of_day()).plain(" ");
            version = format!(" @{} {origin}", event.object().version());
        }
        let (name, key) = (kind.kind().to_lowercase(), shown_key(kind, event));
        line = line.toned(tone, sign).plain(&format!(" {name:<0$} {key}{version}", self.kind_width));
        if description.is_empty() { line } else { line.plain("  ").plain(&description) }
    }

    fn description(&self, kind: &Served, event: &Event<Value>) -> Result<String, DecodeError> {
        Ok(match event {
            Event::Added { object, .. } => headline(kind.kind(), object.get()?),
            Event::Updated { origin: Origin::Resync, .. } => "(resync)".to_owned(),
            Event::Updated { old, new, .. } => summary(kind.kind(), old.get()?, new.get()?, self.secrets),
            Event::Deleted { state: FinalState::Missed, .. } => "(missed while disconnected)".to_owned(),
            Event::Deleted { state: FinalState::Filtered, .. } => "(no longer selected)".to_owned(),
            Event::Deleted { .. } => String::new(),
        })
    }

    /// One line per changed field, with its field manager.
    fn fields(&self, kind: &Served, event: &Event<Value>) -> Vec<StyledLine> {
        let Event::Updated { old, new, .. } = event else { return Vec::new() };
        let (Ok(old), Ok(new)) = (old.get(), new.get()) else { return Vec::new() };
        let field = |each: &Difference<'_>| {
            let path = path_text(&each.path);
            let (before, after) = if self.secrets.hides(kind.kind(), &path) {
                (redacted(each.old), redacted(each.new))
            } else {
                (whole(each.old), whole(each.new))
            };
            let by = writer(new, &each.path).or_else(|| writer(old, &each.path));
            let by = by.map(|by| format!("  ({})", by.manager)).unwrap_or_default();
            let line = StyledLine::default().plain(&format!("    {path}: ")).toned(Tone::Deleted, &before);
            line.plain(" → ").toned(Tone::Added, &after).toned(Tone::Quiet, &by)
        };
        diff(old, new).iter().map(field).collect()
    }

    /// The event as a watch event, as kubectl prints it.
    fn whole(&self, kind: &Served, event: &Event<Value>) -> Value {
        let name = match event {
            Event::Added { .. } => "ADDED",
            Event::Updated { .. } => "MODIFIED",
            Event::Deleted { .. } => "DELETED",
        };
        json!({"type": name, "object": self.object(kind, event.object())})
    }

    /// The object with secrets redacted; if it cannot be decoded, its name and the error.
    pub(crate) fn object(&self, kind: &Served, object: &Obj<Value>) -> Value {
        let mut value = object.get().cloned().unwrap_or_else(|error| {
            json!({"metadata": {"name": object.name(), "namespace": object.namespace()}, "error": error.to_string()})
        });
        if value.get("kind").is_none()
            && let Some(fields) = value.as_object_mut()
        {
            fields.insert("kind".to_owned(), json!(kind.kind()));
            fields.insert("apiVersion".to_owned(), json!(kind.resource().api_version));
        }
        self.secrets.redact(kind.kind(), &mut value);
        value
    }
}

/// The object's namespace and name.
///
/// For events, the hexadecimal suffix of the name is cut, which leaves the name of the involved
/// object.
fn shown_key(kind: &Served, event: &Event<Value>) -> String {
    let key = event.key().to_string();
    match key.rsplit_once('.') {
        Some((about, number)) if kind.kind() == "Event" && number.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            about.to_owned()
        }
        _ => key,
    }
}

fn time_of_day() -> String {
    let now = Timestamp::now().to_string();
    format!("{}Z", now.get(11..19).unwrap_or_default())
}
