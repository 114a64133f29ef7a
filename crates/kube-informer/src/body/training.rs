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
const FIRST: u64 = 256;
/// ... a better one when there are this many: a list is sorted, and its beginning is not like the rest.
const SECOND: u64 = 4096;
/// With fewer than this, there is nothing to learn, ...
const FEWEST: u64 = 32;
/// ... and neither with so few that are not told as differences from others.
const FEWEST_SAMPLES: usize = 8;
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
    sampled: u64,
    /// When it was last looked at, and how much had been seen by then.
    looked: (Tick, u64),
    reservoir: Vec<Weak<Raw>>,
    stage: Stage,
    asked: Option<Asked>,
    /// After a failure, how much must have been seen before the next try.
    not_before: u64,
    /// Nothing new has come for a while: what there is must do.
    idle: bool,
    gauge: Gauge,
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
struct Asked {
    then: Stage,
}

impl Training {
    /// Counts an object in.
    pub(super) fn saw(&mut self) {
        self.seen += 1;
        self.idle = false;
    }

    /// Holds on to a fair choice of those that a dictionary may be for.
    pub(super) fn sample(&mut self, raw: &Arc<Raw>) {
        self.sampled += 1;
        if self.reservoir.len() < SAMPLES {
            self.reservoir.push(Arc::downgrade(raw));
            return;
        }
        // A fair reservoir needs numbers that look random, not ones that are: the same objects train the same dictionary.
        let at = scatter(self.sampled) % self.sampled;
        if let Some(place) = usize::try_from(at).ok().and_then(|at| self.reservoir.get_mut(at)) {
            *place = Arc::downgrade(raw);
        }
    }

    /// Takes note of what packing an object with a dictionary came to.
    pub(super) fn packed(&mut self, plain: usize, stored: usize) {
        self.gauge.add(plain, stored);
    }

    pub(super) fn has_dictionary(&self) -> bool {
        self.stage != Stage::None
    }

    /// Looks whether anything has come since an earlier moment.
    pub(super) fn tick(&mut self, now: Tick) {
        if now <= self.looked.0 {
            return;
        }
        self.idle = self.seen == self.looked.1;
        self.looked = (now, self.seen);
        if self.idle && self.stage == Stage::First && self.seen < 2 * FIRST {
            // Nearly all there is was seen when the first one was trained.
            self.stage = Stage::Settled;
        }
    }

    /// Whether packing again later will be worth it.
    pub(super) fn expects_better(&self) -> bool {
        self.stage != Stage::Settled || self.asked.is_some()
    }

    /// Whether nothing will come of waiting: a better dictionary needs objects that are not there.
    pub(super) fn rests(&self) -> bool {
        self.expects_better() && self.idle && self.asked.is_none() && !self.is_due()
    }

    fn is_due(&self) -> bool {
        let due = match self.stage {
            Stage::None => self.seen >= if self.idle { FEWEST } else { FIRST },
            Stage::First => self.seen >= SECOND || self.idle,
            Stage::Settled => self.gauge.worn,
        };
        due && self.seen >= self.not_before && self.reservoir.len() >= FEWEST_SAMPLES
    }

    pub(super) fn take_samples(&mut self) -> Option<Samples> {
        if self.asked.is_some() || !self.is_due() {
            return None;
        }
        let enough = self.seen >= SECOND || self.stage != Stage::None || self.idle;
        self.asked = Some(Asked { then: if enough { Stage::Settled } else { Stage::First } });
        self.reservoir.retain(|raw| raw.strong_count() > 0);
        Some(Samples(self.reservoir.clone()))
    }

    pub(super) fn installed(&mut self) {
        self.stage = self.asked.take().map_or(Stage::Settled, |asked| asked.then);
        self.gauge = Gauge::default();
    }

    pub(super) fn failed(&mut self) {
        self.asked = None;
        self.gauge = Gauge::default();
        self.not_before = self.seen * 2;
    }
}

/// Measures whether a dictionary still pays.
#[derive(Debug, Default)]
struct Gauge {
    plain: u64,
    stored: u64,
    objects: u32,
    /// Bytes stored for each thousand, over the first window after the dictionary came.
    first: Option<u64>,
    worn: bool,
}

impl Gauge {
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
        match self.first {
            None => self.first = Some(ratio),
            Some(first) => self.worn |= ratio > first + first / 3,
        }
        (self.plain, self.stored, self.objects) = (0, 0, 0);
    }
}

/// Spreads neighbouring numbers over all numbers (the finaliser of splitmix64).
fn scatter(mut n: u64) -> u64 {
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
