//! The record of a group: who holds which range. Pure.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::ObjectMeta;
use kube_informer::Version;
use kube_informer::shard::ShardKey;
use serde::{Deserialize, Serialize};

/// The annotation of the group's lease that has the record.
pub(super) const RECORD: &str = "kube-controller/ranges";
/// The label of all leases of a group: its name.
pub(super) const GROUP: &str = "kube-controller/shard-group";
/// How many ranges a group may have: the record of this many fits into an annotation.
pub(super) const MAX_RANGES: usize = 256;

/// The versions that the caches of a member had, by resource.
pub type Versions = BTreeMap<String, Version>;

/// Who holds which range. Changed only by an update that names the version that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) key: ShardKey,
    /// Ranges of equal size, in the order of their hashes.
    pub(super) ranges: Vec<Entry>,
    /// Members that get no more ranges, because they are about to end.
    pub(super) leaving: BTreeSet<String>,
}

/// One range.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Entry {
    /// The member that holds it.
    pub(super) holder: Option<String>,
    /// The number of times that it was claimed.
    pub(super) epoch: u64,
    /// What the last holder had seen when it released the range; `None` if that is not known.
    pub(super) versions: Option<Versions>,
}

/// Why the record of a group cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum InvalidRecord {
    #[error("its annotation {RECORD} cannot be read: {0}")]
    Text(String),
    #[error("it has {0} ranges instead of a power of two up to {MAX_RANGES}")]
    Ranges(usize),
    #[error("its objects are divided by {0}, and not by {1} as in this program")]
    Key(&'static str, &'static str),
}

#[derive(Serialize, Deserialize)]
struct RecordText {
    key: String,
    ranges: Vec<EntryText>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    leaving: BTreeSet<String>,
}

#[derive(Serialize, Deserialize)]
struct EntryText {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    holder: String,
    epoch: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    versions: Option<BTreeMap<String, String>>,
}

impl Record {
    /// A record in which no range is held.
    pub(super) fn new(key: ShardKey, ranges: usize) -> Self {
        Self { key, ranges: vec![Entry::default(); ranges], leaving: BTreeSet::new() }
    }

    /// Reads the record of a group's lease; `None` if it has none yet.
    pub(super) fn read(lease: &Lease, key: ShardKey) -> Result<Option<Self>, InvalidRecord> {
        let Some(text) = lease.metadata.annotations.as_ref().and_then(|all| all.get(RECORD)) else { return Ok(None) };
        let text: RecordText = serde_json::from_str(text).map_err(|error| InvalidRecord::Text(error.to_string()))?;
        let Some(found) = [ShardKey::Uid, ShardKey::Namespace].into_iter().find(|key| name(*key) == text.key) else {
            return Err(InvalidRecord::Text(format!("its key is {:?}", text.key)));
        };
        if found != key {
            return Err(InvalidRecord::Key(name(found), name(key)));
        }
        if !is_range_count(text.ranges.len()) {
            return Err(InvalidRecord::Ranges(text.ranges.len()));
        }
        let ranges = text.ranges.into_iter().map(|entry| Entry {
            holder: Some(entry.holder).filter(|holder| !holder.is_empty()),
            epoch: entry.epoch,
            versions: entry.versions.map(|all| all.into_iter().map(|(of, text)| (of, Version::new(text))).collect()),
        });
        Ok(Some(Self { key, ranges: ranges.collect(), leaving: text.leaving }))
    }

    /// The lease with this record.
    pub(super) fn written(&self, lease: Option<&Lease>, group: &str) -> Lease {
        let mut lease = lease.cloned().unwrap_or_else(|| Lease { metadata: metadata(group, group), spec: None });
        let ranges = self.ranges.iter().map(|entry| EntryText {
            holder: entry.holder.clone().unwrap_or_default(),
            epoch: entry.epoch,
            versions: entry
                .versions
                .as_ref()
                .map(|all| all.iter().map(|(of, version)| (of.clone(), version.to_string())).collect()),
        });
        let text =
            RecordText { key: name(self.key).to_owned(), ranges: ranges.collect(), leaving: self.leaving.clone() };
        // Maps with text keys can always be written.
        let text = serde_json::to_string(&text).unwrap_or_default();
        lease.metadata.annotations.get_or_insert_default().insert(RECORD.to_owned(), text);
        lease
    }
}

/// Whether a group can have this many ranges.
pub(super) fn is_range_count(count: usize) -> bool {
    count.is_power_of_two() && count <= MAX_RANGES
}

/// The metadata of a new lease of a group.
pub(super) fn metadata(name: &str, group: &str) -> ObjectMeta {
    let labels = BTreeMap::from([(GROUP.to_owned(), group.to_owned())]);
    ObjectMeta { name: Some(name.to_owned()), labels: Some(labels), ..ObjectMeta::default() }
}

fn name(key: ShardKey) -> &'static str {
    match key {
        ShardKey::Uid => "uid",
        ShardKey::Namespace => "namespace",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

    use super::*;

    fn lease(text: &str) -> Lease {
        let mut lease = Lease { metadata: metadata("group", "group"), spec: None };
        lease.metadata.annotations = Some(BTreeMap::from([(RECORD.to_owned(), text.to_owned())]));
        lease
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut record = Record::new(ShardKey::Uid, 4);
        record.ranges[1] = Entry { holder: Some("a.1".to_owned()), epoch: 7, versions: None };
        let versions = Versions::from([("websites.example.com".to_owned(), Version::from(12))]);
        record.ranges[2] = Entry { holder: None, epoch: 3, versions: Some(versions) };
        record.leaving.insert("b.1".to_owned());
        let lease = record.written(None, "group");
        assert_eq!(Record::read(&lease, ShardKey::Uid).unwrap(), Some(record.clone()));
        assert_eq!(lease.metadata.labels.as_ref().unwrap()[GROUP], "group");
        assert_eq!(
            lease.metadata.annotations.as_ref().unwrap()[RECORD],
            r#"{"key":"uid","ranges":[{"epoch":0},{"holder":"a.1","epoch":7},{"epoch":3,"versions":{"websites.example.com":"12"}},{"epoch":0}],"leaving":["b.1"]}"#
        );
    }

    #[test]
    fn what_others_have_set_on_the_lease_remains() {
        let mut before = lease("");
        before.metadata.annotations.as_mut().unwrap().insert("theirs".to_owned(), "x".to_owned());
        let after = Record::new(ShardKey::Uid, 1).written(Some(&before), "group");
        assert_eq!(after.metadata.annotations.unwrap()["theirs"], "x");
    }

    #[test]
    fn records_that_are_not_understood_are_errors() {
        let refused = |text: &str| Record::read(&lease(text), ShardKey::Uid).unwrap_err().to_string();
        assert!(refused("{").starts_with("its annotation kube-controller/ranges cannot be read: "));
        assert_eq!(
            refused(r#"{"key":"name","ranges":[]}"#),
            "its annotation kube-controller/ranges cannot be read: its key is \"name\""
        );
        assert_eq!(
            refused(r#"{"key":"namespace","ranges":[{"epoch":0}]}"#),
            "its objects are divided by namespace, and not by uid as in this program"
        );
        assert_eq!(
            refused(r#"{"key":"uid","ranges":[{"epoch":0},{"epoch":0},{"epoch":0}]}"#),
            "it has 3 ranges instead of a power of two up to 256"
        );
        assert!(refused(r#"{"key":"uid","ranges":[]}"#).contains("0 ranges"));
        assert_eq!(Record::read(&Lease::default(), ShardKey::Uid), Ok(None));
    }
}
