//! Decides when to train a dictionary, and collects the samples.

use std::hash::BuildHasher;
use std::sync::{Arc, Weak};

use foldhash::fast::FixedState;

use super::Raw;
use super::Tick;
use super::dictionary::Dictionary;
use super::strip_metadata::Stripped;
use crate::codec::{Extent, scan};

/// Number of samples a dictionary is trained on.
const SAMPLES: usize = 128;
/// The first dictionary is trained after this many objects, ...
const FIRST_TRAINING: u64 = 256;
/// ... a better one after this many: lists are sorted, so the first objects are not representative.
const SECOND_TRAINING: u64 = 4096;
/// No dictionary is trained with fewer objects than this, ...
const MIN_OBJECTS: u64 = 32;
/// ... or with fewer samples, that is objects not delta-encoded.
const MIN_SAMPLES: usize = 8;
/// Best size for pods; kinds with smaller objects get smaller dictionaries.
const LARGEST_DICTIONARY: usize = 110 << 10;
const SMALLEST_DICTIONARY: usize = 4 << 10;
/// A dictionary is a twelfth of the size of its samples, to avoid overfitting.
const SAMPLES_PER_DICTIONARY: usize = 12;
/// Samples are truncated to this length.
const LONGEST_SAMPLE: usize = 64 << 10;

/// Decides when a dictionary is due, and holds the samples.
#[derive(Debug, Default)]
pub(super) struct Training {
    seen: u64,
    /// Number of objects offered as samples.
    candidates: u64,
    /// Last tick, and the value of `seen` at that tick.
    last_tick: (Tick, u64),
    reservoir: Vec<Weak<Raw>>,
    stage: Stage,
    in_progress: Option<TrainingRun>,
    /// After a failure, the value of `seen` from which training is tried again.
    not_before: u64,
    /// No object was accepted during the last tick: trains on what there is.
    idle: bool,
    ratio: RatioMonitor,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No dictionary yet.
    #[default]
    None,
    /// Trained on the first few objects.
    First,
    /// Trained on enough objects.
    Settled,
}

/// Training in progress: samples were returned to the caller.
#[derive(Debug, Clone, Copy)]
struct TrainingRun {
    next_stage: Stage,
}

impl Training {
    /// Counts an accepted object.
    pub(super) fn count_object(&mut self) {
        self.seen += 1;
        self.idle = false;
    }

    /// Adds an object to the samples (reservoir sampling).
    pub(super) fn sample(&mut self, raw: &Arc<Raw>) {
        self.candidates += 1;
        if self.reservoir.len() < SAMPLES {
            self.reservoir.push(Arc::downgrade(raw));
            return;
        }
        // Pseudo-random from the count, not random: the same objects always train the same
        // dictionary.
        let index = FixedState::default().hash_one(self.candidates) % self.candidates;
        if let Some(slot) = usize::try_from(index).ok().and_then(|index| self.reservoir.get_mut(index)) {
            *slot = Arc::downgrade(raw);
        }
    }

    /// Records the plain and compressed size of an object compressed with a dictionary.
    pub(super) fn packed(&mut self, plain: usize, stored: usize) {
        self.ratio.add(plain, stored);
    }

    pub(super) fn has_dictionary(&self) -> bool {
        self.stage != Stage::None
    }

    /// Updates `idle`: whether an object was accepted since the last tick.
    pub(super) fn tick(&mut self, now: Tick) {
        if now <= self.last_tick.0 {
            return;
        }
        self.idle = self.seen == self.last_tick.1;
        self.last_tick = (now, self.seen);
        if self.idle && self.stage == Stage::First && self.seen < 2 * FIRST_TRAINING {
            // The first dictionary was trained on nearly all objects.
            self.stage = Stage::Settled;
        }
    }

    /// Whether a better dictionary is expected, so that repacking later is worth it.
    pub(super) fn expects_better(&self) -> bool {
        self.stage != Stage::Settled || self.in_progress.is_some()
    }

    /// Whether waiting is useless: a better dictionary needs more objects than there are.
    pub(super) fn cannot_improve(&self) -> bool {
        self.expects_better() && self.idle && self.in_progress.is_none() && !self.is_due()
    }

    fn is_due(&self) -> bool {
        let due = match self.stage {
            Stage::None => self.seen >= if self.idle { MIN_OBJECTS } else { FIRST_TRAINING },
            Stage::First => self.seen >= SECOND_TRAINING || self.idle,
            Stage::Settled => self.ratio.degraded,
        };
        due && self.seen >= self.not_before && self.reservoir.len() >= MIN_SAMPLES
    }

    pub(super) fn take_samples(&mut self) -> Option<Samples> {
        if self.in_progress.is_some() || !self.is_due() {
            return None;
        }
        let enough = self.seen >= SECOND_TRAINING || self.stage != Stage::None || self.idle;
        self.in_progress = Some(TrainingRun { next_stage: if enough { Stage::Settled } else { Stage::First } });
        self.reservoir.retain(|raw| raw.strong_count() > 0);
        Some(Samples(self.reservoir.clone()))
    }

    pub(super) fn installed(&mut self) {
        self.stage = self.in_progress.take().map_or(Stage::Settled, |in_progress| in_progress.next_stage);
        self.ratio = RatioMonitor::default();
    }

    pub(super) fn failed(&mut self) {
        self.in_progress = None;
        self.ratio = RatioMonitor::default();
        self.not_before = self.seen * 2;
    }
}

/// Monitors the compression ratio, to detect an outdated dictionary.
#[derive(Debug, Default)]
struct RatioMonitor {
    plain: u64,
    stored: u64,
    objects: u32,
    /// Stored bytes per 1000 plain bytes, over the first window after the dictionary was installed.
    baseline: Option<u64>,
    degraded: bool,
}

impl RatioMonitor {
    /// Objects per window.
    const WINDOW: u32 = 1024;

    fn add(&mut self, plain: usize, stored: usize) {
        self.plain += plain as u64;
        self.stored += stored as u64;
        self.objects += 1;
        if self.objects < Self::WINDOW || self.plain == 0 {
            return;
        }
        let ratio = self.stored * 1000 / self.plain;
        match self.baseline {
            None => self.baseline = Some(ratio),
            Some(baseline) => self.degraded |= ratio > baseline + baseline / 3,
        }
        (self.plain, self.stored, self.objects) = (0, 0, 0);
    }
}

/// Samples to train a dictionary on. Holds weak handles only, until training starts.
#[derive(Debug, Clone)]
pub struct Samples(Vec<Weak<Raw>>);

impl Samples {
    /// Trains a dictionary, which takes about a tenth of a second. None if the samples are too few.
    #[must_use]
    pub fn train(&self) -> Option<Dictionary> {
        let (mut data, mut sizes) = (Vec::new(), Vec::new());
        let mut stripped = Stripped::default();
        for raw in self.0.iter().filter_map(Weak::upgrade) {
            raw.with_plain(|json| {
                let found = scan(json, Extent::Metadata).unwrap_or_default();
                stripped.strip(json, &found, raw.meta());
            });
            let sample = &stripped.rest[..stripped.rest.len().min(LONGEST_SAMPLE)];
            data.extend_from_slice(sample);
            sizes.push(sample.len());
        }
        let size = (data.len() / SAMPLES_PER_DICTIONARY).clamp(SMALLEST_DICTIONARY, LARGEST_DICTIONARY);
        zstd::dict::from_continuous(&data, &sizes, size).ok().and_then(Dictionary::new)
    }
}
