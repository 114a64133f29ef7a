//! Kinds and objects as they are named on the command line.

use std::sync::Arc;

use kube_informer::FieldSelector;
use kube_informer::client::{ApiListWatch, ResourceScope, Resources, Served};
use kube_informer::informer::InformerSettings;
use serde_json::Value;

use super::connection::Connected;
use super::kind_info::KindInfo;
use super::kinds;
use crate::args::Selection;
use crate::failure::Failure;

/// A kind, and the names of its objects if only those are meant.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Target {
    pub(crate) kind: Served,
    pub(crate) info: Arc<KindInfo>,
    pub(crate) names: Vec<String>,
}

/// Resolves `KIND[,KIND] [NAME…]` or `KIND/NAME…`, as kubectl has it.
pub(crate) fn kinds_then_names(served: &Resources, words: &[String]) -> Result<Vec<Target>, Failure> {
    let Some((first, names)) = words.split_first() else { return Ok(Vec::new()) };
    if words.iter().any(|word| word.contains('/')) {
        if let Some(word) = words.iter().find(|word| !word.contains('/')) {
            return Err(Failure::Usage(format!("{word}: with KIND/NAME, every argument has to be of that form")));
        }
        return kinds_or_objects(served, words);
    }
    let kinds = kinds::find(served, [first.as_str()])?;
    Ok(kinds.into_iter().map(|kind| Target::new(kind, names.to_vec())).collect())
}

/// Resolves words each of which is `KIND[,KIND]` or `KIND/NAME`, as `watch` has it.
///
/// A kind that is also named as a whole is not restricted to names.
pub(crate) fn kinds_or_objects(served: &Resources, words: &[String]) -> Result<Vec<Target>, Failure> {
    let mut targets: Vec<Target> = Vec::new();
    for word in words {
        let (kinds, name) = match word.split_once('/') {
            Some((kind, name)) if !kind.is_empty() && !name.is_empty() => (kind, Some(name)),
            Some(_) => return Err(Failure::Usage(format!("{word}: write KIND/NAME"))),
            None => (word.as_str(), None),
        };
        for kind in kinds::find(served, [kinds])? {
            let names: Vec<String> = name.into_iter().map(str::to_owned).collect();
            match targets.iter_mut().find(|target| target.kind == kind) {
                Some(known) if known.names.is_empty() || names.is_empty() => known.names.clear(),
                Some(known) => known.names.extend(names),
                None => targets.push(Target::new(kind, names)),
            }
        }
    }
    Ok(targets)
}

impl Target {
    pub(crate) fn new(kind: Served, names: Vec<String>) -> Self {
        let info = Arc::new(KindInfo::from(&kind));
        Self { kind, info, names }
    }

    /// The namespace to ask for; `None` for all of them, or if the kind has none.
    pub(crate) fn namespace(&self, connected: &Connected, choice: &Selection) -> Option<String> {
        let is_namespaced = self.kind.scope() == ResourceScope::Namespaced;
        (is_namespaced && !choice.all_namespaces).then(|| connected.namespace.clone())
    }

    /// Settings of an informer of the selected objects.
    pub(crate) fn settings(&self, connected: &Connected, choice: &Selection) -> InformerSettings<Value> {
        let mut settings = InformerSettings::default();
        if let Some(namespace) = self.namespace(connected, choice) {
            settings = settings.namespace(namespace);
        }
        if let Some(labels) = &choice.selector {
            settings = settings.labels(labels.clone());
        }
        match (&choice.field_selector, self.names.as_slice()) {
            (Some(fields), _) => settings = settings.fields(fields.clone()),
            // For a single name, the server sends only that object.
            (None, [name]) => settings = settings.fields(FieldSelector::named(name.as_str())),
            (None, _) => {}
        }
        if choice.show_managed_fields {
            settings = settings.decode_managed_fields();
        }
        if !self.names.is_empty() {
            let names = self.names.clone();
            settings = settings.keep_if(move |object| names.iter().any(|name| name == object.name()));
        }
        settings
    }

    /// Where the selected objects are read from, for a list; with a name, only that object.
    pub(crate) fn source(&self, connected: &Connected, choice: &Selection, name: Option<&str>) -> ApiListWatch {
        let mut source = ApiListWatch::new(connected.client.clone(), &self.kind);
        if let Some(namespace) = self.namespace(connected, choice) {
            source = source.namespace(namespace);
        }
        if let Some(labels) = &choice.selector {
            source = source.labels(labels);
        }
        let by_name = name.map(|name| format!("metadata.name={name}"));
        let fields: Vec<String> = choice.field_selector.iter().map(ToString::to_string).chain(by_name).collect();
        if fields.is_empty() { source } else { source.fields(fields.join(",")) }
    }
}
