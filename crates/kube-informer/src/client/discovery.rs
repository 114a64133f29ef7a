//! Discovery: the resources that a server serves.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http::header::{ACCEPT, ACCEPT_ENCODING};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use jiff::Timestamp;
use kube::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use self::served::{ResourceScope, Served, Watching};
use super::{Failure, Operation, ServerError, answer};
use crate::object::check_segment;

/// The maximum size of a discovery document: larger than any server's, small enough to buffer.
const MAX_BODY: usize = 16 << 20;

/// How long one discovery request may take.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// How long the request of the server's version may take. Short, because lists and watches wait for
/// it.
const RELEASE_TIME_LIMIT: Duration = Duration::from_secs(5);

/// The maximum size of the server's version: several times that of any server's.
const MAX_RELEASE: usize = 64 << 10;

/// Prefers aggregated discovery (all groups in one document), and falls back to the legacy
/// documents.
const ACCEPT_DISCOVERY: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
                         application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json";

/// Requests all served resources, in the server's order of preference.
pub(crate) async fn discover(client: &Client) -> Result<Vec<Served>, ServerError> {
    let mut served = Vec::new();
    for root in ["/api", "/apis"] {
        match get::<Root>(client, root).await? {
            Root::Groups(groups) => served.extend(groups.items.into_iter().flat_map(Group::served)),
            Root::CoreVersions { versions } => {
                for version in versions {
                    served.extend(of_version(client, "", &version, &format!("/api/{version}")).await?);
                }
            }
            Root::OtherGroups { groups } => {
                for (group, version) in groups.iter().flat_map(LegacyGroup::in_order) {
                    served.extend(of_version(client, group, version, &format!("/apis/{group}/{version}")).await?);
                }
            }
        }
    }
    Ok(served)
}

/// The resources of one version of a group. A group that is unavailable, such as one whose
/// aggregated API server is down, is skipped and does not hide the others.
async fn of_version(client: &Client, group: &str, version: &str, path: &str) -> Result<Vec<Served>, ServerError> {
    let is_name =
        (group.is_empty() || check_segment("group", group).is_ok()) && check_segment("version", version).is_ok();
    if !is_name {
        tracing::warn!(group, version, "the server reports a group whose name is not one; it is skipped");
        return Ok(Vec::new());
    }
    match get::<Resources>(client, path).await {
        Ok(list) => Ok(list.resources.into_iter().filter_map(|resource| resource.served(group, version)).collect()),
        Err(error) if error.status().is_some() => {
            tracing::debug!(%error, path, "a group could not be discovered");
            Ok(Vec::new())
        }
        Err(error) => Err(error),
    }
}

/// The release of the server, as major and minor version, if it says so in time.
pub(crate) async fn release(client: &Client) -> Option<(u32, u32)> {
    let fetched = timeout(RELEASE_TIME_LIMIT, fetch(client, "/version", "application/json", MAX_RELEASE)).await;
    release_of(&fetched.ok()?.ok()?)
}

/// The release in a response to `/version`. Providers append signs to the numbers.
fn release_of(version: &[u8]) -> Option<(u32, u32)> {
    let Release { major, minor } = parse(version)?;
    let number = |text: &str| text.trim_end_matches(|letter: char| !letter.is_ascii_digit()).parse().ok();
    Some((number(&major)?, number(&minor)?))
}

async fn get<T: DeserializeOwned>(client: &Client, path: &str) -> Result<T, ServerError> {
    let fetched = timeout(TIME_LIMIT, fetch(client, path, ACCEPT_DISCOVERY, MAX_BODY)).await;
    let body = fetched
        .unwrap_or(Err(Failure::TimedOut { after: TIME_LIMIT }))
        .map_err(|failure| ServerError::new(Operation::Discover, "resources", failure))?;
    parse(&body).ok_or_else(|| {
        let kind = format!("no discovery document at {path}").into();
        ServerError::new(Operation::Discover, "resources", Failure::NotAList { kind })
    })
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Option<T> {
    serde_json::from_slice(body).ok()
}

async fn fetch(client: &Client, path: &str, accept: &str, limit: usize) -> Result<Bytes, Failure> {
    let request = Request::get(path)
        .header(ACCEPT, accept)
        .header(ACCEPT_ENCODING, "identity")
        .body(kube::client::Body::empty())
        .map_err(|error| Failure::Request(error.to_string().into()))?;
    let response = client.send(request).await.map_err(|error| Failure::of_kube(&error))?;
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, limit).collect().await;
    let body = body.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
        Some(_) => Failure::TooLong { limit },
        None => Failure::of_body(error.as_ref()),
    })?;
    let body = body.to_bytes();
    if parts.status.is_success() {
        return Ok(body);
    }
    let prefix = &body[..body.len().min(answer::MAX_FAILURE_SIZE)];
    Err(answer::failure(parts.status, &parts.headers, prefix, Timestamp::now()))
}

#[derive(Deserialize)]
struct Release {
    major: String,
    minor: String,
}

#[derive(Deserialize)]
#[serde(tag = "kind")]
enum Root {
    #[serde(rename = "APIGroupDiscoveryList")]
    Groups(Groups),
    #[serde(rename = "APIVersions")]
    CoreVersions { versions: Vec<String> },
    #[serde(rename = "APIGroupList")]
    OtherGroups { groups: Vec<LegacyGroup> },
}

#[derive(Deserialize)]
struct Groups {
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    #[serde(default)]
    metadata: Name,
    #[serde(default)]
    versions: Vec<GroupVersion>,
}

#[derive(Deserialize, Default)]
struct Name {
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
    #[serde(default)]
    resources: Vec<GroupResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroupResource {
    resource: String,
    response_kind: Option<ResponseKind>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    singular_resource: String,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
}

#[derive(Deserialize)]
struct ResponseKind {
    #[serde(default)]
    kind: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LegacyGroup {
    name: String,
    #[serde(default)]
    versions: Vec<LegacyVersion>,
    preferred_version: Option<LegacyVersion>,
}

#[derive(Deserialize)]
struct LegacyVersion {
    version: String,
}

#[derive(Deserialize)]
struct Resources {
    #[serde(default)]
    resources: Vec<LegacyResource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LegacyResource {
    name: String,
    #[serde(default)]
    singular_name: String,
    #[serde(default)]
    namespaced: bool,
    kind: String,
    #[serde(default)]
    verbs: Vec<String>,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
}

impl Group {
    fn served(self) -> impl Iterator<Item = Served> {
        let group = self.metadata.name;
        self.versions.into_iter().flat_map(move |version| {
            let (group, name) = (group.clone(), version.version);
            version.resources.into_iter().filter_map(move |resource| resource.served(&group, &name))
        })
    }
}

impl GroupResource {
    fn served(self, group: &str, version: &str) -> Option<Served> {
        let kind = self.response_kind?.kind;
        Some(Served {
            group: group.to_owned(),
            version: version.to_owned(),
            singular: singular(self.singular_resource, &kind),
            scope: if self.scope == "Namespaced" { ResourceScope::Namespaced } else { ResourceScope::Cluster },
            watching: watching(&self.verbs),
            kind,
            plural: self.resource,
            short_names: self.short_names,
            categories: self.categories,
        })
    }
}

impl LegacyGroup {
    /// Pairs of group and version, the preferred version first.
    fn in_order(&self) -> impl Iterator<Item = (&str, &str)> {
        let preferred = self.preferred_version.as_ref().map(|preferred| preferred.version.as_str());
        let others = self.versions.iter().map(|version| version.version.as_str());
        let others = others.filter(move |version| Some(*version) != preferred);
        preferred.into_iter().chain(others).map(|version| (self.name.as_str(), version))
    }
}

impl LegacyResource {
    /// `None` for a subresource, such as `pods/log`.
    fn served(self, group: &str, version: &str) -> Option<Served> {
        (!self.name.contains('/')).then(|| Served {
            group: group.to_owned(),
            version: version.to_owned(),
            singular: singular(self.singular_name, &self.kind),
            scope: if self.namespaced { ResourceScope::Namespaced } else { ResourceScope::Cluster },
            watching: watching(&self.verbs),
            kind: self.kind,
            plural: self.name,
            short_names: self.short_names,
            categories: self.categories,
        })
    }
}

/// Servers before 1.27 do not report the singular name of built-in kinds.
fn singular(reported: String, kind: &str) -> String {
    if reported.is_empty() { kind.to_ascii_lowercase() } else { reported }
}

fn watching(verbs: &[String]) -> Watching {
    let has = |wanted: &str| verbs.iter().any(|verb| verb == wanted);
    if has("list") && has("watch") { Watching::Possible } else { Watching::Impossible }
}

pub(crate) mod lookup;
pub(crate) mod served;

#[cfg(test)]
mod fuzz {
    use super::*;
    use crate::client::Resources as AllServed;
    use crate::fuzzing::fuzz;

    const DOCUMENTS: [&str; 4] = [
        r#"{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"apps"},"versions":[{"version":"v1","resources":[{"resource":"deployments","responseKind":{"group":"","version":"","kind":"Deployment"},"scope":"Namespaced","singularResource":"deployment","verbs":["list","watch"],"shortNames":["deploy"],"categories":["all"]}]}]}]}"#,
        r#"{"kind":"APIGroupList","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}"#,
        r#"{"kind":"APIVersions","versions":["v1"]}"#,
        r#"{"kind":"APIResourceList","resources":[{"name":"pods","singularName":"","namespaced":true,"kind":"Pod","verbs":["list","watch"],"shortNames":["po"]},{"name":"pods/log","namespaced":true,"kind":"Pod","verbs":["get"]}]}"#,
    ];

    #[test]
    fn any_discovery_document_is_read_or_refused() {
        let documents = DOCUMENTS.map(|document| document.as_bytes().to_vec());
        fuzz(1_000, |source| {
            let body = source.mutated(&documents);
            let served: Vec<Served> = match parse::<Root>(&body) {
                Some(Root::Groups(groups)) => groups.items.into_iter().flat_map(Group::served).collect(),
                Some(Root::OtherGroups { groups }) => {
                    groups.iter().flat_map(LegacyGroup::in_order).for_each(drop);
                    Vec::new()
                }
                Some(Root::CoreVersions { .. }) | None => {
                    let list = parse::<Resources>(&body).map(|list| list.resources).unwrap_or_default();
                    list.into_iter().filter_map(|resource| resource.served("a", "v1")).collect()
                }
            };
            let served = AllServed(served);
            let name = source.text(&["deploy", "pods", ".", "apps", "v1", "é", "/", ""], 4);
            drop(served.named(&name).map_err(|error| error.to_string()));
            served.preferred().for_each(drop);
        });
    }
}
