//! Very many pods: their part of the results page.

use std::fmt::Write;

use crate::plan::{MANY_OF_CLIENT_GO, MANY_OF_OURS, many_group};
use crate::summary::Summary;
use crate::table::Unit;

const FIGURES: [(&str, Unit); 4] = [
    ("sync.cpu", Unit::Seconds),
    ("held.rss", Unit::Bytes),
    ("updates.keys.cpu", Unit::Micros),
    ("read.get", Unit::Nanos),
];

/// The number by which a quick run divides.
pub fn scale(summary: &Summary) -> Option<u64> {
    [1, 10].into_iter().find(|scale| summary.names(&many_group(MANY_OF_OURS[1] / scale)).contains(&"ours default"))
}

/// A figure of ours at the greatest number of pods.
pub fn ours(summary: &Summary, figure: &str) -> Option<f64> {
    summary.get(&many_group(MANY_OF_OURS[1] / scale(summary)?), "ours default", figure).map(|spread| spread.median)
}

/// The same at the least number.
pub fn ours_few(summary: &Summary, figure: &str) -> Option<f64> {
    summary.get(&many_group(MANY_OF_OURS[0] / scale(summary)?), "ours default", figure).map(|spread| spread.median)
}

/// The part of the results page.
pub fn section(out: &mut String, summary: &Summary) -> std::fmt::Result {
    let Some(scale) = scale(summary) else { return Ok(()) };
    writeln!(
        out,
        "\n## Very many pods\n\nThe server makes them when it sends them. client-go as far as memory goes; \
         its figures for more follow from its growth between the two numbers.\n"
    )?;
    writeln!(out, "| pods | | CPU until synced | memory held | CPU for an update | get |\n|---|---|---|---|---|---|")?;
    let clients = MANY_OF_CLIENT_GO.map(|count| ("client-go protobuf", count / scale));
    for (name, count) in clients.into_iter().chain(MANY_OF_OURS.map(|count| ("ours default", count / scale))) {
        let cell = |(figure, unit): (&str, Unit)| {
            summary.get(&many_group(count), name, figure).map_or_else(|| "–".to_owned(), |cell| unit.show(cell))
        };
        writeln!(out, "| {count} | {name} | {} |", FIGURES.map(cell).join(" | "))?;
    }
    let most = MANY_OF_OURS[1] / scale;
    let extrapolated = FIGURES.map(|(figure, unit)| {
        let [few, many] =
            clients.map(|(name, count)| Some((summary.get(&many_group(count), name, figure)?.median, count as f64)));
        let (Some((few, least)), Some((many, greatest))) = (few, many) else { return "–".to_owned() };
        // The cost of one update or get does not add up.
        match figure {
            "sync.cpu" | "held.rss" => {
                unit.show_one(many + (many - few) / (greatest - least) * (most as f64 - greatest))
            }
            _ => "–".to_owned(),
        }
    });
    writeln!(out, "| {most} | client-go protobuf, by its growth | {} |", extrapolated.join(" | "))
}
