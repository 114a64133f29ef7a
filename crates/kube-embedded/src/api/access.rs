//! Authentication with bearer tokens, and authorization with rules that allow or deny.
//!
//! A server starts [open](Access::open): every user may do everything. A test of permissions sets
//! stricter rules, at the start or while the server runs. Error responses equal those of a real
//! server: 401 for an unknown token, 403 for a forbidden action.
//!
//! A client impersonates another user with the headers `Impersonate-User` and so on, if the rules
//! permit that for each property of the user: rules with the verb `impersonate`, or for some
//! requests only, with `impersonate:user-info` and `impersonate-on:user-info:list`.
//!
//! ```
//! use kube_embedded::Verb;
//! use kube_embedded::access::{Access, Action, Attributes, Rule, User};
//!
//! let access = Access::closed()
//!     .token("s3cret", User::new("alice").group("developers"))
//!     .allow(Rule::new().group("developers").verbs([Verb::Get, Verb::List, Verb::Watch]).resource("", "pods"))
//!     .deny(Rule::new().user("alice").namespace("payments"));
//!
//! let alice = access.authenticate(Some("Bearer s3cret")).unwrap();
//! let list = |namespace| Attributes { user: &alice, action: Action::on("", "pods").verb(Verb::List).namespace(namespace) };
//! assert!(access.check(&list("web")).is_ok());
//!
//! let refused = access.check(&list("payments")).unwrap_err();
//! assert_eq!(refused.code(), 403);
//! assert_eq!(
//!     refused.message(),
//!     r#"pods is forbidden: User "alice" cannot list resource "pods" in API group "" in the namespace "payments""#
//! );
//! ```

mod attributes;
mod impersonation;
mod rule;

use std::collections::BTreeMap;

use serde_json::{Value, json};

pub(crate) use attributes::RequestAction;
pub use attributes::{Action, Attributes};
pub(crate) use impersonation::{impersonate, requested};
pub use rule::Rule;

use crate::http::request::Verb;
use crate::http::status::Status;

const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const MASTERS: &str = "system:masters";

/// The known bearer tokens and the access rules.
///
/// Rules are evaluated from the last to the first: the first match decides, so a later rule is an
/// exception to the earlier ones.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "nothing changes until a server is given it"]
pub struct Access {
    tokens: BTreeMap<String, User>,
    rules: Vec<(Effect, Rule)>,
    without_token: WithoutToken,
}

/// The user that sends a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    name: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Allow,
    Deny,
}

/// The user of requests without a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WithoutToken {
    /// `system:admin`: no token is required.
    Admin,
    /// `system:anonymous`.
    Anonymous,
}

impl Access {
    /// Allows every user everything, without a token.
    ///
    /// With the first [token](Self::token), requests without a token become those of
    /// `system:anonymous`, which may still do everything unless a rule denies it.
    pub fn open() -> Self {
        Self { tokens: BTreeMap::new(), rules: vec![(Effect::Allow, Rule::new())], without_token: WithoutToken::Admin }
    }

    /// Allows only what a real server allows by default: version and health for every client,
    /// discovery and reviews of the client's own access for every client with a known token, and
    /// everything for the group `system:masters`.
    pub fn closed() -> Self {
        let public = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
        let discovery = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"];
        let health = public.into_iter().fold(Rule::new().verb(Verb::Get), Rule::path);
        let discovery = discovery.into_iter().fold(Rule::new().group(AUTHENTICATED).verb(Verb::Get), Rule::path);
        let questions = Rule::new()
            .group(AUTHENTICATED)
            .verb(Verb::Create)
            .resource("authorization.k8s.io", "selfsubjectaccessreviews")
            .resource("authorization.k8s.io", "selfsubjectrulesreviews")
            .resource("authentication.k8s.io", "selfsubjectreviews");
        Self { tokens: BTreeMap::new(), rules: Vec::new(), without_token: WithoutToken::Anonymous }
            .allow(health)
            .allow(discovery)
            .allow(questions)
            .allow(Rule::new().group(MASTERS))
    }

    /// Adds a bearer token. From then on requests with an unknown token get 401.
    pub fn token(mut self, token: impl Into<String>, user: User) -> Self {
        self.tokens.insert(token.into(), user);
        self.without_token = WithoutToken::Anonymous;
        self
    }

    /// Allows the requests that a rule matches, unless a later rule denies them.
    pub fn allow(mut self, rule: Rule) -> Self {
        self.rules.push((Effect::Allow, rule));
        self
    }

    /// Denies the requests that a rule matches, unless a later rule allows them.
    pub fn deny(mut self, rule: Rule) -> Self {
        self.rules.push((Effect::Deny, rule));
        self
    }

    /// The user of a request with this `Authorization` header. Schemes other than bearer tokens
    /// count as no token.
    ///
    /// # Errors
    ///
    /// 401 for an unknown token.
    pub fn authenticate(&self, authorization: Option<&str>) -> Result<User, Status> {
        match (self.without_token, authorization.and_then(bearer)) {
            (WithoutToken::Admin, _) => Ok(User::new("system:admin").group(MASTERS).authenticated()),
            (WithoutToken::Anonymous, None) => Ok(User::new("system:anonymous").group(UNAUTHENTICATED)),
            (WithoutToken::Anonymous, Some(token)) => {
                self.user_of(token).ok_or_else(|| Status::new(401, "Unauthorized", "Unauthorized"))
            }
        }
    }

    /// The user of a known token.
    pub(crate) fn user_of(&self, token: &str) -> Option<User> {
        self.tokens.get(token).map(|user| user.clone().authenticated())
    }

    /// Checks whether a user may perform an action.
    ///
    /// # Errors
    ///
    /// 403, with the message of a real server, which sends it with the header
    /// `X-Content-Type-Options: nosniff`.
    pub fn check(&self, attributes: &Attributes<'_>) -> Result<(), Status> {
        let decided = self.rules.iter().rev().find(|(_, rule)| rule.fits(attributes));
        match decided {
            Some((Effect::Allow, _)) => Ok(()),
            Some((Effect::Deny, _)) | None => Err(attributes.forbidden("")),
        }
    }

    /// The permissions of a user: resource rules, path rules, and whether these lists are complete.
    pub(crate) fn list(&self, user: &User) -> (Vec<Value>, Vec<Value>, bool) {
        let mine: Vec<_> = self.rules.iter().filter(|(_, rule)| rule.fits_user(user)).collect();
        let allowed = || mine.iter().filter(|(effect, _)| *effect == Effect::Allow).map(|(_, rule)| rule);
        let complete = mine.iter().all(|(effect, _)| *effect == Effect::Allow);
        (allowed().flat_map(Rule::on_resources).collect(), allowed().filter_map(Rule::on_paths).collect(), complete)
    }
}

impl Default for Access {
    fn default() -> Self {
        Self::open()
    }
}

impl User {
    /// A user with this name, in no group.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), uid: String::new(), groups: Vec::new(), extra: BTreeMap::new() }
    }

    /// Sets the uid, which reviews of the client's own identity report.
    #[must_use]
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.uid = uid.into();
        self
    }

    /// Adds a group. Users with a known token are in `system:authenticated` without this.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// Adds a value of an extra field, such as `example.com/scopes`.
    #[must_use]
    pub fn extra(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.extra.entry(key.into()).or_default().push(value.into());
        self
    }

    /// The name of the user.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The groups of the user.
    #[must_use]
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    /// The user as reviews and webhooks describe it: without what is empty.
    pub(crate) fn info(&self) -> Value {
        let mut info = json!({"username": self.name, "groups": self.groups});
        if !self.uid.is_empty() {
            info["uid"] = self.uid.as_str().into();
        }
        if !self.extra.is_empty() {
            info["extra"] = json!(self.extra);
        }
        info
    }

    pub(crate) fn authenticated(self) -> Self {
        self.within(AUTHENTICATED)
    }

    /// Adds a group that the user may be in already.
    fn within(self, group: &str) -> Self {
        if self.groups.iter().any(|known| known == group) { self } else { self.group(group) }
    }
}

/// The token of a header `Bearer TOKEN`; an empty token counts as none.
pub(crate) fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests;
