//! What objects have in common, and packing with it.

use std::fmt;

use parking_lot::Mutex;
use zstd::zstd_safe::{self, CCtx, CParameter, DDict, DictAttachPref, FrameFormat};

/// The level that objects are packed at. Figures are in DESIGN.md.
const LEVEL: i32 = 1;

/// Packers kept between objects: one for whoever brings objects in, one for whoever packs cold ones.
const POOL_SIZE: usize = 2;

/// A dictionary that objects are packed against, or none yet.
///
/// Alive as long as an object packed with it.
pub struct Dictionary {
    /// To make further packers with.
    bytes: Box<[u8]>,
    ddict: Option<DDict<'static>>,
    packers: Mutex<Packers>,
}

enum Packers {
    Pooled(Vec<Packer>),
    /// No longer packed with.
    Retired,
}

struct Packer(CCtx<'static>);

impl Dictionary {
    /// A dictionary that has been trained; none if zstd does not take it for one.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        let ddict = Some(DDict::try_create(&bytes)?);
        Some(Self { bytes: bytes.into(), ddict, packers: Mutex::new(Packers::Pooled(Vec::new())) })
    }

    /// Objects are packed each by itself.
    pub(crate) fn none() -> Self {
        Self { bytes: Box::default(), ddict: None, packers: Mutex::new(Packers::Pooled(Vec::new())) }
    }

    /// How many bytes it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Packs bytes into `to`, which is emptied first.
    pub(super) fn compress(&self, bytes: &[u8], to: &mut Vec<u8>) -> Option<()> {
        let mut packer = self.take_packer()?;
        to.clear();
        to.reserve(zstd_safe::compress_bound(bytes.len()));
        let done = packer.0.compress2(to, bytes);
        if let Packers::Pooled(pool) = &mut *self.packers.lock()
            && pool.len() < POOL_SIZE
        {
            pool.push(packer);
        }
        done.ok().map(drop)
    }

    /// To unpack with, unless there is none.
    pub(super) fn ddict(&self) -> Option<&DDict<'static>> {
        self.ddict.as_ref()
    }

    /// Nothing will be packed with it any more.
    pub(crate) fn retire(&self) {
        let packers = std::mem::replace(&mut *self.packers.lock(), Packers::Retired);
        drop(packers);
    }

    fn take_packer(&self) -> Option<Packer> {
        if let Packers::Pooled(pool) = &mut *self.packers.lock()
            && let Some(packer) = pool.pop()
        {
            return Some(packer);
        }
        Packer::new(&self.bytes)
    }
}

impl Packer {
    fn new(dictionary: &[u8]) -> Option<Self> {
        let mut context = CCtx::try_create()?;
        let parameters = [
            CParameter::CompressionLevel(LEVEL),
            CParameter::Format(FrameFormat::Magicless),
            CParameter::DictIdFlag(false),
            CParameter::ChecksumFlag(false),
            // Left to itself, zstd copies the dictionary's tables for every object above 8 KB.
            CParameter::ForceAttachDict(DictAttachPref::ForceAttach),
        ];
        for parameter in parameters {
            context.set_parameter(parameter).ok()?;
        }
        if !dictionary.is_empty() {
            context.load_dictionary(dictionary).ok()?;
        }
        Some(Self(context))
    }
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary").field("len", &self.len()).finish_non_exhaustive()
    }
}
