//! The kinds that the server serves: built-in and custom resources with their schemas, behaviour,
//! conversion and printer columns.
//!
//! Pure except for `custom_tables`. Uses `encoding` and the value types of `http`; must not use
//! `api`, `admission` or `controllers`.

mod behaviour;
mod builtin;
pub(crate) mod convert;
pub(crate) mod custom_tables;
mod definition;
mod definition_status;
mod field_labels;
mod name_rule;
mod prune;
pub(crate) mod quantity;
mod registry;
pub(crate) mod schema;
pub(crate) mod status_condition;
mod structure;
pub mod table;
mod unstored;

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

pub(crate) use self::behaviour::{
    Behaviour, Counts, DeleteReply, Generation, InitialStatus, Lifecycle, Propagation, PutMissing, UpdateVersion,
};
pub(crate) use self::definition::{Definition, set_defaults as set_definition_defaults};
pub(crate) use self::definition_status::{Condition, accept_names, initial_status, set_condition, stored_versions};
pub(crate) use self::field_labels::Selectable;
pub(crate) use self::name_rule::NameRule;
pub(crate) use self::prune::{prune, prune_struct};
pub(crate) use self::registry::{GroupVersion, Registry};
use self::schema::Struct;
pub(crate) use self::structure::{Structure, Written, are_met};
use self::table::Columns;
pub(crate) use self::unstored::{creatable, scale};
use crate::encoding::json::{self, Encoded};
use crate::http::request::Verb;

/// The annotation with the template generation of a `DaemonSet`.
pub(crate) const DAEMON_SET_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Static text of a built-in kind, or owned text from a `CustomResourceDefinition`.
pub(crate) type Text = Cow<'static, str>;

/// A resource served in one group and version.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) group: Text,
    pub(crate) version: Text,
    pub(crate) kind: Text,
    pub(crate) list_kind: Text,
    pub(crate) plural: Text,
    pub(crate) singular: Text,
    pub(crate) short_names: Vec<Text>,
    pub(crate) categories: Vec<Text>,
    pub(crate) scope: ResourceScope,
    /// In discovery order.
    pub(crate) verbs: Vec<Verb>,
    pub(crate) subresources: Vec<Subresource>,
    pub(crate) storage_version_hash: Text,
    pub(crate) schema: Schema,
    pub(crate) behaviour: Behaviour,
    pub(crate) cache: Cache,
    /// The table of the objects. Kinds with the same table serve the same objects in different
    /// versions.
    pub(crate) storage: GroupResource,
    /// The schema of a custom resource.
    pub(crate) structure: Option<Structure>,
    /// The webhook that converts between versions, as its definition describes it.
    pub(crate) conversion: Option<Arc<Value>>,
    /// The paths for the `scale` subresource, if the kind has one.
    pub(crate) scale: Option<ScalePaths>,
    selectable: Vec<Selectable>,
    unknown_field: Text,
    api_version: Text,
    /// JSON of an object with only zero values, without apiVersion and kind.
    zero: &'static str,
    bookmark: OnceLock<Bookmark>,
    columns: OnceLock<Columns>,
}

/// Whether objects are namespaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResourceScope {
    Namespaced,
    Cluster,
}

/// A subresource and its verbs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subresource {
    pub(crate) part: Part,
    pub(crate) verbs: Vec<Verb>,
}

/// The supported subresources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Status,
    Finalize,
    Scale,
    /// The conditions of a certificate signing request.
    Approval,
    Binding,
    EphemeralContainers,
    Eviction,
    /// The resources of a pod's containers.
    Resize,
    Token,
}

/// Field paths that the `scale` subresource reads and writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    pub(crate) wanted: Vec<String>,
    pub(crate) present: Vec<String>,
    /// A label selector, as a string or an object. Empty if the kind has none.
    pub(crate) selector: Vec<String>,
}

impl ScalePaths {
    /// Parses simple paths such as `.spec.replicas`.
    pub(crate) fn new(wanted: &str, present: &str, selector: &str) -> Self {
        let parts = |path: &str| path.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        Self { wanted: parts(wanted), present: parts(present), selector: parts(selector) }
    }
}

/// How objects of the kind are typed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Schema {
    /// A Go struct: fields are written in its order, unknown fields are dropped.
    Typed(&'static Struct),
    /// A custom resource: all keys are sorted, only metadata is typed.
    Custom,
}

/// Whether lists and watches are served from the watch cache or directly from storage, which differ
/// in their semantics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cache {
    Cached,
    Uncached,
}

/// A resource independent of its version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct GroupResource {
    pub(crate) group: Text,
    pub(crate) resource: Text,
}

/// The objects in a kind's bookmark events.
#[derive(Debug)]
pub(crate) struct Bookmark {
    /// A regular bookmark.
    pub(crate) plain: Encoded,
    /// The bookmark that ends the initial events.
    pub(crate) initial_events_end: Encoded,
}

impl Kind {
    /// The apiVersion, for example `v1` or `apps/v1`.
    pub(crate) fn api_version(&self) -> &str {
        &self.api_version
    }

    /// Whether lists and watches are served directly from storage.
    pub(crate) fn is_uncached(&self) -> bool {
        self.cache == Cache::Uncached
    }

    pub(crate) fn is_custom(&self) -> bool {
        matches!(self.schema, Schema::Custom)
    }

    pub(crate) fn serves(&self, verb: Verb) -> bool {
        self.verbs.contains(&verb)
    }

    pub(crate) fn subresource(&self, part: Part) -> Option<&Subresource> {
        self.subresources.iter().find(|sub| sub.part == part)
    }

    pub(crate) fn selectable_fields(&self) -> &[Selectable] {
        &self.selectable
    }

    /// The selectable field of that name.
    ///
    /// # Errors
    ///
    /// The server's error message for a field that is not selectable.
    pub(crate) fn selectable_field(&self, name: &str) -> Result<&Selectable, String> {
        let known = self.selectable.iter().find(|field| field.name() == name);
        known.ok_or_else(|| self.unknown_field.replacen('*', name, 1))
    }

    /// An object with only zero values.
    pub(crate) fn empty(&self) -> Value {
        let mut empty: Value = serde_json::from_str(self.zero).unwrap_or_default();
        if !self.is_custom() {
            empty["metadata"] = json!({});
        }
        empty
    }

    /// The printer columns of this kind.
    pub(crate) fn columns(&self) -> &Columns {
        let built_in = || Columns::built_in(&self.group, &self.version, &self.plural);
        self.columns.get_or_init(|| built_in().unwrap_or_else(Columns::generic))
    }

    /// The objects in this kind's bookmark events.
    pub(crate) fn bookmark(&self) -> &Bookmark {
        self.bookmark.get_or_init(|| {
            let mut zero: Value = serde_json::from_str(self.zero).unwrap_or_default();
            let plain = json::encode(self, &zero);
            zero["metadata"]["annotations"]["k8s.io/initial-events-end"] = json!("true");
            Bookmark { plain, initial_events_end: json::encode(self, &zero) }
        })
    }
}

impl Part {
    const ALL: [Part; 9] = [
        Part::Status,
        Part::Finalize,
        Part::Scale,
        Part::Approval,
        Part::Binding,
        Part::EphemeralContainers,
        Part::Eviction,
        Part::Resize,
        Part::Token,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Part::Status => "status",
            Part::Finalize => "finalize",
            Part::Scale => "scale",
            Part::Approval => "approval",
            Part::Binding => "binding",
            Part::EphemeralContainers => "ephemeralcontainers",
            Part::Eviction => "eviction",
            Part::Resize => "resize",
            Part::Token => "token",
        }
    }

    /// Parses the name of a subresource in a path.
    pub(crate) fn parse(word: &str) -> Option<Part> {
        Self::ALL.into_iter().find(|part| part.as_str() == word)
    }
}
