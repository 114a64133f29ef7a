//! Table of the informers' state, one line per informer.

use kube_embedded::Server;
use kube_informer::{Condition, Lister};
use serde_json::Value;

use super::estimate::decoded_size;
use crate::terminal::bytes::bytes_cell;
use crate::terminal::paint::Tone;
use crate::terminal::styled_line::StyledLine;
use crate::watch::Watched;

/// Number of objects decoded to estimate the decoded size of all objects.
const MAX_SAMPLES: usize = 32;

/// State and figures of one informer.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) state: String,
    pub(crate) objects: usize,
    pub(crate) held: usize,
    pub(crate) decoded: usize,
    pub(crate) rate: f64,
    pub(crate) requests: usize,
}

impl Row {
    /// Reads the state of an informer; `rate` is its events per second.
    pub(crate) fn of(watched: &Watched, rate: f64, server: &Server) -> Self {
        let lister = watched.informer.lister();
        let objects = lister.list();
        let path = format!("/{}", watched.kind.plural);
        Self {
            name: watched.kind.plural.clone(),
            state: state(watched),
            objects: objects.len(),
            held: objects.iter().map(kube_informer::Obj::weight).sum(),
            decoded: decoded(&lister, objects.len()),
            rate,
            requests: server.requests().iter().filter(|request| request.path.ends_with(&path)).count(),
        }
    }
}

/// Formats the table: a header, one line per informer, and the totals.
pub(crate) fn lines(rows: &[Row]) -> Vec<StyledLine> {
    let head = format!(
        "{:<15} {:<9} {:>8} {:>10} {:>12} {:>9} {:>9}",
        "INFORMER", "STATE", "OBJECTS", "IN MEMORY", "IF DECODED", "EVENTS/S", "REQUESTS"
    );
    let line = |row: &Row| {
        format!(
            "{:<15} {:<9} {:>8} {:>10} {:>12} {:>9.1} {:>9}",
            row.name,
            row.state,
            row.objects,
            bytes_cell(row.held),
            bytes_cell(row.decoded),
            row.rate,
            row.requests
        )
    };
    let total = rows.iter().fold(Row { name: "total".to_owned(), ..Row::default() }, |all, row| Row {
        objects: all.objects + row.objects,
        held: all.held + row.held,
        decoded: all.decoded + row.decoded,
        rate: all.rate + row.rate,
        requests: all.requests + row.requests,
        ..all
    });
    let head = StyledLine::default().toned(Tone::Quiet, &head);
    let total = StyledLine::default().toned(Tone::Strong, &line(&total));
    let rows = rows.iter().map(|row| StyledLine::from(line(row).as_str()));
    std::iter::once(head).chain(rows).chain([total]).collect()
}

fn state(watched: &Watched) -> String {
    match watched.informer.health().condition {
        Condition::Idle => "idle",
        Condition::Listing { .. } => "listing",
        Condition::Synced => "synced",
        Condition::Degraded { .. } => "degraded",
        _ => "stopped",
    }
    .to_owned()
}

fn decoded(lister: &Lister<Value>, count: usize) -> usize {
    let snapshot = lister.snapshot();
    let step = (count / MAX_SAMPLES).max(1);
    let sizes: Vec<usize> = snapshot
        .iter()
        .step_by(step)
        .take(MAX_SAMPLES)
        .filter_map(|object| object.to_obj().get().ok().map(decoded_size))
        .collect();
    match sizes.len() {
        0 => 0,
        samples => sizes.iter().sum::<usize>() * count / samples,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::paint::Paint;

    #[test]
    fn the_last_line_adds_up_the_others() {
        let row = Row {
            name: "pods".to_owned(),
            objects: 3,
            held: 4_000,
            decoded: 90_000,
            rate: 1.5,
            requests: 1,
            ..Row::default()
        };
        let lines = lines(&[row.clone(), row]);
        assert_eq!(
            lines.last().unwrap().render(Paint::Plain),
            "total                            6     8.0 kB       180 kB       3.0         2"
        );
    }
}
