//! The results page.

use std::fmt::Write;

use rig::work::{BY_HAND, Work};

use crate::plan::{LEAN, MIMALLOC, Options, WIRES};
use crate::summary::{ONE_MORE, Spread, Summary};
use crate::{goals, many, pretended, websites};
use rig::machine::Machine;

/// A row of the results.
pub struct Row {
    pub group: &'static str,
    pub figure: &'static str,
    /// The group and figure of peers, if different.
    peers: Option<(&'static str, &'static str)>,
    pub title: &'static str,
    unit: Unit,
    /// The target ratios, for plain and compact.
    goals: Option<(f64, f64)>,
    /// What the target is relative to.
    measure: Measure,
}

/// What a target is relative to.
#[derive(Clone, Copy)]
enum Measure {
    BetterPeer,
    ClientGo,
    /// An absolute value.
    Itself,
}

#[derive(Clone, Copy)]
pub enum Unit {
    Seconds,
    Micros,
    Nanos,
    /// In megabytes.
    Bytes,
    /// In bytes.
    PlainBytes,
    Number,
}

const fn row(group: &'static str, figure: &'static str, title: &'static str, unit: Unit) -> Row {
    Row { group, figure, peers: None, title, unit, goals: None, measure: Measure::BetterPeer }
}

impl Row {
    const fn goals(mut self, plain: f64, compact: f64) -> Self {
        self.goals = Some((plain, compact));
        self
    }

    const fn goals_to_client_go(mut self, plain: f64, compact: f64) -> Self {
        self.measure = Measure::ClientGo;
        self.goals(plain, compact)
    }

    const fn at_most(mut self, most: f64) -> Self {
        self.measure = Measure::Itself;
        self.goals(most, most)
    }

    const fn peers(mut self, group: &'static str, figure: &'static str) -> Self {
        self.peers = Some((group, figure));
        self
    }

    /// The result of a peer's best setting.
    pub fn peer(&self, summary: &Summary, peer: &str) -> Option<f64> {
        let (group, figure) = self.peers.unwrap_or((self.group, self.figure));
        summary.best(group, peer, figure)
    }
}

pub const ROWS: &[Row] = &[
    row("pods", "sync.cpu", "CPU until synced, handler reads keys", Unit::Seconds).goals(0.1, 1.0 / 6.0),
    row("pods", "sync.cpu_settled", "the same, and housework after it", Unit::Seconds),
    row("pods, decoding", "sync.cpu", "CPU until synced, handler decodes", Unit::Seconds)
        .peers("pods", "sync.cpu")
        .goals(1.0 / 1.5, 1.0 / 1.5),
    row("pods, gzip", "sync.cpu", "CPU until synced, gzip on the wire", Unit::Seconds),
    row("pods, gzip", "updates.keys.cpu", "CPU for an update, gzip on the wire", Unit::Micros),
    row("pods", "sync.wall", "time until synced", Unit::Seconds),
    row("pods", "updates.keys.cpu", "CPU for an update, handler reads keys", Unit::Micros).goals(0.1, 0.125),
    row("pods", "updates.fields.cpu", "CPU for an update, handler reads five fields", Unit::Micros).goals(0.2, 0.4),
    row("pods", "updates.new.cpu", "CPU for an update, handler decodes the new object", Unit::Micros)
        .peers("pods", "updates.keys.cpu")
        .goals(1.0 / 1.5, 1.0 / 1.5),
    row("pods", "updates.both.cpu", "CPU for an update, handler decodes old and new", Unit::Micros)
        .peers("pods", "updates.keys.cpu"),
    row("pods", "churn.cpu", "CPU for a deletion or an addition", Unit::Micros),
    row("pods", "relist.cpu", "CPU for a relist in which everything changed", Unit::Seconds),
    row("pods", "held.rss", "memory held", Unit::Bytes).goals(1.0 / 2.5, 1.0 / 12.0),
    row("pods", "sync.peak_settled", "peak memory, first list", Unit::Bytes),
    row("pods", "updates.keys.peak", "peak memory, updates", Unit::Bytes),
    row("pods", "relist.before", "memory held before the relist", Unit::Bytes),
    row("pods", "relist.peak", "peak memory, relist", Unit::Bytes),
    row("pods", "delay.200.p50", "delay at 200/s, median", Unit::Micros),
    row("pods", "delay.200.p99", "delay at 200/s, 99 %", Unit::Micros).goals_to_client_go(1.0, 1.0),
    row("pods", "delay.200.p999", "delay at 200/s, 99.9 %", Unit::Micros),
    row("pods", "delay.1000.p50", "delay at 1,000/s, median", Unit::Micros),
    row("pods", "delay.1000.p99", "delay at 1,000/s, 99 %", Unit::Micros).goals_to_client_go(1.0, 1.0),
    row("pods", "delay.1000.p999", "delay at 1,000/s, 99.9 %", Unit::Micros),
    row("reads", "read.get", "get, version read", Unit::Nanos).goals_to_client_go(1.0, 1.0),
    row("reads", "read.body_same", "get and read the body, the same 1,000", Unit::Nanos).goals_to_client_go(3.0, 3.0),
    row("reads", "read.body_random", "get and read the body, random", Unit::Nanos),
    row("reads", "read.body_once", "get and read the body, every one once", Unit::Nanos),
    row("reads", "read.body_again", "the same once more", Unit::Nanos),
    row("reads", "read.fields", "get and read five fields, random", Unit::Nanos),
    row("reads", "read.fields_after", "the same, after all bodies were read", Unit::Nanos),
    row("reads", "read.children", "list ten children by owner, versions read", Unit::Nanos),
    row("reads", "read.reconcile", "get an object, list its ten children, five fields of each", Unit::Nanos),
    row("reads", "read.index", "index get (pods of a node), versions read", Unit::Nanos).goals_to_client_go(1.0, 1.0),
    row("reads", "read.namespace", "list a namespace, versions read", Unit::Nanos).goals(0.5, 0.5),
    row("reads", "read.select", "list by label selector", Unit::Nanos).goals(0.2, 0.2),
    row("reads", "read.list", "list everything", Unit::Nanos),
    row("reads", "beside.get.delay.p99", "delay at 1,000/s, 99 %, two threads get", Unit::Micros),
    row("reads", "beside.list.delay.p99", "delay at 1,000/s, 99 %, two threads list everything", Unit::Micros),
    row("reads", "beside.get.reads", "gets in a second meanwhile (more is better)", Unit::Number),
    row("reads", "beside.list.reads", "lists in a second meanwhile (more is better)", Unit::Number),
    row("1 handlers", "handlers.cpu", "CPU for an update, 1 handler", Unit::Micros),
    row("4 handlers", "handlers.cpu", "CPU for an update, 4 handlers", Unit::Micros),
    row("16 handlers", "handlers.cpu", "CPU for an update, 16 handlers", Unit::Micros),
    row("64 handlers", "handlers.cpu", "CPU for an update, 64 handlers", Unit::Micros),
    row(ONE_MORE, "handlers.more", "CPU for an event, one more handler", Unit::Micros).at_most(1.0),
    row("pods", "sync.bytes", "bytes on the wire, first list", Unit::Bytes),
    row("pods, gzip", "sync.bytes", "bytes on the wire, first list, gzip", Unit::Bytes),
    row("pods", "updates.bytes", "bytes on the wire, an update", Unit::PlainBytes),
    row("pods, gzip", "updates.bytes", "bytes on the wire, an update, gzip", Unit::PlainBytes),
    row("pods", "relist.bytes", "bytes on the wire, relist", Unit::Bytes),
    row("pods", "sync.requests", "requests, first list", Unit::Number),
    row("pods", "updates.requests", "requests, updates", Unit::Number),
    row("pods", "relist.requests", "requests, relist", Unit::Number),
];

pub fn write(summary: &Summary, machine: &Machine, options: &Options) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    _ = page(&mut out, summary, machine, options);
    out
}

/// The relative path from the results page to the rig's page.
fn up(options: &Options) -> String {
    let below = options.out.iter().rev().take_while(|part| *part != "bench").count();
    "../".repeat(below)
}

fn page(out: &mut String, summary: &Summary, machine: &Machine, options: &Options) -> std::fmt::Result {
    writeln!(out, "# Side by side\n")?;
    let quoted = |word: &String| if word.contains(' ') { format!("\"{word}\"") } else { word.clone() };
    let words: Vec<String> = options.words.iter().map(quoted).collect();
    writeln!(out, "Written by `just bench {}` {machine}.", words.join(" "))?;
    writeln!(
        out,
        "Medians of interleaved repetitions, in brackets the least and the most. {} pods from the generator. \
         What each figure means is in [the rig's page]({}README.md). Raw figures are in `raw.json`.\n\n![ratios](plot.svg)\n",
        if options.quick { 2_000 } else { options.count },
        up(options)
    )?;
    goals::section(out, summary)?;
    for wire in WIRES {
        ratios(out, summary, wire)?;
    }
    best_settings(out, summary)?;
    absolutes(out, summary)?;
    apart(out, summary, LEAN, "Without managedFields", "Half of a pod. Everybody drops them on arrival.")?;
    apart(
        out,
        summary,
        MIMALLOC,
        "With mimalloc",
        "Ours in a program whose allocator is mimalloc; Go brings its own.",
    )?;
    kinds(out, summary)?;
    queues(out, summary)?;
    websites::section(out, summary)?;
    pretended::section(out, summary)?;
    many::section(out, summary)
}

/// The ratios of this project's clients, with one wire format, to each peer at its best setting.
fn ratios(out: &mut String, summary: &Summary, wire: &str) -> std::fmt::Result {
    if summary.names("pods").is_empty() && summary.names("reads").is_empty() {
        return Ok(());
    }
    let form = if wire.is_empty() { String::new() } else { format!(", ours over {}", wire.trim_start_matches('+')) };
    writeln!(
        out,
        "## Ratios{form}\n\nOurs to each peer at its best setting on that row. Goals are ratios to the better of the two, where nothing else is said.\n"
    )?;
    writeln!(out, "| | plain / client-go | plain / kube-rs | goal | compact / client-go | compact / kube-rs | goal |")?;
    writeln!(out, "|---|---|---|---|---|---|---|")?;
    for row in ROWS.iter().filter(|row| !matches!(row.unit, Unit::Number)) {
        let (go, kube) = (row.peer(summary, "client-go"), row.peer(summary, "kube-rs"));
        let measure = match row.measure {
            Measure::BetterPeer => [go, kube].into_iter().flatten().min_by(f64::total_cmp),
            Measure::ClientGo => go,
            Measure::Itself => Some(1.0),
        };
        let mut cells = String::new();
        let mut shown = false;
        for (setting, goal) in
            [("plain", row.goals.map(|(plain, _)| plain)), ("compact", row.goals.map(|(_, compact)| compact))]
        {
            let names = [format!("ours {setting}{wire}"), format!("ours {setting}{wire}+gzip")];
            let ours = names.iter().find_map(|name| summary.get(row.group, name, row.figure));
            for peer in [go, kube] {
                let ratio = ours.zip(peer).map(|(ours, peer)| ours.median / peer);
                shown |= ratio.is_some();
                write!(cells, " {} |", ratio.map_or_else(|| "–".to_owned(), ratio_text))?;
            }
            let goal = goal.map(|goal| {
                let reached = ours.zip(measure).map(|(ours, measure)| ours.median <= measure * goal);
                let goal = match row.measure {
                    Measure::BetterPeer => ratio_text(goal),
                    Measure::ClientGo => format!("{} of client-go", ratio_text(goal)),
                    Measure::Itself => row.unit.show_one(goal),
                };
                format!("≤ {goal} {}", reached.map_or("", |reached| if reached { "✓" } else { "✗" }))
            });
            write!(cells, " {} |", goal.unwrap_or_default())?;
        }
        if shown {
            writeln!(out, "| {} |{cells}", row.title)?;
        }
    }
    writeln!(out)
}

/// The best setting of each peer, including compressed responses.
fn best_settings(out: &mut String, summary: &Summary) -> std::fmt::Result {
    const GROUPS: [&str; 2] = ["pods", "pods, gzip"];
    const FIGURES: [(&str, &str, Unit); 4] = [
        ("sync.cpu", "CPU until synced", Unit::Seconds),
        ("updates.keys.cpu", "CPU for an update", Unit::Micros),
        ("held.rss", "memory held", Unit::Bytes),
        ("sync.bytes", "bytes on the wire, first list", Unit::Bytes),
    ];
    if GROUPS.iter().any(|group| summary.names(group).is_empty()) {
        return Ok(());
    }
    writeln!(
        out,
        "## Each at its best\n\nThe setting that is best on a row, of all that were measured, gzip included. Where nothing else is said, ratios are to \
         the best setting without gzip: it costs CPU and saves bytes.\n"
    )?;
    writeln!(out, "| | client-go | kube-rs | ours |\n|---|---|---|---|")?;
    for (figure, title, unit) in FIGURES {
        let cell = |peer: &str| {
            let best = summary.best_name(&GROUPS, peer, figure);
            best.map_or_else(|| "–".to_owned(), |(name, spread)| format!("{name}: {}", unit.show(spread)))
        };
        writeln!(out, "| {title} | {} | {} | {} |", cell("client-go"), cell("kube-rs"), cell("ours"))?;
    }
    writeln!(out)
}

fn absolutes(out: &mut String, summary: &Summary) -> std::fmt::Result {
    const PEERS: [&str; 4] = ["client-go protobuf", "client-go JSON", "kube-rs stream", "kube-rs list"];
    let ours = WIRES.iter().flat_map(|wire| ["plain", "compact"].map(|keep| format!("ours {keep}{wire}")));
    let mut names: Vec<String> = PEERS.iter().map(ToString::to_string).chain(ours).collect();
    names.extend(["ours decoded", "ours default"].map(str::to_owned));
    writeln!(out, "## Figures\n\n| | {} |", names.join(" | "))?;
    writeln!(out, "|---|{}", "---|".repeat(names.len()))?;
    for row in ROWS {
        let cell = |name: &str| {
            let gzip = format!("{name}+gzip");
            [name, &gzip].into_iter().find_map(|name| summary.get(row.group, name, row.figure))
        };
        let cells: Vec<_> = names.iter().map(|name| cell(name)).collect();
        if cells.iter().any(Option::is_some) {
            let cells: Vec<String> =
                cells.into_iter().map(|cell| cell.map_or_else(|| "–".to_owned(), |cell| row.unit.show(cell))).collect();
            writeln!(out, "| {} | {} |", row.title, cells.join(" | "))?;
        }
    }
    writeln!(out)
}

/// The corresponding figure of peers: what a handler decodes here, peers have decoded earlier.
fn of_peers(figure: &str) -> &str {
    if figure == "updates.new.cpu" { "updates.keys.cpu" } else { figure }
}

/// Writes a separate table for a group.
fn apart(out: &mut String, summary: &Summary, group: &str, title: &str, what: &str) -> std::fmt::Result {
    const FIGURES: [(&str, &str, Unit); 4] = [
        ("sync.cpu", "CPU until synced, handler reads keys", Unit::Seconds),
        ("updates.keys.cpu", "CPU for an update, handler reads keys", Unit::Micros),
        ("updates.new.cpu", "CPU for an update, handler decodes the new object", Unit::Micros),
        ("held.rss", "memory held", Unit::Bytes),
    ];
    let names = summary.names(group);
    let (ours, peer): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| name.starts_with("ours"));
    let Some(peer) = peer.first() else { return Ok(()) };
    writeln!(out, "## {title}\n\n{what}\n")?;
    writeln!(out, "| | {peer} | {} |\n|---|---|{}", ours.join(" | "), "---|".repeat(ours.len()))?;
    for (figure, row, unit) in FIGURES {
        let peer = summary.get(group, peer, of_peers(figure));
        write!(out, "| {row} | {} |", peer.map_or_else(|| "–".to_owned(), |cell| unit.show(cell)))?;
        for name in &ours {
            let ours = summary.get(group, name, figure);
            let ratio = ours.zip(peer).map(|(ours, peer)| ratio_text(ours.median / peer.median));
            let shown = ours.zip(ratio).map(|(ours, ratio)| format!("{}, {ratio}", unit.show(ours)));
            write!(out, " {} |", shown.unwrap_or_else(|| "–".to_owned()))?;
        }
        writeln!(out)?;
    }
    writeln!(out)
}

fn kinds(out: &mut String, summary: &Summary) -> std::fmt::Result {
    const FIGURES: [(&str, &str, Unit); 6] = [
        ("sync.cpu", "CPU until synced", Unit::Seconds),
        ("updates.keys.cpu", "CPU for an update", Unit::Micros),
        ("updates.new.cpu", "CPU for an update, handler decodes", Unit::Micros),
        ("held.rss", "memory held", Unit::Bytes),
        ("sync.peak_settled", "peak memory, first list", Unit::Bytes),
        ("sync.bytes", "bytes on the wire, first list", Unit::Bytes),
    ];
    let works: Vec<Work> =
        Work::ALL.into_iter().filter(|work| *work != Work::Pods && !summary.names(work.plural()).is_empty()).collect();
    if works.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "## Other kinds\n\n| | | client-go | kube-rs | ours plain | ours compact | plain / client-go | compact / client-go |"
    )?;
    writeln!(out, "|---|---|---|---|---|---|---|---|")?;
    for work in works {
        for (figure, title, unit) in FIGURES {
            let group = work.plural();
            let find = |name: &str, figure: &str| {
                summary
                    .names(group)
                    .into_iter()
                    .find(|known| known.starts_with(name))
                    .and_then(|name| summary.get(group, name, figure))
            };
            let cells = [
                find("client-go", of_peers(figure)),
                find("kube-rs", of_peers(figure)),
                find("ours plain", figure),
                find("ours compact", figure),
            ];
            let ratio = |at: usize| {
                cells[at].zip(cells[0]).map_or_else(|| "–".to_owned(), |(ours, go)| ratio_text(ours.median / go.median))
            };
            let shown: Vec<String> =
                cells.iter().map(|cell| cell.map_or_else(|| "–".to_owned(), |cell| unit.show(cell))).collect();
            writeln!(out, "| {group} | {title} | {} | {} | {} |", shown.join(" | "), ratio(2), ratio(3))?;
        }
    }
    writeln!(out)
}

fn queues(out: &mut String, summary: &Summary) -> std::fmt::Result {
    if summary.names("queue").is_empty() {
        return Ok(());
    }
    writeln!(out, "## Work queue\n\nNanoseconds of CPU for an item. The goal is half of client-go's.\n")?;
    writeln!(out, "| | client-go | ours | Mutex<VecDeque> | ours / client-go | |\n|---|---|---|---|---|---|")?;
    for figure in summary.figures("queue") {
        // Other queues have only one API.
        let theirs = figure.strip_suffix(BY_HAND).unwrap_or(figure);
        let get = |name: &str| summary.get("queue", name, if name == "ours" { figure } else { theirs });
        let show = |name: &str| get(name).map_or_else(|| "–".to_owned(), |cell| Unit::Nanos.show(cell));
        let ratio = get("ours").zip(get("client-go")).map(|(ours, go)| ours.median / go.median);
        let reached = ratio.map_or("", |ratio| if ratio <= 0.5 { "✓" } else { "✗" });
        writeln!(
            out,
            "| {figure} | {} | {} | {} | {} | {reached} |",
            show("client-go"),
            show("ours"),
            show("Mutex<VecDeque>").replace('<', "&lt;"),
            ratio.map_or_else(|| "–".to_owned(), ratio_text)
        )?;
    }
    Ok(())
}

impl Unit {
    /// Formats a single value.
    pub fn show_one(self, value: f64) -> String {
        self.show(Spread { median: value, least: value, most: value })
    }

    pub fn show(self, spread: Spread) -> String {
        let (scale, unit) = match self {
            Self::Seconds => (1.0, " s"),
            Self::Micros => (1.0, " µs"),
            Self::Nanos if spread.median >= 10_000.0 => (1e3, " µs"),
            Self::Nanos => (1.0, " ns"),
            Self::Bytes => (1e6, " MB"),
            Self::PlainBytes => (1.0, " bytes"),
            Self::Number => (1.0, ""),
        };
        let text = |value: f64| digits(value / scale);
        if text(spread.least) == text(spread.most) {
            return format!("{}{unit}", text(spread.median));
        }
        format!("{}{unit} ({}–{})", text(spread.median), text(spread.least), text(spread.most))
    }
}

/// Formats with three significant digits.
pub fn digits(value: f64) -> String {
    match value {
        value if value == 0.0 || value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value if value >= 1.0 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}

/// Formats a ratio: `1/7.5` below one, `1.4` above.
pub fn ratio_text(ratio: f64) -> String {
    if ratio < 0.95 { format!("1/{}", digits(1.0 / ratio)) } else { digits(ratio) }
}
