//! The object as the core holds it.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;

use super::decoded::Decoded;
use super::{Decodings, Forgotten, Home, Keep, PACKED, Plain, Press};
use crate::codec::{Extent, Wire, find, find_all, protobuf, scan};
use crate::object::DecodeError;
use crate::object::FieldPath;
use crate::object::Meta;
use crate::object::{Encoded, Object};

/// One object: the metadata that is always needed, and its bytes.
///
/// Metadata never changes. How the body is held may: it is packed when it has gone cold, and what was decoded of it may stay
/// for a while.
#[derive(Debug)]
pub(crate) struct Raw {
    meta: Meta,
    holding: RwLock<Holding>,
}

#[derive(Debug)]
struct Holding {
    body: Body,
    home: Arc<Home>,
    /// What was decoded of it, if it was read not long ago.
    decoded: Option<Arc<Decoded>>,
    /// What decoding it would be.
    decodings: Decodings,
}

/// The bytes of an object: plain if they begin with the brace of JSON or the first letter of protobuf, else packed as the object's
/// home has it.
#[derive(Debug)]
pub(crate) struct Body(Box<[u8]>);

impl Raw {
    pub(crate) fn new(meta: Meta, home: Arc<Home>, body: Body) -> Self {
        Self { meta, holding: RwLock::new(Holding { body, home, decoded: None, decodings: Decodings::First }) }
    }

    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Hands the plain bytes to `read`, with no lock held.
    pub(crate) fn with_plain<T>(&self, read: impl FnOnce(&[u8]) -> T) -> T {
        let plain = self.holding.read().plain(&self.meta);
        read(&plain)
    }

    pub(crate) fn json(&self) -> Bytes {
        let plain = {
            let holding = self.holding.read();
            if Wire::of(&holding.body.0) == Wire::Json && holding.body.is_plain() {
                return Bytes::copy_from_slice(&holding.body.0);
            }
            holding.plain(&self.meta)
        };
        match Wire::of(&plain) {
            Wire::Json => Bytes::copy_from_slice(&plain),
            Wire::Protobuf => protobuf::to_json(&plain).unwrap_or_else(|_| self.meta.to_json()).into(),
        }
    }

    pub(crate) fn annotation(&self, key: &str) -> Option<String> {
        self.with_plain(|body| {
            let mut found = None;
            let read = scan(body, Extent::Metadata).and_then(|all| {
                all.each_annotation(|name, value| {
                    if name.is(key) {
                        found = Some(value.read()?.into_owned());
                    }
                    Ok(())
                })
            });
            found.filter(|_| read.is_ok())
        })
    }

    pub(crate) fn value_at(&self, path: &FieldPath) -> Option<String> {
        self.with_plain(|body| find(body, path))
    }

    pub(crate) fn values_at(&self, path: &FieldPath) -> Vec<String> {
        self.with_plain(|body| find_all(body, path))
    }

    /// Decodes, always. Gives the length of the JSON too, or what it would be about.
    pub(crate) fn decode<K: Object>(&self) -> (Result<K, DecodeError>, usize) {
        let plain = {
            let holding = self.holding.read();
            holding.home.common().count_decode();
            holding.plain(&self.meta)
        };
        match Wire::of(&plain) {
            Wire::Json => (K::decode(Encoded::Json(&plain)), plain.len()),
            Wire::Protobuf => (K::decode(Encoded::Protobuf(&plain)), plain.len() * 7 / 5),
        }
    }

    /// What has been decoded so far and is still held, or room for it.
    pub(crate) fn decoded(&self) -> Arc<Decoded> {
        self.recent().unwrap_or_default()
    }

    pub(crate) fn recent(&self) -> Option<Arc<Decoded>> {
        let decoded = self.holding.read().decoded.clone()?;
        decoded.found();
        Some(decoded)
    }

    /// Holds on to what was just decoded, if there is room.
    pub(crate) fn remember(self: &Arc<Self>, decoded: &Arc<Decoded>, bytes: usize) {
        let mut holding = self.holding.write();
        let common = Arc::clone(holding.home.common());
        let always = common.keep() == Keep::Decoded;
        if !always && !common.recent().takes(bytes) {
            return;
        }
        match &holding.decoded {
            Some(held) if !Arc::ptr_eq(held, decoded) => return,
            Some(_) => {}
            None => holding.decoded = Some(Arc::clone(decoded)),
        }
        let decodings = std::mem::replace(&mut holding.decodings, Decodings::Further);
        drop(holding);
        if !always {
            common.recent().admit(self, bytes, decodings);
        }
    }

    /// Lets go of what was decoded, unless another handle has found it since it was last asked to.
    pub(crate) fn forget_decoded(&self) -> Forgotten {
        let mut holding = self.holding.write();
        if holding.decoded.as_ref().is_some_and(|decoded| decoded.take_found()) {
            return Forgotten::Kept;
        }
        Forgotten::Gone(holding.decoded.take())
    }

    /// Lays the body into a press, unless it is packed already, for this home if one is given. Gives its plain length.
    pub(crate) fn lay(&self, home: Option<&Arc<Home>>, press: &mut Press) -> Option<usize> {
        let holding = self.holding.read();
        let unpacked;
        let plain: &[u8] = if holding.body.is_plain() {
            // Copied piece by piece: readers do not mind the lock, and once is enough.
            &holding.body.0
        } else if home.is_none_or(|home| Arc::ptr_eq(&holding.home, home)) {
            return None;
        } else {
            unpacked = holding.plain(&self.meta);
            &unpacked
        };
        press.lay(plain, &scan(plain, Extent::Metadata).unwrap_or_default(), &self.meta);
        Some(plain.len())
    }

    /// Holds the body like this from now on: the same bytes, packed.
    pub(crate) fn hold(&self, body: Body, home: Arc<Home>) {
        let before = {
            let mut holding = self.holding.write();
            (std::mem::replace(&mut holding.body, body), std::mem::replace(&mut holding.home, home))
        };
        drop(before);
    }

    /// Hands the packed bytes and their home to `read`.
    pub(crate) fn with_packed<T>(&self, read: impl FnOnce(&[u8], &Home) -> T) -> T {
        let holding = self.holding.read();
        read(&holding.body.0, &holding.home)
    }

    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>() + self.meta.key.as_str().len() + self.holding.read().body.len()
    }
}

impl Holding {
    /// The plain bytes, in a buffer of this thread's, so that the lock need not be held while they are used.
    fn plain(&self, meta: &Meta) -> Plain {
        let plain = if self.body.is_plain() {
            Plain::copy(&self.body.0)
        } else {
            Plain::unpack(&self.body.0, &self.home, meta)
        };
        plain.expect("packed by ourselves, in this home and with this metadata")
    }
}

impl Body {
    /// As it is: JSON, or protobuf.
    pub(crate) fn plain(body: &[u8]) -> Self {
        Self(body.into())
    }

    /// Packed.
    pub(crate) fn packed(body: Box<[u8]>) -> Self {
        Self(body)
    }

    /// How many bytes are held.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    fn is_plain(&self) -> bool {
        self.0.first().is_none_or(|byte| byte & PACKED == 0)
    }
}
