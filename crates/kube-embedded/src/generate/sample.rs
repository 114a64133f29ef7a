//! One generated object.

use std::ops::Range;

use serde_json::Value;

use super::writer::Writer;
use crate::encoding::protobuf;

/// One generated object: its JSON as an API server would send it, and its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    group_version: &'static str,
    plural: &'static str,
    namespace: Option<String>,
    name: String,
    json: Vec<u8>,
    /// Byte ranges of uid and resourceVersion in the JSON, in order.
    given: Vec<Range<usize>>,
}

impl Sample {
    pub(super) fn namespaced(
        group_version: &'static str,
        plural: &'static str,
        namespace: &str,
        name: &str,
        w: Writer,
    ) -> Self {
        Self { namespace: Some(namespace.to_owned()), ..Self::cluster(group_version, plural, name, w) }
    }

    pub(super) fn cluster(group_version: &'static str, plural: &'static str, name: &str, w: Writer) -> Self {
        let (json, given) = w.finish();
        Self { group_version, plural, namespace: None, name: name.to_owned(), json, given }
    }

    /// The namespace. `None` for a cluster-scoped kind.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The path of the collection, for creating and listing:
    /// `/api/v1/namespaces/checkout-prod/pods`.
    #[must_use]
    pub fn collection_path(&self) -> String {
        match &self.namespace {
            Some(namespace) => format!("{}/namespaces/{namespace}/{}", self.group_version, self.plural),
            None => format!("{}/{}", self.group_version, self.plural),
        }
    }

    /// The path of the object, for reading and updating.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}/{}", self.collection_path(), self.name)
    }

    /// The object as a server sends it, with uid, resourceVersion and managedFields, keys in the
    /// server's order.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.json
    }

    /// [`Sample::bytes`], without a copy.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.json
    }

    /// The object as a server sends it, decoded.
    #[must_use]
    pub fn to_value(&self) -> Value {
        serde_json::from_slice(&self.json).expect("the generator writes JSON")
    }

    /// The object as a client sends it: without uid and resourceVersion, which the server sets.
    /// Valid for a create and for an unconditional update.
    #[must_use]
    pub fn to_write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.json.len());
        let mut kept = 0;
        for given in &self.given {
            out.extend_from_slice(&self.json[kept..given.start]);
            kept = given.end;
        }
        out.extend_from_slice(&self.json[kept..]);
        out
    }

    /// The object as a server sends it, with this resourceVersion.
    #[must_use]
    pub fn at_version(&self, version: u64) -> Vec<u8> {
        const KEY: &[u8] = br#","resourceVersion":""#;
        let mut out = Vec::with_capacity(self.json.len() + 8);
        let given = self.given.iter().find(|given| self.json[(*given).clone()].starts_with(KEY));
        let Range { start, end } = given.cloned().unwrap_or(0..0);
        out.extend_from_slice(&self.json[..start]);
        out.extend_from_slice(KEY);
        out.extend_from_slice(version.to_string().as_bytes());
        out.push(b'"');
        out.extend_from_slice(&self.json[end..]);
        out
    }
}

impl Sample {
    /// [`Sample::at_version`] as protobuf, without the envelope that names its kind. `None` if the
    /// kind has no protobuf, as custom resources.
    ///
    /// ```
    /// let pod = kube_embedded::generate::Generator::new(7).pod(41);
    /// assert!(pod.to_protobuf(1_000).unwrap().len() < pod.at_version(1_000).len());
    /// ```
    #[must_use]
    pub fn to_protobuf(&self, version: u64) -> Option<Vec<u8>> {
        let mut object = self.to_value();
        object["metadata"]["resourceVersion"] = version.to_string().into();
        let text = |field: &str| object[field].as_str().unwrap_or_default();
        protobuf::message(text("apiVersion"), text("kind"), &object)
    }
}

/// As [`Sample::to_value`], so that a server [loads](crate::Server::load) samples as they are.
impl From<Sample> for Value {
    fn from(sample: Sample) -> Self {
        sample.to_value()
    }
}

/// As [`Sample::to_value`].
impl From<&Sample> for Value {
    fn from(sample: &Sample) -> Self {
        sample.to_value()
    }
}
