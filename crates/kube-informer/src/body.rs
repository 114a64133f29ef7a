//! How bodies are kept: the policies, and the one type that carries them out.

use std::fmt;
use std::sync::{Arc, LazyLock, Weak};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

pub use self::dictionary::Dictionary;
pub use self::obj::{Obj, Untyped};
pub use self::training::Samples;

pub(crate) use self::decoded::Decoded;
pub(crate) use self::raw::{Body, Raw};

pub(crate) use self::compressor::Press;
pub(crate) use self::decoded_cache::{Decodings, Forgotten};
pub(crate) use self::shared::{Common, Home};
pub(crate) use self::strip_metadata::PACKED;
pub(crate) use self::unpacker::Plain;
pub(crate) use crate::object::Interner;

use self::compressor::Presses;
use self::headroom::make_room;
use self::packing::{Fresh, How, Packing, Pressed, Told};
use self::reference::Name;
use self::sizes::Sizes;
use crate::codec::{Broken, Extent, FieldCutter, Found, Wire, protobuf, scan};
use crate::object::DecodeError;
use crate::object::Meta;

mod compressor;
pub(crate) mod decoded;
mod decoded_cache;
mod delta_encoding;
mod dictionary;
mod headroom;
mod obj;
mod packing;
pub(crate) mod raw;
mod reference;
mod shared;
mod sizes;
mod strip_metadata;
mod training;
mod unpacker;
mod varint;

/// How an informer keeps the bodies of its objects.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let server = kube_embedded::Server::builder().in_process().start().await?;
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{Informer, Keep};
///
/// // Every object is read all the time, so let them stay decoded.
/// let maps = Informer::<ConfigMap>::builder(client).keep(Keep::Decoded).start();
/// maps.synced().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Keep {
    /// Compressed: against a dictionary that is trained on the objects themselves, or as what siblings differ in. A pod of 8 KB takes about one.
    #[default]
    Compact,
    /// As the server sent them.
    Plain,
    /// As the server sent them, and beside that decoded, once somebody has read them: for kinds whose every object is read all
    /// the time.
    Decoded,
}

/// Moments of whoever drives the keeper: there is no clock here.
pub type Tick = u64;

/// What a keeper is made with.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BodyEncoderSettings {
    /// The policy.
    pub keep: Keep,
    /// Fields to leave out of every object.
    pub drop_fields: FieldCutter,
    /// How many bytes of recently decoded bodies to keep, roughly.
    pub recent_bytes: usize,
    /// How many ticks a changed object is left alone before it is packed.
    pub cold_after: Tick,
    /// How many bytes of changed objects may wait to be packed.
    pub fresh_bytes: usize,
}

impl Default for BodyEncoderSettings {
    fn default() -> Self {
        Self {
            keep: Keep::default(),
            drop_fields: FieldCutter::default(),
            recent_bytes: 64 << 20,
            cold_after: 2,
            fresh_bytes: 4 << 20,
        }
    }
}

/// By how many bytes changed objects may exceed their limit until there is time to pack them: about what is received at once.
const AHEAD: usize = 1 << 20;

/// Makes objects out of bytes and keeps them by one policy. Shared by everything that belongs to one store.
#[derive(Clone)]
pub struct BodyEncoder(Arc<Shared>);

/// Where an object came from, which says whether it is likely to change again soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// In a list: it has been as it is for a while.
    Listed,
    /// In a watch, at this moment.
    Changed(Tick),
    /// On its way to a function that makes another object of it: not worth packing.
    InTransit,
}

struct Shared {
    cutter: FieldCutter,
    cold_after: Tick,
    fresh_limit: usize,
    common: Arc<Common>,
    /// None for objects outside of any store, which share nothing.
    interner: Option<Mutex<Interner>>,
    packing: Mutex<Packing>,
    presses: Presses,
}

/// What a step of packing did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Packed {
    /// How many objects were packed.
    pub objects: usize,
    /// How many wait: until they are cold, or for a further step.
    pub waiting: usize,
}

impl BodyEncoder {
    /// A keeper with nothing in it.
    #[must_use]
    pub fn new(settings: BodyEncoderSettings) -> Self {
        Self::with_interner(settings, Some(Mutex::default()))
    }

    /// For objects outside of any store.
    pub(crate) fn loose() -> &'static Self {
        static LOOSE: LazyLock<BodyEncoder> = LazyLock::new(|| {
            let settings = BodyEncoderSettings { keep: Keep::Plain, recent_bytes: 0, ..BodyEncoderSettings::default() };
            BodyEncoder::with_interner(settings, None)
        });
        &LOOSE
    }

    fn with_interner(settings: BodyEncoderSettings, interner: Option<Mutex<Interner>>) -> Self {
        let common = Arc::new(Common::new(settings.keep, settings.recent_bytes));
        Self(Arc::new(Shared {
            cutter: settings.drop_fields,
            cold_after: settings.cold_after,
            fresh_limit: settings.fresh_bytes,
            interner,
            packing: Mutex::new(Packing::new(&common)),
            presses: Presses::default(),
            common,
        }))
    }

    /// Makes an object out of its bytes: finds its metadata, leaves out fields that are not wanted, and keeps the rest.
    ///
    /// The bytes are JSON, or protobuf in its envelope.
    pub fn accept(&self, object: &Bytes, arrival: Arrival) -> Result<Obj<Untyped>, DecodeError> {
        self.take_in(object, arrival, self.0.fresh_limit)
    }

    /// As [`accept`](Self::accept), for whoever soon lets it [catch up](Self::catch_up): no object waits until others are packed.
    pub(crate) fn accept_ahead(&self, object: &Bytes, arrival: Arrival) -> Result<Obj<Untyped>, DecodeError> {
        self.take_in(object, arrival, self.0.fresh_limit.saturating_add(AHEAD))
    }

    /// Whether more objects wait to be packed than should.
    pub(crate) fn is_behind(&self) -> bool {
        self.0.packing.lock().fresh_bytes > self.0.fresh_limit
    }

    /// Packs what should not wait any longer.
    pub(crate) fn catch_up(&self) {
        self.pack_down_to(self.0.fresh_limit, &mut self.0.packing.lock());
    }

    fn take_in(&self, object: &Bytes, arrival: Arrival, most: usize) -> Result<Obj<Untyped>, DecodeError> {
        let broken = |broken| DecodeError::broken::<Untyped>(broken);
        let cut;
        let mut object = object;
        if !self.0.cutter.is_empty() {
            cut = self.0.cutter.cut(object).map_err(broken)?;
            object = &cut;
        }
        let ordered;
        let mut body = match Wire::of(object) {
            Wire::Json => object.trim_ascii(),
            Wire::Protobuf => object,
        };
        let found = match scan(body, Extent::Metadata) {
            Err(Broken::Protobuf) => {
                // Its metadata may only stand in another order than servers write it in.
                ordered = protobuf::canonical(object).map_err(broken)?;
                body = &ordered;
                scan(body, Extent::Metadata)
            }
            found => found,
        };
        let found = found.map_err(broken)?;
        let meta = Meta::of(&found, self.0.interner.as_ref()).map_err(broken)?;
        Ok(Obj::new(match (self.keep(), arrival) {
            (Keep::Compact, Arrival::Listed) => self.listed(meta, &found, body),
            (Keep::Compact, Arrival::Changed(now)) => self.changed(meta, body, now, most),
            (Keep::Plain | Keep::Decoded, _) | (_, Arrival::InTransit) => self.plain(meta, body),
        }))
    }

    fn plain(&self, meta: Meta, body: &[u8]) -> Arc<Raw> {
        make_room(body.len());
        let home = Arc::clone(&self.0.packing.lock().home);
        Arc::new(Raw::new(meta, home, Body::plain(body)))
    }

    fn listed(&self, meta: Meta, found: &Found<'_>, plain: &[u8]) -> Arc<Raw> {
        let mut press = self.0.presses.take();
        press.lay(plain, found, &meta);
        let Pressed { body, home, told } = self.press(&mut press, &meta, plain.len());
        let body = body.map_or_else(|| Body::plain(plain), Body::packed);
        let stored = body.len();
        let raw = Arc::new(Raw::new(meta, home, body));
        make_room(stored);
        if told.makes_a_pattern {
            press.keep_as_pattern(&raw);
        }
        self.0.presses.put(press);
        let mut packing = self.0.packing.lock();
        packing.training.saw();
        if told.how == How::Packed {
            packing.training.sample(&raw);
        }
        packing.pressed(&raw, told, (plain.len(), stored));
        drop(packing);
        raw
    }

    fn changed(&self, meta: Meta, json: &[u8], now: Tick, most: usize) -> Arc<Raw> {
        let home = Arc::clone(&self.0.packing.lock().home);
        let raw = Arc::new(Raw::new(meta, home, Body::plain(json)));
        let mut packing = self.0.packing.lock();
        packing.training.saw();
        packing.training.sample(&raw);
        packing.fresh.push_back(Fresh { since: now, bytes: json.len(), raw: Arc::downgrade(&raw) });
        packing.fresh_bytes += json.len();
        self.pack_down_to(most, &mut packing);
        raw
    }

    /// Packs the oldest until no more than so many bytes wait.
    fn pack_down_to(&self, most: usize, packing: &mut MutexGuard<'_, Packing>) {
        while packing.fresh_bytes > most {
            let Some(oldest) = packing.pop_fresh() else { break };
            self.pack(packing, &oldest.raw);
        }
    }

    /// Packs at most `budget` objects that have been left alone, or that a new dictionary would pack better.
    ///
    /// To be called now and then by whoever owns a clock.
    #[expect(clippy::must_use_candidate, reason = "done for its effect")]
    pub fn pack_cold(&self, now: Tick, budget: usize) -> Packed {
        let mut done = Packed::default();
        let mut packing = self.0.packing.lock();
        packing.training.tick(now);
        while done.objects < budget {
            let cold = |fresh: &Fresh| fresh.since.saturating_add(self.0.cold_after) <= now;
            let packed = if packing.fresh.front().is_some_and(cold) {
                packing.pop_fresh().map(|fresh| self.pack(&mut packing, &fresh.raw))
            } else if packing.training.expects_better() {
                None
            } else {
                packing.again.pop_front().map(|raw| self.pack_again(&mut packing, &raw))
            };
            let Some(packed) = packed else { break };
            done.objects += usize::from(packed);
            // Whoever brings objects in comes first.
            MutexGuard::bump(&mut packing);
        }
        packing.shrink();
        // A cache too small for a dictionary is as good as it gets: nobody need come back for it.
        let again = if packing.training.rests() { 0 } else { packing.again.len() };
        done.waiting = packing.fresh.len() + again;
        done
    }

    /// Packs an object that is plain.
    fn pack(&self, packing: &mut MutexGuard<'_, Packing>, raw: &Weak<Raw>) -> bool {
        self.with_press(packing, raw, |raw, press| {
            let plain = raw.lay(None, press)?;
            let Pressed { body, home, told } = self.press(press, raw.meta(), plain);
            let stored = body.as_ref().map_or(plain, |body| body.len());
            let packed = body.map(|body| raw.hold(Body::packed(body), home));
            // A pattern only once it is packed: others are told from what is held of it.
            if told.makes_a_pattern {
                press.keep_as_pattern(raw);
            }
            self.0.packing.lock().pressed(raw, told, (plain, stored));
            packed
        })
    }

    /// Packs an object by itself that a new dictionary packs better.
    fn pack_again(&self, packing: &mut MutexGuard<'_, Packing>, raw: &Weak<Raw>) -> bool {
        let home = Arc::clone(&packing.home);
        self.with_press(packing, raw, |raw, press| {
            let plain = raw.lay(Some(&home), press)?;
            let body = press.whole(home.dictionary()?, plain)?;
            self.0.packing.lock().sizes.add(plain, body.len());
            raw.hold(Body::packed(body), Arc::clone(&home));
            Some(())
        })
    }

    /// Says whether something was done with the object, if it is still there. The packing side is not locked meanwhile.
    fn with_press(
        &self,
        packing: &mut MutexGuard<'_, Packing>,
        raw: &Weak<Raw>,
        work: impl FnOnce(&Arc<Raw>, &mut Press) -> Option<()>,
    ) -> bool {
        // Ours may be the last handle of the object: it goes before the lock is taken again.
        MutexGuard::unlocked(packing, || {
            let Some(raw) = raw.upgrade() else { return false };
            let mut press = self.0.presses.take();
            let done = work(&raw, &mut press);
            self.0.presses.put(press);
            done.is_some()
        })
    }

    /// Packs what was laid into the press: as a difference from a sibling if that is worth it, else by itself.
    fn press(&self, press: &mut Press, meta: &Meta, plain: usize) -> Pressed {
        let family = Name::of(meta);
        let (home, like, limit) = {
            let mut packing = self.0.packing.lock();
            let like = packing.families.home(family, &meta.key, &self.0.common);
            (Arc::clone(&packing.home), like, packing.sizes.worth(plain))
        };
        let missed = like.is_some();
        if let Some(home) = like
            && let Some(body) = press.difference(&home, limit)
        {
            let told = Told { family, how: How::Difference, missed: false, makes_a_pattern: false };
            return Pressed { body: Some(body), home, told };
        }
        let body = home.dictionary().and_then(|dictionary| press.whole(dictionary, plain));
        let how = if body.is_some() { How::Packed } else { How::NotWorthIt };
        let makes_a_pattern = body.is_some() && press.makes_a_pattern();
        Pressed { body, home, told: Told { family, how, missed, makes_a_pattern } }
    }

    /// Objects to train a dictionary with, if one is wanted. Training takes a tenth of a second: it is for the caller to say where.
    /// Until [`install`](Self::install) or [`training_failed`](Self::training_failed) nothing further is asked for.
    #[must_use]
    pub fn wants_training(&self) -> Option<Samples> {
        self.0.packing.lock().training.take_samples()
    }

    /// Packs with this dictionary from now on. Objects packed with an older one keep that alive until they are packed again or gone.
    pub fn install(&self, dictionary: Dictionary) {
        let home = Arc::new(Home::new(dictionary, Arc::clone(&self.0.common)));
        let old = {
            let mut packing = self.0.packing.lock();
            packing.training.installed();
            packing.sizes = Sizes::default();
            std::mem::replace(&mut packing.home, home)
        };
        if let Some(dictionary) = old.dictionary() {
            dictionary.retire();
        }
    }

    /// No dictionary came of the samples: too few, or too much alike. Asked for again when there are more.
    pub fn training_failed(&self) {
        self.0.packing.lock().training.failed();
    }

    /// How many bodies have been decoded so far.
    #[must_use]
    pub fn decodes(&self) -> u64 {
        self.0.common.decodes()
    }

    /// The policy.
    #[must_use]
    pub fn keep(&self) -> Keep {
        self.0.common.keep()
    }
}

impl fmt::Debug for BodyEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyEncoder")
            .field("keep", &self.keep())
            .field("decodes", &self.decodes())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_ahead_of_the_packing_is_so_by_no_more_than_is_allowed_and_catches_up() {
        let encoder = BodyEncoder::new(BodyEncoderSettings { fresh_bytes: 0, ..BodyEncoderSettings::default() });
        let held: Vec<_> = (0..30_000)
            .map(|n| {
                let json = format!(
                    r#"{{"metadata":{{"name":"a{n}"}},"data":{{"text":"{}"}}}}"#,
                    "of no importance ".repeat(4)
                );
                encoder.accept_ahead(&json.into(), Arrival::Changed(0)).unwrap()
            })
            .collect();
        let waiting = encoder.0.packing.lock().fresh_bytes;
        assert!((AHEAD / 2..=AHEAD).contains(&waiting), "{waiting}");
        assert!(encoder.is_behind());
        encoder.catch_up();
        assert!(!encoder.is_behind());
        assert_eq!(encoder.0.packing.lock().fresh_bytes, 0);
        drop(held);
    }
}
