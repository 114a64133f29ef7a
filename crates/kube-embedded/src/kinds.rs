//! What the server knows about the kinds it serves.

mod behaviour;
mod builtin;
pub(crate) mod convert;
pub(crate) mod custom_tables;
mod definition;
mod definition_status;
mod field_labels;
mod name_rule;
mod prune;
mod quantity;
mod registry;
pub(crate) mod schema;
mod structure;
pub mod table;

use std::borrow::Cow;
use std::sync::OnceLock;

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
pub(crate) use self::structure::{Structure, Written};
use self::table::Columns;
use crate::encoding::json::{self, Encoded};
use crate::http::request::Verb;

/// The annotation that counts the changes of a `DaemonSet`'s template.
pub(crate) const DAEMON_SET_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Text of a built-in kind, or of one that came with a definition.
pub(crate) type Text = Cow<'static, str>;

/// One resource served in one group and version.
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
    pub(crate) scope: Scope,
    /// In the order in which discovery names them.
    pub(crate) verbs: Vec<Verb>,
    pub(crate) subresources: Vec<Subresource>,
    pub(crate) storage_version_hash: Text,
    pub(crate) schema: Schema,
    pub(crate) behaviour: Behaviour,
    pub(crate) cache: Cache,
    /// Whose objects these are: kinds of one storage show the same objects in different versions.
    pub(crate) storage: GroupResource,
    /// What the definition of a custom kind says about its objects.
    pub(crate) structure: Option<Structure>,
    /// Where the number of replicas is, if the kind has a scale.
    pub(crate) scale: Option<ScalePaths>,
    selectable: Vec<Selectable>,
    unknown_field: Text,
    api_version: Text,
    /// An object nobody has filled, as JSON without its type.
    zero: &'static str,
    bookmark: OnceLock<Bookmark>,
    columns: OnceLock<Columns>,
}

/// Whether objects live in namespaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Namespaced,
    Cluster,
}

/// A part of a resource with a path of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Subresource {
    pub(crate) part: Part,
    pub(crate) verbs: Vec<Verb>,
}

/// The subresources that are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Status,
    Finalize,
    Scale,
}

/// Where an object keeps what its scale shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScalePaths {
    pub(crate) wanted: Vec<String>,
    pub(crate) present: Vec<String>,
    /// A label selector, written out or as an object; nothing if the kind does not say.
    pub(crate) selector: Vec<String>,
}

impl ScalePaths {
    /// Reads simple paths such as `.spec.replicas`.
    pub(crate) fn new(wanted: &str, present: &str, selector: &str) -> Self {
        let parts = |path: &str| path.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        Self { wanted: parts(wanted), present: parts(present), selector: parts(selector) }
    }
}

/// What an object of the kind looks like.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Schema {
    /// A Go struct: fields in its order, unknown ones dropped.
    Typed(&'static Struct),
    /// A custom resource: all keys sorted, only metadata is typed.
    Custom,
}

/// Whether lists and watches come from the watch cache or from the store itself, whose answers differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cache {
    Cached,
    Uncached,
}

/// A resource regardless of its version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct GroupResource {
    pub(crate) group: Text,
    pub(crate) resource: Text,
}

/// The objects of a kind's bookmarks.
#[derive(Debug)]
pub(crate) struct Bookmark {
    /// A version that has been reached.
    pub(crate) plain: Encoded,
    /// The end of the initial events.
    pub(crate) initial_events_end: Encoded,
}

impl Kind {
    /// `v1`, `apps/v1`.
    pub(crate) fn api_version(&self) -> &str {
        &self.api_version
    }

    /// Whether lists and watches come from the store itself.
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

    /// The field of that name.
    ///
    /// # Errors
    ///
    /// The server's words for a field that cannot be selected by.
    pub(crate) fn selectable_field(&self, name: &str) -> Result<&Selectable, String> {
        let known = self.selectable.iter().find(|field| field.name() == name);
        known.ok_or_else(|| self.unknown_field.replacen('*', name, 1))
    }

    /// An object nobody has filled.
    pub(crate) fn empty(&self) -> Value {
        let mut empty: Value = serde_json::from_str(self.zero).unwrap_or_default();
        if !self.is_custom() {
            empty["metadata"] = json!({});
        }
        empty
    }

    /// The columns of this kind's table.
    pub(crate) fn columns(&self) -> &Columns {
        let built_in = || Columns::built_in(&self.group, &self.version, &self.plural);
        self.columns.get_or_init(|| built_in().unwrap_or_else(Columns::generic))
    }

    /// The objects of this kind's bookmarks.
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
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Part::Status => "status",
            Part::Finalize => "finalize",
            Part::Scale => "scale",
        }
    }

    /// The subresource of that name in a path.
    pub(crate) fn parse(word: &str) -> Option<Part> {
        [Part::Status, Part::Finalize, Part::Scale].into_iter().find(|part| part.as_str() == word)
    }
}
