//! The object as the core holds it.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;

use super::decoded::Decoded;
use super::kind::{Encoded, Object};
use super::meta::Meta;
use crate::codec::{Extent, each_string, find, scan};
use crate::error::DecodeError;
use crate::keeper::{Dictionary, Forgotten, Keep, Shared};
use crate::path::FieldPath;

/// One object: the metadata that is always needed, and its bytes.
///
/// Metadata never changes. How the body is held may: it is packed when it has gone cold, and what was decoded of it may stay
/// for a while.
#[derive(Debug)]
pub(crate) struct Raw {
    meta: Meta,
    keeper: Arc<Shared>,
    cell: RwLock<Holding>,
}

#[derive(Debug)]
struct Holding {
    body: Body,
    /// What was decoded of it, if it was read not long ago.
    decoded: Option<Arc<Decoded>>,
}

/// The bytes of an object.
#[derive(Debug)]
pub(crate) enum Body {
    Plain(Arc<[u8]>),
    Packed(Box<[u8]>, Arc<Dictionary>),
}

impl Raw {
    pub(crate) fn new(meta: Meta, keeper: Arc<Shared>, body: Body) -> Self {
        Self { meta, keeper, cell: RwLock::new(Holding { body, decoded: None }) }
    }

    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Hands the plain bytes to `read`, with no lock held.
    pub(crate) fn with_plain<T>(&self, read: impl FnOnce(&[u8]) -> T) -> T {
        let holding = self.cell.read();
        match &holding.body {
            Body::Plain(json) => {
                let json = Arc::clone(json);
                drop(holding);
                read(&json)
            }
            Body::Packed(packed, dictionary) => {
                let plain = dictionary.unpack(packed).expect("packed by ourselves, with this dictionary");
                drop(holding);
                read(&plain)
            }
        }
    }

    pub(super) fn json(&self) -> Bytes {
        if let Body::Plain(json) = &self.cell.read().body {
            return Bytes::from_owner(Arc::clone(json));
        }
        self.with_plain(Bytes::copy_from_slice)
    }

    pub(super) fn annotation(&self, key: &str) -> Option<String> {
        self.with_plain(|json| {
            let annotations = scan(json, Extent::Metadata).ok()?.annotations?;
            let mut found = None;
            each_string(annotations, |name, value| {
                if name.is(key) {
                    found = Some(value.read()?.into_owned());
                }
                Ok(())
            })
            .ok()?;
            found
        })
    }

    pub(super) fn value_at(&self, path: &FieldPath) -> Option<String> {
        self.with_plain(|json| find(json, path))
    }

    /// Decodes, always.
    pub(super) fn decode<K: Object>(&self) -> (Result<K, DecodeError>, usize) {
        self.keeper.count_decode();
        self.with_plain(|json| (K::decode(Encoded::Json(json)), json.len()))
    }

    /// What has been decoded so far and is still held, or room for it.
    pub(super) fn decoded(&self) -> Arc<Decoded> {
        self.recent().unwrap_or_default()
    }

    pub(super) fn recent(&self) -> Option<Arc<Decoded>> {
        self.cell.read().decoded.clone()
    }

    /// Holds on to what was just decoded, if the keeper has room.
    pub(super) fn remember(self: &Arc<Self>, decoded: &Arc<Decoded>, bytes: usize) {
        let always = self.keeper.keep() == Keep::Decoded;
        if !always && !self.keeper.recent().takes(bytes) {
            return;
        }
        {
            let mut holding = self.cell.write();
            match &holding.decoded {
                Some(held) if !Arc::ptr_eq(held, decoded) => return,
                Some(_) => {}
                None => holding.decoded = Some(Arc::clone(decoded)),
            }
        }
        if !always {
            self.keeper.recent().admit(self, bytes);
        }
    }

    /// Lets go of what was decoded, unless it was read since it was last asked to.
    pub(crate) fn forget_decoded(&self) -> Forgotten {
        let mut holding = self.cell.write();
        if holding.decoded.as_ref().is_some_and(|decoded| decoded.take_touched()) {
            return Forgotten::Kept;
        }
        Forgotten::Gone(holding.decoded.take())
    }

    /// Packs the body with this dictionary. Gives its plain and its packed size, or none if it already is.
    pub(crate) fn pack(&self, dictionary: &Arc<Dictionary>) -> Option<(usize, usize)> {
        if matches!(&self.cell.read().body, Body::Packed(_, held) if Arc::ptr_eq(held, dictionary)) {
            return None;
        }
        let (plain, body) = self.with_plain(|json| (json.len(), dictionary.pack(json)));
        let packed = Body::Packed(body?, Arc::clone(dictionary));
        let sizes = (plain, packed.len());
        let before = std::mem::replace(&mut self.cell.write().body, packed);
        drop(before);
        Some(sizes)
    }

    pub(super) fn weight(&self) -> usize {
        size_of::<Self>() + self.meta.key.as_str().len() + self.cell.read().body.len()
    }
}

impl Body {
    pub(crate) fn plain(json: &[u8]) -> Self {
        Self::Plain(json.into())
    }

    pub(crate) fn packed(json: &[u8], dictionary: &Arc<Dictionary>) -> Self {
        match dictionary.pack(json) {
            Some(packed) => Self::Packed(packed, Arc::clone(dictionary)),
            None => Self::plain(json),
        }
    }

    /// How many bytes are held.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Plain(json) => json.len(),
            Self::Packed(packed, _) => packed.len(),
        }
    }
}
