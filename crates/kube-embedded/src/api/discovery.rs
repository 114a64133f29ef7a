//! Discovery documents, which list the served groups, versions and resources.

use crate::encoding::escape::push_string;
use crate::http::request::Verb;
use crate::kinds::{self, GroupVersion, Kind, Registry, ResourceScope, Subresource, Text};

/// The two roots of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    /// `/api`: the core group.
    Api,
    /// `/apis`: all other groups.
    Apis,
}

/// Whether a group is built in.
pub(crate) fn is_built_in(registry: &Registry, group: &str) -> bool {
    registry.is_built_in_group(group) || kinds::creatable(group).next().is_some()
}

/// All served group versions, with those of the reviews at their position.
fn served(registry: &Registry) -> Vec<GroupVersion<'_>> {
    let mut all = registry.group_versions();
    let place = all.iter().position(|each| each.group == "autoscaling").unwrap_or(all.len());
    let groups = ["authentication.k8s.io", "authorization.k8s.io"].into_iter();
    all.splice(place..place, groups.map(|group| GroupVersion { group, version: "v1", kinds: Vec::new() }));
    all
}

/// The resources of a version: first those that are not stored.
fn resources<'k>(version: &GroupVersion<'k>) -> Vec<&'k Kind> {
    let unstored = kinds::creatable(version.group).filter(|kind| kind.version == version.version);
    let mut all: Vec<&Kind> = unstored.map(|kind| &**kind).collect();
    all.extend(version.kinds.iter().map(|kind| &***kind));
    all
}

/// All groups of a root in one document, an `APIGroupDiscoveryList`.
pub(crate) fn aggregated(registry: &Registry, root: Root) -> Vec<u8> {
    let mut out = Document::new();
    out.raw(r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":["#);
    let below = |each: &GroupVersion<'_>| each.group.is_empty() == (root == Root::Api);
    let versions: Vec<_> = served(registry).into_iter().filter(below).collect();
    out.list(versions.chunk_by(|a, b| a.group == b.group), |out, versions| {
        out.raw(r#"{"metadata":{"#);
        if root == Root::Apis {
            out.text("name", versions[0].group);
        }
        out.raw(r#"},"versions":["#);
        out.list(versions, |out, version| {
            out.raw("{");
            out.text("version", version.version);
            out.raw(r#","resources":["#);
            out.list(resources(version), Document::aggregated_resource);
            out.raw(r#"],"freshness":"Current"}"#);
        });
        out.raw("]}");
    });
    out.raw("]}");
    out.0
}

/// `/api` in the format before aggregated discovery.
pub(crate) fn api_versions(server_address: &str) -> Vec<u8> {
    let mut out = Document::new();
    out.raw(r#"{"kind":"APIVersions","versions":["v1"],"serverAddressByClientCIDRs":[{"clientCIDR":"0.0.0.0/0","#);
    out.text("serverAddress", server_address);
    out.raw("}]}");
    out.0
}

/// `/apis` in the format before aggregated discovery.
pub(crate) fn group_list(registry: &Registry) -> Vec<u8> {
    let mut out = Document::new();
    out.raw(r#"{"kind":"APIGroupList","apiVersion":"v1","groups":["#);
    let versions: Vec<_> = served(registry).into_iter().filter(|each| !each.group.is_empty()).collect();
    out.list(versions.chunk_by(|a, b| a.group == b.group), |out, versions| {
        out.raw("{");
        out.group(versions);
        out.raw("}");
    });
    out.raw("]}");
    out.0
}

/// `/apis/GROUP`, if the group is served.
pub(crate) fn group(registry: &Registry, name: &str) -> Option<Vec<u8>> {
    let all = served(registry);
    let versions: Vec<_> = all.into_iter().filter(|each| each.group == name && !name.is_empty()).collect();
    if versions.is_empty() {
        return None;
    }
    let mut out = Document::new();
    out.raw(r#"{"kind":"APIGroup","apiVersion":"v1","#);
    out.group(&versions);
    out.raw("}");
    Some(out.0)
}

/// `/api/v1` and `/apis/GROUP/VERSION`, if the version is served.
pub(crate) fn resource_list(registry: &Registry, group: &str, version: &str) -> Option<Vec<u8>> {
    let all = served(registry);
    let served = all.into_iter().find(|each| each.group == group && each.version == version)?;
    let mut out = Document::new();
    out.raw(r#"{"kind":"APIResourceList","#);
    if !group.is_empty() {
        out.raw(r#""apiVersion":"v1","#);
    }
    out.text("groupVersion", &group_version(group, version));
    out.raw(r#","resources":["#);
    out.list(resources(&served), Document::resource);
    out.raw("]}");
    Some(out.0)
}

fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// The kind of a subresource's bodies, if it is of another group or version.
fn foreign(kind: &Kind, sub: &Subresource) -> Option<&'static Kind> {
    let is_foreign = |body: &&Kind| body.group != kind.group || body.version != kind.version;
    sub.part.body().map(|body| &**body).filter(is_foreign)
}

/// A JSON writer, with keys in the order of the Go structs.
struct Document(Vec<u8>);

impl Document {
    fn new() -> Self {
        Document(Vec::with_capacity(4096))
    }

    fn raw(&mut self, json: &str) {
        self.0.extend_from_slice(json.as_bytes());
    }

    fn text(&mut self, key: &str, value: &str) {
        push_string(&mut self.0, key);
        self.raw(":");
        push_string(&mut self.0, value);
    }

    fn list<T>(&mut self, items: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut Self, T)) {
        for (at, item) in items.into_iter().enumerate() {
            if at > 0 {
                self.raw(",");
            }
            write(self, item);
        }
    }

    fn group(&mut self, versions: &[GroupVersion<'_>]) {
        let pair = |out: &mut Self, each: &GroupVersion<'_>| {
            out.raw("{");
            out.text("groupVersion", &group_version(each.group, each.version));
            out.raw(",");
            out.text("version", each.version);
            out.raw("}");
        };
        self.text("name", versions[0].group);
        self.raw(r#","versions":["#);
        self.list(versions, pair);
        self.raw(r#"],"preferredVersion":"#);
        pair(self, &versions[0]);
    }

    fn aggregated_resource(&mut self, kind: &Kind) {
        self.raw("{");
        self.text("resource", &kind.plural);
        self.response_kind(kind);
        self.raw(",");
        self.text("scope", if kind.scope == ResourceScope::Namespaced { "Namespaced" } else { "Cluster" });
        self.raw(",");
        self.text("singularResource", &kind.singular);
        self.verbs(&kind.verbs);
        self.words("shortNames", &kind.short_names);
        self.words("categories", &kind.categories);
        if !kind.subresources.is_empty() {
            self.raw(r#","subresources":["#);
            self.list(&kind.subresources, |out, sub| {
                out.raw("{");
                out.text("subresource", sub.part.as_str());
                match foreign(kind, sub) {
                    Some(of) => out.response(&of.group, &of.version, &of.kind),
                    None => out.response_kind(sub.part.body().map_or(kind, |body| body)),
                }
                out.verbs(&sub.verbs);
                out.raw("}");
            });
            self.raw("]");
        }
        self.raw("}");
    }

    /// Built-in kinds leave group and version empty, because the enclosing document has them.
    fn response_kind(&mut self, kind: &Kind) {
        let (group, version) = if kind.is_custom() { (&*kind.group, &*kind.version) } else { ("", "") };
        self.response(group, version, &kind.kind);
    }

    fn response(&mut self, group: &str, version: &str, kind: &str) {
        self.raw(r#","responseKind":{"#);
        self.text("group", group);
        self.raw(",");
        self.text("version", version);
        self.raw(",");
        self.text("kind", kind);
        self.raw("}");
    }

    fn resource(&mut self, kind: &Kind) {
        self.raw("{");
        self.text("name", &kind.plural);
        self.raw(",");
        self.text("singularName", &kind.singular);
        self.namespaced(kind);
        self.verbs(&kind.verbs);
        self.words("shortNames", &kind.short_names);
        self.words("categories", &kind.categories);
        if !kind.storage_version_hash.is_empty() {
            self.raw(",");
            self.text("storageVersionHash", &kind.storage_version_hash);
        }
        self.raw("}");
        for sub in &kind.subresources {
            self.raw(",{");
            self.text("name", &format!("{}/{}", kind.plural, sub.part.as_str()));
            self.raw(r#","singularName":"""#);
            self.raw(&format!(r#","namespaced":{},"#, kind.scope == ResourceScope::Namespaced));
            if let Some(of) = foreign(kind, sub) {
                self.text("group", &of.group);
                self.raw(",");
                self.text("version", &of.version);
                self.raw(",");
            }
            self.text("kind", &sub.part.body().map_or(kind, |body| body).kind);
            self.verbs(&sub.verbs);
            self.raw("}");
        }
    }

    fn namespaced(&mut self, kind: &Kind) {
        let namespaced = kind.scope == ResourceScope::Namespaced;
        self.raw(&format!(r#","namespaced":{namespaced},"#));
        self.text("kind", &kind.kind);
    }

    fn verbs(&mut self, verbs: &[Verb]) {
        self.raw(r#","verbs":["#);
        self.list(verbs, |out, verb| push_string(&mut out.0, verb.name()));
        self.raw("]");
    }

    /// A list of strings, omitted if empty.
    fn words(&mut self, key: &str, words: &[Text]) {
        if !words.is_empty() {
            self.raw(&format!(r#","{key}":["#));
            self.list(words, |out, word| push_string(&mut out.0, word));
            self.raw("]");
        }
    }
}

#[cfg(test)]
mod tests;
