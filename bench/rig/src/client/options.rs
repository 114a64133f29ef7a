//! The command line of a client.

use std::env;
use std::str::FromStr;
use std::time::Duration;

use super::Depth;
use crate::work::Work;

/// The options of a client.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address of the replay server.
    pub server: String,
    /// The kind to watch.
    pub work: Work,
    /// Number of objects.
    pub count: u64,
    /// The client-specific setting.
    pub setting: String,
    /// The scenario to measure.
    pub scenario: Scenario,
    /// What handlers do during the first list.
    pub depth: Depth,
    /// Number of updates.
    pub updates: u64,
    /// Number of deletions.
    pub churn: u64,
    /// Whether to relist.
    pub relist: bool,
    /// Updates per second, and how many updates.
    pub rates: Vec<(u64, u64)>,
    /// Whether to measure handlers that decode, too.
    pub deeper: bool,
    /// Number of handlers.
    pub handlers: u64,
    /// How long a process must be idle to count as settled.
    pub settle: Duration,
    /// How long to measure each way of reading.
    pub read_millis: u64,
}

/// The measured scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// First list, updates, deletions, a relist, latencies.
    Life,
    /// Only the first list.
    Sync,
    /// Reading.
    Reads,
    /// Several handlers.
    Handlers,
    /// First list, updates and gets of very many objects.
    Many,
}

impl Options {
    /// Parses the command line: `--name value` pairs.
    pub fn parse() -> Result<Self, String> {
        let arguments: Vec<String> = env::args().skip(1).collect();
        let mut options = Self {
            server: String::new(),
            work: Work::Pods,
            count: 20_000,
            setting: String::new(),
            scenario: Scenario::Life,
            depth: Depth::Keys,
            updates: 0,
            churn: 0,
            relist: false,
            rates: Vec::new(),
            deeper: true,
            handlers: 1,
            settle: Duration::from_secs(6),
            read_millis: 300,
        };
        for pair in arguments.chunks(2) {
            let [name, value] = pair else { return Err(format!("{} needs a value", pair[0])) };
            match name.as_str() {
                "--server" => options.server = value.clone(),
                "--work" => options.work = value.parse()?,
                "--count" => options.count = number(value)?,
                "--setting" => options.setting = value.clone(),
                "--scenario" => options.scenario = value.parse()?,
                "--depth" => options.depth = if value == "new" { Depth::New } else { Depth::Keys },
                "--updates" => options.updates = number(value)?,
                "--churn" => options.churn = number(value)?,
                "--relist" => options.relist = number::<u8>(value)? > 0,
                "--rates" => options.rates = rates(value)?,
                "--deeper" => options.deeper = number::<u8>(value)? > 0,
                "--handlers" => options.handlers = number(value)?,
                "--settle" => options.settle = Duration::from_millis(number(value)?),
                "--read-millis" => options.read_millis = number(value)?,
                _ => return Err(format!("no such option: {name}")),
            }
        }
        Ok(options)
    }
}

impl FromStr for Scenario {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "life" => Self::Life,
            "sync" => Self::Sync,
            "reads" => Self::Reads,
            "handlers" => Self::Handlers,
            "many" => Self::Many,
            _ => return Err(format!("no such scenario: {text}")),
        })
    }
}

fn number<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{text} is no number"))
}

/// Parses `200x1000,1000x5000`: updates per second, times their number.
fn rates(text: &str) -> Result<Vec<(u64, u64)>, String> {
    let rate = |rate: &str| {
        let (per_second, count) = rate.split_once('x').ok_or_else(|| format!("{rate} is no rate"))?;
        Ok((number(per_second)?, number(count)?))
    };
    text.split(',').filter(|rate| !rate.is_empty()).map(rate).collect()
}
