//! Parsing and validation of `CustomResourceDefinition`s.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::table::Columns;
use super::{
    Behaviour, Cache, Counts, DeleteReply, Generation, GroupResource, InitialStatus, Kind, Lifecycle, NameRule, Part,
    Propagation, PutMissing, ResourceScope, ScalePaths, Schema, Selectable, Structure, Subresource, Text,
    UpdateVersion,
};
use crate::encoding::fnv::fnv_1a;
use crate::encoding::json;
use crate::encoding::value::items;
use crate::http::request::Verb;
use crate::http::status::Cause;

const MOST_SELECTABLE_FIELDS: usize = 8;

/// The kinds of a `CustomResourceDefinition`.
#[derive(Debug)]
pub(crate) struct Definition {
    /// `plural.group`
    pub(crate) name: String,
    /// Counts the changes of the spec.
    generation: i64,
    /// One per served version, in the order of the definition.
    pub(crate) served: Vec<Arc<Kind>>,
    /// The kind of the storage version, served or not.
    pub(crate) stored: Arc<Kind>,
}

impl Definition {
    /// Parses a `CustomResourceDefinition`.
    ///
    /// # Errors
    ///
    /// All validation errors, with the server's messages.
    pub(crate) fn parse(crd: &Value) -> Result<Definition, Vec<Cause>> {
        let causes = validate(crd);
        if !causes.is_empty() {
            return Err(causes);
        }
        let kinds: Vec<(bool, bool, Arc<Kind>)> = items(&crd["spec"]["versions"])
            .iter()
            .map(|version| (version["served"] == true, version["storage"] == true, Arc::new(kind(crd, version))))
            .collect();
        let stored = kinds.iter().find(|(_, storage, _)| *storage).map(|(_, _, kind)| Arc::clone(kind));
        let Some(stored) = stored else {
            return Err(vec![exactly_one_storage_version(&crd["spec"]["versions"])]);
        };
        let served = kinds.into_iter().filter_map(|(served, _, kind)| served.then_some(kind)).collect();
        let generation = crd["metadata"]["generation"].as_i64().unwrap_or(0);
        Ok(Definition { name: text(&crd["metadata"], "name").to_owned(), generation, served, stored })
    }

    /// Whether another state of the definition has the same spec.
    pub(crate) fn is_same_as(&self, other: &Definition) -> bool {
        self.generation == other.generation
    }
}

/// Sets the defaults of a `CustomResourceDefinition`.
pub(crate) fn set_defaults(crd: &mut Value) {
    let Some(spec) = crd.get_mut("spec").filter(|spec| spec.is_object()) else { return };
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec["conversion"] = serde_json::json!({"strategy": "None"});
    }
    let Some(names) = spec.get_mut("names").filter(|names| names.is_object()) else { return };
    let kind = text(names, "kind").to_owned();
    if kind.is_empty() {
        return;
    }
    if text(names, "singular").is_empty() {
        names["singular"] = kind.to_ascii_lowercase().into();
    }
    if text(names, "listKind").is_empty() {
        names["listKind"] = format!("{kind}List").into();
    }
}

fn kind(crd: &Value, version: &Value) -> Kind {
    let spec = &crd["spec"];
    let names = &spec["names"];
    let own = |value: &Value, key: &str| -> Text { text(value, key).to_owned().into() };
    let (group, kind) = (own(spec, "group"), own(names, "kind"));
    let scope = if spec["scope"] == "Namespaced" { ResourceScope::Namespaced } else { ResourceScope::Cluster };
    let has_status = version["subresources"]["status"].is_object();
    let terminating = items(&crd["status"]["conditions"])
        .iter()
        .any(|condition| condition["type"] == "Terminating" && condition["status"] == "True");
    let verbs = if terminating {
        vec![Verb::Delete, Verb::DeleteCollection, Verb::Get, Verb::List, Verb::Watch]
    } else {
        let writes = [Verb::Patch, Verb::Create, Verb::Update, Verb::Watch];
        [Verb::Delete, Verb::DeleteCollection, Verb::Get, Verb::List].into_iter().chain(writes).collect()
    };
    let status = Subresource { part: Part::Status, verbs: vec![Verb::Get, Verb::Patch, Verb::Update] };
    let scaling = Subresource { part: Part::Scale, verbs: vec![Verb::Get, Verb::Patch, Verb::Update] };
    let scale = version["subresources"]["scale"].is_object().then(|| {
        let path = |name: &str| text(&version["subresources"]["scale"], name);
        ScalePaths::new(path("specReplicasPath"), path("statusReplicasPath"), path("labelSelectorPath"))
    });
    let fixed: &[&str] = match scope {
        ResourceScope::Namespaced => &["metadata.name", "metadata.namespace"],
        ResourceScope::Cluster => &["metadata.name"],
    };
    let paths = items(&version["selectableFields"]).iter().map(|field| Selectable::custom(text(field, "jsonPath")));
    let storage_version = items(&spec["versions"]).iter().find(|version| version["storage"] == true);
    let storage_version = storage_version.map_or("", |version| text(version, "name"));
    Kind {
        version: own(version, "name"),
        list_kind: match text(names, "listKind") {
            "" => format!("{kind}List").into(),
            list_kind => list_kind.to_owned().into(),
        },
        plural: own(names, "plural"),
        singular: match text(names, "singular") {
            "" => kind.to_ascii_lowercase().into(),
            singular => singular.to_owned().into(),
        },
        short_names: words(&names["shortNames"]),
        categories: words(&names["categories"]),
        scope,
        verbs,
        subresources: has_status.then_some(status).into_iter().chain(scale.is_some().then_some(scaling)).collect(),
        storage_version_hash: storage_version_hash(&group, storage_version, &kind).into(),
        schema: Schema::Custom,
        behaviour: Behaviour {
            name_rule: NameRule::DnsSubdomain,
            generation: Generation::Counted(if has_status { Counts::Content } else { Counts::ContentAndStatus }),
            update_version: UpdateVersion::Required,
            put_missing: PutMissing::NotFound,
            delete_reply: DeleteReply::Status,
            propagation: Propagation::Background,
            initial_status: if has_status { InitialStatus::Empty } else { InitialStatus::Kept },
            initial_finalizers: Vec::new(),
            deprecation: None,
            delete_warning: None,
            lifecycle: Lifecycle::Plain,
        },
        cache: Cache::Cached,
        storage: GroupResource { group: group.clone(), resource: own(names, "plural") },
        scale,
        structure: Some(Structure::new(&version["schema"]["openAPIV3Schema"])),
        conversion: is_converted_by_webhook(&spec["conversion"])
            .then(|| Arc::new(spec["conversion"]["webhook"].clone())),
        selectable: fixed.iter().map(|name| Selectable::built_in(name)).chain(paths).collect(),
        unknown_field: "field label not supported: *".into(),
        api_version: format!("{group}/{}", text(version, "name")).into(),
        zero: "{}",
        bookmark: OnceLock::new(),
        columns: Columns::of_version(version).into(),
        group,
        kind,
    }
}

/// An opaque 8-byte hash (FNV-1a) that changes with the storage version. Clients may only compare
/// it.
fn storage_version_hash(group: &str, version: &str, kind: &str) -> String {
    use base64::Engine as _;
    let hash = fnv_1a(format!("{group}/{version}/{kind}").bytes());
    base64::engine::general_purpose::STANDARD.encode(hash.to_be_bytes())
}

fn validate(crd: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = &crd["spec"];
    let (group, names) = (text(spec, "group"), &spec["names"]);
    let name = text(&crd["metadata"], "name");
    let mut name_problems = NameRule::DnsSubdomain.problems(name);
    if name != format!("{}.{group}", text(names, "plural")) {
        name_problems.push("must be spec.names.plural+\".\"+spec.group".to_owned());
    }
    causes.extend(name_problems.iter().map(|problem| invalid("metadata.name", &name.into(), problem)));
    if group.is_empty() {
        causes.push(required("spec.group"));
    } else if let Some(problem) = name_problem(NameRule::DnsSubdomain, group) {
        causes.push(invalid("spec.group", &group.into(), &problem));
    } else if !group.contains('.') {
        causes.push(invalid("spec.group", &group.into(), "should be a domain with at least one dot"));
    }
    match text(spec, "scope") {
        "" => causes.push(required("spec.scope")),
        "Cluster" | "Namespaced" => {}
        other => causes.push(Cause::unsupported("spec.scope", format!("{other:?}"), "\"Cluster\", \"Namespaced\"")),
    }
    validate_versions(&spec["versions"], &mut causes);
    validate_names(names, &mut causes);
    let approval = crd["metadata"]["annotations"].get("api-approved.kubernetes.io").and_then(Value::as_str);
    let protected =
        ["k8s.io", "kubernetes.io"].iter().any(|domain| group == *domain || group.ends_with(&format!(".{domain}")));
    if protected && approval.is_none_or(str::is_empty) {
        let mut cause = required("metadata.annotations[api-approved.kubernetes.io]");
        cause.message += ": protected groups must have approval annotation \"api-approved.kubernetes.io\", see \
                          https://github.com/kubernetes/enhancements/pull/1111";
        causes.push(cause);
    }
    if spec["preserveUnknownFields"] == true {
        let detail =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        causes.push(invalid("spec.preserveUnknownFields", &true.into(), detail));
    }
    validate_conversion(&spec["conversion"], &mut causes);
    causes
}

fn is_converted_by_webhook(conversion: &Value) -> bool {
    conversion["strategy"] == "Webhook"
}

/// Validates how versions are converted. The real server reports the fields of an older version.
fn validate_conversion(conversion: &Value, causes: &mut Vec<Cause>) {
    let (client_path, versions_path) =
        ("spec.conversion.webhookClientConfig", "spec.conversion.conversionReviewVersions");
    let (client, versions) =
        (&conversion["webhook"]["clientConfig"], &conversion["webhook"]["conversionReviewVersions"]);
    if !is_converted_by_webhook(conversion) {
        let strategy = text(conversion, "strategy");
        if !matches!(strategy, "" | "None") {
            causes.push(Cause::unsupported(
                "spec.conversion.strategy",
                format!("{strategy:?}"),
                "\"None\", \"Webhook\"",
            ));
        }
        let set = [(client_path, client.is_object()), (versions_path, !items(versions).is_empty())];
        let why = "should not be set when strategy is not set to Webhook";
        causes.extend(set.into_iter().filter(|(_, is_set)| *is_set).map(|(path, _)| Cause::forbidden(path, why)));
        return;
    }
    let (url, service) = (text(client, "url"), &client["service"]);
    match (client.is_object(), url.is_empty(), service.is_object()) {
        (false, _, _) => causes.push(Cause::required(client_path, "required when strategy is set to Webhook")),
        (_, true, false) | (_, false, true) => {
            causes.push(Cause::required(client_path, "exactly one of url or service is required"));
        }
        (_, true, true) => {
            let missing = ["name", "namespace"].into_iter().filter(|part| text(service, part).is_empty());
            causes.extend(missing.map(|part| required(format!("{client_path}.service.{part}"))));
        }
        (_, false, false) if !url.starts_with("https://") => {
            let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
            let why = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
            causes.push(invalid(format!("{client_path}.url"), &scheme.into(), why));
        }
        _ => {}
    }
    let known: Vec<&str> = items(versions).iter().filter_map(Value::as_str).collect();
    for (at, version) in known.iter().enumerate().filter(|(at, version)| known[..*at].contains(version)) {
        causes.push(invalid(format!("{versions_path}[{at}]"), &(*version).into(), "duplicate version"));
    }
    if known.is_empty() {
        causes.push(required(versions_path));
    } else if !known.iter().any(|version| matches!(*version, "v1" | "v1beta1")) {
        causes.push(invalid(versions_path, versions, "must include at least one of v1, v1beta1"));
    }
}

fn validate_versions(versions: &Value, causes: &mut Vec<Cause>) {
    let all = items(versions);
    let schemas = all.iter().enumerate().filter(|(_, version)| !version["schema"]["openAPIV3Schema"].is_object());
    causes.extend(schemas.map(|(at, _)| required(format!("spec.versions[{at}].schema.openAPIV3Schema"))));
    // The server moves fields that are equal in all versions to the top of the spec, and reports
    // errors with that path.
    let alike = all.iter().all(|version| version["selectableFields"] == all[0]["selectableFields"]);
    for (at, version) in all.iter().enumerate() {
        let name = text(version, "name");
        if let Some(problem) = name_problem(NameRule::Dns1035Label, name) {
            causes.push(invalid(format!("spec.versions[{at}].name"), &name.into(), &problem));
        }
        if !alike {
            validate_selectable(&version["selectableFields"], &format!("spec.versions[{at}].selectableFields"), causes);
        }
    }
    let mut names: Vec<&str> = all.iter().map(|version| text(version, "name")).collect();
    names.sort_unstable();
    if names.windows(2).any(|pair| pair[0] == pair[1]) {
        causes.push(invalid("spec.versions", versions, "must contain unique version names"));
    }
    if all.iter().filter(|version| version["storage"] == true).count() != 1 {
        causes.push(exactly_one_storage_version(versions));
    }
    if let Some(first) = all.first().filter(|_| alike) {
        validate_selectable(&first["selectableFields"], "spec.selectableFields", causes);
    }
}

fn exactly_one_storage_version(versions: &Value) -> Cause {
    invalid("spec.versions", versions, "must have exactly one version marked as storage version")
}

fn validate_selectable(fields: &Value, path: &str, causes: &mut Vec<Cause>) {
    let mut seen: Vec<&str> = Vec::new();
    for (at, field) in items(fields).iter().enumerate() {
        let json_path = text(field, "jsonPath");
        let path = format!("{path}[{at}].jsonPath");
        if json_path.is_empty() {
            causes.push(required(path));
        } else if json_path == ".metadata" || json_path.starts_with(".metadata.") {
            causes.push(invalid(path, &json_path.into(), "must not point to fields in metadata"));
        } else if seen.contains(&json_path) {
            causes.push(Cause::new("FieldValueDuplicate", path, format!("Duplicate value: {json_path:?}")));
        } else {
            seen.push(json_path);
        }
    }
    if seen.len() > MOST_SELECTABLE_FIELDS {
        causes.push(Cause::new(
            "FieldValueTooMany",
            path,
            format!("Too many: {}: must have at most {MOST_SELECTABLE_FIELDS} items", seen.len()),
        ));
    }
}

fn validate_names(names: &Value, causes: &mut Vec<Cause>) {
    let (plural, singular) = (text(names, "plural"), text(names, "singular"));
    let (kind, list_kind) = (text(names, "kind"), text(names, "listKind"));
    for (key, value) in [("plural", plural), ("kind", kind)] {
        if value.is_empty() {
            causes.push(required(format!("spec.names.{key}")));
        }
    }
    let short_names = items(&names["shortNames"]).iter().enumerate();
    let categories = items(&names["categories"]).iter().enumerate();
    let single = [("plural", plural), ("singular", singular)].map(|(key, value)| (key.to_owned(), value));
    let mixed = [("kind", kind), ("listKind", list_kind)];
    for (key, value) in single.into_iter().filter(|(_, value)| !value.is_empty()) {
        if let Some(problem) = name_problem(NameRule::Dns1035Label, value) {
            causes.push(invalid(format!("spec.names.{key}"), &value.into(), &problem));
        }
    }
    for (key, value) in mixed.into_iter().filter(|(_, value)| !value.is_empty()) {
        if let Some(problem) = name_problem(NameRule::Dns1035Label, &value.to_ascii_lowercase()) {
            let problem = format!("may have mixed case, but should otherwise match: {problem}");
            causes.push(invalid(format!("spec.names.{key}"), &value.into(), &problem));
        }
    }
    let labels = |causes: &mut Vec<Cause>, list: &str, at: usize, value: &Value| {
        if let Some(problem) = name_problem(NameRule::Dns1035Label, value.as_str().unwrap_or_default()) {
            causes.push(invalid(format!("spec.names.{list}[{at}]"), value, &problem));
        }
    };
    short_names.for_each(|(at, value)| labels(causes, "shortNames", at, value));
    if !kind.is_empty() && kind == list_kind {
        causes.push(invalid("spec.names.listKind", &list_kind.into(), "kind and listKind may not be the same"));
    }
    categories.for_each(|(at, value)| labels(causes, "categories", at, value));
}

/// All problems of a name in one message, or `None`.
fn name_problem(rule: NameRule, name: &str) -> Option<String> {
    let problems = rule.problems(name);
    (!problems.is_empty()).then(|| problems.join(","))
}

fn required(field: impl Into<String>) -> Cause {
    Cause::new("FieldValueRequired", field, "Required value")
}

fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Cause {
    let value = json::encode_sorted(value);
    Cause::invalid(&field.into(), String::from_utf8_lossy(&value), why)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn words(value: &Value) -> Vec<Text> {
    items(value).iter().filter_map(Value::as_str).map(|word| word.to_owned().into()).collect()
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod fuzz {
    use serde_json::json;

    use super::*;
    use crate::fuzzing::{Source, fuzz};

    /// A part of a schema.
    fn schema(source: &mut Source, depth: usize) -> Value {
        if depth == 0 || source.one_in(8) {
            return source
                .choose(&[json!({}), json!(null), json!(1), json!({"type": "string"}), json!([]), json!(true)])
                .clone();
        }
        let kind = *source.choose(&["object", "array", "string", "integer", "number", "boolean", "", "x"]);
        let mut part = json!({"type": kind});
        // Deep ones are narrow.
        let parts = if depth > 4 { 1 } else { source.below(4) };
        for _ in 0..parts {
            let inner = schema(source, depth - 1);
            let name = *source.choose(&[
                "items",
                "additionalProperties",
                "not",
                "default",
                "nullable",
                "enum",
                "minimum",
                "multipleOf",
                "maxLength",
                "pattern",
                "format",
                "required",
                "x-kubernetes-list-type",
                "x-kubernetes-preserve-unknown-fields",
                "x-kubernetes-embedded-resource",
                "x-kubernetes-int-or-string",
            ]);
            part[name] = match name {
                "items" | "additionalProperties" | "not" | "default" => inner,
                "pattern" => source.text(&["a", "(", ")", "*", "{9}", "[", "]", "\\w", "|"], 6).into(),
                "format" => (*source.choose(&["date-time", "int32", "byte", "uuid", "x"])).into(),
                "x-kubernetes-list-type" => (*source.choose(&["set", "map", "atomic"])).into(),
                "required" => json!(["a", "b"]),
                "enum" => json!(["a", 1, null]),
                _ => source
                    .choose(&[json!(true), json!(0), json!(-1), json!(1e308), json!(i64::MAX), json!(u64::MAX)])
                    .clone(),
            };
            let inner = schema(source, depth.min(3) - 1);
            match source.below(4) {
                0 => part[*source.choose(&["anyOf", "oneOf", "allOf"])] = json!([inner]),
                1 => {
                    part["x-kubernetes-list-map-keys"] = json!(["a"]);
                    part["properties"] = json!({"a": inner});
                }
                _ => part["properties"] = json!({"a": inner, "b": {"type": "string", "default": "x"}, "metadata": {}}),
            }
        }
        part
    }

    fn definition(source: &mut Source) -> Value {
        let depth = if source.one_in(10) { 40 } else { 4 };
        let path =
            |source: &mut Source| source.text(&[".spec", ".a", "..", "[*]", "[?(@.a)]", ".", ".status.replicas"], 5);
        json!({
            "metadata": {"name": "foos.ex.io"},
            "spec": {
                "group": "ex.io", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo", "listKind": "FooList"},
                "versions": [{
                    "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema(source, depth)},
                    "additionalPrinterColumns": [{"name": "x", "type": "string", "jsonPath": path(source)}],
                    "selectableFields": [{"jsonPath": path(source)}],
                    "subresources": {"status": {}, "scale": {"specReplicasPath": path(source), "statusReplicasPath": path(source)}},
                }],
            },
        })
    }

    #[test]
    fn any_definition_is_refused_or_serves_any_object() {
        fuzz(200, |source| {
            let mut crd = definition(source);
            set_defaults(&mut crd);
            let Ok(definition) = Definition::parse(&crd) else { return };
            let kind = &definition.stored;
            let mut object: Value = serde_json::from_slice(&source.nested(100)).unwrap_or(Value::Null);
            object = json!({"metadata": {"name": "a"}, "a": object, "spec": {"a": schema(source, 4)}, "b": 1});
            crate::kinds::prune(kind, &mut object).ok();
            if let Some(structure) = &kind.structure {
                structure.prune(&mut object);
                structure.fill(&mut object);
                structure.created(&object);
                structure.updated(&object, &json!({"a": 1}), crate::kinds::Written::Status);
                structure.unknown_formats();
            }
            let _row = kind.columns().row(&object, std::time::SystemTime::now());
            let encoded = json::encode_as_is(kind, &object);
            serde_json::from_slice::<Value>(&encoded).expect("an object that is not too deep to be read again");
        });
    }
}
