//! The metadata of an object.

use std::borrow::Cow;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use parking_lot::Mutex;

use super::Interner;
use super::ObjectKey;
use super::Version;
use super::labels::Labels;
use super::owner::{IS_CONTROLLER, Owners};
use super::strings::{Strings, StringsEncoder};
use super::uid::Uid;
use super::with_scratch;
use crate::codec::{Broken, Deleted, ScannedObject};

/// The metadata that is decoded when an object is received.
#[derive(Debug)]
pub(crate) struct Meta {
    pub(crate) key: ObjectKey,
    pub(crate) uid: Option<Uid>,
    pub(crate) version: Version,
    generation: i64,
    /// Boxed: few objects are being deleted.
    pub(crate) deletion: Option<Box<Time>>,
    /// Labels, then owners. The same for all pods of a replica set, and interned: stored once per
    /// store.
    labels_and_owners: Option<Strings>,
}

/// Stands for no generation: half the size of an `Option`.
const NO_GENERATION: i64 = i64::MIN;

impl Meta {
    /// Creates the metadata from a scan. Label sets and owners are shared with other objects of the
    /// same store.
    pub(crate) fn of(found: &ScannedObject<'_>, interner: Option<&Mutex<Interner>>) -> Result<Self, Broken> {
        let name = found.name.ok_or(Broken::Shape)?.read()?;
        let namespace = found.namespace.map_or(Ok(Cow::Borrowed("")), |text| text.read())?;
        let labels_and_owners = with_scratch(|text| {
            let mut bytes = std::mem::take(text).into_bytes();
            let any = encode_labels_and_owners(found, &mut bytes)?;
            *text = String::from_utf8(bytes).map_err(|_| Broken::Text)?;
            Ok(any.then(|| interner.map_or_else(|| text.as_str().into(), |interner| interner.lock().intern(text))))
        })?;
        Ok(Self {
            key: ObjectKey::namespaced(namespace, name),
            uid: found.uid.map(|text| text.read().map(Uid::new)).transpose()?,
            version: found.version.map_or(Ok(Cow::Borrowed("")), |text| text.read()).map(Version::new)?,
            generation: found.generation.unwrap_or(NO_GENERATION),
            deletion: deleted(found)?.map(|time| Box::new(Time(time))),
            labels_and_owners: labels_and_owners.map(Strings::from),
        })
    }

    /// JSON of an object with only its key and version.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        let mut metadata = serde_json::json!({"name": self.key.name(), "resourceVersion": self.version.to_string()});
        if let Some(namespace) = self.key.namespace() {
            metadata["namespace"] = namespace.into();
        }
        serde_json::json!({ "metadata": metadata }).to_string().into()
    }

    pub(crate) fn generation(&self) -> Option<i64> {
        Some(self.generation).filter(|generation| *generation != NO_GENERATION)
    }

    /// Labels and owners as stored: within one store, equal ones share one allocation.
    pub(crate) fn labels_and_owners(&self) -> Option<&Strings> {
        self.labels_and_owners.as_ref()
    }

    pub(crate) fn labels(&self) -> Labels<'_> {
        self.labels_and_owners.as_ref().map_or_else(Labels::default, Strings::labels)
    }

    pub(crate) fn owners(&self) -> Owners<'_> {
        let mut strings = self.labels_and_owners.as_ref().map(Strings::iter).unwrap_or_default();
        let labels = strings.number().unwrap_or_default();
        Owners::new(strings, labels)
    }
}

/// The deletion timestamp. An invalid time counts as none.
fn deleted(found: &ScannedObject<'_>) -> Result<Option<Timestamp>, Broken> {
    Ok(match found.deletion {
        None => None,
        Some(Deleted::Text(text)) => text.read()?.parse().ok(),
        Some(Deleted::Seconds(seconds)) => Timestamp::from_second(seconds).ok(),
    })
}

/// Encodes the number of labels, the labels and the owners. Returns whether there are any.
fn encode_labels_and_owners(found: &ScannedObject<'_>, into: &mut Vec<u8>) -> Result<bool, Broken> {
    // Placeholder of the number of labels, which takes one byte in all but a few objects.
    into.push(0);
    let mut labels_and_owners = StringsEncoder::new(into);
    let mut count = 0;
    found.each_label(|key, value| {
        count += 1;
        labels_and_owners.push(&key.bytes()?).ok_or(Broken::Text)?;
        labels_and_owners.push(&value.bytes()?).ok_or(Broken::Text)
    })?;
    let mut any = count > 0;
    found.each_owner(|owner| {
        any = true;
        for text in [owner.api_version, owner.kind, owner.name, owner.uid] {
            let text = text.map_or(Ok(Cow::default()), |text| text.bytes())?;
            labels_and_owners.push(&text).ok_or(Broken::Text)?;
        }
        labels_and_owners.push(if owner.controls { IS_CONTROLLER.as_bytes() } else { b"" }).ok_or(Broken::Text)
    })?;
    match u8::try_from(count) {
        Ok(byte @ ..0x80) => into[0] = byte,
        _ => {
            let mut number = Vec::new();
            StringsEncoder::new(&mut number).number(count).ok_or(Broken::Text)?;
            into.splice(..1, number);
        }
    }
    Ok(any)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Extent, scan};

    fn labels(count: usize) -> String {
        let labels: Vec<String> = (0..count).map(|n| format!(r#""k{n:04}":"v{n}""#)).collect();
        format!(r#"{{"metadata":{{"name":"a","labels":{{{}}},"ownerReferences":[{{"name":"o"}}]}}}}"#, labels.join(","))
    }

    #[test]
    fn any_number_of_labels_comes_back_with_the_owners_behind_them() {
        for count in [0, 1, 127, 128, 129, 2048, 5000] {
            let json = labels(count);
            let meta = Meta::of(&scan(json.as_bytes(), Extent::Metadata).unwrap(), None).unwrap();
            let read: Vec<String> = meta.labels().iter().map(|(key, value)| format!("{key}={value}")).collect();
            let written: Vec<String> = (0..count).map(|n| format!("k{n:04}=v{n}")).collect();
            assert_eq!(read, written);
            assert_eq!(meta.owners().map(|owner| owner.name()).collect::<Vec<_>>(), ["o"]);
        }
    }

    #[test]
    fn text_that_is_no_text_is_refused_wherever_it_is_cut() {
        // Half a character at the end of a key, the other half at the start of its value.
        for (key, value) in [(&b"\xc3"[..], &b"\xa4"[..]), (b"a", b"\xff"), (b"\xa4", b"a")] {
            let json = [br#"{"metadata":{"name":"a","labels":{""#, key, br#"":""#, value, br#""}}}"#].concat();
            let found = scan(&json, Extent::Metadata).unwrap();
            assert_eq!(Meta::of(&found, None).unwrap_err(), Broken::Text);
        }
    }
}
