//! Formats one event in the requested output format.

use clap::ValueEnum;
use jiff::Timestamp;
use kube_informer::client::Served;
use kube_informer::{DecodeError, Event, FinalState, Obj, Origin};
use serde_json::{Value, json};

use crate::change::{headline, shown, summary};
use crate::diff::{diff, path_text};
use crate::failure::Failure;
use crate::field_managers::writer;
use crate::kinds::singular_name;
use crate::mask::Secrets;
use crate::output::Output;
use crate::paint::{Paint, Tone};
use crate::yaml;

/// Output format of `watch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// `+`, `~` or `-`, the kind, the name, and what happened.
    Line,
    /// As line, with the time, the version and why it is told.
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
                let line = self.line(out.paint, kind, event);
                out.line(&line)?;
                if self.detail == Detail::Fields {
                    for line in self.fields(out.paint, kind, event) {
                        out.line(&line)?;
                    }
                }
            }
            Form::Json => out.line(&self.whole(kind, event).to_string())?,
            Form::Yaml => {
                out.line("---")?;
                out.write(&yaml::write(&self.whole(kind, event)).map_err(Failure::Other)?)?;
            }
            Form::Name => out.line(&format!("{}/{}", singular_name(kind), event.object().name()))?,
        }
        Ok(())
    }

    /// Formats an event as a line.
    pub(crate) fn line(&self, paint: Paint, kind: &Served, event: &Event<Value>) -> String {
        let (sign, tone) = match event {
            Event::Added { .. } => ("+", Tone::Added),
            Event::Updated { .. } => ("~", Tone::Updated),
            Event::Deleted { .. } => ("-", Tone::Deleted),
        };
        let description = match self.description(kind, event) {
            Ok(description) => description,
            Err(error) => format!("(cannot be read: {error})"),
        };
        let name = kind.kind().to_lowercase();
        let mut line = format!("{} {name:<2$} {}", paint.text(tone, sign), shown_key(kind, event), self.kind_width);
        if self.form == Form::Wide {
            let origin = match event.origin() {
                Origin::Initial => "initial",
                Origin::Live => "live",
                Origin::Relist => "relist",
                _ => "resync",
            };
            let version = event.object().version();
            line = format!("{} {line} @{version} {origin}", paint.text(Tone::Quiet, &time_of_day()));
        }
        if !description.is_empty() {
            line.push_str("  ");
            line.push_str(&description);
        }
        line
    }

    fn description(&self, kind: &Served, event: &Event<Value>) -> Result<String, DecodeError> {
        Ok(match event {
            Event::Added { object, .. } => headline(kind.kind(), object.get()?),
            Event::Updated { origin: Origin::Resync, .. } => "(told again)".to_owned(),
            Event::Updated { old, new, .. } => summary(kind.kind(), old.get()?, new.get()?, self.secrets),
            Event::Deleted { state: FinalState::Missed, .. } => "(missed while disconnected)".to_owned(),
            Event::Deleted { state: FinalState::Filtered, .. } => "(no longer selected)".to_owned(),
            Event::Deleted { .. } => String::new(),
        })
    }

    /// One line per changed field, with its field manager.
    fn fields(&self, paint: Paint, kind: &Served, event: &Event<Value>) -> Vec<String> {
        let Event::Updated { old, new, .. } = event else { return Vec::new() };
        let (Ok(old), Ok(new)) = (old.get(), new.get()) else { return Vec::new() };
        let field = |each: &crate::diff::Difference<'_>| {
            let path = path_text(&each.path);
            let (before, after) = match self.secrets.hides(kind.kind(), &path) {
                true => ("***".to_owned(), "***".to_owned()),
                false => (shown(each.old), shown(each.new)),
            };
            let by = writer(new, &each.path).or_else(|| writer(old, &each.path));
            let by = by.map(|by| format!("  ({})", by.manager)).unwrap_or_default();
            let (before, after) = (paint.text(Tone::Deleted, &before), paint.text(Tone::Added, &after));
            format!("    {path}: {before} → {after}{}", paint.text(Tone::Quiet, &by))
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

    /// The object with secrets masked; if it cannot be decoded, its name and the error.
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
        self.secrets.mask(kind.kind(), &mut value);
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
