//! Formats one change in the requested output format.

use clap::ValueEnum;
use jiff::Timestamp;
use kube_informer::{DecodeError, Obj, Origin};
use serde_json::{Value, json};

use crate::client::kind_info::KindInfo;
use crate::failure::Failure;
use crate::history::{Change, What};
use crate::object::change::{headline, summary, value_text};
use crate::object::decode::with_managed_fields;
use crate::object::diff::{Difference, path_text};
use crate::object::field_managers::writer;
use crate::object::noise::{Noise, is_noise_only};
use crate::object::redaction::{Secrets, redacted};
use crate::terminal::document::Document;
use crate::terminal::output::Output;
use crate::terminal::paint::Tone;
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

/// How changes are printed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    pub(crate) form: Form,
    pub(crate) secrets: Secrets,
    pub(crate) noise: Noise,
    /// Whether an update is followed by one line per changed field.
    pub(crate) shows_fields: bool,
    pub(crate) shows_time: bool,
    /// Width of the kind column.
    pub(crate) kind_width: usize,
}

impl Style {
    /// Whether the change is muted: an update in which no field carries information.
    pub(crate) fn mutes(&self, change: &Change) -> bool {
        let What::Updated { old } = &change.what else { return false };
        if self.noise == Noise::Shown || change.is_resync() {
            return false;
        }
        match (old.get(), change.object.get()) {
            (Ok(old), Ok(new)) => is_noise_only(&change.kind.kind, old, new),
            _ => false,
        }
    }

    /// Prints a change.
    pub(crate) fn print(&self, out: &mut Output, change: &Change) -> Result<(), Failure> {
        match self.form {
            Form::Line | Form::Wide => {
                out.styled(&self.line(change))?;
                if self.shows_fields {
                    for line in self.fields(change) {
                        out.styled(&line)?;
                    }
                }
            }
            Form::Json => out.document(&Document::json(&self.watch_event(change)))?,
            Form::Yaml => {
                out.line("---")?;
                out.document(&Document::yaml(&self.watch_event(change))?)?;
            }
            Form::Name => out.line(&format!("{}/{}", change.kind.singular_name(), change.object.name()))?,
        }
        Ok(())
    }

    /// Formats a change as a line.
    pub(crate) fn line(&self, change: &Change) -> StyledLine {
        let (sign, tone) = match change.what {
            What::Added => ("+", Tone::Added),
            What::Updated { .. } => ("~", Tone::Updated),
            What::Deleted { .. } => ("-", Tone::Deleted),
        };
        let description = match self.description(change) {
            Ok(description) => description,
            Err(error) => format!("(cannot be read: {error})"),
        };
        let (mut line, mut version) = (StyledLine::default(), String::new());
        if self.shows_time {
            line = line.toned(Tone::Quiet, &second(change.at)).plain(" ");
        } else if self.form == Form::Wide {
            line = line.toned(Tone::Quiet, &time_of_day(change.at)).plain(" ");
        }
        if self.form == Form::Wide {
            let origin = match change.origin {
                Origin::Initial => "initial",
                Origin::Live => "live",
                Origin::Relist => "relist",
                _ => "resync",
            };
            version = format!(" @{} {origin}", change.object.version());
        }
        let (name, key) = (change.kind.kind.to_lowercase(), shown_key(change));
        line = line.toned(tone, sign).plain(&format!(" {name:<0$} {key}{version}", self.kind_width));
        if description.is_empty() { line } else { line.plain("  ").plain(&description) }
    }

    fn description(&self, change: &Change) -> Result<String, DecodeError> {
        let kind = change.kind.kind.as_str();
        Ok(match &change.what {
            What::Added => headline(kind, change.object.get()?),
            What::Updated { .. } if change.is_resync() => "(resync)".to_owned(),
            What::Updated { old } => summary(kind, old.get()?, change.object.get()?, self.secrets, self.noise),
            What::Deleted { why } => why.note().map(|note| format!("({note})")).unwrap_or_default(),
        })
    }

    /// One line per changed field, with its field manager.
    pub(crate) fn fields(&self, change: &Change) -> Vec<StyledLine> {
        let What::Updated { old } = &change.what else { return Vec::new() };
        let kind = change.kind.kind.as_str();
        let (Ok(old), Ok(new)) = (with_managed_fields(old), with_managed_fields(&change.object)) else {
            return Vec::new();
        };
        let field = |each: &Difference<'_>| {
            let path = path_text(&each.path);
            let (before, after) = if self.secrets.hides(kind, &path) {
                (redacted(each.old), redacted(each.new))
            } else {
                (value_text(each.old), value_text(each.new))
            };
            let by = writer(&new, &each.path).or_else(|| writer(&old, &each.path));
            let by = by.map(|by| format!("  ({})", by.manager)).unwrap_or_default();
            let line = StyledLine::default().plain(&format!("    {path}: ")).toned(Tone::Deleted, &before);
            line.plain(" → ").toned(Tone::Added, &after).toned(Tone::Quiet, &by)
        };
        self.noise.diff(kind, &old, &new).iter().map(field).collect()
    }

    /// The change as a watch event, as kubectl prints it.
    fn watch_event(&self, change: &Change) -> Value {
        let name = match change.what {
            What::Added => "ADDED",
            What::Updated { .. } => "MODIFIED",
            What::Deleted { .. } => "DELETED",
        };
        json!({"type": name, "object": self.object(&change.kind, &change.object)})
    }

    /// The object with secrets redacted; if it cannot be decoded, its name and the error.
    pub(crate) fn object(&self, kind: &KindInfo, object: &Obj<Value>) -> Value {
        let mut value = with_managed_fields(object).unwrap_or_else(|error| {
            json!({"metadata": {"name": object.name(), "namespace": object.namespace()}, "error": error.to_string()})
        });
        if value.get("kind").is_none()
            && let Some(fields) = value.as_object_mut()
        {
            fields.insert("kind".to_owned(), json!(kind.kind));
            fields.insert("apiVersion".to_owned(), json!(kind.api_version()));
        }
        self.secrets.redact(&kind.kind, &mut value);
        value
    }
}

/// The object's namespace and name.
///
/// For events, the hexadecimal suffix of the name is cut, which leaves the name of the involved
/// object.
fn shown_key(change: &Change) -> String {
    let key = change.object.key().to_string();
    match key.rsplit_once('.') {
        Some((about, number)) if change.kind.kind == "Event" && number.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            about.to_owned()
        }
        _ => key,
    }
}

/// A number with a noun, in the plural unless it is one.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// A time as managedFields have it.
pub(crate) fn second(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{}Z", text.get(..19).unwrap_or(&text))
}

pub(crate) fn time_of_day(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{}Z", text.get(11..19).unwrap_or_default())
}
