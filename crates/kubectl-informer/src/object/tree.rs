//! The tree of an object: its owners above it, and what it owns below.

use std::collections::{HashMap, HashSet};

use kube_informer::Obj;
use serde_json::Value;

use super::change::{headline, ready_replicas};
use crate::terminal::paint::Tone;
use crate::terminal::styled_line::StyledLine;

/// An object in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// The kind in lower case.
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) namespace: Option<String>,
    pub(crate) owners: Vec<OwnerRef>,
}

/// A reference to an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OwnerRef {
    pub(crate) uid: String,
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) is_controller: bool,
}

/// Describes an object by its uid: its state, and whether that is well.
type Status<'s> = dyn Fn(&str) -> Option<(String, Option<Tone>)> + 's;

/// Objects by their uid.
#[derive(Debug, Clone, Default)]
pub(crate) struct Forest {
    nodes: HashMap<String, Node>,
}

/// More levels than any chain of controllers has.
const MAX_DEPTH: usize = 24;

impl Forest {
    pub(crate) fn add(&mut self, kind: &str, object: &Obj<Value>) {
        let Some(uid) = object.uid() else { return };
        let owners = object.owners().map(|owner| OwnerRef {
            uid: owner.uid().to_string(),
            kind: owner.kind().to_lowercase(),
            name: owner.name().to_owned(),
            is_controller: owner.is_controller(),
        });
        let node = Node {
            kind: kind.to_lowercase(),
            name: object.name().to_owned(),
            namespace: object.namespace().map(str::to_owned),
            owners: owners.collect(),
        };
        self.nodes.insert(uid.to_string(), node);
    }

    /// The uids of the objects in the tree of one object, itself included.
    pub(crate) fn members(&self, uid: &str) -> Vec<String> {
        let mut members = self.ancestors(uid);
        let children = self.children();
        let mut seen: HashSet<&str> = HashSet::new();
        let mut next = vec![uid];
        while let Some(uid) = next.pop() {
            if seen.insert(uid) {
                members.push(uid.to_owned());
                next.extend(children.get(uid).into_iter().flatten().copied());
            }
        }
        members
    }

    /// The lines of the tree; `status` describes an object by its uid.
    pub(crate) fn lines(&self, uid: &str, status: &Status<'_>) -> Vec<StyledLine> {
        let mut writer =
            Writer { forest: self, children: self.children(), status, seen: HashSet::new(), lines: Vec::new() };
        let ancestors = self.ancestors(uid);
        let mut depth = 0;
        if let Some(missing) = self.missing_owner(ancestors.first().map_or(uid, String::as_str)) {
            let line = StyledLine::from(format!("{}/{}", missing.kind, missing.name).as_str());
            writer.lines.push(line.toned(Tone::Deleted, "  not found"));
            depth += 1;
        }
        for ancestor in &ancestors {
            writer.line(ancestor, &indent(depth), false);
            depth += 1;
        }
        writer.subtree(uid, &indent(depth), &" ".repeat(3 * depth), true);
        writer.lines
    }

    /// The owners of an object, the topmost first: of several, the controller.
    fn ancestors(&self, uid: &str) -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        let mut next = uid.to_owned();
        while let Some(owner) = self.nodes.get(&next).and_then(main_owner) {
            if !self.nodes.contains_key(&owner.uid)
                || found.contains(&owner.uid)
                || owner.uid == uid
                || found.len() == MAX_DEPTH
            {
                break;
            }
            found.push(owner.uid.clone());
            next = owner.uid.clone();
        }
        found.reverse();
        found
    }

    fn missing_owner(&self, uid: &str) -> Option<&OwnerRef> {
        main_owner(self.nodes.get(uid)?).filter(|owner| !self.nodes.contains_key(&owner.uid))
    }

    fn children(&self) -> HashMap<&str, Vec<&str>> {
        let mut children: HashMap<&str, Vec<&str>> = HashMap::new();
        for (uid, node) in &self.nodes {
            for owner in &node.owners {
                children.entry(&owner.uid).or_default().push(uid);
            }
        }
        for uids in children.values_mut() {
            uids.sort_by_key(|uid| self.nodes.get(*uid).map(|node| (&node.kind, &node.namespace, &node.name)));
        }
        children
    }
}

/// Objects of caches, and the tree of one of them.
#[derive(Default)]
pub(crate) struct CachedForest<'k> {
    forest: Forest,
    /// The kind and the object, by its uid.
    objects: HashMap<String, (&'k str, Obj<Value>)>,
}

impl<'k> CachedForest<'k> {
    /// Adds the objects of one kind.
    pub(crate) fn add(&mut self, kind: &'k str, objects: impl IntoIterator<Item = Obj<Value>>) {
        for object in objects {
            self.forest.add(kind, &object);
            if let Some(uid) = object.uid() {
                self.objects.insert(uid.to_string(), (kind, object));
            }
        }
    }

    pub(crate) fn contains(&self, uid: &str) -> bool {
        self.forest.nodes.contains_key(uid)
    }

    /// The lines of the tree, with the state of each object. Only these objects are decoded, and
    /// their decoded bodies are not kept.
    pub(crate) fn lines(&self, uid: &str) -> Vec<StyledLine> {
        self.forest.lines(uid, &|uid| {
            let (kind, object) = self.objects.get(uid)?;
            Some(readiness(kind, object.fresh_handle().get().ok()?))
        })
    }
}

fn main_owner(node: &Node) -> Option<&OwnerRef> {
    node.owners.iter().find(|owner| owner.is_controller).or(node.owners.first())
}

fn indent(depth: usize) -> String {
    if depth == 0 { String::new() } else { format!("{}└─ ", " ".repeat(3 * (depth - 1))) }
}

struct Writer<'f> {
    forest: &'f Forest,
    children: HashMap<&'f str, Vec<&'f str>>,
    status: &'f Status<'f>,
    seen: HashSet<String>,
    lines: Vec<StyledLine>,
}

impl Writer<'_> {
    fn subtree(&mut self, uid: &str, branch: &str, below: &str, is_subject: bool) {
        self.line(uid, branch, is_subject);
        if !self.seen.insert(uid.to_owned()) || self.seen.len() > 10_000 || below.chars().count() > 3 * MAX_DEPTH {
            return;
        }
        let children = self.children.get(uid).cloned().unwrap_or_default();
        let last = children.len().saturating_sub(1);
        for (nth, child) in children.into_iter().enumerate() {
            let (branch, indent) = if nth == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            self.subtree(child, &format!("{below}{branch}"), &format!("{below}{indent}"), false);
        }
    }

    fn line(&mut self, uid: &str, branch: &str, is_subject: bool) {
        let Some(node) = self.forest.nodes.get(uid) else { return };
        let name = format!("{}/{}", node.kind, node.name);
        let line = StyledLine::default().toned(Tone::Quiet, branch);
        let line = if is_subject { line.toned(Tone::Strong, &name) } else { line.plain(&name) };
        self.lines.push(match (self.status)(uid) {
            Some((status, Some(tone))) => line.plain("  ").toned(tone, &status),
            Some((status, None)) => line.plain("  ").plain(&status),
            None => line,
        });
    }
}

/// What is said of an object in a tree: its state, and whether that is well.
pub(crate) fn readiness(kind: &str, object: &Value) -> (String, Option<Tone>) {
    if object.pointer("/metadata/deletionTimestamp").is_some_and(|time| !time.is_null()) {
        return ("terminating".to_owned(), Some(Tone::Deleted));
    }
    let is_ready = match kind {
        "Pod" => {
            let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
            let ready = conditions.into_iter().flatten().find(|condition| condition["type"] == "Ready");
            Some(ready.is_some_and(|ready| ready["status"] == "True") || object["status"]["phase"] == "Succeeded")
        }
        _ => ready_replicas(kind, object).map(|(ready, wanted)| ready >= wanted),
    };
    (headline(kind, object), is_ready.map(|is_ready| if is_ready { Tone::Added } else { Tone::Updated }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::paint::Paint;
    use serde_json::json;

    fn object(kind: &str, name: &str, owner: Option<&str>) -> (String, Obj<Value>) {
        let owners = owner.map(
            |owner| json!([{"apiVersion": "v1", "kind": "Owner", "name": owner, "uid": owner, "controller": true}]),
        );
        let json = json!({"metadata": {"name": name, "namespace": "n", "uid": name, "ownerReferences": owners}});
        (kind.to_owned(), Obj::from_json(json.to_string()).unwrap())
    }

    fn lines(objects: &[(&str, &str, Option<&str>)], uid: &str) -> Vec<String> {
        let mut forest = Forest::default();
        for (kind, name, owner) in objects {
            let (kind, object) = object(kind, name, *owner);
            forest.add(&kind, &object);
        }
        forest.lines(uid, &|_| None).iter().map(|line| line.render(Paint::Plain)).collect()
    }

    #[test]
    fn owners_are_above_and_children_below() {
        let objects = [
            ("Deployment", "web", None),
            ("ReplicaSet", "web-1", Some("web")),
            ("ReplicaSet", "web-2", Some("web")),
            ("Pod", "web-1-a", Some("web-1")),
            ("Pod", "web-1-b", Some("web-1")),
            ("Pod", "other", None),
        ];
        assert_eq!(
            lines(&objects, "web"),
            ["deployment/web", "├─ replicaset/web-1", "│  ├─ pod/web-1-a", "│  └─ pod/web-1-b", "└─ replicaset/web-2"]
        );
        assert_eq!(
            lines(&objects, "web-1"),
            ["deployment/web", "└─ replicaset/web-1", "   ├─ pod/web-1-a", "   └─ pod/web-1-b"]
        );
        assert_eq!(lines(&objects, "web-1-a"), ["deployment/web", "└─ replicaset/web-1", "   └─ pod/web-1-a"]);
    }

    #[test]
    fn a_missing_owner_is_named_and_a_cycle_ends() {
        assert_eq!(lines(&[("Pod", "a", Some("gone"))], "a"), ["owner/gone  not found", "└─ pod/a"]);
        assert_eq!(
            lines(&[("A", "a", Some("b")), ("B", "b", Some("a"))], "a"),
            ["b/b", "└─ a/a", "   └─ b/b", "      └─ a/a"]
        );
    }
}
