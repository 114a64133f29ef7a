//! Custom kinds in the OpenAPI v2 document, which supports only a part of their schemas.

use serde_json::{Map, Value, json};

use super::{Document, unpack};
use crate::kinds::{Kind, Part, Registry, ResourceScope};

/// The document of all served kinds; `None` if only built-in kinds are served.
pub(super) fn document(registry: &Registry) -> Option<Document> {
    let versions = registry.group_versions();
    let custom: Vec<&Kind> = versions
        .iter()
        .flat_map(|version| &version.kinds)
        .filter(|kind| kind.is_custom())
        .map(|kind| &***kind)
        .collect();
    if custom.is_empty() {
        return None;
    }
    let mut document: Value = serde_json::from_slice(&unpack(super::RECORDED_V2)).ok()?;
    for kind in custom {
        describe(kind, &mut document);
    }
    serde_json::to_vec(&document).ok().map(Document::new)
}

fn describe(kind: &Kind, document: &mut Value) {
    let mut domain: Vec<&str> = kind.group.split('.').collect();
    domain.reverse();
    let name = format!("{}.{}.{}", domain.join("."), kind.version, kind.kind);
    let list_name = format!("{}.{}.{}", domain.join("."), kind.version, kind.list_kind);
    let meta = |name: &str| json!({"$ref": format!("#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.{name}")});
    let reference = |name: &str| json!({"$ref": format!("#/definitions/{name}")});
    let identity = |kind_name: &str| json!({"group": kind.group, "kind": kind_name, "version": kind.version});
    let mut schema = kind.structure.as_ref().map_or_else(|| json!({}), |structure| structure.schema().clone());
    let keeps_unknown = schema["x-kubernetes-preserve-unknown-fields"] == true;
    simplify(&mut schema);
    if keeps_unknown {
        schema = json!({"type": "object"});
    } else {
        for (part, of) in [("apiVersion", json!({"type": "string"})), ("kind", json!({"type": "string"}))] {
            schema["properties"][part] = of;
        }
        schema["properties"]["metadata"] = meta("ObjectMeta");
    }
    schema["x-kubernetes-group-version-kind"] = json!([identity(&kind.kind)]);
    let list = json!({
        "type": "object", "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": meta("ListMeta"),
            "items": {"type": "array", "items": reference(&name)},
        },
        "x-kubernetes-group-version-kind": [identity(&kind.list_kind)],
    });
    document["definitions"][&name] = schema;
    document["definitions"][&list_name] = list;
    let operation = |action: &str, of: &str| {
        let answer =
            json!({"200": {"description": "OK", "schema": reference(of)}, "401": {"description": "Unauthorized"}});
        let mut operation = json!({
            "consumes": ["application/json", "application/yaml"], "produces": ["application/json", "application/yaml"],
            "schemes": ["https"], "responses": answer,
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": identity(&kind.kind),
        });
        if matches!(action, "post" | "put" | "patch") {
            let body = json!({"name": "body", "in": "body", "required": true, "schema": reference(of)});
            let query = ["dryRun", "fieldManager", "fieldValidation"].into_iter();
            let query = query.map(|name| json!({"name": name, "in": "query", "type": "string", "uniqueItems": true}));
            operation["parameters"] = std::iter::once(body).chain(query).collect();
        }
        operation
    };
    let status = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
    let scope = if kind.scope == ResourceScope::Namespaced { "/namespaces/{namespace}" } else { "" };
    let base = format!("/apis/{}/{}", kind.group, kind.version);
    let collection = format!("{base}{scope}/{}", kind.plural);
    let parts = kind.subresources.iter().map(|sub| sub.part).filter(|part| *part != Part::Finalize);
    let mut paths = Map::new();
    paths.insert(
        collection.clone(),
        json!({
            "get": operation("list", &list_name), "post": operation("post", &name),
            "delete": operation("deletecollection", status),
        }),
    );
    if kind.scope == ResourceScope::Namespaced {
        paths.insert(format!("{base}/{}", kind.plural), json!({"get": operation("list", &list_name)}));
    }
    let one = json!({
        "get": operation("get", &name), "put": operation("put", &name), "patch": operation("patch", &name),
        "delete": operation("delete", status),
    });
    paths.insert(format!("{collection}/{{name}}"), one);
    for part in parts {
        let of = if part == Part::Scale { "io.k8s.api.autoscaling.v1.Scale" } else { &name };
        let one = json!({"get": operation("get", of), "put": operation("put", of), "patch": operation("patch", of)});
        paths.insert(format!("{collection}/{{name}}/{}", part.as_str()), one);
    }
    for (path, item) in paths {
        document["paths"][path] = item;
    }
}

/// Removes what OpenAPI v2 does not support from a schema.
fn simplify(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    for unsupported in ["default", "allOf", "anyOf", "oneOf", "not"] {
        map.remove(unsupported);
    }
    let is_nullable = map.remove("nullable") == Some(Value::Bool(true));
    if is_nullable || map.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true)) {
        // OpenAPI v2 has no type for null or for arbitrary values.
        for part in ["type", "properties", "items", "additionalProperties"] {
            map.remove(part);
        }
    }
    for (name, part) in map.iter_mut() {
        match (name.as_str(), part) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(simplify),
            ("items" | "additionalProperties", part) => simplify(part),
            _ => {}
        }
    }
}
