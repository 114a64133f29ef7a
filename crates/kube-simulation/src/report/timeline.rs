//! A run as an SVG picture: lanes for steps, faults, processes, the writes of the controller and
//! what watches show of each object.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use kube_embedded::ChangeKind;

use super::{Finding, Seconds, write_line};
use crate::canonical::canonical_name;
use crate::trace::NoteKind;

const WIDTH: usize = 1200;
const LEFT: usize = 260;
const RIGHT: usize = 40;
const ROW: usize = 26;
const TOP: usize = 56;

/// A mark in a lane.
struct Mark {
    at: Duration,
    class: &'static str,
    title: String,
}

pub(super) fn svg(finding: &Finding) -> String {
    let lanes = lanes(finding);
    let places = Places::new(lanes.iter().flat_map(|(_, marks)| marks.iter().map(|mark| mark.at)));
    let height = TOP + lanes.len() * ROW + 40;
    let mut out = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">
<style>.lane{{stroke:#ddd}}.step{{fill:#444}}.fault{{fill:#c00}}.process{{fill:#888}}.write{{fill:#06c}}.refused{{fill:#e80}}.Created{{fill:#290}}.Updated{{fill:#59c}}.Deleted{{fill:#a33}}.cut{{stroke:#c00;stroke-dasharray:3 3}}</style>
<rect width="100%" height="100%" fill="#fff"/>
<text x="10" y="20" font-size="14">{}</text>
"##,
        escape(&finding.plan.to_string())
    );
    let first = finding.violations.first().map(crate::Violation::group).unwrap_or_default();
    line(&mut out, format_args!(r##"<text x="10" y="40" fill="#c00">{}</text>"##, escape(&first)));
    let bottom = TOP + lanes.len() * ROW;
    for (_, marks) in lanes.iter().filter(|(name, _)| name == "faults") {
        for mark in marks {
            let x = places.x(mark.at);
            line(&mut out, format_args!(r#"<line class="cut" x1="{x}" x2="{x}" y1="{TOP}" y2="{bottom}"/>"#));
        }
    }
    for (nth, (name, marks)) in lanes.iter().enumerate() {
        let y = TOP + nth * ROW + ROW / 2;
        let shown: String = name.chars().take(38).collect();
        line(&mut out, format_args!(r#"<text x="10" y="{}">{}</text>"#, y + 4, escape(&shown)));
        line(&mut out, format_args!(r#"<line class="lane" x1="{LEFT}" x2="{}" y1="{y}" y2="{y}"/>"#, WIDTH - RIGHT));
        for Mark { at, class, title } in marks {
            let (x, title) = (places.x(*at), escape(&format!("{} {title}", Seconds(*at))));
            line(
                &mut out,
                format_args!(r#"<circle class="{class}" cx="{x}" cy="{y}" r="5"><title>{title}</title></circle>"#),
            );
        }
    }
    for (x, at) in places.labels() {
        let label = format!("{:.3}s", at.as_secs_f64());
        line(
            &mut out,
            format_args!(r##"<text x="{x}" y="{}" fill="#666" font-size="10">{label}</text>"##, bottom + 16),
        );
    }
    out.push_str("</svg>\n");
    out
}

/// The marks by lane: steps, faults, processes, requests, and each object.
fn lanes(finding: &Finding) -> Vec<(String, Vec<Mark>)> {
    let trace = &finding.trace;
    let notes = |kind: NoteKind, class: &'static str| -> Vec<Mark> {
        let notes = trace.notes.iter().filter(|note| note.kind == kind);
        notes.map(|note| Mark { at: note.at, class, title: note.text.clone() }).collect()
    };
    let writes = trace.requests.iter().filter(|request| request.kind.is_write() && !request.is_background());
    let writes = writes.map(|request| {
        let class = if request.code.is_some_and(|code| code < 300) { "write" } else { "refused" };
        Mark { at: request.sent, class, title: write_line(request) }
    });
    let mut lanes = vec![
        ("steps".to_owned(), notes(NoteKind::Step, "step")),
        ("faults".to_owned(), notes(NoteKind::Fault, "fault")),
        ("processes".to_owned(), notes(NoteKind::Process, "process")),
        ("writes of the controller".to_owned(), writes.collect()),
    ];
    let mut objects: BTreeMap<String, Vec<Mark>> = BTreeMap::new();
    for change in &trace.changes {
        let (at, change) = (change.at, &change.change);
        let class = match change.kind {
            ChangeKind::Created => "Created",
            ChangeKind::Updated => "Updated",
            ChangeKind::Deleted => "Deleted",
        };
        let title = format!("{class}, revision {}", change.revision);
        objects.entry(canonical_name(&change.object)).or_default().push(Mark { at, class, title });
    }
    lanes.extend(objects);
    lanes
}

/// Where a time is: the distinct times are at equal distances, because nothing happens for most of
/// a run.
struct Places(Vec<Duration>);

impl Places {
    fn new(times: impl Iterator<Item = Duration>) -> Self {
        let mut times: Vec<Duration> = times.collect();
        times.sort_unstable();
        times.dedup();
        Self(times)
    }

    fn x(&self, at: Duration) -> usize {
        let nth = self.0.partition_point(|time| *time < at);
        LEFT + 10 + nth * (WIDTH - LEFT - RIGHT - 20) / self.0.len().max(1)
    }

    /// About a dozen times below the picture.
    fn labels(&self) -> impl Iterator<Item = (usize, Duration)> {
        let every = self.0.len().div_ceil(12).max(1);
        self.0.iter().step_by(every).map(|&at| (self.x(at), at))
    }
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    let written = writeln!(out, "{text}");
    debug_assert!(written.is_ok(), "a String takes every text");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
