//! An object as stored internally: metadata and encoded body.

use std::sync::Arc;

use bytes::Bytes;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use parking_lot::RwLock;

use super::decoded::Decoded;
use super::{AdmissionTime, Compressor, Eviction, Keep, PACKED, PackContext, Plain};
use crate::codec::{Extent, Wire, find, find_all, protobuf, scan};
use crate::object::DecodeError;
use crate::object::FieldPath;
use crate::object::Meta;
use crate::object::{Encoded, Object, managed_fields};

/// One object: its metadata, always decoded, and its encoded body.
///
/// The metadata never changes. The encoding of the body may: it is packed when it is cold, and its
/// decoded form may be cached.
#[derive(Debug)]
pub(crate) struct Raw {
    meta: Meta,
    state: RwLock<BodyState>,
}

#[derive(Debug)]
struct BodyState {
    body: Body,
    context: Arc<PackContext>,
    /// The decoded body, while it is cached.
    decoded: Option<Arc<Decoded>>,
    /// When it was decoded last, unless it never was.
    decoded_at: Option<AdmissionTime>,
}

/// The bytes of an object. Plain if they start with the brace of JSON or the first letter of the
/// protobuf envelope, else packed according to the context of the object.
#[derive(Debug)]
pub(crate) struct Body(Box<[u8]>);

impl Raw {
    pub(crate) fn new(meta: Meta, context: Arc<PackContext>, body: Body) -> Self {
        // One that is decoded on arrival has one place for its decoded forms from the beginning, so
        // that all handles share it.
        let decoded = (context.store().keep() == Keep::Decoded).then(Arc::default);
        Self { meta, state: RwLock::new(BodyState { body, context, decoded, decoded_at: None }) }
    }

    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Calls `read` with the plain bytes, without holding the lock.
    pub(crate) fn with_plain<T>(&self, read: impl FnOnce(&[u8]) -> T) -> T {
        let plain = self.state.read().plain(&self.meta);
        read(&plain)
    }

    pub(crate) fn json(&self) -> Bytes {
        let plain = {
            let state = self.state.read();
            if Wire::of(&state.body.0) == Wire::Json && state.body.is_plain() {
                return Bytes::copy_from_slice(&state.body.0);
            }
            state.plain(&self.meta)
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

    /// Decodes the body, bypassing the cache. Also returns the length of the JSON, estimated for
    /// protobuf.
    pub(crate) fn decode<K: Object>(&self) -> (Result<K, DecodeError>, usize) {
        let (plain, with_managed_fields) = {
            let state = self.state.read();
            let store = state.context.store();
            store.count_decode();
            (state.plain(&self.meta), store.decodes_managed_fields())
        };
        let encoded = Encoded::of(&plain);
        let len = match encoded {
            Encoded::Json(_) => plain.len(),
            Encoded::Protobuf(_) => plain.len() * 7 / 5,
        };
        let decoded = if with_managed_fields { K::decode(encoded) } else { K::decode_without_managed_fields(encoded) };
        (decoded, len)
    }

    pub(crate) fn managed_fields(&self) -> Result<Vec<ManagedFieldsEntry>, DecodeError> {
        self.with_plain(|body| managed_fields(Encoded::of(body)))
    }

    /// The cached decoded body, or an empty one to decode into.
    pub(crate) fn decoded(&self) -> Arc<Decoded> {
        self.cached().unwrap_or_default()
    }

    pub(crate) fn cached(&self) -> Option<Arc<Decoded>> {
        let decoded = self.state.read().decoded.clone()?;
        decoded.set_accessed();
        Some(decoded)
    }

    /// Caches a decoded body, if it fits.
    pub(crate) fn cache_decoded(self: &Arc<Self>, decoded: &Arc<Decoded>, bytes: usize) {
        let store = Arc::clone(self.state.read().context.store());
        if store.keep() == Keep::Decoded || !store.decoded_cache().fits(bytes) {
            // The body has them already, or never does.
            return;
        }
        let mut state = self.state.write();
        match &state.decoded {
            Some(held) if !Arc::ptr_eq(held, decoded) => return,
            Some(_) => {}
            None => state.decoded = Some(Arc::clone(decoded)),
        }
        let now = store.decoded_cache().advance(bytes);
        let before = state.decoded_at.replace(now);
        drop(state);
        store.decoded_cache().admit(self, bytes, before, now);
    }

    /// Decodes the body before it is read, if the store keeps all of them decoded.
    pub(crate) fn decode_ahead<K: Object>(self: &Arc<Self>) {
        let decoded = self.state.read().decoded.clone();
        if let Some(decoded) = decoded {
            decoded.decode_ahead::<K>(self);
        }
    }

    /// Drops the cached decoded body, unless a handle has used it since the last attempt.
    pub(crate) fn evict_decoded(&self) -> Eviction {
        let mut state = self.state.write();
        if state.decoded.as_ref().is_some_and(|decoded| decoded.take_accessed()) {
            return Eviction::Kept;
        }
        Eviction::Evicted(state.decoded.take())
    }

    /// Loads the plain body into the compressor and returns its length. None if the body is already
    /// packed: in any context if `context` is none, else in that one.
    pub(crate) fn load_into(&self, context: Option<&Arc<PackContext>>, compressor: &mut Compressor) -> Option<usize> {
        let state = self.state.read();
        let unpacked;
        let plain: &[u8] = if state.body.is_plain() {
            // Read under the lock, to save a copy: it blocks no readers.
            &state.body.0
        } else if context.is_none_or(|context| Arc::ptr_eq(&state.context, context)) {
            return None;
        } else {
            unpacked = state.plain(&self.meta);
            &unpacked
        };
        compressor.load(plain, &scan(plain, Extent::Metadata).unwrap_or_default(), &self.meta);
        Some(plain.len())
    }

    /// Replaces the body by another encoding of the same bytes.
    pub(crate) fn replace_body(&self, body: Body, context: Arc<PackContext>) {
        let before = {
            let mut state = self.state.write();
            (std::mem::replace(&mut state.body, body), std::mem::replace(&mut state.context, context))
        };
        drop(before);
    }

    /// Calls `read` with the packed bytes and their context, under the lock.
    pub(crate) fn with_packed<T>(&self, read: impl FnOnce(&[u8], &PackContext) -> T) -> T {
        let state = self.state.read();
        read(&state.body.0, &state.context)
    }

    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>() + self.meta.key.as_str().len() + self.state.read().body.len()
    }
}

impl BodyState {
    /// The plain bytes, copied to a thread-local buffer so that the lock need not be held while
    /// they are read.
    fn plain(&self, meta: &Meta) -> Plain {
        let plain = if self.body.is_plain() {
            Plain::copy(&self.body.0)
        } else {
            Plain::unpack(&self.body.0, &self.context, meta)
        };
        plain.expect("packed by ourselves, in this context and with this metadata")
    }
}

impl Body {
    /// Plain JSON or protobuf.
    pub(crate) fn plain(body: &[u8]) -> Self {
        Self(body.into())
    }

    pub(crate) fn packed(body: Box<[u8]>) -> Self {
        Self(body)
    }

    /// Stored length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    fn is_plain(&self) -> bool {
        self.0.first().is_none_or(|byte| byte & PACKED == 0)
    }
}
