//! When to train a dictionary, and on what.

use std::sync::{Arc, Weak};

use super::Raw;
use super::Tick;
use super::dictionary::Dictionary;
use super::strip_metadata::Stripped;
use crate::codec::{Extent, scan};

/// How many objects a dictionary is trained on.
const SAMPLES: usize = 128;
/// The first dictionary comes when this many objects have been seen, ...
const FIRST_TRAINING: u64 = 256;
/// ... a better one when there are this many: a list is sorted, and its beginning is not like the rest.
const SECOND_TRAINING: u64 = 4096;
/// With fewer than this, there is nothing to learn, ...
const MIN_OBJECTS: u64 = 32;
/// ... and neither with so few that are not told as differences from others.
const MIN_SAMPLES: usize = 8;
/// The size that pays for pods; smaller kinds get smaller ones.
const LARGEST_DICTIONARY: usize = 110 << 10;
const SMALLEST_DICTIONARY: usize = 4 << 10;
/// A dictionary is a twelfth of its samples, or it learns them by heart.
const SAMPLES_PER_DICTIONARY: usize = 12;
/// One sample is at most this long.
const LONGEST_SAMPLE: usize = 64 << 10;

/// Decides when a dictionary is wanted, and gathers what to train it on.
#[derive(Debug, Default)]
pub(super) struct Training {
    seen: u64,
    /// How many of them might have been samples.
    candidates: u64,
    /// When it was last looked at, and how much had been seen by then.
    last_tick: (Tick, u64),
    reservoir: Vec<Weak<Raw>>,
    stage: Stage,
    in_progress: Option<TrainingRun>,
    /// After a failure, how much must have been seen before the next try.
    not_before: u64,
    /// Nothing new has come for a while: what there is must do.
    idle: bool,
    ratio: RatioMonitor,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// No dictionary yet.
    #[default]
    None,
    /// One trained on the first few objects.
    First,
    /// One trained on enough of them.
    Settled,
}

/// Samples have been handed out; this is what the dictionary will make of us.
#[derive(Debug, Clone, Copy)]
struct TrainingRun {
    next_stage: Stage,
}

impl Training {
    /// Counts an object in.
    pub(super) fn count_object(&mut self) {
        self.seen += 1;
        self.idle = false;
    }

    /// Holds on to a fair choice of those that a dictionary may be for.
    pub(super) fn sample(&mut self, raw: &Arc<Raw>) {
        self.candidates += 1;
        if self.reservoir.len() < SAMPLES {
            self.reservoir.push(Arc::downgrade(raw));
            return;
        }
        // A fair reservoir needs numbers that look random, not ones that are: the same objects train the same dictionary.
        let at = splitmix64(self.candidates) % self.candidates;
        if let Some(place) = usize::try_from(at).ok().and_then(|at| self.reservoir.get_mut(at)) {
            *place = Arc::downgrade(raw);
        }
    }

    /// Takes note of what packing an object with a dictionary came to.
    pub(super) fn packed(&mut self, plain: usize, stored: usize) {
        self.ratio.add(plain, stored);
    }

    pub(super) fn has_dictionary(&self) -> bool {
        self.stage != Stage::None
    }

    /// Looks whether anything has come since an earlier moment.
    pub(super) fn tick(&mut self, now: Tick) {
        if now <= self.last_tick.0 {
            return;
        }
        self.idle = self.seen == self.last_tick.1;
        self.last_tick = (now, self.seen);
        if self.idle && self.stage == Stage::First && self.seen < 2 * FIRST_TRAINING {
            // Nearly all there is was seen when the first one was trained.
            self.stage = Stage::Settled;
        }
    }

    /// Whether packing again later will be worth it.
    pub(super) fn expects_better(&self) -> bool {
        self.stage != Stage::Settled || self.in_progress.is_some()
    }

    /// Whether nothing will come of waiting: a better dictionary needs objects that are not there.
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

/// Measures whether a dictionary still pays.
#[derive(Debug, Default)]
struct RatioMonitor {
    plain: u64,
    stored: u64,
    objects: u32,
    /// Bytes stored for each thousand, over the first window after the dictionary came.
    baseline: Option<u64>,
    degraded: bool,
}

impl RatioMonitor {
    /// Objects in one window.
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

/// Spreads neighbouring numbers over all numbers (the finaliser of splitmix64).
fn splitmix64(mut n: u64) -> u64 {
    n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

/// Objects to train a dictionary on. Holds none of them alive until it is trained with.
#[derive(Debug, Clone)]
pub struct Samples(Vec<Weak<Raw>>);

impl Samples {
    /// Trains a dictionary, which takes a tenth of a second or so. None if the samples are too few.
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
