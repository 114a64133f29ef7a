//! Transcript lines, which both informers produce.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The annotation that every write of an object changes.
pub(crate) const STEP: &str = "e2e/step";

/// An object at one version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct State {
    pub(crate) key: String,
    pub(crate) uid: String,
    #[serde(serialize_with = "write_version", deserialize_with = "read_version")]
    pub(crate) version: u64,
    /// The content: see [`STEP`].
    #[serde(default)]
    pub(crate) step: String,
}

/// A line of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum Line {
    Added {
        object: State,
        /// Whether it was in the initial list.
        #[serde(default)]
        initial: bool,
    },
    /// A resync if both states are equal.
    Updated { old: State, object: State },
    Deleted {
        object: State,
        /// Whether the deletion was detected by a relist: the state is the last known one.
        #[serde(default)]
        missed: bool,
    },
    /// The handler has received all initial objects, at least up to this version.
    Synced {
        #[serde(serialize_with = "write_version", deserialize_with = "read_version")]
        version: u64,
    },
    /// The content of the cache.
    Cache { objects: Vec<State> },
}

/// All events of one informer, and its final cache.
#[derive(Debug, Clone, Default)]
pub(crate) struct Transcript {
    pub(crate) lines: Vec<Line>,
    pub(crate) cache: Vec<State>,
}

impl Line {
    /// The object that the handler received.
    pub(crate) fn object(&self) -> Option<&State> {
        match self {
            Self::Added { object, .. } | Self::Updated { object, .. } | Self::Deleted { object, .. } => Some(object),
            Self::Synced { .. } | Self::Cache { .. } => None,
        }
    }

    /// Whether the line is a resync of an unchanged object.
    pub(crate) fn is_resync(&self) -> bool {
        matches!(self, Self::Updated { old, object } if old == object)
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Added { object, .. } => write!(f, "added {} at {}", object.key, object.version),
            Self::Updated { object, .. } => write!(f, "updated {} at {}", object.key, object.version),
            Self::Deleted { object, .. } => write!(f, "deleted {} at {}", object.key, object.version),
            Self::Synced { version } => write!(f, "synced to {version}"),
            Self::Cache { objects } => write!(f, "a cache of {} objects", objects.len()),
        }
    }
}

fn write_version<S: Serializer>(version: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(version)
}

fn read_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_reads_as_client_go_prints_it() -> Result<(), serde_json::Error> {
        let line = r#"{"type":"updated","object":{"key":"a/b","uid":"u","version":"7","step":"3"},"old":{"key":"a/b","uid":"u","version":"6","step":"2"}}"#;
        let state = |version, step: &str| State { key: "a/b".into(), uid: "u".into(), version, step: step.into() };
        let updated = Line::Updated { old: state(6, "2"), object: state(7, "3") };
        assert_eq!(serde_json::from_str::<Line>(line)?, updated);
        assert_eq!(serde_json::from_str::<Line>(&serde_json::to_string(&updated)?)?, updated);
        let synced: Line = serde_json::from_str(r#"{"type":"synced","version":"12"}"#)?;
        assert_eq!(synced, Line::Synced { version: 12 });
        Ok(())
    }
}
