//! The properties of a request that rules can match.

use crate::api::access::Action;
use crate::http::query::Query;
use crate::http::request::{Head, ResourcePath, Target, Verb};

/// The properties of a request that rules can match.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    verb: Option<Verb>,
    resource: Option<&'a ResourcePath>,
    path: &'a str,
    query: &'a Query,
    user: &'a str,
}

impl<'a> Request<'a> {
    pub(crate) fn new(head: &'a Head, user: &'a str) -> Self {
        let resource = match &head.target {
            Target::Resource(path) => Some(path),
            _ => None,
        };
        Self { verb: head.verb(), resource, path: head.uri.path(), query: &head.query, user }
    }

    /// The verb. `None` if the request is not for a resource.
    #[must_use]
    pub fn verb(&self) -> Option<Verb> {
        self.verb
    }

    /// The group and the plural name of the resource.
    #[must_use]
    pub fn resource(&self) -> Option<(&'a str, &'a str)> {
        self.resource.map(|path| (path.group.as_str(), path.resource.as_str()))
    }

    /// The subresource, such as `status`.
    #[must_use]
    pub fn subresource(&self) -> Option<&'a str> {
        self.resource.and_then(|path| path.subresource.as_deref())
    }

    /// The namespace.
    #[must_use]
    pub fn namespace(&self) -> Option<&'a str> {
        self.resource.and_then(|path| path.namespace.as_deref())
    }

    /// The object's name.
    #[must_use]
    pub fn name(&self) -> Option<&'a str> {
        self.resource.and_then(|path| path.name.as_deref())
    }

    /// The path, without the query.
    #[must_use]
    pub fn path(&self) -> &'a str {
        self.path
    }

    /// The first value of a query parameter.
    #[must_use]
    pub fn query(&self, parameter: &str) -> Option<&'a str> {
        self.query.get(parameter)
    }

    /// The name of the user.
    #[must_use]
    pub fn user(&self) -> &'a str {
        self.user
    }

    /// The request as an access rule sees it.
    pub(super) fn action(&self) -> Action<'a> {
        match self.resource {
            Some(path) => Action::Resource {
                verb: self.verb.map_or("", Verb::name),
                group: &path.group,
                resource: &path.resource,
                subresource: path.subresource.as_deref(),
                namespace: path.namespace.as_deref(),
                name: path.name.as_deref(),
            },
            None => Action::path("", self.path),
        }
    }
}
