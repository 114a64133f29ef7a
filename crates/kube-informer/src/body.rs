//! Object bodies: [`Obj`], and how bodies are stored: plain, compressed (zstd dictionary or delta
//! encoding) or decoded.
//!
//! [`BodyEncoder`] turns received bytes into [`Obj`]s and compresses them later. It, its settings
//! and its dictionaries are the advanced layer: an informer has an encoder of its own, so only a
//! program that keeps objects in a [`Store`](crate::store::Store) of its own, and benchmarks, use
//! them.

// May use `codec` and `object`; must not use the store, the reflector or informers.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};

pub use self::dictionary::Dictionary;
pub use self::obj::{Obj, Untyped};
pub use self::training::Samples;

pub(crate) use self::decoded::Decoded;
pub(crate) use self::raw::{Body, Raw};

pub(crate) use self::compressor::Compressor;
pub(crate) use self::decoded_cache::{AdmissionTime, Eviction};
pub(crate) use self::shared::{PackContext, StoreContext};
pub(crate) use self::strip_metadata::PACKED;
pub(crate) use self::unpacker::Plain;
pub(crate) use crate::object::Interner;

use self::compressor::CompressorPool;
use self::headroom::grow_arena;
use self::packing::{Compressed, Fresh, PackOutcome, PackedAs, Packing};
use self::reference::GroupId;
use self::sizes::Sizes;
use crate::codec::{Broken, Extent, FieldCutter, ScannedObject, Wire, protobuf, scan};
use crate::object::{DecodeError, Meta, Version};
use crate::shard::{Shard, Sharded};

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

/// How an informer stores the bodies of its objects.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::{Informer, Keep};
///
/// // Every object is read constantly, so keep the decoded bodies.
/// let maps = Informer::<ConfigMap>::builder(client).keep(Keep::Decoded).start();
/// maps.synced().await?;
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Keep {
    /// Compressed: with a zstd dictionary trained on the cached objects, or delta-encoded against a
    /// sibling. A pod of 8 KB takes about 1 KB.
    #[default]
    Compact,
    /// As received from the server.
    Plain,
    /// As received from the server, and decoded into the type of the informer when it arrives,
    /// without `metadata.managedFields`: for kinds of which every object is read constantly. A read
    /// is a lookup and a pointer. A decoded pod takes three times the memory of its JSON, in
    /// addition to the JSON, and each change costs a decoding, whether it is read or not.
    ///
    /// Bodies are decoded in tasks of the runtime, after readers can see the object; one that is
    /// read earlier is decoded by the reader. Other types ([views](crate::Informer::view)) are
    /// decoded when they are read first, and stay as well.
    Decoded,
}

/// Logical time, supplied by the caller: the encoder has no clock.
pub type Tick = u64;

/// Settings of a [`BodyEncoder`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct BodyEncoderSettings {
    /// The policy.
    pub keep: Keep,
    /// Fields removed from every object.
    pub drop_fields: FieldCutter,
    /// Whether [`Obj::get`] decodes `metadata.managedFields`.
    pub decode_managed_fields: bool,
    /// Size limit of the cache of decoded bodies, in (estimated) bytes.
    pub recent_bytes: usize,
    /// How many ticks after a change an object is packed.
    pub cold_after: Tick,
    /// How many bytes of changed objects may be unpacked at a time, however small the cache is. An
    /// informer's encoder allows more for a larger cache.
    pub fresh_bytes: usize,
}

impl Default for BodyEncoderSettings {
    fn default() -> Self {
        Self {
            keep: Keep::default(),
            drop_fields: FieldCutter::default(),
            decode_managed_fields: false,
            recent_bytes: 64 << 20,
            cold_after: 2,
            fresh_bytes: 4 << 20,
        }
    }
}

/// How far [`BodyEncoder::accept_ahead`] may exceed the limit of unpacked bytes: about what is
/// received at once.
const ACCEPT_AHEAD: usize = 1 << 20;

/// Changed objects may wait unpacked while all changes that wait are no larger than this many times
/// the cache. Of changes that are scattered over the whole cache, seven of eight have been replaced
/// by a later one of the same object when it is their turn, and need no packing.
const FRESH_TURNS: usize = 2;

/// Limits what a burst of changes takes in a large cache.
const MAX_FRESH: usize = 256 << 20;

/// Creates objects from received bytes and stores their bodies by one policy. Shared by everything
/// that belongs to one store.
#[derive(Clone)]
pub struct BodyEncoder(Arc<EncoderShared>);

/// Where an object came from: determines whether it is likely to change again soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// From a list: it has probably not changed recently.
    Listed,
    /// From a watch event, received at this tick.
    Changed(Tick),
    /// Input of a transform function that replaces it: not worth packing.
    InTransit,
}

struct EncoderShared {
    cutter: FieldCutter,
    cold_after: Tick,
    min_fresh: usize,
    /// How many objects the store has; 0 if nobody says so.
    objects: AtomicUsize,
    store: Arc<StoreContext>,
    /// None for objects outside of any store, which share no strings.
    interner: Option<Mutex<Interner>>,
    packing: Mutex<Packing>,
    compressors: CompressorPool,
}

/// Result of one [`BodyEncoder::pack_cold`] step.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Packed {
    /// Number of objects packed.
    pub objects: usize,
    /// Number of objects still to be packed, because they are not cold yet or the budget was used
    /// up.
    pub waiting: usize,
}

/// The version of an object that does not belong to the shard.
fn outside(found: &ScannedObject<'_>, shard: &Shard) -> Result<Option<Version>, Broken> {
    if shard.has_scanned(found)? {
        return Ok(None);
    }
    found.version.map_or(Ok(Cow::Borrowed("")), |text| text.read()).map(|version| Some(Version::new(version)))
}

impl BodyEncoder {
    /// Creates an encoder without any objects or dictionary.
    #[must_use]
    pub fn new(settings: BodyEncoderSettings) -> Self {
        Self::with_interner(settings, Some(Mutex::default()))
    }

    /// Encoder of objects outside of any store.
    pub(crate) fn detached() -> &'static Self {
        static LOOSE: LazyLock<BodyEncoder> = LazyLock::new(|| {
            let settings = BodyEncoderSettings { keep: Keep::Plain, recent_bytes: 0, ..BodyEncoderSettings::default() };
            BodyEncoder::with_interner(settings, None)
        });
        &LOOSE
    }

    fn with_interner(settings: BodyEncoderSettings, interner: Option<Mutex<Interner>>) -> Self {
        let store = Arc::new(StoreContext::new(&settings));
        Self(Arc::new(EncoderShared {
            cutter: settings.drop_fields,
            cold_after: settings.cold_after,
            min_fresh: settings.fresh_bytes,
            objects: AtomicUsize::new(0),
            interner,
            packing: Mutex::new(Packing::new(&store)),
            compressors: CompressorPool::default(),
            store,
        }))
    }

    /// Creates an object from its bytes: extracts the metadata, removes dropped fields and stores
    /// the rest.
    ///
    /// The bytes are JSON, or protobuf in the Kubernetes envelope.
    pub fn accept(&self, object: &Bytes, arrival: Arrival) -> Result<Obj<Untyped>, DecodeError> {
        self.accept_within(object, arrival, 0)
    }

    /// As [`accept`](Self::accept), for callers that [catch up](Self::catch_up) soon: usually does
    /// not pack other objects first, so the new object is not delayed.
    pub(crate) fn accept_ahead(&self, object: &Bytes, arrival: Arrival) -> Result<Obj<Untyped>, DecodeError> {
        self.accept_within(object, arrival, ACCEPT_AHEAD)
    }

    /// As [`accept_ahead`](Self::accept_ahead) for objects of a shard. Of another object, only the
    /// metadata is read.
    pub(crate) fn accept_sharded(
        &self,
        object: &Bytes,
        arrival: Arrival,
        shard: &Shard,
    ) -> Result<Sharded, DecodeError> {
        if self.0.cutter.is_empty() {
            let accepted = self.accept_unless(object, arrival, ACCEPT_AHEAD, |found| outside(found, shard))?;
            return Ok(accepted.map_or_else(Sharded::Outside, Sharded::Inside));
        }
        // Fields are not cut from an object that is not stored.
        let found = scan(object.trim_ascii(), Extent::Metadata);
        match found.and_then(|found| outside(&found, shard)) {
            Ok(Some(version)) => Ok(Sharded::Outside(version)),
            Ok(None) => self.accept_within(object, arrival, ACCEPT_AHEAD).map(Sharded::Inside),
            Err(Broken::Protobuf) => {
                let accepted = self.accept_unless(object, arrival, ACCEPT_AHEAD, |found| outside(found, shard))?;
                Ok(accepted.map_or_else(Sharded::Outside, Sharded::Inside))
            }
            Err(broken) => Err(DecodeError::broken::<Untyped>(broken)),
        }
    }

    /// Whether the unpacked bytes exceed the limit.
    pub(crate) fn is_behind(&self) -> bool {
        let packing = self.0.packing.lock();
        packing.fresh_bytes > self.fresh_limit(&packing)
    }

    /// Packs the oldest objects until the unpacked bytes are within the limit.
    pub(crate) fn catch_up(&self) {
        let mut packing = self.0.packing.lock();
        let limit = self.fresh_limit(&packing);
        self.pack_down_to(limit, &mut packing);
    }

    /// The store has this many objects now.
    pub(crate) fn set_objects(&self, objects: usize) {
        self.0.objects.store(objects, Ordering::Relaxed);
    }

    /// How many bytes may be unpacked.
    fn fresh_limit(&self, packing: &Packing) -> usize {
        let cache = self.0.objects.load(Ordering::Relaxed).saturating_mul(packing.plain_sizes.mean());
        cache.saturating_mul(FRESH_TURNS).min(MAX_FRESH).max(self.0.min_fresh)
    }

    /// `ahead`: by how many bytes the limit of unpacked bytes may be exceeded.
    fn accept_within(&self, object: &Bytes, arrival: Arrival, ahead: usize) -> Result<Obj<Untyped>, DecodeError> {
        let Ok(accepted) = self.accept_unless(object, arrival, ahead, |_| Ok(None::<Infallible>))?;
        Ok(accepted)
    }

    /// Accepts an object unless a test of its metadata returns a reason not to.
    fn accept_unless<R>(
        &self,
        object: &Bytes,
        arrival: Arrival,
        ahead: usize,
        test: impl FnOnce(&ScannedObject<'_>) -> Result<Option<R>, Broken>,
    ) -> Result<Result<Obj<Untyped>, R>, DecodeError> {
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
                // The metadata may merely have its fields in another order than servers write them.
                ordered = protobuf::sort_fields(object).map_err(broken)?;
                body = &ordered;
                scan(body, Extent::Metadata)
            }
            found => found,
        };
        let found = found.map_err(broken)?;
        if let Some(reason) = test(&found).map_err(broken)? {
            return Ok(Err(reason));
        }
        let meta = Meta::of(&found, self.0.interner.as_ref()).map_err(broken)?;
        Ok(Ok(Obj::new(match (self.keep(), arrival) {
            (Keep::Compact, Arrival::Listed) => self.listed(meta, &found, body),
            (Keep::Compact, Arrival::Changed(now)) => self.changed(meta, body, now, ahead),
            (Keep::Plain | Keep::Decoded, _) | (_, Arrival::InTransit) => self.plain(meta, body),
        })))
    }

    fn plain(&self, meta: Meta, body: &[u8]) -> Arc<Raw> {
        grow_arena(body.len());
        let context = Arc::clone(&self.0.packing.lock().context);
        Arc::new(Raw::new(meta, context, Body::plain(body)))
    }

    fn listed(&self, meta: Meta, found: &ScannedObject<'_>, plain: &[u8]) -> Arc<Raw> {
        let mut compressor = self.0.compressors.take();
        compressor.load(plain, found, &meta);
        let Compressed { body, context, outcome } = self.compress(&mut compressor, &meta, plain.len());
        let body = body.map_or_else(|| Body::plain(plain), Body::packed);
        let stored = body.len();
        let raw = Arc::new(Raw::new(meta, context, body));
        grow_arena(stored);
        if outcome.can_be_reference {
            compressor.set_reference(&raw);
        }
        self.0.compressors.put(compressor);
        let mut packing = self.0.packing.lock();
        packing.training.count_object();
        packing.plain_sizes.add(plain.len());
        if outcome.how == PackedAs::Zstd {
            packing.training.sample(&raw);
        }
        packing.record(&raw, outcome, (plain.len(), stored));
        drop(packing);
        raw
    }

    fn changed(&self, meta: Meta, json: &[u8], now: Tick, ahead: usize) -> Arc<Raw> {
        let context = Arc::clone(&self.0.packing.lock().context);
        let raw = Arc::new(Raw::new(meta, context, Body::plain(json)));
        let mut packing = self.0.packing.lock();
        packing.training.count_object();
        packing.plain_sizes.add(json.len());
        packing.training.sample(&raw);
        packing.push_fresh(now, json.len(), &raw);
        let limit = self.fresh_limit(&packing).saturating_add(ahead);
        self.pack_down_to(limit, &mut packing);
        raw
    }

    /// Packs the oldest objects until at most `limit` bytes are unpacked.
    fn pack_down_to(&self, limit: usize, packing: &mut MutexGuard<'_, Packing>) {
        while packing.fresh_bytes > limit {
            let Some(oldest) = packing.pop_fresh() else { break };
            self.pack(packing, &oldest.raw);
        }
    }

    /// Packs at most `budget` objects that have not changed recently or that a new dictionary
    /// compresses better.
    ///
    /// To be called periodically, with the current tick.
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
                packing.repack.pop_front().map(|raw| self.repack(&mut packing, &raw))
            };
            let Some(packed) = packed else { break };
            done.objects += usize::from(packed);
            // Yields the lock: accepting objects has priority.
            MutexGuard::bump(&mut packing);
        }
        packing.shrink();
        // A cache too small for a dictionary cannot be packed any better: the caller need not come
        // back for it.
        let repack = if packing.training.cannot_improve() { 0 } else { packing.repack.len() };
        done.waiting = packing.fresh.len() + repack;
        done
    }

    /// Packs a plain object.
    fn pack(&self, packing: &mut MutexGuard<'_, Packing>, raw: &Weak<Raw>) -> bool {
        self.with_compressor(packing, raw, |raw, compressor| {
            let plain = raw.load_into(None, compressor)?;
            let Compressed { body, context, outcome } = self.compress(compressor, raw.meta(), plain);
            let stored = body.as_ref().map_or(plain, |body| body.len());
            let packed = body.map(|body| raw.replace_body(Body::packed(body), context));
            // Becomes a reference only once it is packed: deltas are decoded against its packed
            // body.
            if outcome.can_be_reference {
                compressor.set_reference(raw);
            }
            self.0.packing.lock().record(raw, outcome, (plain, stored));
            packed
        })
    }

    /// Compresses an object again with a newer dictionary.
    fn repack(&self, packing: &mut MutexGuard<'_, Packing>, raw: &Weak<Raw>) -> bool {
        let context = Arc::clone(&packing.context);
        self.with_compressor(packing, raw, |raw, compressor| {
            let plain = raw.load_into(Some(&context), compressor)?;
            let body = compressor.with_dictionary(context.dictionary()?, plain)?;
            self.0.packing.lock().sizes.add(plain, body.len());
            raw.replace_body(Body::packed(body), Arc::clone(&context));
            Some(())
        })
    }

    /// Runs `work` with a pooled compressor and the packing lock released. Returns whether the
    /// object still exists and `work` returned `Some`.
    fn with_compressor(
        &self,
        packing: &mut MutexGuard<'_, Packing>,
        raw: &Weak<Raw>,
        work: impl FnOnce(&Arc<Raw>, &mut Compressor) -> Option<()>,
    ) -> bool {
        // `raw` may be the last handle of the object: it must be dropped before the lock is taken
        // again.
        MutexGuard::unlocked(packing, || {
            let Some(raw) = raw.upgrade() else { return false };
            let mut compressor = self.0.compressors.take();
            let done = work(&raw, &mut compressor);
            self.0.compressors.put(compressor);
            done.is_some()
        })
    }

    /// Packs the object loaded into the compressor: as a delta against a sibling if that is small
    /// enough, else with the dictionary.
    fn compress(&self, compressor: &mut Compressor, meta: &Meta, plain: usize) -> Compressed {
        let group = GroupId::of(meta);
        // Dropped after the lock is released.
        let mut own = None;
        let (context, reference, limit) = {
            let mut packing = self.0.packing.lock();
            let reference = packing.references.context(group, &meta.key, &self.0.store, &mut own);
            (Arc::clone(&packing.context), reference, packing.sizes.delta_limit(plain))
        };
        let missed = reference.is_some();
        if let Some(context) = reference
            && let Some(body) = compressor.as_delta(&context, limit)
        {
            let outcome = PackOutcome { group, how: PackedAs::Delta, missed: false, can_be_reference: false };
            return Compressed { body: Some(body), context, outcome };
        }
        let body = context.dictionary().and_then(|dictionary| compressor.with_dictionary(dictionary, plain));
        let how = if body.is_some() { PackedAs::Zstd } else { PackedAs::Plain };
        let can_be_reference = body.is_some() && compressor.can_be_reference();
        Compressed { body, context, outcome: PackOutcome { group, how, missed, can_be_reference } }
    }

    /// Samples to train a dictionary with, if one is due. Training takes a tenth of a second: the
    /// caller decides on which thread. While it is in progress, until [`install`](Self::install) or
    /// [`training_failed`](Self::training_failed) is called, returns `None`.
    #[must_use]
    pub fn take_training_samples(&self) -> Option<Samples> {
        self.0.packing.lock().training.take_samples()
    }

    /// Packs with this dictionary from now on. An older dictionary lives until every object packed
    /// with it is repacked or dropped.
    pub fn install(&self, dictionary: Dictionary) {
        let context = Arc::new(PackContext::new(dictionary, Arc::clone(&self.0.store)));
        let old = {
            let mut packing = self.0.packing.lock();
            packing.training.installed();
            packing.sizes = Sizes::default();
            std::mem::replace(&mut packing.context, context)
        };
        if let Some(dictionary) = old.dictionary() {
            dictionary.retire();
        }
    }

    /// Reports that no dictionary could be trained: the samples were too few or too similar. New
    /// samples are returned when there are more objects.
    pub fn training_failed(&self) {
        self.0.packing.lock().training.failed();
    }

    /// Number of bodies decoded so far.
    #[must_use]
    pub fn decodes(&self) -> u64 {
        self.0.store.decodes()
    }

    /// The policy.
    #[must_use]
    pub fn keep(&self) -> Keep {
        self.0.store.keep()
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
    fn what_may_be_unpacked_follows_from_the_size_of_the_cache() {
        const OBJECTS: usize = 100;
        let encoder = BodyEncoder::new(BodyEncoderSettings { fresh_bytes: 10_000, ..BodyEncoderSettings::default() });
        let text = "of some importance ".repeat(500);
        let object = |n: usize| format!(r#"{{"metadata":{{"name":"a{n}"}},"data":{{"text":"{text}{n}"}}}}"#);
        let accept = |n: usize| encoder.accept(&object(n).into(), Arrival::Changed(0)).unwrap();
        let fresh = || encoder.0.packing.lock().fresh.len();
        let held: Vec<_> = (0..OBJECTS).map(accept).collect();
        assert_eq!(fresh(), 1, "the size of the cache is not known");
        encoder.set_objects(OBJECTS);
        let mut held: Vec<_> = held.iter().zip(0..).map(|(_, n)| accept(n)).collect();
        assert!(fresh() >= OBJECTS, "each object is about to change again");
        for n in 0..10 * OBJECTS {
            held[n % OBJECTS] = accept(n % OBJECTS);
        }
        assert!(fresh() <= FRESH_TURNS * OBJECTS, "what waits is bounded");
        assert!(held.iter().all(|object| object.weight() > text.len()), "none was packed in vain");
        let accepted: Vec<_> = (OBJECTS..4 * OBJECTS).map(accept).collect();
        assert!(fresh() <= FRESH_TURNS * OBJECTS, "others than the store has do not wait without bound");
        encoder.set_objects(1);
        encoder.catch_up();
        assert!(fresh() <= FRESH_TURNS, "the cache has shrunk");
        drop(accepted);
    }

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
        assert!((ACCEPT_AHEAD / 2..=ACCEPT_AHEAD).contains(&waiting), "{waiting}");
        assert!(encoder.is_behind());
        encoder.catch_up();
        assert!(!encoder.is_behind());
        assert_eq!(encoder.0.packing.lock().fresh_bytes, 0);
        drop(held);
    }
}
