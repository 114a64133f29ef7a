//! Prints the changes of a recording.

use std::path::Path;
use std::sync::Arc;

use jiff::SignedDuration;

use super::printer::{Flow, Printer};
use crate::args::Watch;
use crate::client::kind_info::KindInfo;
use crate::failure::Failure;
use crate::history::{Change, recording};

pub(super) fn run(args: &Watch, file: &Path) -> Result<(), Failure> {
    let changes = recording::read(file)?;
    let mut kinds: Vec<Arc<KindInfo>> = Vec::new();
    for change in &changes {
        if !kinds.contains(&change.kind) {
            kinds.push(Arc::clone(&change.kind));
        }
    }
    let wanted = Wanted::parse(args, &kinds)?;
    // Before the last change: an incident is long over when it is looked at.
    let begin = match (args.since, changes.last()) {
        (Some(since), Some(last)) => {
            SignedDuration::try_from(since).ok().and_then(|since| last.at.checked_sub(since).ok())
        }
        _ => None,
    };
    let mut printer = Printer::new(args, kinds.iter())?;
    for change in changes {
        let Some(number) = kinds.iter().position(|kind| *kind == change.kind) else { continue };
        if begin.is_some_and(|begin| change.at < begin) || !wanted.includes(args, &change) {
            continue;
        }
        if printer.print(number, change)? == Flow::Ended {
            break;
        }
    }
    printer.synced()?;
    printer.end("from a recording");
    Ok(())
}

/// The kinds and objects named on the command line.
struct Wanted(Vec<(Arc<KindInfo>, Option<String>)>);

impl Wanted {
    fn parse(args: &Watch, kinds: &[Arc<KindInfo>]) -> Result<Self, Failure> {
        let mut wanted = Vec::new();
        for word in &args.words {
            let (names, object) = word.split_once('/').map_or((word.as_str(), None), |(kind, name)| (kind, Some(name)));
            for name in names.split(',').filter(|name| !name.is_empty()) {
                let found = kinds.iter().filter(|kind| name == "all" || kind.is_named(name));
                let before = wanted.len();
                wanted.extend(found.map(|kind| (Arc::clone(kind), object.map(str::to_owned))));
                if wanted.len() == before {
                    let known: Vec<String> = kinds.iter().map(|kind| kind.full_name()).collect();
                    return Err(Failure::NotFound(format!(
                        "the recording has no {name:?}; it has {}",
                        if known.is_empty() { "nothing".to_owned() } else { known.join(", ") }
                    )));
                }
            }
        }
        Ok(Self(wanted))
    }

    /// A recording has no current namespace, so all are shown unless one is named.
    fn includes(&self, args: &Watch, change: &Change) -> bool {
        let (choice, object) = (&args.choice, &change.object);
        let is_named = |(kind, name): &(Arc<KindInfo>, Option<String>)| {
            *kind == change.kind && name.as_ref().is_none_or(|name| name == object.name())
        };
        let namespace = args.connection.namespace.as_deref();
        self.0.iter().any(is_named)
            && namespace.is_none_or(|namespace| !change.kind.namespaced || object.namespace() == Some(namespace))
            && choice.selector.as_ref().is_none_or(|selector| selector.matches(&object.labels()))
    }
}
