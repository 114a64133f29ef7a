//! A stored object: its JSON and the parts that are read without parsing it.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use serde_json::Value;

use super::key::Key;
use crate::encoding::fnv::fnv_1a;
use crate::encoding::json::{self, Encoded};
use crate::encoding::protobuf;
use crate::kinds::Kind;

/// An object's labels, sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Labels(Box<[(Box<str>, Box<str>)]>);

impl Labels {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let at = self.0.binary_search_by(|(n, _)| (**n).cmp(name)).ok()?;
        Some(&self.0[at].1)
    }

    /// The labels in a JSON object.
    pub(crate) fn of(labels: &Value) -> Self {
        let labels = labels.as_object().into_iter().flatten();
        labels.filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))).collect()
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Labels {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(labels: I) -> Self {
        let mut labels: Vec<(Box<str>, Box<str>)> = labels.into_iter().map(|(n, v)| (n.into(), v.into())).collect();
        labels.sort_unstable();
        labels.dedup_by(|b, a| a.0 == b.0);
        Self(labels.into())
    }
}

/// An object ready to be written: everything except its revision, which is known only at commit.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) key: Key,
    encoded: Encoded,
    labels: Labels,
    fields: Box<[Box<str>]>,
    uid_hash: u64,
}

impl Draft {
    /// Encodes an object in the storage version of its kind.
    pub(crate) fn new(stored: &Kind, key: Key, object: &Value) -> Self {
        Self {
            key,
            encoded: json::encode(stored, object),
            labels: Labels::of(&object["metadata"]["labels"]),
            fields: stored.selectable_fields().iter().map(|field| field.value(object).into()).collect(),
            uid_hash: fnv_1a(object["metadata"]["uid"].as_str().unwrap_or_default().bytes()),
        }
    }
}

/// One immutable version of an object.
#[derive(Debug)]
pub(crate) struct Object {
    key: Key,
    revision: u64,
    json: Bytes,
    version: Range<u32>,
    metadata: Range<u32>,
    /// The number of leading bytes that an item of a list omits, the opening brace included.
    prefix: u32,
    labels: Labels,
    fields: Box<[Box<str>]>,
    uid_hash: u64,
    /// The protobuf message, encoded on first use and kept with the object.
    message: OnceLock<Box<[u8]>>,
}

impl Object {
    pub(crate) fn new(draft: Draft, revision: u64) -> Self {
        let digits = revision.to_string();
        let at = draft.encoded.head().len();
        let metadata = draft.encoded.metadata();
        Self {
            key: draft.key,
            revision,
            version: narrow(&(at..at + digits.len())),
            metadata: narrow(&(metadata.start..metadata.end + digits.len())),
            prefix: draft.encoded.type_prefix().max(1) as u32,
            json: draft.encoded.at_version(&digits).into(),
            labels: draft.labels,
            fields: draft.fields,
            uid_hash: draft.uid_hash,
            message: OnceLock::new(),
        }
    }

    /// A copy with another revision, for the event of a deletion.
    pub(crate) fn under(&self, revision: u64) -> Self {
        let digits = revision.to_string();
        let (start, end) = (self.version.start as usize, self.version.end as usize);
        let mut json = Vec::with_capacity(self.json.len() + 4);
        json.extend_from_slice(&self.json[..start]);
        json.extend_from_slice(digits.as_bytes());
        json.extend_from_slice(&self.json[end..]);
        Self {
            key: self.key.clone(),
            revision,
            version: narrow(&(start..start + digits.len())),
            metadata: self.metadata.start..self.metadata.end - self.version.end + (start + digits.len()) as u32,
            prefix: self.prefix,
            json: json.into(),
            labels: self.labels.clone(),
            fields: self.fields.clone(),
            uid_hash: self.uid_hash,
            message: OnceLock::new(),
        }
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// The object in its storage version, as the real server encodes it, without a trailing line
    /// break.
    pub(crate) fn json(&self) -> &Bytes {
        &self.json
    }

    /// The object as an item of a typed list: without kind, apiVersion and the opening brace.
    pub(crate) fn item_tail(&self) -> &[u8] {
        &self.json[self.prefix as usize..]
    }

    /// The JSON of `metadata`.
    pub(crate) fn metadata(&self) -> &[u8] {
        &self.json[self.metadata.start as usize..self.metadata.end as usize]
    }

    /// The protobuf message of the object in its storage version. For a custom resource: only that
    /// of its metadata.
    pub(crate) fn message(self: &Arc<Self>, stored: &Kind) -> &[u8] {
        self.message.get_or_init(|| {
            let value = self.to_value();
            let message = match stored.is_custom() {
                true => protobuf::metadata_message(&value),
                false => protobuf::message(stored.api_version(), &stored.kind, &value).unwrap_or_default(),
            };
            message.into_boxed_slice()
        })
    }

    /// The cached result of [`Object::message`]; empty if that was not called yet.
    pub(crate) fn cached_message(&self) -> &[u8] {
        self.message.get().map(|message| &**message).unwrap_or_default()
    }

    /// The hash of the uid, which shard selectors select by.
    pub(crate) fn uid_hash(&self) -> u64 {
        self.uid_hash
    }

    pub(crate) fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The values of the kind's selectable fields other than name and namespace, in the kind's
    /// order.
    pub(crate) fn fields(&self) -> &[Box<str>] {
        &self.fields
    }

    /// Whether the draft has the same content as this object.
    pub(crate) fn is_same_as(&self, draft: &Draft) -> bool {
        self.json[..self.version.start as usize] == *draft.encoded.head()
            && self.json[self.version.end as usize..] == *draft.encoded.tail()
    }

    pub(crate) fn to_value(self: &Arc<Self>) -> Value {
        serde_json::from_slice(&self.json).expect("stored bytes were written by our own encoder")
    }
}

/// Narrows a range to `u32`: the size limit of requests keeps objects far below 4 GiB.
fn narrow(range: &Range<usize>) -> Range<u32> {
    range.start as u32..range.end as u32
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn draft() -> Draft {
        let registry = crate::kinds::Registry::new();
        let pods = registry.find("", "v1", "pods").unwrap();
        let pod = json!({"metadata": {"name": "a", "labels": {"x": "y"}}, "spec": {"nodeName": "n"}});
        Draft::new(&pods, Key::new(Some("ns"), "a"), &pod)
    }

    #[test]
    fn an_object_knows_its_parts_whatever_its_revision_is() {
        let object = Arc::new(Object::new(draft(), 7));
        assert_eq!(object.metadata(), br#"{"name":"a","resourceVersion":"7","labels":{"x":"y"}}"#);
        let later = object.under(12345);
        assert_eq!(later.metadata(), br#"{"name":"a","resourceVersion":"12345","labels":{"x":"y"}}"#);
        assert!(later.item_tail().starts_with(br#""metadata":{"#));
        assert_eq!(later.under(7).json(), object.json());
        assert!(object.is_same_as(&draft()));
        assert_eq!(object.labels().get("x"), Some("y"));
    }
}
