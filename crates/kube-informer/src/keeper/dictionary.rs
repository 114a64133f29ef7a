//! Packing and unpacking against a dictionary.

use std::cell::Cell;
use std::fmt;
use std::ops::Deref;

use parking_lot::Mutex;
use zstd::zstd_safe::{self, CCtx, CParameter, DCtx, DDict, DParameter, DictAttachPref, FrameFormat};

use super::strip::{Stripped, restore, split_head};
use crate::codec::Found;
use crate::object::Meta;

/// The level that objects are packed at. Figures are in DESIGN.md.
const LEVEL: i32 = 3;

/// Packers kept between objects: one for whoever brings objects in, one for whoever packs cold ones.
const PACKERS: usize = 2;

/// What every zstd frame begins with. Ours are kept without: four bytes of a thousand.
const MAGIC: [u8; 4] = zstd_safe::MAGICNUMBER.to_le_bytes();

/// A dictionary that objects are packed against, or none yet.
///
/// Alive as long as an object packed with it.
pub struct Dictionary {
    /// To make further packers with.
    bytes: Box<[u8]>,
    unpacking: Option<DDict<'static>>,
    packers: Mutex<Packers>,
}

enum Packers {
    Kept(Vec<Packer>),
    /// No longer packed with.
    Retired,
}

struct Packer {
    context: CCtx<'static>,
    stripped: Stripped,
    buffer: Vec<u8>,
}

pub(crate) struct Unpacker {
    context: DCtx<'static>,
    stripped: Vec<u8>,
    buffer: Vec<u8>,
}

/// An unpacker's buffer larger than this is not kept.
const LARGEST_KEPT: usize = 1 << 20;

thread_local! {
    // One for each thread that reads bodies. A pool behind a lock would have every reader pass through it twice.
    static UNPACKER: Cell<Option<Box<Unpacker>>> = const { Cell::new(None) };
}

impl Dictionary {
    /// A dictionary that has been trained; none if zstd does not take it for one.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        let unpacking = Some(DDict::try_create(&bytes)?);
        Some(Self { bytes: bytes.into(), unpacking, packers: Mutex::new(Packers::Kept(Vec::new())) })
    }

    /// Objects are packed each by itself.
    pub(crate) fn none() -> Self {
        Self { bytes: Box::default(), unpacking: None, packers: Mutex::new(Packers::Kept(Vec::new())) }
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

    /// Packs what an object's metadata does not hold; none if that saves nothing.
    pub(crate) fn pack(&self, plain: &[u8], found: &Found<'_>, meta: &Meta) -> Option<Box<[u8]>> {
        let mut packer = self.packer()?;
        let packed = packer.pack(plain, found, meta);
        if let Packers::Kept(kept) = &mut *self.packers.lock()
            && kept.len() < PACKERS
        {
            kept.push(packer);
        }
        packed
    }

    /// Unpacks what was packed with this dictionary.
    pub(crate) fn unpack(&self, packed: &[u8], meta: &Meta) -> Option<Plain> {
        let mut unpacker = Unpacker::take()?;
        unpacker.unpack(packed, self.unpacking.as_ref(), meta)?;
        Some(Plain(Some(unpacker)))
    }

    /// Nothing will be packed with it any more.
    pub(crate) fn retire(&self) {
        let packers = std::mem::replace(&mut *self.packers.lock(), Packers::Retired);
        drop(packers);
    }

    fn packer(&self) -> Option<Packer> {
        if let Packers::Kept(kept) = &mut *self.packers.lock()
            && let Some(packer) = kept.pop()
        {
            return Some(packer);
        }
        Packer::new(&self.bytes)
    }
}

/// Plain bytes, in a buffer that goes back to its thread.
pub(crate) struct Plain(Option<Box<Unpacker>>);

impl Plain {
    /// A copy of bytes that are plain already.
    pub(crate) fn copy(plain: &[u8]) -> Option<Self> {
        let mut unpacker = Unpacker::take()?;
        unpacker.buffer.clear();
        unpacker.buffer.extend_from_slice(plain);
        Some(Self(Some(unpacker)))
    }
}

impl Deref for Plain {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |unpacker| &unpacker.buffer)
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        if let Some(mut unpacker) = self.0.take() {
            if unpacker.buffer.capacity() > LARGEST_KEPT {
                (unpacker.buffer, unpacker.stripped) = (Vec::new(), Vec::new());
            }
            // A thread that is ending has no place for it any more.
            let _: Result<(), _> = UNPACKER.try_with(|place| place.set(Some(unpacker)));
        }
    }
}

impl fmt::Debug for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plain").field("len", &self.len()).finish()
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
        Some(Self { context, stripped: Stripped::default(), buffer: Vec::new() })
    }

    fn pack(&mut self, plain: &[u8], found: &Found<'_>, meta: &Meta) -> Option<Box<[u8]>> {
        self.stripped.strip(plain, found, meta);
        let Stripped { head, rest, .. } = &self.stripped;
        self.buffer.clear();
        self.buffer.reserve(zstd_safe::compress_bound(rest.len()));
        self.context.compress2(&mut self.buffer, rest).ok()?;
        let saves = head.len() + self.buffer.len() < plain.len();
        let packed = saves.then(|| [head.as_slice(), &self.buffer].concat().into());
        if self.buffer.capacity() > LARGEST_KEPT {
            self.buffer = Vec::new();
            self.stripped = Stripped::default();
        }
        packed
    }
}

impl Unpacker {
    fn new() -> Option<Box<Self>> {
        let mut context = DCtx::try_create()?;
        context.set_parameter(DParameter::Format(FrameFormat::Magicless)).ok()?;
        Some(Box::new(Self { context, stripped: Vec::new(), buffer: Vec::new() }))
    }

    fn take() -> Option<Box<Self>> {
        UNPACKER.try_with(Cell::take).ok().flatten().or_else(Self::new)
    }

    fn unpack(&mut self, packed: &[u8], dictionary: Option<&DDict<'static>>, meta: &Meta) -> Option<()> {
        let (head, frame) = split_head(packed)?;
        let len = plain_len(frame)?;
        self.stripped.clear();
        self.stripped.reserve(len);
        let done = match dictionary {
            Some(dictionary) => self.context.decompress_using_ddict(&mut self.stripped, frame, dictionary),
            None => self.context.decompress(&mut self.stripped, frame),
        };
        if done != Ok(len) {
            return None;
        }
        restore(head, &self.stripped, meta, &mut self.buffer)
    }
}

/// How long a packed object is when plain: its frame says so.
fn plain_len(packed: &[u8]) -> Option<usize> {
    // A frame's header has at most 18 bytes.
    let mut head = [0; 18];
    let tail = packed.len().min(head.len() - MAGIC.len());
    head[..MAGIC.len()].copy_from_slice(&MAGIC);
    head[MAGIC.len()..][..tail].copy_from_slice(&packed[..tail]);
    let len = zstd_safe::get_frame_content_size(&head[..MAGIC.len() + tail]).ok()??;
    usize::try_from(len).ok()
}

impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary").field("len", &self.len()).finish_non_exhaustive()
    }
}
