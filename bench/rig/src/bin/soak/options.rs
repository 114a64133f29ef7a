//! The command line.

use std::path::PathBuf;
use std::time::Duration;

/// The options of a soak test.
#[derive(Debug, Clone)]
pub struct Options {
    /// Duration after all informers are synced.
    pub time: Duration,
    /// Interval of lines in the report.
    pub every: Duration,
    /// Interval of faults.
    pub fault_interval: Duration,
    /// Pods in the cluster.
    pub pods: u64,
    /// Writes per second.
    pub rate: f64,
    /// Reads per second, including bodies.
    pub reads: f64,
    /// The seed of all random decisions.
    pub seed: u64,
    /// The output folder for the page, the plot and the figures.
    pub out: PathBuf,
    /// A note to include in the page.
    pub note: String,
    /// The original command line.
    pub words: Vec<String>,
}

/// Shorter runs do not overwrite the published results.
const WHOLE: Duration = Duration::from_secs(30 * 60);

impl Options {
    /// Parses the command line.
    pub fn parse(words: Vec<String>) -> Result<Self, String> {
        let mut options = Self {
            time: Duration::from_secs(3_600),
            every: Duration::ZERO,
            fault_interval: Duration::from_secs(12),
            pods: 1_000,
            rate: 80.0,
            reads: 10.0,
            seed: 1,
            out: PathBuf::new(),
            note: String::new(),
            words: words.clone(),
        };
        let mut words = words.into_iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
            match word.as_str() {
                "--for" => options.time = duration(&value()?)?,
                "--every" => options.every = duration(&value()?)?,
                "--fault-every" => options.fault_interval = duration(&value()?)?,
                "--pods" => options.pods = number(&value()?)?,
                "--rate" => options.rate = number(&value()?)?,
                "--reads" => options.reads = number(&value()?)?,
                "--seed" => options.seed = number(&value()?)?,
                "--out" => options.out = PathBuf::from(value()?),
                "--note" => options.note = value()?,
                _ => return Err(format!("no such option: {word}")),
            }
        }
        if options.every.is_zero() {
            options.every = (options.time / 24).clamp(Duration::from_secs(1), Duration::from_secs(60));
        }
        if options.out.as_os_str().is_empty() {
            let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
            options.out = root.join(if options.time < WHOLE { "target/bench/results" } else { "bench/results" });
        }
        Ok(options)
    }
}

/// Parses a duration: `90s`, `2m`, `1h`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text} is no time: 90s, 2m, 1h?");
    let (number, seconds) = match text.as_bytes().last() {
        Some(b's') => (&text[..text.len() - 1], 1.0),
        Some(b'm') => (&text[..text.len() - 1], 60.0),
        Some(b'h') => (&text[..text.len() - 1], 3_600.0),
        _ => (text, 1.0),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{text} is no number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("1.5h"), Ok(Duration::from_secs(5_400)));
        assert!(duration("soon").is_err() && duration("-1s").is_err());
    }
}
