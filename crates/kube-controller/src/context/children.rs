//! What every object that a controller writes has. Pure.

use kube::core::ApiResource;
use kube_informer::{Obj, ObjectKey, Uid};
use serde_json::{Map, Value, json};

/// The object of an attempt, as far as its children name it.
#[derive(Debug, Clone)]
pub(crate) struct Parent {
    pub(crate) key: ObjectKey,
    pub(crate) uid: Option<Uid>,
}

impl Parent {
    pub(crate) fn of<K>(object: &Obj<K>) -> Self {
        Self { key: object.key().clone(), uid: object.uid().cloned() }
    }
}

/// Which kinds are children, and what they get.
#[derive(Debug, Clone, Default)]
pub(crate) struct Children {
    /// Group and plural of each kind.
    pub(crate) kinds: Vec<(String, String)>,
    pub(crate) labels: Vec<(String, String)>,
}

/// An object that is to be written, with all that the controller adds.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) value: Value,
    pub(crate) name: String,
    pub(crate) generate_name: String,
    pub(crate) namespace: Option<String>,
}

impl Prepared {
    /// The name for errors.
    pub(crate) fn title(&self) -> String {
        let name = if self.name.is_empty() { format!("{}*", self.generate_name) } else { self.name.clone() };
        match &self.namespace {
            Some(namespace) => format!("{namespace}/{name}"),
            None => name,
        }
    }
}

impl Children {
    fn include(&self, resource: &ApiResource) -> bool {
        self.kinds.iter().any(|(group, plural)| *group == resource.group && *plural == resource.plural)
    }

    /// Fills in the type of an object, its namespace, and if it is a child its owner and labels.
    ///
    /// `is_namespaced` is unknown for kinds that are known only at run time.
    pub(crate) fn prepare(
        &self,
        value: Value,
        resource: &ApiResource,
        is_namespaced: Option<bool>,
        parent: &Parent,
        parent_resource: &ApiResource,
    ) -> Result<Prepared, String> {
        let Value::Object(mut object) = value else { return Err("it is not an object".to_owned()) };
        for (field, own) in [("apiVersion", &resource.api_version), ("kind", &resource.kind)] {
            match object.get(field).and_then(Value::as_str) {
                None | Some("") => drop(object.insert(field.to_owned(), own.as_str().into())),
                Some(given) if given == own => {}
                Some(given) => return Err(format!("its {field} is {given:?}, and not {own:?}")),
            }
        }
        let metadata = object_at(&mut object, "metadata")?;
        let text = |metadata: &Map<String, Value>, field: &str| {
            metadata.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let mut namespace = text(metadata, "namespace");
        let is_child = self.include(resource);
        if namespace.is_empty() && is_namespaced.unwrap_or(is_child) {
            parent.key.namespace().unwrap_or_default().clone_into(&mut namespace);
            if namespace.is_empty() {
                return Err("it has no namespace, and neither has the object that is reconciled".to_owned());
            }
            metadata.insert("namespace".to_owned(), namespace.as_str().into());
        }
        if is_namespaced == Some(false) && !namespace.is_empty() {
            return Err(format!("it is in the namespace {namespace:?}, but its kind has no namespaces"));
        }
        let namespace = Some(namespace).filter(|namespace| !namespace.is_empty());
        if is_child {
            self.adopt(metadata, namespace.as_deref(), parent, parent_resource)?;
        }
        let (name, generate_name) = (text(metadata, "name"), text(metadata, "generateName"));
        Ok(Prepared { name, generate_name, namespace, value: Value::Object(object) })
    }

    /// Sets the labels and the owner reference of a child.
    fn adopt(
        &self,
        metadata: &mut Map<String, Value>,
        namespace: Option<&str>,
        parent: &Parent,
        resource: &ApiResource,
    ) -> Result<(), String> {
        // The garbage collector deletes objects whose owner is in another namespace.
        if parent.key.namespace().is_some_and(|own| Some(own) != namespace) {
            return Err(format!(
                "it is not in the namespace of its owner, {}; write it as a kind that is watched, not owned",
                parent.key
            ));
        }
        let Some(uid) = &parent.uid else { return Err(format!("its owner {} has no uid", parent.key)) };
        if !self.labels.is_empty() {
            let labels = object_at(metadata, "labels")?;
            for (label, value) in &self.labels {
                labels.entry(label.as_str()).or_insert_with(|| value.as_str().into());
            }
        }
        let owners = metadata.entry("ownerReferences").or_insert_with(|| json!([]));
        let Value::Array(owners) = owners else { return Err("its ownerReferences are not a list".to_owned()) };
        let uid = uid.to_string();
        if !owners.iter().any(|owner| owner.get("uid").and_then(Value::as_str) == Some(&uid)) {
            owners.push(json!({
                "apiVersion": resource.api_version, "kind": resource.kind, "name": parent.key.name(), "uid": uid,
                "controller": true, "blockOwnerDeletion": true,
            }));
        }
        Ok(())
    }
}

/// The object at a field, which is added if there is none.
fn object_at<'a>(object: &'a mut Map<String, Value>, field: &str) -> Result<&'a mut Map<String, Value>, String> {
    let value = object.entry(field).or_insert_with(|| json!({}));
    if value.is_null() {
        *value = json!({});
    }
    value.as_object_mut().ok_or_else(|| format!("its {field} is not an object"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
    use kube_informer::Kind;

    use super::*;

    fn children() -> Children {
        Children {
            kinds: vec![(String::new(), "configmaps".to_owned()), (String::new(), "namespaces".to_owned())],
            labels: vec![("by".to_owned(), "us".to_owned())],
        }
    }

    fn parent() -> Parent {
        Parent { key: ObjectKey::namespaced("shop", "web"), uid: Some(Uid::new("u")) }
    }

    fn prepare<K: Kind>(value: Value) -> Result<Prepared, String> {
        let deployments = <Deployment as Kind>::resource();
        children().prepare(value, &K::resource(), Some(K::in_namespaces()), &parent(), &deployments)
    }

    #[test]
    fn a_child_gets_namespace_owner_and_labels() {
        let child = prepare::<ConfigMap>(json!({"metadata": {"name": "a", "labels": {"x": "y"}}})).unwrap();
        assert_eq!(
            child.value,
            json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {
                    "name": "a", "namespace": "shop", "labels": {"x": "y", "by": "us"},
                    "ownerReferences": [{
                        "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u",
                        "controller": true, "blockOwnerDeletion": true,
                    }],
                },
            })
        );
        let again = prepare::<ConfigMap>(child.value.clone()).unwrap();
        assert_eq!(again.value, child.value, "once is enough");
    }

    #[test]
    fn what_is_no_child_stays_as_it_is_but_for_its_type() {
        let other = prepare::<Deployment>(json!({"metadata": {"name": "a", "namespace": "else"}})).unwrap();
        let expected =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "else"}});
        assert_eq!(other.value, expected);
    }

    #[test]
    fn a_child_that_the_garbage_collector_would_delete_is_refused() {
        let elsewhere = prepare::<ConfigMap>(json!({"metadata": {"name": "a", "namespace": "else"}}));
        assert!(elsewhere.unwrap_err().contains("not in the namespace of its owner"));
        let cluster = prepare::<Namespace>(json!({"metadata": {"name": "a"}}));
        assert!(cluster.unwrap_err().contains("not in the namespace of its owner"));
    }

    #[test]
    fn what_is_no_object_of_the_kind_is_refused() {
        assert!(prepare::<ConfigMap>(json!(7)).is_err());
        assert!(prepare::<ConfigMap>(json!({"kind": "Secret"})).unwrap_err().contains("its kind is \"Secret\""));
        assert!(prepare::<ConfigMap>(json!({"metadata": []})).is_err());
    }
}
