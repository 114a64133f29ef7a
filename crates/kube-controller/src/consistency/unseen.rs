//! What a key has written and the caches may not have yet. Pure.

use std::collections::BTreeMap;

use kube_informer::{ObjectKey, Uid, Version};

/// The number of a cache within its controller.
pub(crate) type CacheId = usize;

/// Writes to single objects that are awaited one by one; beyond that the greatest version is
/// awaited, which implies the others.
const MAX_SINGLE: usize = 32;

/// What a key has written that the caches of its controller may not have yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unseen {
    caches: BTreeMap<CacheId, Expected>,
    /// Requests that were sent and are not answered yet.
    in_flight: usize,
}

/// What one cache must have.
#[derive(Debug, Clone, Default)]
struct Expected {
    /// A version that the cache as a whole must have reached.
    version: Option<Version>,
    /// Objects that the cache must have in this version or a later one.
    objects: BTreeMap<ObjectKey, Version>,
    /// Objects that the cache must not have any more.
    gone: BTreeMap<ObjectKey, Uid>,
    /// The namespaces (none: cluster scope) of writes whose outcome is unknown.
    lost: Vec<Option<Box<str>>>,
}

/// A consistent state of a cache.
pub(crate) trait CacheState {
    /// The version that the cache has reached.
    fn version(&self) -> Option<Version>;
    /// The uid and version of an object.
    fn object(&self, key: &ObjectKey) -> Option<(Option<Uid>, Version)>;
}

impl Unseen {
    /// Records a write whose response had this version.
    pub(crate) fn wrote(&mut self, cache: CacheId, key: ObjectKey, version: Version) {
        // A version without an order cannot be waited for.
        if version.number().is_none() {
            return;
        }
        let expected = self.caches.entry(cache).or_default();
        let greatest = expected.objects.entry(key).or_insert_with(|| version.clone());
        if *greatest < version {
            *greatest = version;
        }
        expected.fold_many();
    }

    /// Records the deletion of an object.
    pub(crate) fn deleted(&mut self, cache: CacheId, key: ObjectKey, uid: Uid) {
        self.caches.entry(cache).or_default().gone.insert(key, uid);
    }

    /// Records a write whose outcome is unknown.
    pub(crate) fn lost(&mut self, cache: CacheId, namespace: Option<&str>) {
        let lost = &mut self.caches.entry(cache).or_default().lost;
        let namespace = namespace.map(Box::from);
        if !lost.contains(&namespace) {
            lost.push(namespace);
        }
    }

    /// Returns the writes whose outcome is unknown.
    pub(crate) fn to_resolve(&self) -> impl Iterator<Item = (CacheId, Option<&str>)> {
        self.caches
            .iter()
            .flat_map(|(cache, expected)| expected.lost.iter().map(|namespace| (*cache, namespace.as_deref())))
    }

    /// Replaces a write whose outcome is unknown by the version that the server had after it.
    pub(crate) fn resolve(&mut self, cache: CacheId, namespace: Option<&str>, version: Version) {
        let expected = self.caches.entry(cache).or_default();
        expected.lost.retain(|lost| lost.as_deref() != namespace);
        expected.raise(version);
    }

    /// Forgets what is expected of a cache beyond this version: the server has gone back to it.
    pub(crate) fn went_back(&mut self, cache: CacheId, version: Version) {
        if let Some(expected) = self.caches.get_mut(&cache) {
            expected.objects.clear();
            expected.version = Some(version);
        }
    }

    /// Forgets what is expected of a cache.
    pub(crate) fn forget(&mut self, cache: CacheId) {
        self.caches.remove(&cache);
    }

    /// A request begins that will end with [`ended`](Self::ended).
    pub(crate) fn began(&mut self) {
        self.in_flight += 1;
    }

    pub(crate) fn ended(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    pub(crate) fn is_in_flight(&self) -> bool {
        self.in_flight > 0
    }

    /// Drops what this cache has; returns whether that was all that it must have.
    pub(crate) fn compare(&mut self, cache: CacheId, state: &impl CacheState) -> bool {
        let Some(expected) = self.caches.get_mut(&cache) else { return true };
        expected.compare(state);
        let has_all = expected.is_empty();
        if has_all {
            self.caches.remove(&cache);
        }
        has_all
    }

    /// Returns whether every cache has everything.
    pub(crate) fn is_empty(&self) -> bool {
        self.caches.is_empty() && self.in_flight == 0
    }

    /// Returns whether this cache may not have the last write to an object yet.
    pub(crate) fn concerns(&self, cache: CacheId, key: &ObjectKey) -> bool {
        self.caches.get(&cache).is_some_and(|expected| {
            let is_named = expected.objects.contains_key(key) || expected.gone.contains_key(key);
            is_named || expected.version.is_some() || !expected.lost.is_empty()
        })
    }

    /// Returns the caches that do not have everything, each with what to wait for.
    pub(crate) fn caches(&self) -> impl Iterator<Item = (CacheId, Awaited)> {
        self.caches.iter().map(|(cache, expected)| (*cache, expected.awaited()))
    }
}

/// What to wait for; each of both is worth another comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Awaited {
    /// A version of the whole cache.
    pub(crate) version: Option<Version>,
    /// A state of one object.
    pub(crate) object: Option<(ObjectKey, AwaitedState)>,
}

/// What an object must become.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AwaitedState {
    /// It has this version or a later one.
    Version(Version),
    /// It is not there, or has another uid.
    Gone(Uid),
}

impl Awaited {
    /// Returns whether nothing of this cache can be waited for: what is missing is not known yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.version.is_none() && self.object.is_none()
    }
}

impl AwaitedState {
    pub(crate) fn is_reached(&self, uid: Option<&Uid>, version: Option<&Version>) -> bool {
        match self {
            Self::Version(awaited) => version.is_some_and(|version| version >= awaited),
            Self::Gone(gone) => uid != Some(gone),
        }
    }
}

impl Expected {
    fn raise(&mut self, version: Version) {
        if version.number().is_some() && self.version.as_ref().is_none_or(|known| *known < version) {
            self.version = Some(version);
        }
    }

    fn fold_many(&mut self) {
        if self.objects.len() > MAX_SINGLE {
            for version in std::mem::take(&mut self.objects).into_values() {
                self.raise(version);
            }
        }
    }

    fn compare(&mut self, state: &impl CacheState) {
        let reached = state.version();
        let has = |version: &Version| reached.as_ref().is_some_and(|reached| reached >= version);
        if self.version.as_ref().is_some_and(has) {
            self.version = None;
        }
        let is_reached = |key: &ObjectKey, awaited: AwaitedState| {
            let cached = state.object(key);
            let (uid, version) = cached.as_ref().map_or((None, None), |(uid, version)| (uid.as_ref(), Some(version)));
            awaited.is_reached(uid, version)
        };
        self.objects.retain(|key, version| !has(version) && !is_reached(key, AwaitedState::Version(version.clone())));
        self.gone.retain(|key, uid| !is_reached(key, AwaitedState::Gone(uid.clone())));
    }

    fn is_empty(&self) -> bool {
        self.version.is_none() && self.objects.is_empty() && self.gone.is_empty() && self.lost.is_empty()
    }

    fn awaited(&self) -> Awaited {
        let versions = self.objects.values().chain(&self.version);
        let version = versions.max_by_key(|version| version.number()).cloned();
        // With a version of the whole cache to reach, no single object ends the wait.
        let object = match &self.version {
            Some(_) => None,
            None => {
                let object = self.objects.first_key_value();
                let object = object.map(|(key, version)| (key, AwaitedState::Version(version.clone())));
                let gone = self.gone.first_key_value().map(|(key, uid)| (key, AwaitedState::Gone(uid.clone())));
                object.or(gone).map(|(key, state)| (key.clone(), state))
            }
        };
        Awaited { version, object }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[derive(Default)]
    struct Cache {
        version: u64,
        objects: HashMap<ObjectKey, (Uid, u64)>,
    }

    impl CacheState for Cache {
        fn version(&self) -> Option<Version> {
            Some(self.version.into())
        }

        fn object(&self, key: &ObjectKey) -> Option<(Option<Uid>, Version)> {
            self.objects.get(key).map(|(uid, version)| (Some(uid.clone()), (*version).into()))
        }
    }

    fn key(name: &str) -> ObjectKey {
        ObjectKey::namespaced("ns", name)
    }

    #[test]
    fn a_write_is_seen_once_the_cache_has_its_version_or_a_later_one() {
        let mut unseen = Unseen::default();
        unseen.wrote(0, key("a"), 10.into());
        let mut cache = Cache { version: 9, ..Cache::default() };
        assert!(!unseen.compare(0, &cache) && !unseen.is_empty());
        cache.version = 10;
        assert!(unseen.compare(0, &cache) && unseen.is_empty());
    }

    /// In a cache of several namespaces the version is that of the slowest namespace.
    #[test]
    fn a_write_is_seen_once_the_object_itself_is_cached() {
        let mut unseen = Unseen::default();
        unseen.wrote(0, key("a"), 10.into());
        let cache = Cache { version: 3, objects: HashMap::from([(key("a"), (Uid::new("u"), 11))]) };
        assert!(unseen.compare(0, &cache));
    }

    #[test]
    fn an_older_response_does_not_lower_what_is_expected() {
        let mut unseen = Unseen::default();
        unseen.wrote(0, key("a"), 10.into());
        unseen.wrote(0, key("a"), 8.into());
        assert!(!unseen.compare(0, &Cache { version: 9, ..Cache::default() }));
    }

    #[test]
    fn a_deletion_is_seen_once_the_uid_is_gone_even_if_the_name_is_taken_again() {
        let mut unseen = Unseen::default();
        unseen.deleted(0, key("a"), Uid::new("old"));
        let mut cache = Cache { version: 99, objects: HashMap::from([(key("a"), (Uid::new("old"), 5))]) };
        assert!(!unseen.compare(0, &cache));
        cache.objects.insert(key("a"), (Uid::new("new"), 7));
        assert!(unseen.compare(0, &cache));
    }

    #[test]
    fn a_write_of_unknown_outcome_is_not_seen_before_it_is_resolved() {
        let mut unseen = Unseen::default();
        unseen.lost(0, Some("ns"));
        let mut cache = Cache { version: 99, ..Cache::default() };
        assert!(!unseen.compare(0, &cache));
        assert_eq!(unseen.to_resolve().collect::<Vec<_>>(), [(0, Some("ns"))]);
        unseen.resolve(0, Some("ns"), 100.into());
        assert!(!unseen.compare(0, &cache));
        cache.version = 100;
        assert!(unseen.compare(0, &cache) && unseen.is_empty());
    }

    #[test]
    fn a_request_in_flight_is_not_seen() {
        let mut unseen = Unseen::default();
        unseen.began();
        assert!(!unseen.is_empty());
        unseen.ended();
        assert!(unseen.is_empty());
    }

    #[test]
    fn many_writes_are_awaited_as_one_version() {
        let mut unseen = Unseen::default();
        for nth in 0..100_u64 {
            unseen.wrote(0, key(&format!("{nth}")), (1000 - nth).into());
        }
        let expected = &unseen.caches[&0];
        assert!(expected.objects.len() <= MAX_SINGLE && expected.version == Some(1000.into()));
        assert!(!unseen.compare(0, &Cache { version: 999, ..Cache::default() }));
        assert!(unseen.compare(0, &Cache { version: 1000, ..Cache::default() }));
    }

    #[test]
    fn versions_without_an_order_are_not_awaited() {
        let mut unseen = Unseen::default();
        unseen.wrote(0, key("a"), Version::new("abc"));
        assert!(unseen.is_empty());
    }

    #[test]
    fn caches_are_awaited_separately() {
        let mut unseen = Unseen::default();
        unseen.wrote(0, key("a"), 10.into());
        unseen.wrote(1, key("b"), 20.into());
        assert!(unseen.compare(0, &Cache { version: 10, ..Cache::default() }) && !unseen.is_empty());
        let object = (key("b"), AwaitedState::Version(20.into()));
        let awaited = Awaited { version: Some(20.into()), object: Some(object) };
        assert_eq!(unseen.caches().collect::<Vec<_>>(), [(1, awaited)]);
    }
}
