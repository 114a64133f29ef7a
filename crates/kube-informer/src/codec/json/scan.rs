//! Scanning of an object's bytes for its metadata.

use super::cursor::{Broken, Cursor, Text};
use crate::codec::protobuf;
use crate::codec::wire::Wire;

/// How far to scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Up to the beginning of `metadata`: kind and apiVersion, if they precede it.
    Types,
    /// Up to the end of `metadata`. Kind and apiVersion are found if they precede it, as every
    /// server writes them.
    Metadata,
    /// Up to the end of the object.
    Whole,
}

/// The result of a scan. Fields of the wrong type are skipped: the object stays visible, and
/// decoding its body reports the error.
#[derive(Debug, Clone, Default)]
pub struct ScannedObject<'a> {
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
    pub deletion: Option<Deleted<'a>>,
    /// The bytes of `metadata.labels`.
    pub labels: Option<&'a [u8]>,
    /// The bytes of `metadata.annotations`.
    pub annotations: Option<&'a [u8]>,
    /// The bytes of `metadata.ownerReferences`.
    pub owners: Option<&'a [u8]>,
    /// Whether the object has a `metadata` object.
    pub has_metadata: bool,
    /// The format of labels, annotations and owners.
    pub wire: Wire,
}

/// The time at which deletion was requested.
#[derive(Debug, Clone, Copy)]
pub enum Deleted<'a> {
    /// As text, as in JSON.
    Text(Text<'a>),
    /// Seconds since 1970, as in protobuf.
    Seconds(i64),
}

/// Scans an object for its metadata.
pub fn scan(object: &[u8], extent: Extent) -> Result<ScannedObject<'_>, Broken> {
    match Wire::of(object) {
        Wire::Json => scan_json(object, extent),
        Wire::Protobuf => protobuf::scan(object),
    }
}

fn scan_json(json: &[u8], extent: Extent) -> Result<ScannedObject<'_>, Broken> {
    let mut found = ScannedObject::default();
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

impl<'a> ScannedObject<'a> {
    /// Calls `take` for each label.
    pub(crate) fn each_label(&self, take: impl FnMut(Text<'a>, Text<'a>) -> Result<(), Broken>) -> Result<(), Broken> {
        self.labels.map_or(Ok(()), |labels| self.each_string(labels, take))
    }

    /// Calls `take` for each annotation.
    pub(crate) fn each_annotation(
        &self,
        take: impl FnMut(Text<'a>, Text<'a>) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        self.annotations.map_or(Ok(()), |annotations| self.each_string(annotations, take))
    }

    fn each_string(
        &self,
        bytes: &'a [u8],
        take: impl FnMut(Text<'a>, Text<'a>) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        match self.wire {
            Wire::Json => each_string(bytes, take),
            Wire::Protobuf => protobuf::each_string(bytes, take),
        }
    }

    /// Calls `take` for each owner reference.
    pub(crate) fn each_owner(&self, take: impl FnMut(OwnerFound<'a>) -> Result<(), Broken>) -> Result<(), Broken> {
        match (self.owners, self.wire) {
            (None, _) => Ok(()),
            (Some(owners), Wire::Json) => each_owner(owners, take),
            (Some(owners), Wire::Protobuf) => protobuf::each_owner(owners, take),
        }
    }

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
                self.deletion = cursor.text_or_skip()?.map(Deleted::Text);
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

/// Calls `take` for each string member of an object, such as labels; members of other types are
/// skipped.
fn each_string<'a>(
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

/// One owner reference, not yet decoded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OwnerFound<'a> {
    pub(crate) api_version: Option<Text<'a>>,
    pub(crate) kind: Option<Text<'a>>,
    pub(crate) name: Option<Text<'a>>,
    pub(crate) uid: Option<Text<'a>>,
    pub(crate) controls: bool,
}

/// Calls `take` for each owner reference.
fn each_owner<'a>(json: &'a [u8], mut take: impl FnMut(OwnerFound<'a>) -> Result<(), Broken>) -> Result<(), Broken> {
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
