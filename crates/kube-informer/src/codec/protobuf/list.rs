//! Incremental splitting of a protobuf list response into items.

use bytes::Bytes;

use super::envelope::{Envelope, MAGIC};
use super::incremental::{ByteQueue, Head};
use super::wire::{Datum, Fields};
use crate::codec::{Broken, ListEnd, ListError};
use crate::object::Version;

/// Splits the body of a list response into its items while it arrives. Buffers at most one item.
///
/// Each item is returned in its own envelope, with the item kind and the apiVersion of the list.
#[derive(Debug)]
pub struct ProtobufList {
    arriving: ByteQueue,
    position: Position,
    limit: usize,
    end: ListEnd,
    /// The kind of the items.
    item_kind: String,
}

#[derive(Debug, Clone, Copy)]
enum Position {
    Start,
    /// Before a field of the envelope; `listed` if the list has been read.
    Envelope {
        listed: bool,
    },
    /// Before a field of the list; the number of bytes left in the list.
    List(usize),
    /// Inside a field of this length that is consumed once it is complete.
    Reading(Part, usize),
    /// Inside a field that is skipped; the number of bytes left in it.
    Skipping(usize, After),
    Failed(ListError),
}

#[derive(Debug, Clone, Copy)]
enum Part {
    Types,
    /// With the number of bytes of the list that follow it.
    Metadata(usize),
    /// With the number of bytes of the list that follow it.
    Item(usize),
}

/// The position after a skipped field.
#[derive(Debug, Clone, Copy)]
enum After {
    Envelope { listed: bool },
    List(usize),
}

impl ProtobufList {
    /// Splits a list whose items have at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let (arriving, end, item_kind) = Default::default();
        Self { arriving, position: Position::Start, limit, end, item_kind }
    }

    /// Adds the next chunk. The items of the previous chunk must have been taken.
    pub fn push(&mut self, chunk: Bytes) {
        self.arriving.push(chunk);
    }

    /// The next complete item, or none until more bytes are pushed. Returns no more items after an
    /// error.
    #[expect(clippy::should_implement_trait, reason = "an iterator would seem to end when only the bytes at hand do")]
    pub fn next(&mut self) -> Option<Result<Bytes, ListError>> {
        match self.advance() {
            Ok(item) => item.map(Ok),
            Err(error) => {
                let reported = matches!(self.position, Position::Failed(_)) && self.arriving.len() == 0;
                self.position = Position::Failed(error);
                self.arriving.clear();
                (!reported).then_some(Err(error))
            }
        }
    }

    /// Kind and metadata of the list, once its body has ended.
    pub fn finish(self) -> Result<ListEnd, ListError> {
        match self.position {
            Position::Envelope { listed: true } if self.arriving.len() == 0 => Ok(self.end),
            Position::Failed(error) => Err(error),
            _ => Err(Broken::Short.into()),
        }
    }

    /// Kind and metadata of the list, as far as received.
    #[must_use]
    pub fn so_far(&self) -> &ListEnd {
        &self.end
    }

    fn advance(&mut self) -> Result<Option<Bytes>, ListError> {
        loop {
            match self.position {
                Position::Start => {
                    let Some(magic) = self.arriving.take(MAGIC.len()) else { return Ok(None) };
                    if magic != MAGIC {
                        return Err(Broken::Protobuf.into());
                    }
                    self.position = Position::Envelope { listed: false };
                }
                Position::Envelope { listed } => {
                    let Some(head) = self.head()? else { return Ok(None) };
                    self.position = match head {
                        Head { number: 1, is_bytes: true, length, .. } => Position::Reading(Part::Types, length),
                        Head { number: 2, is_bytes: true, length, .. } => self.enter(length),
                        Head { length, .. } => Position::Skipping(length, After::Envelope { listed }),
                    };
                }
                Position::List(0) => self.position = Position::Envelope { listed: true },
                Position::List(left) => {
                    let Some(head) = self.head()? else { return Ok(None) };
                    let left = left.checked_sub(head.own).and_then(|left| left.checked_sub(head.length));
                    let left = left.ok_or(Broken::Protobuf)?;
                    self.position = match head {
                        Head { number: 1, is_bytes: true, length, .. } => {
                            Position::Reading(Part::Metadata(left), length)
                        }
                        Head { number: 2, is_bytes: true, length, .. } => Position::Reading(Part::Item(left), length),
                        Head { length, .. } => Position::Skipping(length, After::List(left)),
                    };
                }
                Position::Reading(part, length) => {
                    if length > self.limit {
                        return Err(ListError::TooLong { limit: self.limit });
                    }
                    let Some(bytes) = self.arriving.take(length) else { return Ok(None) };
                    match part {
                        Part::Types => {
                            self.types(&bytes)?;
                            self.position = Position::Envelope { listed: false };
                        }
                        Part::Metadata(left) => {
                            self.end.read_protobuf(&bytes)?;
                            self.position = Position::List(left);
                        }
                        Part::Item(left) => {
                            self.position = Position::List(left);
                            return Ok(Some(self.item(&bytes)));
                        }
                    }
                }
                Position::Skipping(length, after) => {
                    let left = length - self.arriving.skip(length);
                    self.position = match after {
                        _ if left > 0 => Position::Skipping(left, after),
                        After::Envelope { listed } => Position::Envelope { listed },
                        After::List(left) => Position::List(left),
                    };
                    if left > 0 {
                        return Ok(None);
                    }
                }
                Position::Failed(error) => return Err(error),
            }
        }
    }

    fn head(&mut self) -> Result<Option<Head>, ListError> {
        let head = self.arriving.head()?;
        if let Some(head) = head {
            self.arriving.skip(head.own);
        }
        Ok(head)
    }

    /// Enters the message; one that is not a list is skipped.
    fn enter(&self, length: usize) -> Position {
        match self.end.other_kind() {
            Some(_) => Position::Skipping(length, After::Envelope { listed: true }),
            None => Position::List(length),
        }
    }

    fn types(&mut self, types: &[u8]) -> Result<(), Broken> {
        let mut envelope = Envelope::default();
        envelope.types(types)?;
        let (api_version, kind) = envelope.texts()?;
        self.item_kind = kind.strip_suffix("List").unwrap_or(kind).to_owned();
        self.end.kind = Some(kind.to_owned());
        self.end.api_version = Some(api_version.to_owned());
        Ok(())
    }

    fn item(&self, raw: &[u8]) -> Bytes {
        let api_version = self.end.api_version.as_deref().unwrap_or_default().as_bytes();
        Envelope { api_version, kind: self.item_kind.as_bytes(), raw }.close().into()
    }
}

impl ListEnd {
    fn read_protobuf(&mut self, metadata: &[u8]) -> Result<(), Broken> {
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| Broken::Protobuf);
        let mut fields = Fields::of(metadata);
        while let Some(field) = fields.next()? {
            match field {
                (2, Datum::Bytes(version)) => {
                    self.version = Some(text(version)?).filter(|text| !text.is_empty()).map(Version::new);
                }
                (3, Datum::Bytes(token)) => {
                    self.continue_token = Some(text(token)?).filter(|text| !text.is_empty()).map(str::to_owned);
                }
                (4, Datum::Number(remaining)) => self.remaining = Some(remaining),
                (5, Datum::Bytes(shard_info)) => {
                    let mut fields = Fields::of(shard_info);
                    while let Some(field) = fields.next()? {
                        if let (1, Datum::Bytes(selector)) = field {
                            self.shard_selector = Some(text(selector)?.to_owned());
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }
}
