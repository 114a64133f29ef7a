//! zstd dictionaries and compression with them.

use std::fmt;

use parking_lot::Mutex;
use zstd::zstd_safe::{self, CCtx, CParameter, DDict, DictAttachPref, FrameFormat};

/// zstd compression level. Measurements are in DESIGN.md.
const LEVEL: i32 = 1;

/// zstd contexts kept for reuse: one for the task that accepts objects, one for packing cold ones.
const POOL_SIZE: usize = 2;

/// A zstd dictionary, or the empty one that stands for none.
///
/// Lives as long as any object packed with it.
pub struct Dictionary {
    /// The raw dictionary, to create further compression contexts.
    bytes: Box<[u8]>,
    ddict: Option<DDict<'static>>,
    contexts: Mutex<ContextPool>,
}

enum ContextPool {
    Pooled(Vec<CompressionContext>),
    /// Replaced by a newer dictionary: contexts are no longer pooled.
    Retired,
}

struct CompressionContext(CCtx<'static>);

impl Dictionary {
    /// Creates a dictionary from trained bytes; none if zstd rejects them.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        let ddict = Some(DDict::try_create(&bytes)?);
        Some(Self { bytes: bytes.into(), ddict, contexts: Mutex::new(ContextPool::Pooled(Vec::new())) })
    }

    /// The empty dictionary: objects are compressed without one.
    pub(crate) fn none() -> Self {
        Self { bytes: Box::default(), ddict: None, contexts: Mutex::new(ContextPool::Pooled(Vec::new())) }
    }

    /// Size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether this is the empty dictionary.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Compresses `bytes` into `to`, which is cleared first.
    pub(super) fn compress(&self, bytes: &[u8], to: &mut Vec<u8>) -> Option<()> {
        let mut context = self.take_context()?;
        to.clear();
        to.reserve(zstd_safe::compress_bound(bytes.len()));
        let done = context.0.compress2(to, bytes);
        if let ContextPool::Pooled(pool) = &mut *self.contexts.lock()
            && pool.len() < POOL_SIZE
        {
            pool.push(context);
        }
        done.ok().map(drop)
    }

    /// The decompression dictionary, unless this is the empty one.
    pub(super) fn ddict(&self) -> Option<&DDict<'static>> {
        self.ddict.as_ref()
    }

    /// Frees the pooled compression contexts: nothing new is compressed with it.
    pub(crate) fn retire(&self) {
        let contexts = std::mem::replace(&mut *self.contexts.lock(), ContextPool::Retired);
        drop(contexts);
    }

    fn take_context(&self) -> Option<CompressionContext> {
        if let ContextPool::Pooled(pool) = &mut *self.contexts.lock()
            && let Some(context) = pool.pop()
        {
            return Some(context);
        }
        CompressionContext::new(&self.bytes)
    }
}

impl CompressionContext {
    fn new(dictionary: &[u8]) -> Option<Self> {
        let mut context = CCtx::try_create()?;
        let parameters = [
            CParameter::CompressionLevel(LEVEL),
            CParameter::Format(FrameFormat::Magicless),
            CParameter::DictIdFlag(false),
            CParameter::ChecksumFlag(false),
            // By default zstd copies the tables of the dictionary for every input above 8 KB.
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
