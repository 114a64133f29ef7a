//! What is known of an object without its body.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use parking_lot::Mutex;

use super::labels::Labels;
use super::owner::{CONTROLS, Owners};
use super::strings::{Gather, Strings};
use super::uid::Uid;
use crate::codec::{Broken, Deleted, Found};
use crate::keeper::Interner;
use crate::key::ObjectKey;
use crate::scratch::with_scratch;
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
    /// Labels, then owners: the same for all pods of a replica set, and held once for all of them.
    facts: Option<Strings>,
}

/// In place of a generation: half the size of an `Option`.
const NO_GENERATION: i64 = i64::MIN;

impl Meta {
    /// Out of what a scan found. Label sets and owners are shared with other objects of the same store.
    pub(crate) fn of(found: &Found<'_>, interner: Option<&Mutex<Interner>>) -> Result<Self, Broken> {
        let name = found.name.ok_or(Broken::Shape)?.read()?;
        let namespace = found.namespace.map_or(Ok(Cow::Borrowed("")), |text| text.read())?;
        let facts = with_scratch(|facts| {
            let any = gather(found, facts)?;
            Ok(any.then(|| interner.map_or_else(|| facts.as_str().into(), |interner| interner.lock().intern(facts))))
        })?;
        Ok(Self {
            key: ObjectKey::namespaced(namespace, name),
            uid: found.uid.map(|text| text.read().map(Uid::new)).transpose()?,
            version: found.version.map_or(Ok(Cow::Borrowed("")), |text| text.read()).map(Version::new)?,
            generation: found.generation.unwrap_or(NO_GENERATION),
            deletion: deleted(found)?.map(|time| Box::new(Time(time))),
            facts: facts.map(Strings::from),
        })
    }

    /// An object with nothing but what names it.
    pub(super) fn to_json(&self) -> Vec<u8> {
        let mut metadata = serde_json::json!({"name": self.key.name(), "resourceVersion": self.version.to_string()});
        if let Some(namespace) = self.key.namespace() {
            metadata["namespace"] = namespace.into();
        }
        serde_json::json!({ "metadata": metadata }).to_string().into()
    }

    pub(super) fn generation(&self) -> Option<i64> {
        Some(self.generation).filter(|generation| *generation != NO_GENERATION)
    }

    /// Labels and owners as they are held: equal ones of one store are one allocation.
    pub(crate) fn facts(&self) -> Option<&Strings> {
        self.facts.as_ref()
    }

    pub(crate) fn labels(&self) -> Labels<'_> {
        self.facts.as_ref().map_or_else(Labels::default, |facts| {
            let mut strings = facts.iter();
            let count = strings.number().unwrap_or_default();
            Labels::new(&strings, count)
        })
    }

    pub(crate) fn owners(&self) -> Owners<'_> {
        let mut strings = self.facts.as_ref().map(Strings::iter).unwrap_or_default();
        let labels = strings.number().unwrap_or_default();
        Owners::new(strings, labels)
    }
}

/// A time that is none is as if there were none.
fn deleted(found: &Found<'_>) -> Result<Option<Timestamp>, Broken> {
    Ok(match found.deletion {
        None => None,
        Some(Deleted::Text(text)) => text.read()?.parse().ok(),
        Some(Deleted::Seconds(seconds)) => Timestamp::from_second(seconds).ok(),
    })
}

/// The number of labels, the labels, the owners. Says whether there are any.
fn gather(found: &Found<'_>, into: &mut String) -> Result<bool, Broken> {
    let mut count = 0;
    found.each_label(|_, _| {
        count += 1;
        Ok(())
    })?;
    let mut facts = Gather::into(into);
    facts.number(count).ok_or(Broken::Text)?;
    found.each_label(|key, value| {
        facts.push(&key.read()?).ok_or(Broken::Text)?;
        facts.push(&value.read()?).ok_or(Broken::Text)
    })?;
    let mut any = count > 0;
    found.each_owner(|owner| {
        any = true;
        for text in [owner.api_version, owner.kind, owner.name, owner.uid] {
            let text = text.map_or(Ok(Cow::Borrowed("")), |text| text.read())?;
            facts.push(&text).ok_or(Broken::Text)?;
        }
        facts.push(if owner.controls { CONTROLS } else { "" }).ok_or(Broken::Text)
    })?;
    Ok(any)
}
