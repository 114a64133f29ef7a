//! How a stored object is shown: in the version asked for, whole or its metadata alone.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;

use super::tabulate::{self, Headers};
use crate::clock::Clock;
use crate::encoding::json;
use crate::encoding::protobuf;
use crate::http::negotiate::{Encoding, Form, Include, MetaVersion};
use crate::kinds::Kind;
use crate::kinds::convert::convert;
use crate::kinds::table::Moment;
use crate::storage::Object;

/// Appends a `PartialObjectMetadata` of this metadata.
pub(crate) fn push_metadata(out: &mut Vec<u8>, version: MetaVersion, metadata: &[u8]) {
    out.extend_from_slice(br#"{"kind":"PartialObjectMetadata","apiVersion":""#);
    out.extend_from_slice(version.api_version().as_bytes());
    out.extend_from_slice(br#"","metadata":"#);
    out.extend_from_slice(metadata);
    out.push(b'}');
}

/// A kind in a form: what one request sees of objects.
#[derive(Debug, Clone)]
pub(crate) struct View {
    pub(crate) kind: Arc<Kind>,
    pub(crate) form: Form,
    pub(crate) encoding: Encoding,
    /// The kind in whose version the objects are kept.
    stored: Arc<Kind>,
    clock: Clock,
}

impl View {
    pub(crate) fn new(kind: Arc<Kind>, stored: Arc<Kind>, form: Form, clock: Clock) -> Self {
        Self { kind, form, encoding: Encoding::Json, stored, clock }
    }

    /// The view in another encoding.
    pub(crate) fn encoded(self, encoding: Encoding) -> Self {
        Self { encoding, ..self }
    }

    /// Whether two views show the same bytes.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.kind, &other.kind) && self.form == other.form && self.encoding == other.encoding
    }

    /// The kind in whose version the objects are kept.
    pub(crate) fn stored(&self) -> &Kind {
        &self.stored
    }

    /// Whether the object's bytes are those of the view's version.
    fn as_stored(&self, object: &Object) -> bool {
        let same = Arc::ptr_eq(&self.kind, &self.stored)
            || self.kind.version == self.stored.version && self.kind.group == self.stored.group;
        // A definition may have named another version to be stored when the object was written.
        same && (!self.kind.is_custom() || is_of_version(object.json(), self.kind.api_version()))
    }

    /// The object as JSON, without a line break, or as a message in its envelope.
    pub(crate) fn show(&self, object: &Arc<Object>) -> Bytes {
        match self.encoding {
            Encoding::Json => self.json(object),
            Encoding::Protobuf => self.enclose(&self.message(object)).into(),
        }
    }

    /// An object that is not stored, as JSON or as a message in its envelope.
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
            (Encoding::Json, Form::Table(..)) => self.unsaved_table(object, Headers::Shown),
        }
    }

    /// The message of an object, without its envelope.
    pub(crate) fn message<'o>(&self, object: &'o Arc<Object>) -> Cow<'o, [u8]> {
        match self.form {
            Form::Full if self.as_stored(object) => object.message(&self.stored).into(),
            Form::Full => self.full_message(&self.value(object)).into(),
            Form::Metadata(_) | Form::MetadataList(_) | Form::Table(..) => {
                protobuf::metadata_of(object.message(&self.stored)).into()
            }
        }
    }

    /// Makes the message that the object will keep, if it is what is shown.
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
            Form::Table(version, _) => self.table(version, object, Headers::Shown).into(),
        }
    }

    /// Whether what is shown of an object depends on more than the object: on the time, or on what was shown before.
    pub(crate) fn is_fleeting(&self) -> bool {
        matches!(self.form, Form::Table(..))
    }

    /// The present time, for ages.
    pub(crate) fn moment(&self) -> Moment {
        Moment::new(self.clock.now())
    }

    /// A table of one object.
    pub(crate) fn table(&self, version: MetaVersion, object: &Arc<Object>, headers: Headers) -> Vec<u8> {
        let mut out = tabulate::start(version, &object.revision().to_string());
        tabulate::push_columns(&mut out, self.kind.columns(), headers);
        self.push_row(&mut out, object, None);
        tabulate::end(&mut out);
        out
    }

    /// A table of one object that is not stored.
    pub(crate) fn unsaved_table(&self, value: &Value, headers: Headers) -> Vec<u8> {
        let Form::Table(version, include) = self.form else { return Vec::new() };
        let mut out = tabulate::start(version, crate::admission::metadata::text(value, "resourceVersion"));
        tabulate::push_columns(&mut out, self.kind.columns(), headers);
        tabulate::push_row(&mut out, &self.kind.columns().row_at(value, self.moment(), None));
        // The end of the initial events must be found whatever the client wants to see.
        let marks_end = value["metadata"]["annotations"].get("k8s.io/initial-events-end").is_some();
        match include {
            Include::Object => out.extend_from_slice(&json::encode_as_is(&self.kind, value)),
            Include::Nothing | Include::Unknown if !marks_end => out.extend_from_slice(b"null"),
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
        if !self.as_stored(object) {
            convert(&self.stored, &self.kind, &mut value);
            if self.kind.is_custom() {
                value["apiVersion"] = self.kind.api_version().into();
            }
        }
        value
    }

    fn push_metadata(&self, out: &mut Vec<u8>, version: MetaVersion, object: &Arc<Object>) {
        if self.kind.is_custom() {
            // Custom resources are kept with sorted keys, but this form is a type of the server's own.
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

    /// The value of a selectable field beside the object's name and namespace.
    pub(crate) fn field<'o>(&self, object: &'o Arc<Object>, name: &str) -> Cow<'o, str> {
        match name {
            "metadata.name" => return object.key().name().into(),
            "metadata.namespace" => return object.key().namespace().unwrap_or_default().into(),
            _ => {}
        }
        // Which fields of a custom kind can be selected by may change after an object was written.
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

/// Whether a custom resource says first of all that it is of this version. (One whose keys come in another order is
/// taken not to be, which costs time and nothing else.)
fn is_of_version(json: &[u8], api_version: &str) -> bool {
    let said = json.strip_prefix(b"{\"apiVersion\":\"").and_then(|rest| rest.strip_prefix(api_version.as_bytes()));
    said.is_some_and(|rest| rest.starts_with(b"\""))
}
