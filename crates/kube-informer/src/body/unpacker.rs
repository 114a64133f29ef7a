//! Unpacks bodies into thread-local buffers.

use std::cell::Cell;
use std::fmt;
use std::ops::Deref;

use zstd::zstd_safe::{self, DCtx, DParameter, FrameFormat};

use super::Raw;
use super::delta_encoding::apply;
use super::dictionary::Dictionary;
use super::shared::{PackContext, PackedWith};
use super::strip_metadata::{restore, split_head};
use crate::object::Meta;

/// Start of every zstd frame. Omitted from stored frames, to save four bytes of about a thousand.
const MAGIC: [u8; 4] = zstd_safe::MAGICNUMBER.to_le_bytes();

/// Unpacks bodies, with reusable buffers.
pub(crate) struct Unpacker {
    zstd: DCtx<'static>,
    reference: Vec<u8>,
    stripped: Vec<u8>,
    buffer: Vec<u8>,
}

/// Larger buffers are not kept for reuse, here and in compressors.
pub(super) const LARGEST_KEPT: usize = 1 << 20;

thread_local! {
    // One per thread that reads bodies: readers would contend for the lock of a shared pool.
    static UNPACKER: Cell<Option<Box<Unpacker>>> = const { Cell::new(None) };
}

impl Unpacker {
    fn new() -> Option<Box<Self>> {
        let mut zstd = DCtx::try_create()?;
        zstd.set_parameter(DParameter::Format(FrameFormat::Magicless)).ok()?;
        Some(Box::new(Self { zstd, reference: Vec::new(), stripped: Vec::new(), buffer: Vec::new() }))
    }

    pub(super) fn take() -> Option<Box<Self>> {
        UNPACKER.try_with(Cell::take).ok().flatten().or_else(Self::new)
    }

    pub(super) fn put(mut self: Box<Self>) {
        for buffer in [&mut self.reference, &mut self.stripped, &mut self.buffer] {
            if buffer.capacity() > LARGEST_KEPT {
                *buffer = Vec::new();
            }
        }
        // Fails only while the thread exits.
        let _: Result<(), _> = UNPACKER.try_with(|slot| slot.set(Some(self)));
    }

    /// Unpacks a reference, without restoring the parts stored in its metadata.
    pub(super) fn unpack_reference(&mut self, reference: &Raw, to: &mut Vec<u8>) -> Option<()> {
        reference.with_packed(|packed, context| self.decompress(split_head(packed)?.1, context.dictionary()?, to))
    }

    fn unpack(&mut self, packed: &[u8], context: &PackContext, meta: &Meta) -> Option<()> {
        let (head, rest) = split_head(packed)?;
        let mut stripped = std::mem::take(&mut self.stripped);
        let unpacked = match context.packed_with() {
            PackedWith::Dictionary(dictionary) => self.decompress(rest, dictionary, &mut stripped),
            PackedWith::Reference(reference) => {
                let mut bytes = std::mem::take(&mut self.reference);
                stripped.clear();
                let unpacked =
                    self.unpack_reference(reference, &mut bytes).and_then(|()| apply(&bytes, rest, &mut stripped));
                self.reference = bytes;
                unpacked
            }
        };
        self.stripped = stripped;
        unpacked?;
        restore(head, &self.stripped, meta, &mut self.buffer)
    }

    fn decompress(&mut self, frame: &[u8], dictionary: &Dictionary, to: &mut Vec<u8>) -> Option<()> {
        let len = plain_len(frame)?;
        to.clear();
        to.reserve(len);
        let done = match dictionary.ddict() {
            Some(dictionary) => self.zstd.decompress_using_ddict(to, frame, dictionary),
            None => self.zstd.decompress(to, frame),
        };
        (done == Ok(len)).then_some(())
    }
}

/// Plain bytes in a buffer that returns to its thread on drop.
pub(crate) struct Plain(Option<Box<Unpacker>>);

impl Plain {
    /// Unpacks a body that was packed in this context.
    pub(crate) fn unpack(packed: &[u8], context: &PackContext, meta: &Meta) -> Option<Self> {
        let mut unpacker = Unpacker::take()?;
        unpacker.unpack(packed, context, meta)?;
        Some(Self(Some(unpacker)))
    }

    /// Copies bytes that are already plain.
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

/// Decompressed length, from the frame header.
fn plain_len(packed: &[u8]) -> Option<usize> {
    // A frame header has at most 18 bytes.
    let mut head = [0; 18];
    let tail = packed.len().min(head.len() - MAGIC.len());
    head[..MAGIC.len()].copy_from_slice(&MAGIC);
    head[MAGIC.len()..][..tail].copy_from_slice(&packed[..tail]);
    let len = zstd_safe::get_frame_content_size(&head[..MAGIC.len() + tail]).ok()??;
    usize::try_from(len).ok()
}
