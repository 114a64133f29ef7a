//! The representation of stored objects: in the requested version, form and encoding.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::tabulate::{self, ColumnDefinitions};
use super::write::registry_path;
use crate::clock::Clock;
use crate::encoding::json;
use crate::encoding::protobuf;
use crate::http::negotiate::{Encoding, Form, Include, MetaVersion};
use crate::kinds::Kind;
use crate::kinds::convert::convert;
use crate::kinds::table::Moment;
use crate::rng::Rng;
use crate::storage::Object;
use crate::webhooks::conversion::{Conversions, Origin, Unconverted};

/// Appends a `PartialObjectMetadata` with this metadata.
pub(crate) fn push_metadata(out: &mut Vec<u8>, version: MetaVersion, metadata: &[u8]) {
    out.extend_from_slice(br#"{"kind":"PartialObjectMetadata","apiVersion":""#);
    out.extend_from_slice(version.api_version().as_bytes());
    out.extend_from_slice(br#"","metadata":"#);
    out.extend_from_slice(metadata);
    out.push(b'}');
}

/// The kind, form and encoding in which a request gets objects.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) kind: Arc<Kind>,
    pub(crate) form: Form,
    pub(crate) encoding: Encoding,
    /// The kind in its storage version.
    stored: Arc<Kind>,
    clock: Clock,
    /// The conversions by the webhook of the kind, if it has one.
    conversions: Option<Arc<Conversions>>,
}

impl View {
    pub(crate) fn new(kind: Arc<Kind>, stored: Arc<Kind>, form: Form, clock: Clock) -> Self {
        Self { kind, form, encoding: Encoding::Json, stored, clock, conversions: None }
    }

    /// The same view of objects of another kind.
    pub(crate) fn of(&self, kind: &Arc<Kind>) -> Self {
        Self { kind: kind.clone(), stored: kind.clone(), ..self.clone() }
    }

    /// Sets the encoding.
    pub(crate) fn encoded(self, encoding: Encoding) -> Self {
        Self { encoding, ..self }
    }

    /// Sets what converts the objects.
    pub(crate) fn converting(self, conversions: Option<Arc<Conversions>>) -> Self {
        Self { conversions, ..self }
    }

    pub(crate) fn conversions(&self) -> Option<&Arc<Conversions>> {
        self.conversions.as_ref()
    }

    /// Whether objects had to be shown that are not converted yet: what was computed from them is
    /// wrong.
    pub(crate) fn is_waiting(&self) -> bool {
        self.conversions.as_ref().is_some_and(|conversions| conversions.is_waiting())
    }

    /// Makes the conversions that are missing. Returns whether there were any.
    ///
    /// # Errors
    ///
    /// The failure of the webhook.
    pub(crate) async fn catch_up(&self, rng: &Rng) -> Result<bool, Unconverted> {
        match &self.conversions {
            Some(conversions) => conversions.make(rng).await,
            None => Ok(false),
        }
    }

    /// Notes the conversions of objects that will be encoded.
    pub(crate) fn foresee<'o>(&self, objects: impl IntoIterator<Item = &'o Arc<Object>>) {
        if self.conversions.is_some() {
            for object in objects.into_iter().filter(|object| !self.as_stored(object)) {
                self.value(object);
            }
        }
    }

    /// Converts an object of the view to the version in which it is stored.
    pub(crate) fn to_stored(&self, object: &mut Value) {
        match &self.conversions {
            Some(conversions) => conversions.convert(&self.stored, object, None),
            None => convert(&self.kind, &self.stored, object),
        }
    }

    /// Whether two views encode objects to the same bytes.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.kind, &other.kind) && self.form == other.form && self.encoding == other.encoding
    }

    /// The kind in its storage version.
    pub(crate) fn stored(&self) -> &Kind {
        &self.stored
    }

    /// Whether the stored bytes of an object are already in the version of the view.
    fn as_stored(&self, object: &Object) -> bool {
        let same = Arc::ptr_eq(&self.kind, &self.stored)
            || self.kind.version == self.stored.version && self.kind.group == self.stored.group;
        // The object may have been written when the definition had another storage version.
        same && (!self.kind.is_custom() || is_of_version(object.json(), self.kind.api_version()))
    }

    /// The object as JSON, without a line break, or as an enclosed protobuf message.
    pub(crate) fn show(&self, object: &Arc<Object>) -> Bytes {
        match self.encoding {
            Encoding::Json => self.json(object),
            Encoding::Protobuf => self.enclose(&self.message(object)).into(),
        }
    }

    /// An object that is not stored, as JSON or as an enclosed protobuf message.
    pub(crate) fn show_unsaved(&self, object: &Value) -> Vec<u8> {
        match (self.encoding, self.form) {
            (Encoding::Protobuf, Form::Full) => self.enclose(&self.full_message(object)),
            (Encoding::Protobuf, _) => self.enclose(&protobuf::metadata_message(object)),
            (Encoding::Json, Form::Full) => json::encode_as_is(&self.kind, object),
            (Encoding::Json, Form::Metadata(version) | Form::MetadataList(version)) => {
                let mut out = Vec::new();
                push_metadata(&mut out, version, &json::encode_metadata(&object["metadata"]));
                out
            }
            (Encoding::Json, Form::Table(..)) => self.unsaved_table(object, ColumnDefinitions::Included),
        }
    }

    /// The protobuf message of an object, not enclosed.
    pub(crate) fn message<'o>(&self, object: &'o Arc<Object>) -> Cow<'o, [u8]> {
        match self.form {
            Form::Full if self.as_stored(object) => object.message(&self.stored).into(),
            Form::Full => self.full_message(&self.value(object)).into(),
            Form::Metadata(_) | Form::MetadataList(_) | Form::Table(..) => {
                protobuf::metadata_of(object.message(&self.stored)).into()
            }
        }
    }

    /// Encodes the message that the object caches, if this view uses it.
    pub(crate) fn prepare(&self, object: &Arc<Object>) {
        if self.form != Form::Full || self.as_stored(object) {
            object.message(&self.stored);
        }
    }

    fn full_message(&self, object: &Value) -> Vec<u8> {
        protobuf::message(self.kind.api_version(), &self.kind.kind, object).unwrap_or_default()
    }

    fn enclose(&self, message: &[u8]) -> Vec<u8> {
        match self.form {
            Form::Full => protobuf::enclose(self.kind.api_version(), &self.kind.kind, message),
            Form::Metadata(version) | Form::MetadataList(version) | Form::Table(version, _) => {
                protobuf::enclose(version.api_version(), "PartialObjectMetadata", message)
            }
        }
    }

    fn json(&self, object: &Arc<Object>) -> Bytes {
        match self.form {
            Form::Full if self.as_stored(object) => object.json().clone(),
            Form::Full => {
                let value = self.value(object);
                json::encode(&self.kind, &value).at_version(&object.revision().to_string()).into()
            }
            Form::Metadata(version) | Form::MetadataList(version) => {
                let mut out = Vec::with_capacity(object.metadata().len() + 80);
                self.push_metadata(&mut out, version, object);
                out.into()
            }
            Form::Table(version, _) => self.table(version, object, ColumnDefinitions::Included).into(),
        }
    }

    /// Whether the encoding depends on more than the object: on the time, or on previous frames.
    pub(crate) fn is_time_dependent(&self) -> bool {
        matches!(self.form, Form::Table(..))
    }

    /// The current time, for ages in tables.
    pub(crate) fn moment(&self) -> Moment {
        Moment::new(self.clock.now())
    }

    /// A table of one object.
    pub(crate) fn table(&self, version: MetaVersion, object: &Arc<Object>, headers: ColumnDefinitions) -> Vec<u8> {
        let mut out = tabulate::start(version, &object.revision().to_string());
        tabulate::push_columns(&mut out, self.kind.columns(), headers);
        self.push_row(&mut out, object, None);
        tabulate::end(&mut out);
        out
    }

    /// A table of one object that is not stored.
    pub(crate) fn unsaved_table(&self, value: &Value, headers: ColumnDefinitions) -> Vec<u8> {
        let Form::Table(version, include) = self.form else { return Vec::new() };
        let mut out = tabulate::start(version, crate::admission::metadata::text(value, "resourceVersion"));
        tabulate::push_columns(&mut out, self.kind.columns(), headers);
        tabulate::push_row(&mut out, &self.kind.columns().row_at(value, self.moment(), None));
        // The annotation that ends the initial events is always included, regardless of what the
        // client requests.
        let ends_initial_events = value["metadata"]["annotations"].get("k8s.io/initial-events-end").is_some();
        match include {
            Include::Object => out.extend_from_slice(&json::encode_as_is(&self.kind, value)),
            Include::Nothing | Include::Unknown if !ends_initial_events => out.extend_from_slice(b"null"),
            _ => push_metadata(&mut out, version, &json::encode_metadata(&value["metadata"])),
        }
        out.push(b'}');
        tabulate::end(&mut out);
        out
    }

    /// Appends the row of an object; `marked` is the name of the list's default object.
    pub(crate) fn push_row(&self, out: &mut Vec<u8>, object: &Arc<Object>, marked: Option<&str>) {
        let row = self.kind.columns().row_at(&self.value(object), self.moment(), marked);
        tabulate::push_row(out, &row);
        match self.form {
            Form::Table(version, Include::Metadata) => self.push_metadata(out, version, object),
            Form::Table(_, Include::Object) => {
                let full = Self { form: Form::Full, ..self.clone() };
                out.extend_from_slice(&full.json(object));
            }
            _ => out.extend_from_slice(b"null"),
        }
        out.push(b'}');
    }

    /// The object in the version of the view.
    pub(crate) fn value(&self, object: &Arc<Object>) -> Value {
        let mut value = object.to_value();
        if let Some(conversions) = &self.conversions {
            if !self.as_stored(object) {
                let key = registry_path(&self.kind, object.key());
                let key = key.trim_start_matches("/registry/").to_owned();
                conversions.convert(&self.kind, &mut value, Some(Origin { key, revision: object.revision() }));
            }
        } else if !self.as_stored(object) {
            convert(&self.stored, &self.kind, &mut value);
            if self.kind.is_custom() {
                value["apiVersion"] = self.kind.api_version().into();
            }
        }
        value
    }

    fn push_metadata(&self, out: &mut Vec<u8>, version: MetaVersion, object: &Arc<Object>) {
        if self.kind.is_custom() {
            // Custom resources are stored with sorted keys, but `PartialObjectMetadata` is a
            // built-in type with its own order.
            push_metadata(out, version, &json::encode_metadata(&object.to_value()["metadata"]));
        } else {
            push_metadata(out, version, object.metadata());
        }
    }

    /// Appends the object as an item of a list.
    pub(crate) fn push_item(&self, out: &mut Vec<u8>, object: &Arc<Object>) {
        match self.form {
            Form::Full if self.as_stored(object) => {
                out.push(b'{');
                out.extend_from_slice(object.item_tail());
            }
            Form::Full => {
                let value = self.value(object);
                let encoded = json::encode(&self.kind, &value);
                let bytes = encoded.at_version(&object.revision().to_string());
                out.push(b'{');
                out.extend_from_slice(&bytes[encoded.type_prefix().max(1)..]);
            }
            Form::Metadata(version) | Form::MetadataList(version) => self.push_metadata(out, version, object),
            Form::Table(..) => self.push_row(out, object, None),
        }
    }

    /// The value of a selectable field.
    pub(crate) fn field<'o>(&self, object: &'o Arc<Object>, name: &str) -> Cow<'o, str> {
        match name {
            "metadata.name" => return object.key().name().into(),
            "metadata.namespace" => return object.key().namespace().unwrap_or_default().into(),
            _ => {}
        }
        // The selectable fields of a custom kind may have changed since the object was written.
        if self.as_stored(object) && !self.kind.is_custom() {
            let at = self.stored.selectable_fields().iter().position(|field| field.name() == name);
            return at.and_then(|at| object.fields().get(at)).map_or_else(Default::default, |value| (&**value).into());
        }
        let value = self.value(object);
        match self.kind.selectable_field(name) {
            Ok(field) => field.value(&value).into_owned().into(),
            Err(_) => "".into(),
        }
    }
}

/// Whether a custom resource starts with this apiVersion. Another key order gives a false negative,
/// which only costs time.
fn is_of_version(json: &[u8], api_version: &str) -> bool {
    let after_version =
        json.strip_prefix(b"{\"apiVersion\":\"").and_then(|rest| rest.strip_prefix(api_version.as_bytes()));
    after_version.is_some_and(|rest| rest.starts_with(b"\""))
}
