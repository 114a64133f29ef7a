//! Medians and spreads.

use std::collections::BTreeMap;

use rig::client::Figures;
use serde::Serialize;

use crate::plan::{HANDLERS, handlers_group};

/// The measurements of one process.
#[derive(Debug, Serialize)]
pub struct Run {
    pub group: String,
    pub name: String,
    pub rep: u32,
    pub figures: Figures,
}

/// The distribution of repeated measurements.
#[derive(Debug, Clone, Copy)]
pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

/// Measurements by group, client and figure.
#[derive(Debug, Default)]
pub struct Summary {
    spreads: BTreeMap<(String, String, String), Spread>,
}

/// The cost of an additional handler per event: the difference between one handler and the maximum,
/// by client and repetition.
pub fn one_more_handler(runs: &[Run]) -> Vec<Run> {
    let (few, many) = (HANDLERS[0], HANDLERS[HANDLERS.len() - 1]);
    let cpu = |run: &Run| run.figures.get("handlers.cpu").copied();
    let of = |handlers: u64| runs.iter().filter(move |run| run.group == handlers_group(handlers));
    let mut found = Vec::new();
    for run in of(many) {
        let alone = of(few).find(|other| other.name == run.name && other.rep == run.rep);
        if let (Some(all), Some(one)) = (cpu(run), alone.and_then(cpu)) {
            let each = (all - one) / (many - few) as f64;
            let figures = Figures::from([("handlers.more".to_owned(), each)]);
            found.push(Run { group: ONE_MORE.to_owned(), name: run.name.clone(), rep: run.rep, figures });
        }
    }
    found
}

/// The group of the results of [`one_more_handler`].
pub const ONE_MORE: &str = "one more handler";

impl Summary {
    pub fn of(runs: &[Run]) -> Self {
        let mut all: BTreeMap<_, Vec<f64>> = BTreeMap::new();
        for run in runs {
            for (figure, value) in &run.figures {
                let name = (run.group.clone(), run.name.clone(), figure.clone());
                all.entry(name).or_default().push(*value);
            }
        }
        let spread = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            let (lower, upper) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
            Spread { median: (lower + upper) / 2.0, least: values[0], most: values[values.len() - 1] }
        };
        Self { spreads: all.into_iter().map(|(name, values)| (name, spread(values))).collect() }
    }

    pub fn get(&self, group: &str, name: &str, figure: &str) -> Option<Spread> {
        self.spreads.get(&(group.to_owned(), name.to_owned(), figure.to_owned())).copied()
    }

    /// The result of a peer's best setting.
    pub fn best(&self, group: &str, peer: &str, figure: &str) -> Option<f64> {
        let of_peer = |name: &str| name == peer || name.strip_prefix(peer).is_some_and(|rest| rest.starts_with(' '));
        let medians = self
            .spreads
            .iter()
            .filter(|((in_group, name, what), _)| in_group == group && of_peer(name) && what == figure);
        medians.map(|(_, spread)| spread.median).min_by(f64::total_cmp)
    }

    /// The setting of a peer with the best value of a figure, within these groups.
    pub fn best_name(&self, groups: &[&str], peer: &str, figure: &str) -> Option<(&str, Spread)> {
        let of_peer = |name: &str| name.strip_prefix(peer).is_some_and(|rest| rest.starts_with(' '));
        let found = self
            .spreads
            .iter()
            .filter(|((group, name, what), _)| groups.contains(&group.as_str()) && of_peer(name) && what == figure);
        found
            .min_by(|(_, a), (_, b)| a.median.total_cmp(&b.median))
            .map(|((_, name, _), spread)| (name[peer.len()..].trim(), *spread))
    }

    /// The clients of a group.
    pub fn names(&self, group: &str) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.spreads.keys().filter(|(in_group, ..)| in_group == group).map(|(_, name, _)| name.as_str()).collect();
        names.dedup();
        names
    }

    /// The figures of a group.
    pub fn figures(&self, group: &str) -> Vec<&str> {
        let mut figures: Vec<&str> = self
            .spreads
            .keys()
            .filter(|(in_group, ..)| in_group == group)
            .map(|(.., figure)| figure.as_str())
            .collect();
        figures.sort_unstable();
        figures.dedup();
        figures
    }
}
