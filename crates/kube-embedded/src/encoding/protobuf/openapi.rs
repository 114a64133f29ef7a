//! An OpenAPI v2 document as protobuf (gnostic's `OpenAPIv2.proto`), which kubectl requests.
//!
//! Only messages and fields that descriptions of Kubernetes kinds use.

use serde_json::Value;

use super::wire::{push_bytes, push_double, push_message, push_number};

/// A message: the JSON name, the number and the shape of its fields, and the number of the field
/// for extensions (`x-…`).
struct Message {
    fields: &'static [(&'static str, u32, Shape)],
    extensions: Option<u32>,
}

/// How a JSON value is written as a field.
#[derive(Clone, Copy)]
enum Shape {
    Text,
    Flag,
    Integer,
    Number,
    /// Any value, as YAML.
    Any,
    One(&'static Message),
    /// A message with this shape in the field with this number.
    Within(u32, &'static Shape),
    /// A field for each item of a list.
    Each(&'static Shape),
    /// A message with a field of this number for each entry of a map, which has the name in field 1
    /// and the value in field 2.
    Entries(u32, &'static Shape),
    /// A message with one text or several in field 1.
    Texts,
    /// A schema in field 1 or a flag in field 2.
    SchemaOrFlag,
    /// A parameter in field 1 or a reference to one in field 2.
    ParameterOrReference,
    /// The parameter of a body in field 1, another one in field 2.
    Parameter,
}

use Shape::{
    Any, Each, Entries, Flag, Integer, Number, One, Parameter, ParameterOrReference, SchemaOrFlag, Text, Texts, Within,
};

static DOCUMENT: Message = Message {
    fields: &[
        ("swagger", 1, Text),
        ("info", 2, One(&INFO)),
        ("host", 3, Text),
        ("basePath", 4, Text),
        ("schemes", 5, Each(&Text)),
        ("consumes", 6, Each(&Text)),
        ("produces", 7, Each(&Text)),
        ("paths", 8, Entries(2, &One(&PATH))),
        ("definitions", 9, Entries(1, &One(&SCHEMA))),
        ("parameters", 10, Entries(1, &Parameter)),
        ("security", 12, Each(&Entries(1, &Texts))),
        ("securityDefinitions", 13, Entries(1, &Within(2, &One(&API_KEY)))),
    ],
    extensions: Some(16),
};

static INFO: Message =
    Message { fields: &[("title", 1, Text), ("version", 2, Text), ("description", 3, Text)], extensions: Some(7) };

static API_KEY: Message = Message {
    fields: &[("type", 1, Text), ("name", 2, Text), ("in", 3, Text), ("description", 4, Text)],
    extensions: Some(5),
};

static PATH: Message = Message {
    fields: &[
        ("get", 2, One(&OPERATION)),
        ("put", 3, One(&OPERATION)),
        ("post", 4, One(&OPERATION)),
        ("delete", 5, One(&OPERATION)),
        ("options", 6, One(&OPERATION)),
        ("head", 7, One(&OPERATION)),
        ("patch", 8, One(&OPERATION)),
        ("parameters", 9, Each(&ParameterOrReference)),
    ],
    extensions: Some(10),
};

static OPERATION: Message = Message {
    fields: &[
        ("tags", 1, Each(&Text)),
        ("summary", 2, Text),
        ("description", 3, Text),
        ("operationId", 5, Text),
        ("produces", 6, Each(&Text)),
        ("consumes", 7, Each(&Text)),
        ("parameters", 8, Each(&ParameterOrReference)),
        ("responses", 9, Entries(1, &Within(1, &One(&RESPONSE)))),
        ("schemes", 10, Each(&Text)),
        ("deprecated", 11, Flag),
        ("security", 12, Each(&Entries(1, &Texts))),
    ],
    extensions: Some(13),
};

static RESPONSE: Message =
    Message { fields: &[("description", 1, Text), ("schema", 2, Within(1, &One(&SCHEMA)))], extensions: Some(5) };

static REFERENCE: Message = Message { fields: &[("$ref", 1, Text), ("description", 2, Text)], extensions: None };

static BODY: Message = Message {
    fields: &[
        ("description", 1, Text),
        ("name", 2, Text),
        ("in", 3, Text),
        ("required", 4, Flag),
        ("schema", 5, One(&SCHEMA)),
    ],
    extensions: Some(6),
};

static QUERY: Message = Message {
    fields: &[
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("allowEmptyValue", 5, Flag),
        ("type", 6, Text),
        ("format", 7, Text),
        ("uniqueItems", 20, Flag),
    ],
    extensions: Some(23),
};

/// A parameter in the path or in a header.
static PLACED: Message = Message {
    fields: &[
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("type", 5, Text),
        ("format", 6, Text),
        ("uniqueItems", 19, Flag),
    ],
    extensions: Some(22),
};

static SCHEMA: Message = Message {
    fields: &[
        ("$ref", 1, Text),
        ("format", 2, Text),
        ("title", 3, Text),
        ("description", 4, Text),
        ("default", 5, Any),
        ("multipleOf", 6, Number),
        ("maximum", 7, Number),
        ("exclusiveMaximum", 8, Flag),
        ("minimum", 9, Number),
        ("exclusiveMinimum", 10, Flag),
        ("maxLength", 11, Integer),
        ("minLength", 12, Integer),
        ("pattern", 13, Text),
        ("maxItems", 14, Integer),
        ("minItems", 15, Integer),
        ("uniqueItems", 16, Flag),
        ("maxProperties", 17, Integer),
        ("minProperties", 18, Integer),
        ("required", 19, Each(&Text)),
        ("enum", 20, Each(&Any)),
        ("additionalProperties", 21, SchemaOrFlag),
        ("type", 22, Texts),
        ("items", 23, Within(1, &One(&SCHEMA))),
        ("allOf", 24, Each(&One(&SCHEMA))),
        ("properties", 25, Entries(1, &One(&SCHEMA))),
        ("readOnly", 27, Flag),
        ("example", 30, Any),
    ],
    extensions: Some(31),
};

/// Encodes a document. What it contains beyond the known fields is left out.
pub(crate) fn document(document: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    DOCUMENT.push(&mut out, document);
    out
}

impl Message {
    fn push(&self, out: &mut Vec<u8>, json: &Value) {
        for (name, number, shape) in self.fields {
            if let Some(value) = json.get(*name) {
                shape.push(out, *number, value);
            }
        }
        let Some(number) = self.extensions else { return };
        for (name, value) in entries(json).filter(|(name, _)| name.starts_with("x-")) {
            push_entry(out, number, name, Any, value);
        }
    }
}

impl Shape {
    /// Appends a field. A value of another type is left out.
    fn push(self, out: &mut Vec<u8>, number: u32, value: &Value) {
        match self {
            Text => value.as_str().into_iter().for_each(|text| push_bytes(out, number, text.as_bytes())),
            Flag if *value == true => push_number(out, number, 1),
            Flag => {}
            Integer => value.as_i64().into_iter().for_each(|integer| push_number(out, number, integer)),
            Number => value.as_f64().into_iter().for_each(|double| push_double(out, number, double)),
            // JSON is YAML.
            Any => push_message(out, number, |out| push_bytes(out, 2, value.to_string().as_bytes())),
            One(message) => push_message(out, number, |out| message.push(out, value)),
            Within(inner, shape) => push_message(out, number, |out| shape.push(out, inner, value)),
            Each(shape) => value.as_array().into_iter().flatten().for_each(|item| shape.push(out, number, item)),
            Entries(inner, shape) => push_message(out, number, |out| {
                entries(value).for_each(|(name, value)| push_entry(out, inner, name, *shape, value));
            }),
            Texts => push_message(out, number, |out| {
                let texts = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                texts.iter().for_each(|text| Text.push(out, 1, text));
            }),
            SchemaOrFlag => push_message(out, number, |out| match value.as_bool() {
                // Written even if it is false: the field says which of the two it is.
                Some(flag) => push_number(out, 2, flag.into()),
                None => One(&SCHEMA).push(out, 1, value),
            }),
            ParameterOrReference => push_message(out, number, |out| match value.get("$ref") {
                Some(_) => One(&REFERENCE).push(out, 2, value),
                None => Parameter.push(out, 1, value),
            }),
            Parameter => push_message(out, number, |out| match value["in"].as_str() {
                Some("body") => One(&BODY).push(out, 1, value),
                Some("header") => push_message(out, 2, |out| One(&PLACED).push(out, 1, value)),
                Some("query") => push_message(out, 2, |out| One(&QUERY).push(out, 3, value)),
                Some("path") => push_message(out, 2, |out| One(&PLACED).push(out, 4, value)),
                _ => {}
            }),
        }
    }
}

fn push_entry(out: &mut Vec<u8>, number: u32, name: &str, shape: Shape, value: &Value) {
    push_message(out, number, |out| {
        push_bytes(out, 1, name.as_bytes());
        shape.push(out, 2, value);
    });
}

fn entries(json: &Value) -> impl Iterator<Item = (&str, &Value)> {
    json.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_written_as_gnostic_reads_it() {
        let written = document(&json!({
            "swagger": "2.0",
            "paths": {"/a": {"parameters": [{"$ref": "#/parameters/p"}, {"in": "path", "name": "n", "required": true}]}},
            "definitions": {"A": {
                "type": "object", "required": ["b"], "additionalProperties": false,
                "properties": {"b": {"type": "array", "items": {"$ref": "#/definitions/A"}}}, "x-k": "map",
            }},
        }));
        let paths = b"B/\x12-\x0a\x02/a\x12'J\x12\x12\x10\x0a\x0e#/parameters/pJ\x11\x0a\x0f\x12\x0d\x22\x0b\x08\x01\
                      \x12\x04path\x22\x01n";
        let schema = b"\x9a\x01\x01b\xaa\x01\x02\x10\x00\xb2\x01\x08\x0a\x06object\xca\x01'\x0a%\x0a\x01b\x12 \xb2\x01\
                       \x07\x0a\x05array\xba\x01\x13\x0a\x11\x0a\x0f#/definitions/A\xfa\x01\x0e\x0a\x03x-k\x12\x07\x12\
                       \x05\x22map\x22";
        let definitions = b"JV\x0aT\x0a\x01A\x12O";
        let expected = [b"\x0a\x032.0".as_slice(), paths, definitions, schema].concat();
        assert_eq!(written.escape_ascii().to_string(), expected.escape_ascii().to_string());
    }
}
