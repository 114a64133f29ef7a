//! The object as the core holds it.

use std::sync::Arc;

use bytes::Bytes;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Deserialize;

use super::decoded::Decoded;
use super::kind::{Encoded, Object};
use super::labels::Labels;
use super::owner::{CONTROLS, Owners};
use super::strings::{Gather, Strings};
use super::uid::Uid;
use crate::error::DecodeError;
use crate::key::ObjectKey;
use crate::path::FieldPath;
use crate::version::Version;

/// One object: the metadata that is always needed, and its bytes.
#[derive(Debug)]
pub(crate) struct Raw {
    meta: Meta,
    body: Bytes,
}

/// What is known of an object without its body.
#[derive(Debug)]
pub(crate) struct Meta {
    pub(crate) key: ObjectKey,
    pub(crate) uid: Option<Uid>,
    pub(crate) version: Version,
    pub(crate) generation: Option<i64>,
    /// Boxed: few objects are on their way out.
    pub(crate) deletion: Option<Box<Time>>,
    labels: Option<Strings>,
    owners: Option<Strings>,
}

impl Meta {
    pub(super) fn labels(&self) -> Labels<'_> {
        Labels::new(self.labels.as_ref())
    }

    pub(super) fn owners(&self) -> Owners<'_> {
        Owners(self.owners.as_ref().map(Strings::iter))
    }
}

impl Raw {
    pub(super) fn from_json(json: Bytes) -> Result<Self, DecodeError> {
        #[derive(Deserialize)]
        struct Whole {
            metadata: ObjectMeta,
        }
        let meta = Whole::decode(Encoded::Json(&json))?.metadata;
        let (mut labels, mut owners) = (Gather::default(), Gather::default());
        for (key, value) in meta.labels.iter().flatten() {
            labels
                .push(key)
                .and_then(|()| labels.push(value))
                .ok_or_else(|| DecodeError::fixed::<Self>("label too long"))?;
        }
        for owner in meta.owner_references.iter().flatten() {
            let controls = if owner.controller == Some(true) { CONTROLS } else { "" };
            for text in [&owner.api_version, &owner.kind, &owner.name, &owner.uid, controls] {
                owners.push(text).ok_or_else(|| DecodeError::fixed::<Self>("owner too long"))?;
            }
        }
        let held = |gather: &Gather| Some(gather.to_strings()).filter(|_| !gather.as_str().is_empty());
        let meta = Meta {
            key: ObjectKey::namespaced(meta.namespace.unwrap_or_default(), meta.name.unwrap_or_default()),
            uid: meta.uid.map(Uid::new),
            version: Version::new(meta.resource_version.unwrap_or_default()),
            generation: meta.generation,
            deletion: meta.deletion_timestamp.map(Box::new),
            labels: held(&labels),
            owners: held(&owners),
        };
        Ok(Self { meta, body: json })
    }

    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

    pub(super) fn json(&self) -> Bytes {
        self.body.clone()
    }

    pub(super) fn annotation(&self, key: &str) -> Option<String> {
        let json: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        Some(json.get("metadata")?.get("annotations")?.get(key)?.as_str()?.to_owned())
    }

    pub(super) fn value_at(&self, path: &FieldPath) -> Option<String> {
        crate::codec::find(&self.body, path)
    }

    pub(super) fn decode<K: Object>(&self) -> Result<K, DecodeError> {
        K::decode(Encoded::Json(&self.body))
    }

    pub(super) fn decoded(&self) -> Arc<Decoded> {
        Arc::default()
    }

    pub(super) fn weight(&self) -> usize {
        size_of::<Self>() + self.body.len()
    }
}
