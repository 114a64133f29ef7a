//! The goals for default settings and for bodies, each with what was measured.

use std::fmt::Write;

use crate::many;
use crate::plan::PRETENDED;
use crate::summary::Summary;
use crate::table::{Unit, ratio_text};

/// A goal as a ratio to client-go.
struct Goal {
    title: &'static str,
    group: &'static str,
    figure: &'static str,
    /// The figure of client-go, if different: it has decoded everything before handlers are called.
    of_client_go: &'static str,
    /// The settings of which the best counts.
    settings: &'static [&'static str],
    most: f64,
    unit: Unit,
}

const PLAIN: &[&str] = &["plain", "plain+protobuf"];
const COMPACT: &[&str] = &["compact", "compact+protobuf"];
const DEFAULT: &[&str] = &["default"];
const DECODED: &[&str] = &["decoded"];

const fn goal(
    title: &'static str,
    (group, figure, of_client_go): (&'static str, &'static str, &'static str),
    settings: &'static [&'static str],
    most: f64,
    unit: Unit,
) -> Goal {
    Goal { title, group, figure, of_client_go, settings, most, unit }
}

const fn same(group: &'static str, figure: &'static str) -> (&'static str, &'static str, &'static str) {
    (group, figure, figure)
}

const WHOLE: (&str, &str, &str) = ("pods", "updates.new.cpu", "updates.keys.cpu");
const FIELDS: (&str, &str, &str) = same("pods", "updates.fields.cpu");
const BOTH: (&str, &str, &str) = ("pods", "updates.both.cpu", "updates.keys.cpu");
const MAP_WHOLE: (&str, &str, &str) = ("configmaps", "updates.new.cpu", "updates.keys.cpu");

const GOALS: [Goal; 16] = [
    goal("update, handler decodes the whole new object", WHOLE, PLAIN, 1.0 / 1.7, Unit::Micros),
    goal("update, handler decodes the whole new object", WHOLE, COMPACT, 1.0 / 1.3, Unit::Micros),
    goal("update, handler reads five fields", FIELDS, PLAIN, 1.0 / 5.0, Unit::Micros),
    goal("update, handler reads five fields", FIELDS, COMPACT, 1.0 / 2.5, Unit::Micros),
    goal("update, handler decodes old and new", BOTH, PLAIN, 1.0, Unit::Micros),
    goal("update, handler decodes old and new", BOTH, COMPACT, 1.0, Unit::Micros),
    goal("random body", same("reads", "read.body_random"), DECODED, 1.0, Unit::Nanos),
    goal("CPU until synced, keys only", same("pods", "sync.cpu"), DEFAULT, 1.0 / 5.0, Unit::Seconds),
    goal("CPU for an update, keys only", same("pods", "updates.keys.cpu"), DEFAULT, 1.0 / 4.0, Unit::Micros),
    goal("config maps of 100 KB, CPU until synced", same("configmaps", "sync.cpu"), DEFAULT, 1.0, Unit::Seconds),
    goal("config maps of 100 KB, update", same("configmaps", "updates.keys.cpu"), DEFAULT, 1.0, Unit::Micros),
    goal("config maps of 100 KB, update, handler decodes", MAP_WHOLE, DEFAULT, 1.0, Unit::Micros),
    goal("config maps of 100 KB, memory held", same("configmaps", "held.rss"), DEFAULT, 1.0, Unit::Bytes),
    goal("config maps of 100 KB, peak memory", same("configmaps", "sync.peak_settled"), DEFAULT, 1.0, Unit::Bytes),
    goal("a cluster's own rate of change, an event", same(PRETENDED, "event.cpu"), DEFAULT, 1.0, Unit::Micros),
    goal("a cluster's own rate of change, memory held", same(PRETENDED, "held.rss"), DEFAULT, 1.0 / 8.0, Unit::Bytes),
];

/// The part of the results page.
pub fn section(out: &mut String, summary: &Summary) -> std::fmt::Result {
    let mut lines = String::new();
    for goal in &GOALS {
        let of_setting = |setting: &&'static str| {
            let found = summary.get(goal.group, &format!("ours {setting}"), goal.figure)?;
            Some((*setting, found.median))
        };
        let ours = goal.settings.iter().filter_map(of_setting).min_by(|(_, a), (_, b)| a.total_cmp(b));
        let theirs = summary.best(goal.group, "client-go", goal.of_client_go);
        let (Some((setting, ours)), Some(theirs)) = (ours, theirs) else { continue };
        let ratio = ours / theirs;
        writeln!(
            lines,
            "| {} | {setting} | {} | {} | {} | ≤ {} | {} |",
            goal.title,
            goal.unit.show_one(ours),
            goal.unit.show_one(theirs),
            ratio_text(ratio),
            ratio_text(goal.most),
            verdict(ratio <= goal.most)
        )?;
    }
    // A quick run has a tenth of the pods.
    let scale = many::scale(summary).unwrap_or(1) as f64;
    let absolute = [
        ("CPU until synced", "sync.cpu", 20.0 / scale, Unit::Seconds),
        ("memory held", "held.rss", 1.1e9 / scale, Unit::Bytes),
    ];
    for (title, figure, most, unit) in absolute {
        let Some(ours) = many::ours(summary, figure) else { continue };
        let (shown, most_shown, verdict) = (unit.show_one(ours), unit.show_one(most), verdict(ours <= most));
        writeln!(lines, "| a million pods, {title} | default | {shown} | – | – | ≤ {most_shown} | {verdict} |")?;
    }
    let update = |of: fn(&Summary, &str) -> Option<f64>| of(summary, "updates.keys.cpu");
    if let (Some(many), Some(few)) = (update(many::ours), update(many::ours_few)) {
        let (shown, ratio, verdict) = (Unit::Micros.show_one(many), ratio_text(many / few), verdict(many / few <= 1.3));
        writeln!(
            lines,
            "| a million pods, an update, to that at 20,000 | default | {shown} | – | {ratio} | ≤ 1.30 | {verdict} |"
        )?;
    }
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "## Goals\n\nWhat this library wants to reach beside client-go at its best setting; of several settings of ours the best one. \
         What was measured is the limit today. A quick run has a tenth of the million pods, and of their goals.\n"
    )?;
    writeln!(out, "| | setting | ours | client-go | ratio | goal | |\n|---|---|---|---|---|---|---|")?;
    writeln!(out, "{lines}")
}

fn verdict(is_reached: bool) -> &'static str {
    if is_reached { "reached" } else { "missed" }
}
