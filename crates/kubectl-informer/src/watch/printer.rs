//! Decides which changes are printed, and counts them.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use kube_informer::Origin;

use super::past::Past;
use super::tally::Tally;
use crate::args::Watch;
use crate::args::watch::{EventType, Until};
use crate::client::kind_info::KindInfo;
use crate::failure::Failure;
use crate::history::recording::Recorder;
use crate::history::{Change, Removal, What};
use crate::line::{Style, counted};
use crate::object::left_out::LeftOut;
use crate::object::noise::Noise;
use crate::object::query::Query;
use crate::terminal::output::Output;
use crate::terminal::stderr::stderr;

/// Prints changes as the arguments ask for.
pub(super) struct Printer {
    style: Style,
    out: Output,
    only: Vec<EventType>,
    skips_initial: bool,
    until: Vec<Until>,
    kinds: Vec<Filtered>,
    tally: Tally,
    /// The number of updates that carry no information.
    muted: usize,
    /// With `--since`, what was written before, until the caches are complete.
    past: Option<Past>,
    recorder: Option<Recorder>,
}

/// A kind and the query for its objects.
struct Filtered {
    name: String,
    query: Query,
    left_out: LeftOut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    On,
    Ended,
}

impl Printer {
    pub(super) fn new<'k>(
        args: &Watch,
        kinds: impl Iterator<Item = &'k Arc<KindInfo>> + Clone,
    ) -> Result<Self, Failure> {
        let secrets = args.choice.secrets();
        let style = Style {
            form: args.output,
            secrets,
            noise: if args.all_changes { Noise::Shown } else { Noise::Muted },
            shows_fields: args.diff,
            shows_time: args.timestamps,
            kind_width: kinds.clone().map(|kind| kind.kind.len()).max().unwrap_or(0),
        };
        let filtered = |kind: &Arc<KindInfo>| Filtered {
            name: kind.kind.to_lowercase(),
            query: Query::new(&args.query, &kind.kind, secrets),
            left_out: LeftOut::default(),
        };
        let since = args
            .since
            .filter(|_| args.replay.is_none())
            .and_then(|since| Timestamp::now().checked_sub(SignedDuration::try_from(since).ok()?).ok());
        Ok(Self {
            style,
            out: Output::new(args.choice.color),
            only: args.only.clone(),
            skips_initial: args.no_initial,
            until: args.until.clone(),
            kinds: kinds.map(filtered).collect(),
            tally: Tally::new(),
            muted: 0,
            past: since.map(Past::new),
            recorder: args.record.as_deref().map(Recorder::create).transpose()?,
        })
    }

    /// Whether initial events have no effect.
    pub(super) fn prints_nothing_before_sync(&self) -> bool {
        self.skips_initial && self.recorder.is_none()
    }

    /// Prints a change of the kind with this number, if it is to be printed.
    pub(super) fn print(&mut self, number: usize, change: Change) -> Result<Flow, Failure> {
        if let Some(recorder) = &mut self.recorder {
            recorder.record(&change)?;
        }
        let skipped = self.skips_initial && change.origin == Origin::Initial;
        if skipped {
            return Ok(Flow::On);
        }
        let Some(change) = self.kinds[number].filter(change)? else { return Ok(Flow::On) };
        if let Some(past) = self.past.as_mut().filter(|_| change.origin == Origin::Initial) {
            past.add(&self.style, &change);
            return Ok(Flow::On);
        }
        if self.style.mutes(&change) {
            self.muted += 1;
            return Ok(Flow::On);
        }
        let what = match change.what {
            What::Added => EventType::Added,
            What::Updated { .. } => EventType::Updated,
            What::Deleted { .. } => EventType::Deleted,
        };
        if !self.only.is_empty() && !self.only.contains(&what) {
            return Ok(Flow::On);
        }
        self.tally.count(what);
        self.style.print(&mut self.out, &change)?;
        let enough = self.until.iter().any(|until| matches!(until, Until::Count(most) if self.tally.total() >= *most));
        Ok(if enough { Flow::Ended } else { Flow::On })
    }

    /// All objects that exist have been printed.
    pub(super) fn synced(&mut self) -> Result<(), Failure> {
        if let Some(past) = self.past.take() {
            past.print(&mut self.out)?;
        }
        for kind in &self.kinds {
            kind.left_out.lines(&kind.name).iter().for_each(|line| stderr(line));
        }
        self.flush()
    }

    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        if let Some(recorder) = &mut self.recorder {
            recorder.flush()?;
        }
        Ok(self.out.flush()?)
    }

    /// Prints the summary, which ends with what is known of the cache.
    pub(super) fn end(&mut self, cache: &str) {
        // The reader may have closed the pipe.
        if let Err(failure) = self.flush()
            && !failure.is_silent()
        {
            stderr(&format!("error: {failure}"));
        }
        let muted = match self.muted {
            0 => String::new(),
            muted => {
                format!("; {} of times and generations only not shown (see --all-changes)", counted(muted, "update"))
            }
        };
        stderr(&format!("{}{muted}", self.tally.summary(cache)));
    }
}

impl Filtered {
    /// The change as those see it who see only matching objects.
    fn filter(&mut self, mut change: Change) -> Result<Option<Change>, Failure> {
        let fits_now = self.query.fits(&change.object, &mut self.left_out)?;
        let fitted = match &change.what {
            What::Updated { old } => self.query.fits(old, &mut LeftOut::default())?,
            What::Added | What::Deleted { .. } => fits_now,
        };
        match (fitted, fits_now) {
            (false, false) => return Ok(None),
            (false, true) => change.what = What::Added,
            (true, false) => change.what = What::Deleted { why: Removal::Unmatched },
            (true, true) => {}
        }
        Ok(Some(change))
    }
}
