//! Who may do what: bearer tokens, and rules that allow or deny.
//!
//! A server starts [open](Access::open): everybody may do everything. A test of permissions hands it something stricter,
//! and may do so again while the server runs. Refusals are what a real server answers: 401 for a token nobody knows, 403
//! for what a user may not do, word for word.
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
mod rule;

use std::collections::BTreeMap;

use serde_json::Value;

pub(crate) use attributes::Wanted;
pub use attributes::{Action, Attributes};
pub use rule::Rule;

use crate::http::request::Verb;
use crate::http::status::Status;

const AUTHENTICATED: &str = "system:authenticated";
const UNAUTHENTICATED: &str = "system:unauthenticated";
const MASTERS: &str = "system:masters";

/// Who is known to a server, and what they may do.
///
/// Rules are asked from the last one back: the first that fits decides, so a later rule is an exception to the ones
/// before it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "nothing changes until a server is given it"]
pub struct Access {
    tokens: BTreeMap<String, User>,
    rules: Vec<(Effect, Rule)>,
    stranger: Stranger,
}

/// Somebody who sends requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    name: String,
    groups: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    Allow,
    Deny,
}

/// Who somebody without a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stranger {
    /// Nobody needs one: `system:admin`.
    Admin,
    /// `system:anonymous`.
    Anonymous,
}

impl Access {
    /// Everybody may do everything, and no token is asked for.
    ///
    /// With the first [token](Self::token) the ones who send none become `system:anonymous`, though they may still do
    /// everything unless a rule denies it.
    pub fn open() -> Self {
        Self { tokens: BTreeMap::new(), rules: vec![(Effect::Allow, Rule::new())], stranger: Stranger::Admin }
    }

    /// Nobody may do anything but what a real server allows from the start: everybody may ask for its version and
    /// health, everybody with a token for discovery and what they may do, and the group `system:masters` for anything.
    pub fn closed() -> Self {
        let public = ["/healthz", "/livez", "/readyz", "/version", "/version/"];
        let discovery = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"];
        let health = public.into_iter().fold(Rule::new(), Rule::path);
        let discovery = discovery.into_iter().fold(Rule::new().group(AUTHENTICATED), Rule::path);
        let questions = Rule::new()
            .group(AUTHENTICATED)
            .verb(Verb::Create)
            .resource("authorization.k8s.io", "selfsubjectaccessreviews")
            .resource("authorization.k8s.io", "selfsubjectrulesreviews")
            .resource("authentication.k8s.io", "selfsubjectreviews");
        Self { tokens: BTreeMap::new(), rules: Vec::new(), stranger: Stranger::Anonymous }
            .allow(health)
            .allow(discovery)
            .allow(questions)
            .allow(Rule::new().group(MASTERS))
    }

    /// Makes a bearer token known. From then on a token that is not known is answered with 401.
    pub fn token(mut self, token: impl Into<String>, user: User) -> Self {
        self.tokens.insert(token.into(), user);
        self.stranger = Stranger::Anonymous;
        self
    }

    /// Allows what a rule says, unless a later one denies it.
    pub fn allow(mut self, rule: Rule) -> Self {
        self.rules.push((Effect::Allow, rule));
        self
    }

    /// Denies what a rule says, unless a later one allows it.
    pub fn deny(mut self, rule: Rule) -> Self {
        self.rules.push((Effect::Deny, rule));
        self
    }

    /// Who sent a request with this `Authorization` header. Other schemes than bearer tokens count as none.
    ///
    /// # Errors
    ///
    /// 401, if the token is not known.
    pub fn authenticate(&self, authorization: Option<&str>) -> Result<User, Status> {
        match (self.stranger, authorization.and_then(bearer)) {
            (Stranger::Admin, _) => Ok(User::new("system:admin").group(MASTERS).authenticated()),
            (Stranger::Anonymous, None) => Ok(User::new("system:anonymous").group(UNAUTHENTICATED)),
            (Stranger::Anonymous, Some(token)) => match self.tokens.get(token) {
                Some(user) => Ok(user.clone().authenticated()),
                None => Err(Status::new(401, "Unauthorized", "Unauthorized")),
            },
        }
    }

    /// Whether a user may do something.
    ///
    /// # Errors
    ///
    /// 403, in the words of a real server. It sends the header `X-Content-Type-Options: nosniff` with this one.
    pub fn check(&self, attributes: &Attributes<'_>) -> Result<(), Status> {
        let decided = self.rules.iter().rev().find(|(_, rule)| rule.fits(attributes));
        match decided {
            Some((Effect::Allow, _)) => Ok(()),
            Some((Effect::Deny, _)) | None => Err(attributes.forbidden()),
        }
    }

    /// What a user may do: rules about resources, rules about paths, and whether that is all there is to say.
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
    /// A user of this name, in no group.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), groups: Vec::new() }
    }

    /// In this group too. Whoever sends a known token is in `system:authenticated` without being put there.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The groups.
    #[must_use]
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    pub(crate) fn authenticated(self) -> Self {
        if self.groups.iter().any(|group| group == AUTHENTICATED) { self } else { self.group(AUTHENTICATED) }
    }
}

/// The token of a header `Bearer TOKEN`; an empty one is none.
fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests;
