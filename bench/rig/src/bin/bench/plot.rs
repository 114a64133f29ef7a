//! The plot of the ratios.

use std::fmt::Write;

use crate::summary::Summary;
use crate::table::{ROWS, Row, ratio_text};

const WIDTH: f64 = 960.0;
const LEFT: f64 = 360.0;
const RIGHT: f64 = 60.0;
const BAR: f64 = 9.0;
const GAP: f64 = 12.0;
const TOP: f64 = 64.0;
/// Bounds of the logarithmic axis: 1/100 to 4 times client-go.
const FROM: f64 = 0.01;
const TO: f64 = 4.0;

const SERIES: [(&str, &str); 3] = [("kube-rs", "#c98500"), ("ours plain", "#1a6fb0"), ("ours compact", "#3a9a57")];

/// The most important figures.
const SHOWN: [(&str, &str); 12] = [
    ("pods", "sync.cpu"),
    ("pods, decoding", "sync.cpu"),
    ("pods", "updates.keys.cpu"),
    ("pods", "updates.new.cpu"),
    ("pods", "relist.cpu"),
    ("pods", "held.rss"),
    ("pods", "relist.peak"),
    ("pods", "delay.1000.p99"),
    ("reads", "read.get"),
    ("reads", "read.index"),
    ("reads", "read.namespace"),
    ("reads", "read.select"),
];

/// Draws bars of the ratios to client-go's best setting.
pub fn draw(summary: &Summary) -> String {
    let rows: Vec<&Row> = SHOWN
        .iter()
        .filter_map(|(group, figure)| ROWS.iter().find(|row| row.group == *group && row.figure == *figure))
        .filter(|row| row.peer(summary, "client-go").is_some())
        .collect();
    let row_height = BAR * SERIES.len() as f64 + GAP;
    let height = TOP + row_height * rows.len() as f64 + 30.0;
    let mut out = String::new();
    // Writing to a string cannot fail.
    _ = axes(&mut out, height);
    for (nth, row) in rows.into_iter().enumerate() {
        _ = bars(&mut out, summary, row, TOP + row_height * nth as f64);
    }
    out.push_str("</svg>\n");
    out
}

fn axes(out: &mut String, height: f64) -> std::fmt::Result {
    writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>"#
    )?;
    writeln!(
        out,
        r#"<text x="12" y="22" font-size="15">Ratio to client-go at its best setting (shorter is better, logarithmic)</text>"#
    )?;
    for (nth, (name, colour)) in SERIES.iter().enumerate() {
        let left = LEFT + nth as f64 * 130.0;
        writeln!(
            out,
            r#"<rect x="{left}" y="34" width="10" height="10" fill="{colour}"/><text x="{}" y="43">{name}</text>"#,
            left + 15.0
        )?;
    }
    for tick in [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0] {
        let (at, colour) = (place(tick), if tick == 1.0 { "#333" } else { "#ddd" });
        let bottom = height - 24.0;
        writeln!(out, r#"<line x1="{at}" y1="{}" x2="{at}" y2="{bottom}" stroke="{colour}"/>"#, TOP - 8.0)?;
        writeln!(
            out,
            r#"<text x="{at}" y="{}" text-anchor="middle" fill="gray">{}</text>"#,
            height - 8.0,
            ratio_text(tick)
        )?;
    }
    Ok(())
}

fn bars(out: &mut String, summary: &Summary, row: &Row, top: f64) -> std::fmt::Result {
    let Some(go) = row.peer(summary, "client-go") else { return Ok(()) };
    let middle = top + BAR * SERIES.len() as f64 / 2.0 + 4.0;
    writeln!(out, r#"<text x="{}" y="{middle}" text-anchor="end">{}</text>"#, LEFT - 8.0, row.title)?;
    for (nth, (name, colour)) in SERIES.iter().enumerate() {
        let value = match *name {
            "kube-rs" => row.peer(summary, "kube-rs"),
            ours => summary.get(row.group, ours, row.figure).map(|spread| spread.median),
        };
        let Some(value) = value else { continue };
        let (y, end) = (top + BAR * nth as f64, place(value / go));
        writeln!(
            out,
            r#"<rect x="{LEFT}" y="{y}" width="{:.1}" height="{}" fill="{colour}"/>"#,
            end - LEFT,
            BAR - 1.0
        )?;
        writeln!(
            out,
            r#"<text x="{:.1}" y="{}" font-size="9" fill="black">{}</text>"#,
            end + 3.0,
            y + BAR - 2.0,
            ratio_text(value / go)
        )?;
    }
    Ok(())
}

fn place(ratio: f64) -> f64 {
    let share = (ratio.clamp(FROM, TO) / FROM).ln() / (TO / FROM).ln();
    LEFT + share * (WIDTH - LEFT - RIGHT)
}
