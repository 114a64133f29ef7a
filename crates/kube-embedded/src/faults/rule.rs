//! Rules: which requests fail, how many and from when.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::request::Request;
use super::{Fault, Stage};
use crate::http::request::Verb;

/// Which requests fail, how many, from when, and how.
///
/// A new rule matches every request, always; each method narrows it down. Several verbs are
/// alternatives, as are several resources, namespaces or users; all other conditions must hold
/// together.
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
    /// Makes every request fail with this fault. Faults that count events match watches only.
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

    /// Matches requests with this verb.
    pub fn verb(mut self, verb: Verb) -> Self {
        self.verbs.push(verb);
        self
    }

    /// Matches requests with one of these verbs.
    pub fn verbs(mut self, verbs: impl IntoIterator<Item = Verb>) -> Self {
        self.verbs.extend(verbs);
        self
    }

    /// Matches requests for this resource and its subresources, by group (`""` for the core group)
    /// and plural name.
    pub fn resource(mut self, group: impl Into<String>, plural: impl Into<String>) -> Self {
        self.resources.push((group.into(), plural.into()));
        self
    }

    /// Matches requests for an object or a collection in this namespace. Requests for all
    /// namespaces do not match.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespaces.push(namespace.into());
        self
    }

    /// Matches requests of this user.
    pub fn user(mut self, name: impl Into<String>) -> Self {
        self.users.push(name.into());
        self
    }

    /// Matches requests whose path has this prefix.
    pub fn path_prefix(self, prefix: impl Into<String>) -> Self {
        let prefix = prefix.into();
        self.when(move |request| request.path().starts_with(&prefix))
    }

    /// Matches requests with this value of a query parameter.
    pub fn query(self, parameter: impl Into<String>, value: impl Into<String>) -> Self {
        let (parameter, value) = (parameter.into(), value.into());
        self.when(move |request| request.query(&parameter) == Some(value.as_str()))
    }

    /// Matches requests with a non-empty value of this query parameter.
    pub fn query_given(self, parameter: impl Into<String>) -> Self {
        let parameter = parameter.into();
        self.when(move |request| request.query(&parameter).is_some_and(|value| !value.is_empty()))
    }

    /// Matches requests for which this function returns true. It is called while the rules are
    /// locked, so it must not access them.
    pub fn when(mut self, predicate: impl Fn(&Request<'_>) -> bool + Send + Sync + 'static) -> Self {
        self.predicates.push(Predicate(Arc::new(predicate)));
        self
    }

    /// Fails this many requests, and then no more. By default all.
    pub fn times(mut self, times: u64) -> Self {
        self.times = Times::Exactly(times);
        self
    }

    /// Fails one request. The same as `times(1)`.
    pub fn once(self) -> Self {
        self.times(1)
    }

    /// Lets this many matching requests pass first. By default none.
    pub fn after(mut self, requests: u64) -> Self {
        self.skip = requests;
        self
    }

    /// Takes effect only this long after the injection, by tokio's clock. By default at once.
    /// Earlier requests do not count for [`Rule::after`].
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
