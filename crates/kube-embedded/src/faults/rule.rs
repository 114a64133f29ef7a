//! Which requests fail, how often and from when.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::request::Request;
use super::{Fault, Stage};
use crate::http::request::Verb;

/// Which requests fail, how often, from when, and how. A new one means every request, always; each method narrows it
/// down. Several verbs are alternatives, as are several resources, namespaces or users; everything else must hold at once.
#[derive(Debug, Clone)]
#[must_use = "a rule does nothing until it is injected"]
pub struct Rule {
    pub(super) fault: Fault,
    pub(super) times: Times,
    pub(super) skip: u64,
    pub(super) delay: Duration,
    verbs: Vec<Verb>,
    resources: Vec<(String, String)>,
    namespaces: Vec<String>,
    users: Vec<String>,
    predicates: Vec<Predicate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Times {
    Always,
    Exactly(u64),
}

impl Rule {
    /// Every request fails so. Faults that count events mean watches only.
    pub fn new(fault: Fault) -> Self {
        Self {
            fault,
            times: Times::Always,
            skip: 0,
            delay: Duration::ZERO,
            verbs: Vec::new(),
            resources: Vec::new(),
            namespaces: Vec::new(),
            users: Vec::new(),
            predicates: Vec::new(),
        }
    }

    /// Requests with this verb.
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verbs.push(verb);
        self
    }

    /// Requests with one of these verbs.
    pub fn verbs(mut self, verbs: impl IntoIterator<Item = Verb>) -> Self {
        self.verbs.extend(verbs);
        self
    }

    /// Requests for this resource, its subresources included: its group (`""` for the core group) and its plural.
    pub fn resource(mut self, group: impl Into<String>, plural: impl Into<String>) -> Self {
        self.resources.push((group.into(), plural.into()));
        self
    }

    /// Requests for one object or a collection in this namespace. Requests for all namespaces are not meant.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespaces.push(namespace.into());
        self
    }

    /// Requests of this user.
    pub fn user(mut self, name: impl Into<String>) -> Self {
        self.users.push(name.into());
        self
    }

    /// Requests whose path begins so.
    pub fn path_prefix(self, prefix: impl Into<String>) -> Self {
        let prefix = prefix.into();
        self.when(move |request| request.path().starts_with(&prefix))
    }

    /// Requests whose query has this parameter with this value.
    pub fn query(self, parameter: impl Into<String>, value: impl Into<String>) -> Self {
        let (parameter, value) = (parameter.into(), value.into());
        self.when(move |request| request.query(&parameter) == Some(value.as_str()))
    }

    /// Requests whose query has this parameter, with any value but an empty one.
    pub fn query_given(self, parameter: impl Into<String>) -> Self {
        let parameter = parameter.into();
        self.when(move |request| request.query(&parameter).is_some_and(|value| !value.is_empty()))
    }

    /// Requests that this function says yes to. It is asked while the rules are locked, so it must not touch them.
    pub fn when(mut self, predicate: impl Fn(&Request<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.predicates.push(Predicate(Arc::new(predicate)));
        self
    }

    /// So many requests, and then no more (always).
    pub fn times(mut self, times: u64) -> Self {
        self.times = Times::Exactly(times);
        self
    }

    /// Once. The same as `times(1)`.
    pub fn once(self) -> Self {
        self.times(1)
    }

    /// Lets so many requests that it fits pass first (none).
    pub fn after(mut self, requests: u64) -> Self {
        self.skip = requests;
        self
    }

    /// Begins so long after the injection, by tokio's clock (at once). Requests before that do not count for
    /// [`Rule::after`].
    pub fn after_time(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    pub(super) fn fits(&self, request: &Request<'_>) -> bool {
        let (verb, resource) = (request.verb(), request.resource());
        let one_of = |wanted: &[String], is: Option<&str>| {
            wanted.is_empty() || is.is_some_and(|is| wanted.iter().any(|wanted| wanted == is))
        };
        let resource_fits =
            |is: (&str, &str)| self.resources.iter().any(|(group, plural)| (group.as_str(), plural.as_str()) == is);
        (self.fault.stage() != Stage::Events || verb == Some(Verb::Watch))
            && (self.verbs.is_empty() || verb.is_some_and(|verb| self.verbs.contains(&verb)))
            && (self.resources.is_empty() || resource.is_some_and(resource_fits))
            && one_of(&self.namespaces, request.namespace())
            && one_of(&self.users, Some(request.user()))
            && self.predicates.iter().all(|predicate| (predicate.0)(request))
    }
}

#[derive(Clone)]
struct Predicate(Arc<dyn Fn(&Request<'_>) -> bool + Send + Sync>);

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate")
    }
}
