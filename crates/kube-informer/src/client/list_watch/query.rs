//! The queries that a source receives.

use std::sync::Arc;
use std::time::Duration;

use crate::object::{ObjectKey, Version};
use crate::shard::Shard;

/// The parameter that selects a shard (KEP-5866).
pub(super) const SHARD_SELECTOR: &str = "shardSelector";

/// A list request. The source itself has the resource, namespace and selectors.
///
/// ```
/// use kube_informer::client::{ListQuery, ListVersion};
///
/// let mut query = ListQuery::new(ListVersion::Any);
/// query.limit = Some(500);
/// assert!(query.continue_token.is_none(), "the first page");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListQuery {
    /// The minimum resource version.
    pub version: ListVersion,
    /// The page size; `None` for no pagination.
    pub limit: Option<u32>,
    /// The continue token of the previous page. The server then continues at the version of that
    /// page, and `version` is not sent.
    pub continue_token: Option<String>,
    /// How much of each object is requested.
    pub detail: Detail,
    /// Requests only this object. A source that cannot do that returns the others as well.
    pub object: Option<ObjectKey>,
    /// Requests only the objects of this shard. A source that cannot do that returns the others as
    /// well; they are not used.
    pub shard: Option<Arc<Shard>>,
}

/// The minimum resource version of a list.
///
/// ```
/// use kube_informer::Version;
/// use kube_informer::client::ListVersion;
///
/// // A custom source may use it like this: it needs to fetch only if it is behind.
/// fn is_enough(wanted: &ListVersion, have: &Version) -> bool {
///     match wanted {
///         ListVersion::Any => true,
///         ListVersion::NotOlderThan(version) => have >= version,
///         _ => false,
///     }
/// }
/// assert!(is_enough(&ListVersion::NotOlderThan(Version::from(7)), &Version::from(9)));
/// assert!(!is_enough(&ListVersion::Latest, &Version::from(9)));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListVersion {
    /// The newest version.
    Latest,
    /// Any version that the server has available.
    Any,
    /// At least this version.
    NotOlderThan(Version),
}

/// How much of each object is requested.
///
/// ```
/// use kube_informer::client::{Detail, ListQuery, ListVersion};
///
/// let query = ListQuery::new(ListVersion::Latest);
/// assert_eq!(query.detail, Detail::Usual);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Detail {
    /// What the source is configured for.
    #[default]
    Usual,
    /// Metadata is sufficient.
    Metadata,
}

/// A watch request.
///
/// ```
/// use std::time::Duration;
/// use kube_informer::Version;
/// use kube_informer::client::{Bookmarks, WatchQuery, WatchStart};
///
/// let query = WatchQuery::new(WatchStart::After(Version::from(7)), Duration::from_secs(300));
/// assert_eq!(query.bookmarks, Bookmarks::Wanted);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WatchQuery {
    /// Where it starts.
    pub start: WatchStart,
    /// Whether the server should send bookmarks.
    pub bookmarks: Bookmarks,
    /// The duration after which the server ends the watch.
    pub timeout: Duration,
    /// Requests only the objects of this shard. A source that cannot do that sends the others as
    /// well; they are not used.
    pub shard: Option<Arc<Shard>>,
}

/// Where a watch starts.
///
/// ```
/// use kube_informer::client::WatchStart;
///
/// // A source without support for streaming lists checks this first.
/// fn is_streaming_list(start: &WatchStart) -> bool {
///     matches!(start, WatchStart::Everything { .. })
/// }
/// assert!(is_streaming_list(&WatchStart::Everything { not_older_than: None }));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum WatchStart {
    /// Changes after this version.
    After(Version),
    /// A streaming list: all objects, at least at this version, or at the newest; a bookmark ends
    /// the initial events.
    Everything {
        /// The minimum version; `None` for the newest.
        not_older_than: Option<Version>,
    },
}

/// Whether a watch requests bookmarks.
///
/// ```
/// use std::time::Duration;
/// use kube_informer::Version;
/// use kube_informer::client::{Bookmarks, WatchQuery, WatchStart};
///
/// let mut query = WatchQuery::new(WatchStart::After(Version::from(7)), Duration::from_secs(300));
/// query.bookmarks = Bookmarks::Unwanted;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Bookmarks {
    /// Bookmarks are requested.
    #[default]
    Wanted,
    /// Bookmarks are not requested.
    Unwanted,
}

impl ListQuery {
    /// A list at this version, without pagination.
    #[must_use]
    pub fn new(version: ListVersion) -> Self {
        Self { version, limit: None, continue_token: None, detail: Detail::Usual, object: None, shard: None }
    }

    /// The query parameters.
    pub(super) fn parameters(&self) -> Parameters {
        let mut parameters = Parameters::default();
        if let Some(shard) = &self.shard {
            parameters.set(SHARD_SELECTOR, shard.query());
        }
        if let Some(limit) = self.limit {
            parameters.set("limit", limit.to_string());
        }
        if let Some(token) = &self.continue_token {
            parameters.set("continue", token);
            return parameters;
        }
        match &self.version {
            ListVersion::Latest => {}
            ListVersion::Any => parameters.set("resourceVersion", "0"),
            ListVersion::NotOlderThan(version) => {
                parameters.set("resourceVersion", version.to_string());
                // With a limit, the version alone would mean exactly that version.
                parameters.set("resourceVersionMatch", "NotOlderThan");
            }
        }
        parameters
    }
}

impl WatchQuery {
    /// A watch with bookmarks.
    #[must_use]
    pub fn new(start: WatchStart, timeout: Duration) -> Self {
        Self { start, bookmarks: Bookmarks::Wanted, timeout, shard: None }
    }

    /// The query parameters.
    pub(super) fn parameters(&self) -> Parameters {
        let mut parameters = Parameters::default();
        parameters.set("watch", "true");
        if let Some(shard) = &self.shard {
            parameters.set(SHARD_SELECTOR, shard.query());
        }
        if self.bookmarks == Bookmarks::Wanted {
            parameters.set("allowWatchBookmarks", "true");
        }
        match &self.start {
            WatchStart::After(version) => parameters.set("resourceVersion", version.to_string()),
            WatchStart::Everything { not_older_than } => {
                if let Some(version) = not_older_than {
                    parameters.set("resourceVersion", version.to_string());
                }
                parameters.set("resourceVersionMatch", "NotOlderThan");
                parameters.set("sendInitialEvents", "true");
            }
        }
        parameters.set("timeoutSeconds", self.timeout.as_secs().to_string());
        parameters
    }
}

/// The query parameters of a request, ordered, with unique names.
///
/// ```
/// use kube_informer::client::Parameters;
///
/// let mut parameters = Parameters::default();
/// parameters.set("limit", "500");
/// parameters.set("limit", "50");
/// assert_eq!(parameters.get("limit"), Some("50"));
/// parameters.remove("limit");
/// assert_eq!(parameters.get("limit"), None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// The value of a parameter.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// Sets a parameter, replacing one of the same name.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// Removes a parameter.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(known, _)| known != name);
    }

    /// The URL-encoded query string.
    pub(super) fn encode(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(&self.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(version: ListVersion, limit: Option<u32>) -> String {
        ListQuery { limit, ..ListQuery::new(version) }.parameters().encode()
    }

    #[test]
    fn any_version_is_asked_for_with_a_limit_too() {
        assert_eq!(list(ListVersion::Any, Some(500)), "limit=500&resourceVersion=0");
        assert_eq!(list(ListVersion::Latest, None), "");
    }

    #[test]
    fn a_list_not_older_never_means_exactly_that_version() {
        let version = ListVersion::NotOlderThan(Version::new("7"));
        assert_eq!(list(version, Some(4)), "limit=4&resourceVersion=7&resourceVersionMatch=NotOlderThan");
    }

    #[test]
    fn a_further_page_names_no_version() {
        let mut query = ListQuery::new(ListVersion::Any);
        query.continue_token = Some("a b".to_owned());
        assert_eq!(query.parameters().encode(), "continue=a+b");
    }

    #[test]
    fn a_streaming_list_asks_for_initial_events_not_older() {
        let start = WatchStart::Everything { not_older_than: None };
        assert_eq!(
            WatchQuery::new(start, Duration::from_secs(300)).parameters().encode(),
            "watch=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&sendInitialEvents=true&timeoutSeconds=300"
        );
        let query = WatchQuery::new(WatchStart::After(Version::new("9")), Duration::from_secs(1));
        assert_eq!(
            query.parameters().encode(),
            "watch=true&allowWatchBookmarks=true&resourceVersion=9&timeoutSeconds=1"
        );
    }
}
