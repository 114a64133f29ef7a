//! What is known of an object without its body.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use parking_lot::Mutex;

use super::labels::Labels;
use super::owner::{CONTROLS, Owners};
use super::strings::{Gather, Strings};
use super::uid::Uid;
use crate::codec::{Broken, Found, Text, each_owner, each_string};
use crate::keeper::Interner;
use crate::key::ObjectKey;
use crate::version::Version;

/// The metadata that is always at hand.
#[derive(Debug)]
pub(crate) struct Meta {
    pub(crate) key: ObjectKey,
    pub(crate) uid: Option<Uid>,
    pub(crate) version: Version,
    generation: i64,
    /// Boxed: few objects are on their way out.
    pub(crate) deletion: Option<Box<Time>>,
    labels: Option<Strings>,
    owners: Option<Strings>,
}

/// In place of a generation: half the size of an `Option`.
const NO_GENERATION: i64 = i64::MIN;

impl Meta {
    /// Out of what a scan found. Label sets and owners are shared with other objects of the same store.
    pub(crate) fn of(found: &Found<'_>, interner: Option<&Mutex<Interner>>) -> Result<Self, Broken> {
        let read = |text: Option<Text<'_>>| text.map(|text| text.read().map(Cow::into_owned)).transpose();
        let name = found.name.ok_or(Broken::Shape)?.read()?;
        let namespace = found.namespace.map_or(Ok(Cow::Borrowed("")), |text| text.read())?;
        let held = |gather: &Gather| {
            let shared =
                || interner.map_or_else(|| gather.as_str().into(), |interner| interner.lock().intern(gather.as_str()));
            (!gather.as_str().is_empty()).then(|| Strings::from(shared()))
        };
        Ok(Self {
            key: ObjectKey::namespaced(namespace, name),
            uid: found.uid.map(|text| text.read().map(Uid::new)).transpose()?,
            version: found.version.map_or(Ok(Cow::Borrowed("")), |text| text.read()).map(Version::new)?,
            generation: found.generation.unwrap_or(NO_GENERATION),
            deletion: read(found.deletion)?.and_then(|text| text.parse().ok()).map(|time| Box::new(Time(time))),
            labels: held(&labels(found.labels)?),
            owners: held(&owners(found.owners)?),
        })
    }

    pub(super) fn generation(&self) -> Option<i64> {
        Some(self.generation).filter(|generation| *generation != NO_GENERATION)
    }

    pub(super) fn labels(&self) -> Labels<'_> {
        Labels::new(self.labels.as_ref())
    }

    pub(super) fn owners(&self) -> Owners<'_> {
        Owners(self.owners.as_ref().map(Strings::iter))
    }
}

fn labels(json: Option<&[u8]>) -> Result<Gather, Broken> {
    let mut gather = Gather::default();
    if let Some(json) = json {
        each_string(json, |key, value| {
            gather.push(&key.read()?).ok_or(Broken::Text)?;
            gather.push(&value.read()?).ok_or(Broken::Text)
        })?;
    }
    Ok(gather)
}

fn owners(json: Option<&[u8]>) -> Result<Gather, Broken> {
    let mut gather = Gather::default();
    if let Some(json) = json {
        each_owner(json, |owner| {
            for text in [owner.api_version, owner.kind, owner.name, owner.uid] {
                let text = text.map_or(Ok(Cow::Borrowed("")), |text| text.read())?;
                gather.push(&text).ok_or(Broken::Text)?;
            }
            gather.push(if owner.controls { CONTROLS } else { "" }).ok_or(Broken::Text)
        })?;
    }
    Ok(gather)
}
