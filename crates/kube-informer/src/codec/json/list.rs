//! Incremental splitting of a list response into items.

use bytes::{Buf, Bytes, BytesMut};

use super::cursor::{Broken, Cursor};
use super::types::Types;
use super::value::Value;
use crate::codec::chunk;
use crate::object::Version;

/// Splits the body of a list response into its items while it arrives. Buffers at most one item.
///
/// An item within one chunk is a slice of that chunk. Servers send items of built-in kinds without
/// kind and apiVersion; they get those of the list (see [`Types`]).
#[derive(Debug)]
pub struct ListSplitter {
    /// Position in the grammar.
    position: Position,
    /// Received bytes that are not yet consumed.
    chunk: Bytes,
    /// The beginning of a value whose end has not yet been received.
    buffered: BytesMut,
    /// Bytes at the start of the chunk that the current value has already consumed.
    consumed: usize,
    limit: usize,
    end: ListEnd,
    types: Types,
}

/// Kind and metadata of a list, wherever they are in the body.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ListEnd {
    /// The list's kind.
    pub kind: Option<String>,
    /// The list's apiVersion.
    pub api_version: Option<String>,
    /// The resource version of the list.
    pub version: Option<Version>,
    /// The continue token for the next page.
    pub continue_token: Option<String>,
    /// The number of items on further pages, if the server reports it.
    pub remaining: Option<u64>,
    /// The shard selector that the server has applied (`shardInfo`), as it renders it.
    pub shard_selector: Option<String>,
}

/// Why a list cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// The bytes are not a list.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// An item exceeds the size limit.
    #[error("a list item is longer than {limit} bytes")]
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
}

#[derive(Debug)]
enum Position {
    Start,
    /// Before the name of a member or the closing brace.
    Name {
        first: bool,
    },
    /// Inside the name of a member.
    InName(Value),
    /// Before the colon of a member.
    Colon(Member),
    /// Before the value of a member.
    Before(Member),
    /// Inside the value of a member.
    In(Member, Value),
    /// After the value of a member.
    After,
    /// Before an item or the end of the items.
    Item {
        first: bool,
    },
    /// Inside an item.
    InItem(Value),
    /// After an item.
    AfterItem,
    End,
    Failed(ListError),
}

/// The known members of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Member {
    Kind,
    ApiVersion,
    Metadata,
    Items,
    Other,
}

impl ListSplitter {
    /// Splits a list whose items have at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            position: Position::Start,
            chunk: Bytes::new(),
            buffered: BytesMut::new(),
            consumed: 0,
            limit,
            end: ListEnd::default(),
            types: Types::default(),
        }
    }

    /// Adds the next chunk. The items of the previous chunk must have been taken.
    pub fn push(&mut self, chunk: Bytes) {
        chunk::append(&mut self.chunk, chunk);
    }

    /// The next complete item, or none until more bytes are pushed. Returns no more items after an
    /// error.
    #[expect(clippy::should_implement_trait, reason = "an iterator would seem to end when only the bytes at hand do")]
    pub fn next(&mut self) -> Option<Result<Bytes, ListError>> {
        match self.advance() {
            Ok(item) => item.map(Ok),
            Err(error) => {
                self.position = Position::Failed(error);
                self.chunk.clear();
                self.consumed = 0;
                self.buffered = BytesMut::new();
                Some(Err(error))
            }
        }
    }

    /// Kind and metadata of the list, once its body has ended.
    pub fn finish(self) -> Result<ListEnd, ListError> {
        match self.position {
            Position::End => Ok(self.end),
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
            if let Position::InName(value) | Position::In(_, value) | Position::InItem(value) = &mut self.position {
                let Some(end) = value.feed(&self.chunk[self.consumed..])? else {
                    return self.gather().map(|()| None);
                };
                let token = self.token(self.consumed + end)?;
                self.consumed = 0;
                if let Some(item) = self.finish_value(token)? {
                    return Ok(Some(item));
                }
                continue;
            }
            let Some(byte) = self.peek() else { return Ok(None) };
            self.step(byte)?;
        }
    }

    /// Handles one byte of the grammar between values.
    fn step(&mut self, byte: u8) -> Result<(), ListError> {
        self.position = match (&self.position, byte) {
            (Position::Start, b'{') => Position::Name { first: true },
            (Position::Name { first: true } | Position::After, b'}') => Position::End,
            (Position::Name { .. }, b'"') => return self.enter(Position::InName),
            (Position::Colon(member), b':') => Position::Before(*member),
            (Position::Before(Member::Items), b'[') => Position::Item { first: true },
            // Go encodes a nil slice as null.
            (Position::Before(Member::Items), byte) if byte != b'n' => return Err(Broken::Shape.into()),
            (Position::Before(member), _) => {
                let member = *member;
                return self.enter(|value| Position::In(member, value));
            }
            (Position::After, b',') => Position::Name { first: false },
            (Position::Item { first: true } | Position::AfterItem, b']') => Position::After,
            (Position::Item { .. }, b'{') => return self.enter(Position::InItem),
            (Position::Item { .. }, _) => return Err(Broken::Shape.into()),
            (Position::AfterItem, b',') => Position::Item { first: false },
            (Position::Failed(error), _) => return Err(*error),
            _ => return Err(Broken::Byte.into()),
        };
        self.chunk.advance(1);
        Ok(())
    }

    /// Enters the value whose first byte is next. The byte stays in the chunk, so that a value
    /// within one chunk can be sliced.
    fn enter(&mut self, position: impl FnOnce(Value) -> Position) -> Result<(), ListError> {
        let first = self.chunk.first().ok_or(Broken::Short)?;
        self.position = position(Value::beginning(*first)?);
        self.consumed = 1;
        Ok(())
    }

    /// Leaves the value that has ended, and uses it. Returns it if it is an item.
    fn finish_value(&mut self, token: Bytes) -> Result<Option<Bytes>, ListError> {
        match &self.position {
            Position::InItem(_) => {
                self.position = Position::AfterItem;
                return Ok(Some(self.types.fill(token, &self.end)?));
            }
            Position::InName(_) => self.position = Position::Colon(Member::named(&token)?),
            Position::In(member, _) => {
                match member {
                    Member::Kind => self.end.kind = string(&token)?,
                    Member::ApiVersion => self.end.api_version = string(&token)?,
                    Member::Metadata => self.end.metadata(&token)?,
                    Member::Items if &token[..] != b"null" => return Err(Broken::Byte.into()),
                    Member::Items | Member::Other => {}
                }
                self.position = Position::After;
            }
            _ => {}
        }
        Ok(None)
    }

    /// Skips whitespace, and returns the next byte without consuming it.
    fn peek(&mut self) -> Option<u8> {
        let blank = self.chunk.iter().position(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t'));
        self.chunk.advance(blank.unwrap_or(self.chunk.len()));
        self.chunk.first().copied()
    }

    /// Consumes a value that ends here.
    fn token(&mut self, end: usize) -> Result<Bytes, ListError> {
        self.check_length(end)?;
        let token = self.chunk.split_to(end);
        if self.buffered.is_empty() {
            return Ok(token);
        }
        self.buffered.extend_from_slice(&token);
        Ok(self.buffered.split().freeze())
    }

    /// Buffers the beginning of a value until the rest is received.
    fn gather(&mut self) -> Result<(), ListError> {
        self.consumed = 0;
        if !matches!(self.position, Position::In(Member::Other, _)) {
            self.check_length(self.chunk.len())?;
            self.buffered.extend_from_slice(&self.chunk);
        }
        self.chunk.clear();
        Ok(())
    }

    fn check_length(&self, more: usize) -> Result<(), ListError> {
        if self.buffered.len() + more > self.limit {
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
    /// The kind, if it is not the kind of a list.
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
            } else if name.is("shardInfo") {
                self.shard_selector = shard_selector(value)?;
            }
        }
        Ok(())
    }
}

/// The selector of a `shardInfo`, if it has one.
fn shard_selector(json: &[u8]) -> Result<Option<String>, Broken> {
    let mut cursor = Cursor::new(json);
    if cursor.peek()? != b'{' {
        return Ok(None);
    }
    let mut members = cursor.object()?;
    while let Some(name) = cursor.field(&mut members)? {
        let value = cursor.value()?;
        if name.is("selector") {
            return string(value);
        }
    }
    Ok(None)
}

/// A string value, or none if the value has another type.
fn string(json: &[u8]) -> Result<Option<String>, Broken> {
    let text = Cursor::new(json).text_or_skip()?;
    text.map(|text| text.read().map(std::borrow::Cow::into_owned)).transpose()
}
