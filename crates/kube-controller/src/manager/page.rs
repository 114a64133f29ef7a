//! Prometheus' text format, version 0.0.4.

use std::fmt::{Display, Write};

use crate::figures::Histogram;

/// A page of metrics. Each metric is written once, with all of its samples.
#[derive(Debug, Default)]
pub(super) struct Page(String);

/// Labels of a sample.
pub(super) type Labels<'a> = &'a [(&'a str, &'a str)];

/// A metric whose samples are being written.
pub(super) struct Metric<'a> {
    page: &'a mut Page,
    name: &'static str,
}

impl Page {
    pub(super) fn counter(&mut self, name: &'static str, help: &str) -> Metric<'_> {
        self.metric(name, help, "counter")
    }

    pub(super) fn gauge(&mut self, name: &'static str, help: &str) -> Metric<'_> {
        self.metric(name, help, "gauge")
    }

    pub(super) fn histogram(&mut self, name: &'static str, help: &str) -> Metric<'_> {
        self.metric(name, help, "histogram")
    }

    fn metric(&mut self, name: &'static str, help: &str, kind: &str) -> Metric<'_> {
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
        Metric { page: self, name }
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string cannot fail.
        self.0.write_fmt(line).ok();
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

impl Metric<'_> {
    pub(super) fn sample(&mut self, labels: Labels<'_>, value: impl Display) {
        let name = self.name;
        self.page.line(format_args!("{name}{} {value}\n", label_text(labels, None)));
    }

    pub(super) fn distribution(&mut self, labels: Labels<'_>, histogram: &Histogram) {
        let name = self.name;
        for (bound, count) in histogram.cumulative() {
            let bound = if bound.is_infinite() { "+Inf".to_owned() } else { bound.to_string() };
            self.page.line(format_args!("{name}_bucket{} {count}\n", label_text(labels, Some(&bound))));
        }
        let labels = label_text(labels, None);
        self.page.line(format_args!("{name}_sum{labels} {}\n", histogram.sum().as_secs_f64()));
        self.page.line(format_args!("{name}_count{labels} {}\n", histogram.count()));
    }
}

fn label_text(labels: Labels<'_>, bound: Option<&str>) -> String {
    let bound = bound.map(|bound| ("le", bound));
    let mut text = String::new();
    for (name, value) in labels.iter().copied().chain(bound) {
        text.push(if text.is_empty() { '{' } else { ',' });
        text.push_str(name);
        text.push_str("=\"");
        for character in value.chars() {
            match character {
                '\\' => text.push_str(r"\\"),
                '"' => text.push_str("\\\""),
                '\n' => text.push_str(r"\n"),
                other => text.push(other),
            }
        }
        text.push('"');
    }
    if !text.is_empty() {
        text.push('}');
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_page_has_help_type_and_escaped_labels() {
        let mut page = Page::default();
        let mut adds = page.counter("adds_total", "Additions.");
        adds.sample(&[("name", "a\"b\\c\nd")], 3);
        adds.sample(&[], 0.5);
        let expected = "# HELP adds_total Additions.\n# TYPE adds_total counter\nadds_total{name=\"a\\\"b\\\\c\\nd\"} 3\nadds_total 0.5\n";
        assert_eq!(page.into_text(), expected);
    }

    #[test]
    fn a_histogram_has_cumulative_buckets_and_ends_with_infinity() {
        let mut histogram = Histogram::new(&[0.1, 1.0]);
        [50, 500, 5_000].map(Duration::from_millis).into_iter().for_each(|duration| histogram.record(duration));
        let mut page = Page::default();
        page.histogram("t", "Time.").distribution(&[("a", "b")], &histogram);
        let text = page.into_text();
        let lines: Vec<_> = text.lines().skip(2).collect();
        let expected = [
            r#"t_bucket{a="b",le="0.1"} 1"#,
            r#"t_bucket{a="b",le="1"} 2"#,
            r#"t_bucket{a="b",le="+Inf"} 3"#,
            r#"t_sum{a="b"} 5.55"#,
            r#"t_count{a="b"} 3"#,
        ];
        assert_eq!(lines, expected);
    }
}
