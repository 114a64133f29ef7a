//! Line charts as SVG.

use std::fmt::{self, Write};

/// A chart with several lines.
#[derive(Debug, Clone)]
pub struct Chart {
    /// The title.
    pub title: String,
    /// The scale of the horizontal axis.
    pub scale: Scale,
    /// The lines.
    pub lines: Vec<Line>,
}

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Linear.
    Linear,
    /// Logarithmic: each point has its own tick.
    Logarithmic,
}

/// One line.
#[derive(Debug, Clone)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Its points, from left to right. A line without points is not drawn, but reserves its colour.
    pub points: Vec<(f64, f64)>,
}

const WIDTH: f64 = 960.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 190.0;
const HEAD: f64 = 30.0;
const PLOT: f64 = 170.0;
const FOOT: f64 = 36.0;
const COLOURS: [&str; 8] = ["#1a6fb0", "#3a9a57", "#8457b5", "#00a0a8", "#7b5a3c", "#d1495b", "#c98500", "#666666"];

/// Draws the charts, one below the other.
pub fn draw(charts: &[Chart]) -> String {
    let height = (HEAD + PLOT + FOOT) * charts.len() as f64;
    let mut out = String::new();
    // Writing to a string cannot fail.
    _ = writeln!(
        out,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>"#
    );
    for (nth, chart) in charts.iter().enumerate() {
        _ = chart.draw(&mut out, (HEAD + PLOT + FOOT) * nth as f64);
    }
    out.push_str("</svg>\n");
    out
}

impl Chart {
    fn draw(&self, out: &mut String, top: f64) -> fmt::Result {
        let points = || self.lines.iter().flat_map(|line| line.points.iter().copied());
        let (from, to) =
            points().fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), (x, _)| (from.min(x), to.max(x)));
        let step = step(points().fold(0.0, |most, (_, y)| most.max(y)));
        let most = points().fold(0.0_f64, |most, (_, y)| most.max(y));
        let rows = (most / step).ceil().max(1.0);
        let bottom = top + HEAD + PLOT;
        let across = |x: f64| {
            let share = match self.scale {
                Scale::Linear => (x - from) / (to - from),
                Scale::Logarithmic => (x / from).ln() / (to / from).ln(),
            };
            LEFT + if share.is_finite() { share } else { 0.5 } * (WIDTH - LEFT - RIGHT)
        };
        let up = |y: f64| bottom - y / (rows * step) * PLOT;
        writeln!(out, r#"<text x="12" y="{}" font-size="14">{}</text>"#, top + 20.0, escape(&self.title))?;
        for row in 0..=rows as u32 {
            let value = f64::from(row) * step;
            let y = up(value);
            writeln!(out, r##"<line x1="{LEFT}" y1="{y:.1}" x2="{:.1}" y2="{y:.1}" stroke="#ddd"/>"##, WIDTH - RIGHT)?;
            writeln!(
                out,
                r#"<text x="{}" y="{:.1}" text-anchor="end" fill="gray">{}</text>"#,
                LEFT - 6.0,
                y + 4.0,
                short(value)
            )?;
        }
        for x in self.marks(from, to) {
            let at = across(x);
            writeln!(
                out,
                r#"<text x="{at:.1}" y="{}" text-anchor="middle" fill="gray">{}</text>"#,
                bottom + 16.0,
                short(x)
            )?;
        }
        let colours = COLOURS.iter().cycle();
        let drawn = self.lines.iter().zip(colours).filter(|(line, _)| !line.points.is_empty());
        for (nth, (line, colour)) in drawn.enumerate() {
            let path: Vec<String> =
                line.points.iter().map(|&(x, y)| format!("{:.1},{:.1}", across(x), up(y))).collect();
            writeln!(out, r#"<polyline points="{}" fill="none" stroke="{colour}" stroke-width="2"/>"#, path.join(" "))?;
            if self.scale == Scale::Logarithmic {
                for &(x, y) in &line.points {
                    writeln!(out, r#"<circle cx="{:.1}" cy="{:.1}" r="3" fill="{colour}"/>"#, across(x), up(y))?;
                }
            }
            let (left, y) = (WIDTH - RIGHT + 14.0, top + HEAD + 10.0 + 17.0 * nth as f64);
            writeln!(
                out,
                r#"<rect x="{left}" y="{}" width="10" height="10" fill="{colour}"/><text x="{}" y="{y}">{}</text>"#,
                y - 9.0,
                left + 15.0,
                escape(&line.name)
            )?;
        }
        Ok(())
    }

    /// The ticks of the horizontal axis.
    fn marks(&self, from: f64, to: f64) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let step = step(to - from);
                let first = (from / step).ceil();
                (0..20).map(|nth| (first + f64::from(nth)) * step).filter(|x| *x <= to * 1.000_001).collect()
            }
            Scale::Logarithmic => {
                let mut marks: Vec<f64> =
                    self.lines.iter().flat_map(|line| line.points.iter().map(|(x, _)| *x)).collect();
                marks.sort_by(f64::total_cmp);
                marks.dedup();
                marks
            }
        }
    }
}

/// A round step that divides the range into a few ticks.
fn step(range: f64) -> f64 {
    if range <= 0.0 || !range.is_finite() {
        return 1.0;
    }
    let rough = range / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough).unwrap_or(10.0);
    factor * power
}

fn short(value: f64) -> String {
    let text = match value.abs() {
        size if size >= 1e6 => format!("{:.1}M", value / 1e6),
        size if size >= 1e4 => format!("{:.0}k", value / 1e3),
        size if size >= 10.0 || size == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    };
    if text.contains('.') && !text.ends_with('M') {
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    text
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_few() {
        assert_eq!([4.0, 9.0, 12.0, 100.0, 0.3].map(step), [1.0, 2.0, 2.5, 20.0, 0.1]);
        assert_eq!(step(0.0), 1.0);
    }

    #[test]
    fn a_line_of_one_point_is_drawn_without_nonsense() {
        let line = Line { name: "a<b".to_owned(), points: vec![(1.0, 0.0)] };
        let chart = Chart { title: "one".to_owned(), scale: Scale::Logarithmic, lines: vec![line] };
        let svg = draw(&[chart]);
        assert!(svg.contains("a&lt;b") && !svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
}
