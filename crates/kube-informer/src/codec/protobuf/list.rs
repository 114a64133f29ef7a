//! The body of a LIST in protobuf, cut into items as it arrives.

use bytes::Bytes;

use super::envelope::{Envelope, MAGIC};
use super::incremental::{Arriving, Head};
use super::wire::{Datum, Fields};
use crate::codec::{Broken, ListEnd, ListError};
use crate::object::Version;

/// Cuts the body of a LIST into its items, one by one, while it arrives. Never holds more than one item.
///
/// Each item comes in an envelope of its own, with the list's kind and apiVersion.
#[derive(Debug)]
pub struct ProtobufList {
    arriving: Arriving,
    place: Place,
    limit: usize,
    end: ListEnd,
    /// What the items are.
    item_kind: String,
}

#[derive(Debug, Clone, Copy)]
enum Place {
    Start,
    /// Among the fields of the envelope; whether the list has been met.
    Envelope {
        listed: bool,
    },
    /// Among the fields of the list, of which so many bytes are left.
    List(usize),
    /// In a field that is taken once it is whole.
    In(Part, usize),
    /// In a field that nobody wants.
    Past(usize, After),
    Failed(ListError),
}

#[derive(Debug, Clone, Copy)]
enum Part {
    Types,
    /// So many bytes of the list are left behind it.
    Metadata(usize),
    Item(usize),
}

/// Where a field was that nobody wants.
#[derive(Debug, Clone, Copy)]
enum After {
    Envelope { listed: bool },
    List(usize),
}

impl ProtobufList {
    /// Splits a list with items of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        let (arriving, end, item_kind) = Default::default();
        Self { arriving, place: Place::Start, limit, end, item_kind }
    }

    /// Takes the next chunk. The items of the one before must have been taken.
    pub fn push(&mut self, chunk: Bytes) {
        self.arriving.push(chunk);
    }

    /// The next whole item, or none until more bytes are pushed. After an error there are no more.
    #[expect(clippy::should_implement_trait, reason = "an iterator would seem to end when only the bytes at hand do")]
    pub fn next(&mut self) -> Option<Result<Bytes, ListError>> {
        match self.advance() {
            Ok(item) => item.map(Ok),
            Err(error) => {
                let told = matches!(self.place, Place::Failed(_)) && self.arriving.len() == 0;
                self.place = Place::Failed(error);
                self.arriving.clear();
                (!told).then_some(Err(error))
            }
        }
    }

    /// What the list says of itself, once its body has ended.
    pub fn finish(self) -> Result<ListEnd, ListError> {
        match self.place {
            Place::Envelope { listed: true } if self.arriving.len() == 0 => Ok(self.end),
            Place::Failed(error) => Err(error),
            _ => Err(Broken::Short.into()),
        }
    }

    /// What the list has said of itself so far.
    #[must_use]
    pub fn so_far(&self) -> &ListEnd {
        &self.end
    }

    fn advance(&mut self) -> Result<Option<Bytes>, ListError> {
        loop {
            match self.place {
                Place::Start => {
                    let Some(magic) = self.arriving.take(MAGIC.len()) else { return Ok(None) };
                    if magic != MAGIC {
                        return Err(Broken::Protobuf.into());
                    }
                    self.place = Place::Envelope { listed: false };
                }
                Place::Envelope { listed } => {
                    let Some(head) = self.head()? else { return Ok(None) };
                    self.place = match head {
                        Head { number: 1, is_bytes: true, length, .. } => Place::In(Part::Types, length),
                        Head { number: 2, is_bytes: true, length, .. } => self.enter(length),
                        Head { length, .. } => Place::Past(length, After::Envelope { listed }),
                    };
                }
                Place::List(0) => self.place = Place::Envelope { listed: true },
                Place::List(left) => {
                    let Some(head) = self.head()? else { return Ok(None) };
                    let left = left.checked_sub(head.own).and_then(|left| left.checked_sub(head.length));
                    let left = left.ok_or(Broken::Protobuf)?;
                    self.place = match head {
                        Head { number: 1, is_bytes: true, length, .. } => Place::In(Part::Metadata(left), length),
                        Head { number: 2, is_bytes: true, length, .. } => Place::In(Part::Item(left), length),
                        Head { length, .. } => Place::Past(length, After::List(left)),
                    };
                }
                Place::In(part, length) => {
                    if length > self.limit {
                        return Err(ListError::TooLong { limit: self.limit });
                    }
                    let Some(bytes) = self.arriving.take(length) else { return Ok(None) };
                    match part {
                        Part::Types => {
                            self.types(&bytes)?;
                            self.place = Place::Envelope { listed: false };
                        }
                        Part::Metadata(left) => {
                            self.end.read_protobuf(&bytes)?;
                            self.place = Place::List(left);
                        }
                        Part::Item(left) => {
                            self.place = Place::List(left);
                            return Ok(Some(self.item(&bytes)));
                        }
                    }
                }
                Place::Past(length, after) => {
                    let left = length - self.arriving.skip(length);
                    self.place = match after {
                        _ if left > 0 => Place::Past(left, after),
                        After::Envelope { listed } => Place::Envelope { listed },
                        After::List(left) => Place::List(left),
                    };
                    if left > 0 {
                        return Ok(None);
                    }
                }
                Place::Failed(error) => return Err(error),
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

    /// What is no list has no items.
    fn enter(&self, length: usize) -> Place {
        match self.end.other_kind() {
            Some(_) => Place::Past(length, After::Envelope { listed: true }),
            None => Place::List(length),
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
                _ => {}
            }
        }
        Ok(())
    }
}
