//! The body of a LIST, cut into items as it arrives.

use bytes::{Buf, Bytes, BytesMut};

use super::cursor::{Broken, Cursor};
use super::types::Types;
use super::value::Value;
use crate::object::Version;

/// Cuts the body of a LIST into its items, one by one, while it arrives. Never holds more than one item.
///
/// An item that lies in one chunk is a slice of that chunk. Items of built-in kinds come without kind and apiVersion; they get
/// the list's (see [`Types`]).
#[derive(Debug)]
pub struct ListSplitter {
    /// Where in the grammar we are.
    place: Place,
    /// What has arrived and is not yet used.
    chunk: Bytes,
    /// The beginning of a value whose end has not arrived.
    gathered: BytesMut,
    /// How many bytes at the head of the chunk the value we are in has already seen.
    fed: usize,
    limit: usize,
    end: ListEnd,
    types: Types,
}

/// What a list says of itself, wherever in the body that stands.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ListEnd {
    /// The list's kind.
    pub kind: Option<String>,
    /// The list's apiVersion.
    pub api_version: Option<String>,
    /// The version of the list.
    pub version: Option<Version>,
    /// The token that the next page is asked for with.
    pub continue_token: Option<String>,
    /// How many items there are on further pages, if the server says.
    pub remaining: Option<u64>,
}

/// A list that cannot be read any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// The bytes are no list.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// One item is longer than it may be.
    #[error("a list item is longer than {limit} bytes")]
    TooLong {
        /// How long it may be.
        limit: usize,
    },
}

#[derive(Debug)]
enum Place {
    Start,
    /// Before the name of a member, or the end.
    Name {
        first: bool,
    },
    /// In the name of a member.
    InName(Value),
    /// Before the colon.
    Colon(Member),
    /// Before the value of a member.
    Before(Member),
    /// In the value of a member.
    In(Member, Value),
    /// After the value of a member.
    After,
    /// Before an item, or the end of items.
    Item {
        first: bool,
    },
    /// In an item.
    InItem(Value),
    /// After an item.
    AfterItem,
    End,
    Failed(ListError),
}

/// The members of a list that we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Kind,
    ApiVersion,
    Metadata,
    Items,
    Other,
}

impl ListSplitter {
    /// Splits a list with items of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            place: Place::Start,
            chunk: Bytes::new(),
            gathered: BytesMut::new(),
            fed: 0,
            limit,
            end: ListEnd::default(),
            types: Types::default(),
        }
    }

    /// Takes the next chunk. The items of the one before must have been taken.
    pub fn push(&mut self, chunk: Bytes) {
        if self.chunk.is_empty() {
            self.chunk = chunk;
        } else {
            self.chunk = [&self.chunk[..], &chunk[..]].concat().into();
        }
    }

    /// The next whole item, or none until more bytes are pushed. After an error there are no more.
    #[expect(clippy::should_implement_trait, reason = "an iterator would seem to end when only the bytes at hand do")]
    pub fn next(&mut self) -> Option<Result<Bytes, ListError>> {
        match self.advance() {
            Ok(item) => item.map(Ok),
            Err(error) => {
                self.place = Place::Failed(error);
                self.chunk.clear();
                self.fed = 0;
                self.gathered = BytesMut::new();
                Some(Err(error))
            }
        }
    }

    /// What the list says of itself, once its body has ended.
    pub fn finish(self) -> Result<ListEnd, ListError> {
        match self.place {
            Place::End => Ok(self.end),
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
            if let Place::InName(value) | Place::In(_, value) | Place::InItem(value) = &mut self.place {
                let Some(end) = value.feed(&self.chunk[self.fed..])? else {
                    return self.gather().map(|()| None);
                };
                let token = self.token(self.fed + end)?;
                self.fed = 0;
                if let Some(item) = self.taken(token)? {
                    return Ok(Some(item));
                }
                continue;
            }
            let Some(byte) = self.significant() else { return Ok(None) };
            self.step(byte)?;
        }
    }

    /// One byte of the grammar between values.
    fn step(&mut self, byte: u8) -> Result<(), ListError> {
        self.place = match (&self.place, byte) {
            (Place::Start, b'{') => Place::Name { first: true },
            (Place::Name { first: true } | Place::After, b'}') => Place::End,
            (Place::Name { .. }, b'"') => return self.enter(Place::InName),
            (Place::Colon(member), b':') => Place::Before(*member),
            (Place::Before(Member::Items), b'[') => Place::Item { first: true },
            // Go writes a list that was never made as null.
            (Place::Before(Member::Items), byte) if byte != b'n' => return Err(Broken::Shape.into()),
            (Place::Before(member), _) => {
                let member = *member;
                return self.enter(|value| Place::In(member, value));
            }
            (Place::After, b',') => Place::Name { first: false },
            (Place::Item { first: true } | Place::AfterItem, b']') => Place::After,
            (Place::Item { .. }, b'{') => return self.enter(Place::InItem),
            (Place::Item { .. }, _) => return Err(Broken::Shape.into()),
            (Place::AfterItem, b',') => Place::Item { first: false },
            (Place::Failed(error), _) => return Err(*error),
            _ => return Err(Broken::Byte.into()),
        };
        self.chunk.advance(1);
        Ok(())
    }

    /// Enters the value whose first byte is next. It stays in the chunk, so that a value within one chunk can be sliced.
    fn enter(&mut self, place: impl FnOnce(Value) -> Place) -> Result<(), ListError> {
        let first = self.chunk.first().ok_or(Broken::Short)?;
        self.place = place(Value::beginning(*first)?);
        self.fed = 1;
        Ok(())
    }

    /// Leaves the value that has ended and uses it.
    fn taken(&mut self, token: Bytes) -> Result<Option<Bytes>, ListError> {
        match &self.place {
            Place::InItem(_) => {
                self.place = Place::AfterItem;
                return Ok(Some(self.types.fill(token, &self.end)?));
            }
            Place::InName(_) => self.place = Place::Colon(Member::named(&token)?),
            Place::In(member, _) => {
                match member {
                    Member::Kind => self.end.kind = string(&token)?,
                    Member::ApiVersion => self.end.api_version = string(&token)?,
                    Member::Metadata => self.end.metadata(&token)?,
                    Member::Items if &token[..] != b"null" => return Err(Broken::Byte.into()),
                    Member::Items | Member::Other => {}
                }
                self.place = Place::After;
            }
            _ => {}
        }
        Ok(None)
    }

    /// The next byte that is not white space, not taken.
    fn significant(&mut self) -> Option<u8> {
        let blank = self.chunk.iter().position(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t'));
        self.chunk.advance(blank.unwrap_or(self.chunk.len()));
        self.chunk.first().copied()
    }

    /// Cuts off a value that ends here.
    fn token(&mut self, end: usize) -> Result<Bytes, ListError> {
        self.check_length(end)?;
        let token = self.chunk.split_to(end);
        if self.gathered.is_empty() {
            return Ok(token);
        }
        self.gathered.extend_from_slice(&token);
        Ok(self.gathered.split().freeze())
    }

    /// Keeps the beginning of a value until the rest has arrived.
    fn gather(&mut self) -> Result<(), ListError> {
        self.fed = 0;
        if !matches!(self.place, Place::In(Member::Other, _)) {
            self.check_length(self.chunk.len())?;
            self.gathered.extend_from_slice(&self.chunk);
        }
        self.chunk.clear();
        Ok(())
    }

    fn check_length(&self, more: usize) -> Result<(), ListError> {
        if self.gathered.len() + more > self.limit {
            return Err(ListError::TooLong { limit: self.limit });
        }
        Ok(())
    }
}

impl Member {
    fn named(token: &[u8]) -> Result<Self, Broken> {
        let name = Cursor::new(token).text()?;
        let known = [
            ("kind", Self::Kind),
            ("apiVersion", Self::ApiVersion),
            ("metadata", Self::Metadata),
            ("items", Self::Items),
        ];
        Ok(known.into_iter().find(|(text, _)| name.is(text)).map_or(Self::Other, |(_, member)| member))
    }
}

impl ListEnd {
    /// The kind, if it says that this is something else than a list.
    pub(crate) fn other_kind(&self) -> Option<&str> {
        self.kind.as_deref().filter(|kind| !kind.ends_with("List"))
    }

    fn metadata(&mut self, json: &[u8]) -> Result<(), Broken> {
        let mut cursor = Cursor::new(json);
        if cursor.peek()? != b'{' {
            return Ok(());
        }
        let mut members = cursor.object()?;
        while let Some(name) = cursor.field(&mut members)? {
            let value = cursor.value()?;
            if name.is("resourceVersion") {
                self.version = string(value)?.filter(|text| !text.is_empty()).map(Version::new);
            } else if name.is("continue") {
                self.continue_token = string(value)?.filter(|text| !text.is_empty());
            } else if name.is("remainingItemCount") {
                self.remaining = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
            }
        }
        Ok(())
    }
}

/// A string value, or none if it is of another type.
fn string(json: &[u8]) -> Result<Option<String>, Broken> {
    let text = Cursor::new(json).text_or_skip()?;
    text.map(|text| text.read().map(std::borrow::Cow::into_owned)).transpose()
}
