//! Evaluation of the results.

use serde::Serialize;

use crate::record::Sample;

/// The result of one check.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// What was checked.
    pub what: String,
    /// The observed result.
    pub found: String,
    /// The expected result.
    pub wanted: String,
    /// Whether the check passed.
    pub passed: bool,
}

impl Check {
    /// Creates a check from an observation, which is `Err` if the check failed.
    pub fn new(what: impl Into<String>, wanted: impl Into<String>, found: Result<String, String>) -> Self {
        let passed = found.is_ok();
        Self { what: what.into(), wanted: wanted.into(), found: found.unwrap_or_else(|wrong| wrong), passed }
    }
}

/// Maximum growth of memory in the second half: this share, or this many bytes if that is more.
const SHARE: f64 = 0.03;
const BYTES: f64 = 2e6;
/// A run whose second half is shorter than this has not reached a steady state: its allocator and
/// caches still grow.
const SETTLED: f64 = 600.0;
const UNSETTLED_SHARE: f64 = 0.2;
/// Maximum growth of the number of connections.
const CONNECTIONS: f64 = 2.0;
/// In a short run the number depends on which faults occurred in a quarter.
const UNSETTLED_CONNECTIONS: f64 = 8.0;

/// Checks that memory, tasks and connections were stable, from the samples of the whole run.
pub fn steady(samples: &[Sample]) -> Vec<Check> {
    let half = &samples[samples.len() / 2..];
    let quarter = samples.len() / 4;
    let (second, last) = (&samples[quarter..2 * quarter], &samples[samples.len() - quarter..]);
    let mut checks: Vec<Check> = [("resident memory", resident as Figure), ("heap held", heap)]
        .into_iter()
        .map(|(what, figure)| flat(what, half, figure))
        .collect();
    // Each connection has a task. Their number depends on recent faults and on idle pooled
    // connections, so it may fluctuate, but must not grow in the long run.
    let (before, after) = (usual(second, other_tasks), usual(last, other_tasks));
    let found = format!("mostly {before} in the second quarter, {after} in the last");
    checks.push(Check::new(
        "tasks, without those of connections",
        "the same",
        if before == after { Ok(found) } else { Err(found) },
    ));
    let (before, after) = (mean(second, connections), mean(last, connections));
    let found = format!("{before:.1} on average in the second quarter, {after:.1} in the last");
    let settled = half.last().map_or(0.0, |last| last.at) - half.first().map_or(0.0, |first| first.at) >= SETTLED;
    let more = if settled { CONNECTIONS } else { UNSETTLED_CONNECTIONS };
    let wanted = format!("at most {more} more");
    checks.push(Check::new("connections", wanted, if after <= before + more { Ok(found) } else { Err(found) }));
    checks
}

type Figure = fn(&Sample) -> f64;

fn resident(sample: &Sample) -> f64 {
    sample.resident
}

fn heap(sample: &Sample) -> f64 {
    sample.heap
}

fn tasks(sample: &Sample) -> f64 {
    sample.tasks
}

fn connections(sample: &Sample) -> f64 {
    sample.connections
}

fn other_tasks(sample: &Sample) -> f64 {
    sample.tasks - sample.connections
}

fn mean(samples: &[Sample], figure: Figure) -> f64 {
    samples.iter().map(figure).sum::<f64>() / samples.len().max(1) as f64
}

fn flat(what: &str, samples: &[Sample], figure: Figure) -> Check {
    let over_time =
        |figure: Figure| -> Vec<(f64, f64)> { samples.iter().map(|sample| (sample.at, figure(sample))).collect() };
    let points = over_time(figure);
    let (mean, slope) = line(&points);
    let span = points.last().map_or(0.0, |last| last.0) - points.first().map_or(0.0, |first| first.0);
    // Memory may grow with the number of objects, because the size of the cluster varies.
    let (objects, more) = line(&over_time(|sample| sample.objects));
    let growth = if objects > 0.0 { (more * span / objects).max(0.0) } else { 0.0 };
    let share = if span < SETTLED { UNSETTLED_SHARE } else { SHARE };
    let (rise, most) = (slope * span, ((share + growth) * mean).max(BYTES));
    let found = format!(
        "{:+.2} MB in {:.0} minutes, of {:.1} MB ({:+.1} MB an hour)",
        rise / 1e6,
        span / 60.0,
        mean / 1e6,
        slope * 3_600.0 / 1e6
    );
    let wanted = format!(
        "at most {:+.2} MB by regression over the second half, in which objects became {:.1} % more",
        most / 1e6,
        growth * 100.0
    );
    Check::new(what, wanted, if rise <= most { Ok(found) } else { Err(found) })
}

/// The mean, and the slope of the linear regression of these points.
fn line(points: &[(f64, f64)]) -> (f64, f64) {
    let count = points.len().max(1) as f64;
    let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / count, y + point.1 / count));
    let (both, square) = points.iter().fold((0.0, 0.0), |(both, square), point| {
        (both + (point.0 - x) * (point.1 - y), square + (point.0 - x) * (point.0 - x))
    });
    (y, if square > 0.0 { both / square } else { 0.0 })
}

/// The mode of a figure.
pub fn usual(samples: &[Sample], figure: Figure) -> f64 {
    let mut values: Vec<f64> = samples.iter().map(figure).collect();
    values.sort_by(f64::total_cmp);
    let runs = values.chunk_by(|a, b| a == b);
    runs.max_by_key(|run| run.len()).map_or(0.0, |run| run[0])
}

/// The modes of tasks and of connections.
pub fn usual_counts(samples: &[Sample]) -> (f64, f64) {
    (usual(samples, tasks), usual(samples, connections))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(resident: impl Fn(f64) -> f64, tasks: impl Fn(f64) -> f64) -> Vec<Sample> {
        let sample = |at: f64| Sample {
            at,
            resident: resident(at),
            heap: 1e6,
            tasks: tasks(at),
            connections: 9.0,
            objects: 1e3,
        };
        (0..3_600).map(|at| sample(f64::from(at))).collect()
    }

    fn failed(samples: &[Sample]) -> Vec<String> {
        steady(samples).into_iter().filter(|check| !check.passed).map(|check| check.what).collect()
    }

    #[test]
    fn a_process_that_settles_is_steady() {
        let settling =
            samples(|at| 5e7 + 1e6 * (at % 7.0) + 2e7 * at.min(900.0) / 900.0, |at| 30.0 + f64::from(at % 20.0 < 2.0));
        assert_eq!(failed(&settling), [""; 0]);
    }

    #[test]
    fn a_leak_is_seen_through_the_noise() {
        let leaking = samples(|at| 5e7 + 3e6 * (at % 7.0) + 2_000.0 * at, |_| 30.0);
        assert_eq!(failed(&leaking), ["resident memory"]);
    }

    #[test]
    fn one_task_more_is_seen() {
        let growing = samples(|_| 5e7, |at| 30.0 + f64::from(at > 2_000.0));
        assert_eq!(failed(&growing), ["tasks, without those of connections"]);
    }

    #[test]
    fn a_line_is_found() {
        assert_eq!(line(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]), (3.0, 2.0));
        assert_eq!(line(&[]), (0.0, 0.0));
    }
}
