//! Rules: which requests fail, how many and from when.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::request::Request;
use super::{Fault, Stage};
use crate::api::access::{self, Attributes, User};
use crate::http::request::Verb;

/// Which requests fail, how many, from when, and how.
///
/// A new rule matches every request, always; each method narrows it down. The pattern is that of
/// an [`access::Rule`]: several verbs are alternatives, as are several resources, namespaces, names
/// or users; all other conditions must hold together.
#[derive(Debug, Clone)]
#[must_use = "a rule does nothing until it is injected"]
pub struct Rule {
    pub(super) fault: Fault,
    pub(super) times: Times,
    pub(super) skip: u64,
    pub(super) delay: Duration,
    pattern: access::Rule,
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
            pattern: access::Rule::new(),
            predicates: Vec::new(),
        }
    }

    /// Matches requests with this verb.
    pub fn verb(self, verb: Verb) -> Self {
        self.matching(|pattern| pattern.verb(verb))
    }

    /// Matches requests with one of these verbs.
    pub fn verbs(self, verbs: impl IntoIterator<Item = Verb>) -> Self {
        self.matching(|pattern| pattern.verbs(verbs))
    }

    /// Matches requests for this resource and its subresources, by group (`""` for the core group)
    /// and plural name; with `pods/status` only those for that subresource.
    pub fn resource(self, group: impl Into<String>, resource: impl AsRef<str>) -> Self {
        let (group, resource) = (group.into(), resource.as_ref());
        if resource.contains('/') {
            return self.matching(|pattern| pattern.resource(group, resource));
        }
        let subresources = format!("{resource}/*");
        self.matching(|pattern| pattern.resource(group.clone(), resource).resource(group, &subresources))
    }

    /// Matches requests for this subresource, such as `status` or `scale`; `""` matches requests
    /// for the objects themselves.
    pub fn subresource(self, subresource: impl Into<String>) -> Self {
        let subresource = subresource.into();
        self.when(move |request| {
            request.resource().is_some() && request.subresource().unwrap_or_default() == subresource
        })
    }

    /// Matches requests for an object or a collection in this namespace. Requests for all
    /// namespaces do not match.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        self.matching(|pattern| pattern.namespace(namespace))
    }

    /// Matches requests for the object with this name, and for its subresources.
    pub fn name(self, name: impl Into<String>) -> Self {
        self.matching(|pattern| pattern.name(name))
    }

    /// Matches requests of this user.
    pub fn user(self, name: impl Into<String>) -> Self {
        self.matching(|pattern| pattern.user(name))
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
        (self.fault.stage() != Stage::Events || request.verb() == Some(Verb::Watch))
            && self.pattern.fits(&Attributes { user: &User::new(request.user()), action: request.action() })
            && self.predicates.iter().all(|predicate| (predicate.0)(request))
    }

    fn matching(self, narrow: impl FnOnce(access::Rule) -> access::Rule) -> Self {
        Self { pattern: narrow(self.pattern), ..self }
    }
}

#[derive(Clone)]
struct Predicate(Arc<dyn Fn(&Request<'_>) -> bool + Send + Sync>);

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate")
    }
}
