//! Unpacking, in buffers of the thread's.

use std::cell::Cell;
use std::fmt;
use std::ops::Deref;

use zstd::zstd_safe::{self, DCtx, DParameter, FrameFormat};

use super::Raw;
use super::delta_encoding::apply;
use super::dictionary::Dictionary;
use super::shared::{Home, Means};
use super::strip_metadata::{restore, split_head};
use crate::object::Meta;

/// What every zstd frame begins with. Ours are kept without: four bytes of a thousand.
const MAGIC: [u8; 4] = zstd_safe::MAGICNUMBER.to_le_bytes();

/// Makes plain bytes of packed ones.
pub(crate) struct Unpacker {
    context: DCtx<'static>,
    pattern: Vec<u8>,
    stripped: Vec<u8>,
    buffer: Vec<u8>,
}

/// Buffers larger than this are not kept, here and in a press.
pub(super) const LARGEST_KEPT: usize = 1 << 20;

thread_local! {
    // One for each thread that reads bodies. A pool behind a lock would have every reader pass through it twice.
    static UNPACKER: Cell<Option<Box<Unpacker>>> = const { Cell::new(None) };
}

impl Unpacker {
    fn new() -> Option<Box<Self>> {
        let mut context = DCtx::try_create()?;
        context.set_parameter(DParameter::Format(FrameFormat::Magicless)).ok()?;
        Some(Box::new(Self { context, pattern: Vec::new(), stripped: Vec::new(), buffer: Vec::new() }))
    }

    pub(super) fn take() -> Option<Box<Self>> {
        UNPACKER.try_with(Cell::take).ok().flatten().or_else(Self::new)
    }

    pub(super) fn put(mut self: Box<Self>) {
        for buffer in [&mut self.pattern, &mut self.stripped, &mut self.buffer] {
            if buffer.capacity() > LARGEST_KEPT {
                *buffer = Vec::new();
            }
        }
        // A thread that is ending has no place for it any more.
        let _: Result<(), _> = UNPACKER.try_with(|place| place.set(Some(self)));
    }

    /// Unpacks what others are told as differences from: a pattern without what its metadata holds.
    pub(super) fn rest_of(&mut self, pattern: &Raw, to: &mut Vec<u8>) -> Option<()> {
        pattern.with_packed(|packed, home| self.frame(split_head(packed)?.1, home.dictionary()?, to))
    }

    fn unpack(&mut self, packed: &[u8], home: &Home, meta: &Meta) -> Option<()> {
        let (head, rest) = split_head(packed)?;
        let mut stripped = std::mem::take(&mut self.stripped);
        let unpacked = match home.means() {
            Means::Dictionary(dictionary) => self.frame(rest, dictionary, &mut stripped),
            Means::Pattern(pattern) => {
                let mut bytes = std::mem::take(&mut self.pattern);
                stripped.clear();
                let unpacked = self.rest_of(pattern, &mut bytes).and_then(|()| apply(&bytes, rest, &mut stripped));
                self.pattern = bytes;
                unpacked
            }
        };
        self.stripped = stripped;
        unpacked?;
        restore(head, &self.stripped, meta, &mut self.buffer)
    }

    fn frame(&mut self, frame: &[u8], dictionary: &Dictionary, to: &mut Vec<u8>) -> Option<()> {
        let len = plain_len(frame)?;
        to.clear();
        to.reserve(len);
        let done = match dictionary.unpacking() {
            Some(dictionary) => self.context.decompress_using_ddict(to, frame, dictionary),
            None => self.context.decompress(to, frame),
        };
        (done == Ok(len)).then_some(())
    }
}

/// Plain bytes, in a buffer that goes back to its thread.
pub(crate) struct Plain(Option<Box<Unpacker>>);

impl Plain {
    /// What was packed in this home.
    pub(crate) fn unpack(packed: &[u8], home: &Home, meta: &Meta) -> Option<Self> {
        let mut unpacker = Unpacker::take()?;
        unpacker.unpack(packed, home, meta)?;
        Some(Self(Some(unpacker)))
    }

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
        if let Some(unpacker) = self.0.take() {
            unpacker.put();
        }
    }
}

impl fmt::Debug for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plain").field("len", &self.len()).finish()
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
