//! The metadata of one object, found in its bytes.

use super::cursor::{Broken, Cursor, Text};

/// How far to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Until metadata begins: kind and apiVersion, if they come first.
    Types,
    /// Until metadata has been read. Kind and apiVersion are found if they come first, as every server writes them.
    Metadata,
    /// To the object's end.
    Whole,
}

/// What a scan found. Fields of a wrong type are passed over: the object stays visible, reading its body will tell.
#[derive(Debug, Clone, Default)]
pub struct Found<'a> {
    /// The kind.
    pub kind: Option<Text<'a>>,
    /// The apiVersion.
    pub api_version: Option<Text<'a>>,
    /// `metadata.name`
    pub name: Option<Text<'a>>,
    /// `metadata.namespace`
    pub namespace: Option<Text<'a>>,
    /// `metadata.uid`
    pub uid: Option<Text<'a>>,
    /// `metadata.resourceVersion`
    pub version: Option<Text<'a>>,
    /// `metadata.generation`
    pub generation: Option<i64>,
    /// `metadata.deletionTimestamp`
    pub deletion: Option<Text<'a>>,
    /// The bytes of `metadata.labels`.
    pub labels: Option<&'a [u8]>,
    /// The bytes of `metadata.annotations`.
    pub annotations: Option<&'a [u8]>,
    /// The bytes of `metadata.ownerReferences`.
    pub owners: Option<&'a [u8]>,
    /// Whether there was a `metadata` at all.
    pub has_metadata: bool,
}

/// Scans an object for its metadata.
pub fn scan(json: &[u8], extent: Extent) -> Result<Found<'_>, Broken> {
    let mut found = Found::default();
    let mut cursor = Cursor::new(json);
    let mut members = cursor.object()?;
    while let Some(name) = cursor.field(&mut members)? {
        if name.is("metadata") {
            if extent == Extent::Types {
                break;
            }
            if cursor.peek()? == b'{' {
                found.metadata(&mut cursor)?;
            } else {
                cursor.skip()?;
            }
            if extent == Extent::Metadata {
                break;
            }
        } else if name.is("kind") {
            found.kind = cursor.text_or_skip()?;
        } else if name.is("apiVersion") {
            found.api_version = cursor.text_or_skip()?;
        } else {
            cursor.skip()?;
        }
    }
    Ok(found)
}

impl<'a> Found<'a> {
    fn metadata(&mut self, cursor: &mut Cursor<'a>) -> Result<(), Broken> {
        self.has_metadata = true;
        let mut members = cursor.object()?;
        while let Some(name) = cursor.field(&mut members)? {
            if name.is("name") {
                self.name = cursor.text_or_skip()?;
            } else if name.is("namespace") {
                self.namespace = cursor.text_or_skip()?;
            } else if name.is("uid") {
                self.uid = cursor.text_or_skip()?;
            } else if name.is("resourceVersion") {
                self.version = cursor.text_or_skip()?;
            } else if name.is("deletionTimestamp") {
                self.deletion = cursor.text_or_skip()?;
            } else if name.is("labels") {
                self.labels = Some(cursor.value()?);
            } else if name.is("annotations") {
                self.annotations = Some(cursor.value()?);
            } else if name.is("ownerReferences") {
                self.owners = Some(cursor.value()?);
            } else if name.is("generation") {
                let value = cursor.value()?;
                self.generation = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
            } else {
                cursor.skip()?;
            }
        }
        Ok(())
    }
}

/// Walks the members of an object of strings, such as labels; members that are no strings are passed over.
pub(crate) fn each_string<'a>(
    json: &'a [u8],
    mut take: impl FnMut(Text<'a>, Text<'a>) -> Result<(), Broken>,
) -> Result<(), Broken> {
    let mut cursor = Cursor::new(json);
    if cursor.peek()? != b'{' {
        return Ok(());
    }
    let mut members = cursor.object()?;
    while let Some(name) = cursor.field(&mut members)? {
        if let Some(value) = cursor.text_or_skip()? {
            take(name, value)?;
        }
    }
    Ok(())
}

/// One owner reference as written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OwnerFound<'a> {
    pub(crate) api_version: Option<Text<'a>>,
    pub(crate) kind: Option<Text<'a>>,
    pub(crate) name: Option<Text<'a>>,
    pub(crate) uid: Option<Text<'a>>,
    pub(crate) controls: bool,
}

/// Walks the owner references.
pub(crate) fn each_owner<'a>(
    json: &'a [u8],
    mut take: impl FnMut(OwnerFound<'a>) -> Result<(), Broken>,
) -> Result<(), Broken> {
    let mut cursor = Cursor::new(json);
    if cursor.peek()? != b'[' {
        return Ok(());
    }
    let mut elements = cursor.list()?;
    while cursor.element(&mut elements)? {
        if cursor.peek()? != b'{' {
            cursor.skip()?;
            continue;
        }
        let mut owner = OwnerFound::default();
        let mut members = cursor.object()?;
        while let Some(name) = cursor.field(&mut members)? {
            if name.is("apiVersion") {
                owner.api_version = cursor.text_or_skip()?;
            } else if name.is("kind") {
                owner.kind = cursor.text_or_skip()?;
            } else if name.is("name") {
                owner.name = cursor.text_or_skip()?;
            } else if name.is("uid") {
                owner.uid = cursor.text_or_skip()?;
            } else if name.is("controller") {
                owner.controls = cursor.value()? == b"true";
            } else {
                cursor.skip()?;
            }
        }
        take(owner)?;
    }
    Ok(())
}
