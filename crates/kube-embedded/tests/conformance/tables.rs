//! Tables: columns and cells, by content negotiation.

use crate::harness::{Answer, Api, Case, Namespace, case, failure, matches};
use serde_json::{Value, json};

pub(crate) const CASES: &[Case] = &[
    case!(every_kind_has_its_cells, "the cells of every kind, from objects in many states"),
    case!(a_table_has_its_shape, "kind, version, columns with their descriptions, rows with the object's metadata"),
    case!(rows_carry_what_was_asked_for, "includeObject: None, Metadata, Object; anything else is a 400"),
    case!(lists_are_tables_too, "a list as a table: pages, and empty ones"),
    case!(writes_are_answered_with_tables, "create, update and patch are answered with a table, a deletion is not"),
    case!(
        a_watch_sends_its_columns_once,
        "a watch as a table: the columns in the first frame, then null; bookmarks too"
    ),
    case!(definitions_say_their_columns, "printer columns of a custom kind, by type and path"),
    case!(without_columns_there_are_name_and_age, "a custom kind without printer columns shows name and age"),
];

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

const CONFIG_MAP_COLUMNS: &str = r#"[{"name":"Name","type":"string","format":"name","description":"Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names","priority":0},{"name":"Data","type":"string","format":"","description":"Data contains the configuration data. Each key must consist of alphanumeric characters, '-', '_' or '.'. Values with non-UTF-8 byte sequences must use the BinaryData field. The keys stored in Data must not overlap with the keys in the BinaryData field, this is enforced during validation process.","priority":0},{"name":"Age","type":"string","format":"","description":"CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata","priority":0}]"#;

async fn table(api: &Api, path: &str) -> Answer {
    api.request("GET", path).header("accept", TABLE).send().await
}

/// A table of config maps, without the final line break.
fn config_maps(version: &str, rest: &str, columns: &str, rows: &str) -> String {
    format!(
        r#"{{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{{"resourceVersion":"{version}"{rest}}},"columnDefinitions":{columns},"rows":{rows}}}"#
    )
}

fn metadata(ns: &Namespace, name: &str) -> String {
    format!(
        r#"{{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{{"name":"{name}","namespace":"{}","uid":"<uid>","resourceVersion":"<n>","creationTimestamp":"<time>"}}}}"#,
        ns.name
    )
}

/// Tables recorded from kube-apiserver for each object: `{"path", "object", "status", "rows"}`;
/// `NS` stands for a namespace.
async fn every_kind_has_its_cells(api: Api) {
    let ns = api.namespace().await;
    for line in include_str!("tables.jsonl").lines() {
        let line: Value = serde_json::from_str(&line.replace("NS", &ns.name)).unwrap();
        let (collection, name) = (line["path"].as_str().unwrap(), line["object"]["metadata"]["name"].as_str().unwrap());
        let path = format!("{collection}/{name}");
        api.post(collection, &line["object"]).await.is(201);
        if !path.contains("/namespaces/") {
            api.leave_to_clean_up(&path);
        }
        if !line["status"].is_null() {
            let status = json!({"status": line["status"]});
            api.patch(&format!("{path}/status"), "merge-patch", status).await.is(200);
        }
        let shown = table(&api, &format!("{path}?includeObject=None")).await;
        let text = shown.is(200).text();
        let rows = text.split_once(r#""rows":"#).and_then(|(_, rows)| rows.strip_suffix("}\n")).unwrap();
        assert!(
            matches(line["rows"].as_str().unwrap(), rows),
            "{path}\n  expected {}\n  but got  {rows}",
            line["rows"]
        );
        if collection.ends_with("/persistentvolumes") {
            api.patch(&path, "merge-patch", json!({"metadata": {"finalizers": null}})).await.is(200);
        }
    }
}

async fn a_table_has_its_shape(api: Api) {
    let ns = api.namespace().await;
    ns.create(json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await;
    let rows = format!(r#"[{{"cells":["a",1,"<id>"],"object":{}}}]"#, metadata(&ns, "a"));
    let expected = config_maps("<n>", "", CONFIG_MAP_COLUMNS, &rows) + "\n";
    table(&api, &ns.path("configmaps/a")).await.says(200, &expected);
    let old =
        api.request("GET", &ns.path("configmaps/a")).header("accept", &TABLE.replace("v1;", "v1beta1;")).send().await;
    old.says(200, &expected.replace("meta.k8s.io/v1\"", "meta.k8s.io/v1beta1\""));
    let accepts = format!("{},{TABLE},application/json", TABLE.replace("v1;", "v7;"));
    api.request("GET", &ns.path("configmaps/a")).header("accept", &accepts).send().await.says(200, &expected);
    let missing = api.request("GET", &ns.path("configmaps/b")).header("accept", &accepts).send().await;
    missing.says(404, &Namespace::no_configmap("b"));
}

async fn rows_carry_what_was_asked_for(api: Api) {
    let ns = api.namespace().await;
    ns.create(json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).await;
    let object = |form: &str| format!(r#"[{{"cells":["a",1,"<id>"],"object":{form}}}]"#);
    let full = format!(
        r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"a","namespace":"{}","uid":"<uid>","resourceVersion":"<n>","creationTimestamp":"<time>"}},"data":{{"k":"v"}}}}"#,
        ns.name
    );
    for (include, form) in
        [("None", "null"), ("Metadata", &metadata(&ns, "a")), ("", &metadata(&ns, "a")), ("Object", &full)]
    {
        let expected = config_maps("<n>", "", CONFIG_MAP_COLUMNS, &object(form)) + "\n";
        table(&api, &ns.path(&format!("configmaps/a?includeObject={include}"))).await.says(200, &expected);
    }
    let plain = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    for path in
        ["configmaps?includeObject=Bogus", "configmaps/a?includeObject=Bogus", "configmaps?watch=1&includeObject=Bogus"]
    {
        api.request("GET", &ns.path(path)).header("accept", plain).send().await.says(400, &failure(
            r#""message":"Unable to convert to Table as requested: includeObject: Invalid value: \"Bogus\": must be 'Metadata', 'Object', 'None', or empty","reason":"BadRequest","code":400"#,
        ));
    }
}

async fn lists_are_tables_too(api: Api) {
    let ns = api.namespace().await;
    let empty = config_maps("<n>", "", CONFIG_MAP_COLUMNS, "[]") + "\n";
    table(&api, &ns.path("configmaps")).await.says(200, &empty);
    // Kinds without specific cells have null rows.
    let text = table(&api, &ns.path("limitranges")).await.is(200).text();
    assert!(text.ends_with("\"priority\":0}],\"rows\":null}\n"), "{text}");
    ns.configmaps(&["a", "b"]).await;
    let row = |name: &str| format!(r#"{{"cells":["{name}",0,"<id>"],"object":{}}}"#, metadata(&ns, name));
    let both = config_maps("<n>", "", CONFIG_MAP_COLUMNS, &format!("[{},{}]", row("a"), row("b"))) + "\n";
    table(&api, &ns.path("configmaps")).await.says(200, &both);
    let more = r#","continue":"<token>","remainingItemCount":1"#;
    let page = config_maps("<n>", more, CONFIG_MAP_COLUMNS, &format!("[{}]", row("a"))) + "\n";
    table(&api, &ns.path("configmaps?limit=1")).await.says(200, &page);
}

async fn writes_are_answered_with_tables(api: Api) {
    let ns = api.namespace().await;
    let ask = |method: &str, path: &str| api.request(method, &ns.path(path)).header("accept", TABLE);
    let body = json!({"metadata": {"name": "a"}, "data": {"k": "v"}});
    let shown = |count: u32| {
        let rows = format!(r#"[{{"cells":["a",{count},"<id>"],"object":{}}}]"#, metadata(&ns, "a"));
        config_maps("<n>", "", CONFIG_MAP_COLUMNS, &rows) + "\n"
    };
    ask("POST", "configmaps").body("application/json", &body).send().await.says(201, &shown(1));
    ask("PUT", "configmaps/a").body("application/json", &body).send().await.says(200, &shown(1));
    let patch = json!({"data": {"l": "w"}});
    ask("PATCH", "configmaps/a").body("application/merge-patch+json", patch).send().await.says(200, &shown(2));
    assert_eq!(ask("DELETE", "configmaps/a").send().await.is(200).json()["kind"], "Status");
}

async fn a_watch_sends_its_columns_once(api: Api) {
    let ns = api.namespace().await;
    ns.configmaps(&["a", "b"]).await;
    let path = ns.path("configmaps?watch=true&allowWatchBookmarks=true&includeObject=None");
    let mut watch = api.request("GET", &path).header("accept", TABLE).watch().await;
    let frame = |kind: &str, columns: &str, row: &str| {
        format!("{{\"type\":\"{kind}\",\"object\":{}}}\n", config_maps("<n>", "", columns, &format!("[{row}]")))
    };
    let row = |name: &str, count: u32| format!(r#"{{"cells":["{name}",{count},"<id>"],"object":null}}"#);
    watch.next().await.says(&frame("ADDED", CONFIG_MAP_COLUMNS, &row("a", 0)));
    watch.next().await.says(&frame("ADDED", "null", &row("b", 0)));
    let end = r#"{"cells":["",0,"\u003cunknown\u003e"],"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"<n>","annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
    watch.next().await.says(&frame("BOOKMARK", "null", end));
    ns.change("a", "1").await;
    watch.next_change().await.says(&frame("MODIFIED", "null", &row("a", 1)));
    let deleted = api.delete(&ns.path("configmaps/a")).await;
    deleted.is(200);
    watch.next_change().await.says(&frame("DELETED", "null", &row("a", 1)));
}

async fn definitions_say_their_columns(api: Api) {
    let ns = api.namespace().await;
    let column = |name: &str, kind: &str, path: &str| json!({"name": name, "type": kind, "jsonPath": path});
    let kind = api
        .definition(|body| {
            let version = &mut body["spec"]["versions"][0];
            version["schema"]["openAPIV3Schema"]["x-kubernetes-preserve-unknown-fields"] = json!(true);
            version["additionalPrinterColumns"] = json!([
                {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "description": "how big", "priority": 1},
                column("Text", "string", ".spec.text"),
                column("Number", "number", ".spec.number"),
                column("Flag", "boolean", ".spec.flag"),
                column("When", "date", ".spec.when"),
                column("Ready", "string", ".spec.conditions[?(@.type==\"Ready\")].status"),
                column("First", "string", ".spec.list[0]"),
                column("Age", "date", ".metadata.creationTimestamp"),
            ]);
        })
        .await;
    let things = kind.things(&ns);
    let whole = json!({"spec": {
        "size": 3, "text": {"b": 1, "a": [true]}, "number": 2, "flag": true, "when": "2020-01-02T03:04:05Z",
        "conditions": [{"type": "Other", "status": "x"}, {"type": "Ready", "status": "True"}], "list": ["one", "two"],
    }});
    let odd = json!({"spec": {"size": 3.7, "text": 1.5, "number": 2.5, "flag": "no", "when": "nonsense", "list": []}});
    kind.create(&things, "a", whole).await.is(201);
    kind.create(&things, "b", odd).await.is(201);
    let shown = table(&api, &format!("{things}?includeObject=None")).await;
    let columns = shown.is(200).json()["columnDefinitions"].clone();
    assert_eq!(
        columns[1],
        json!({"name": "Size", "type": "integer", "format": "", "description": "how big", "priority": 1})
    );
    assert_eq!(columns[2]["description"], "Custom resource definition column (in JSONPath format): .spec.text");
    let text = shown.text();
    let rows = text.split_once(r#""rows":"#).unwrap().1;
    let expected = concat!(
        r#"[{"cells":["a",3,"{\"a\":[true],\"b\":1}",2,true,"<id>","True","one","<id>"],"object":null},"#,
        r#"{"cells":["b",3,"1.5",2.5,null,"\u003cinvalid\u003e",null,null,"<id>"],"object":null}]}"#,
        "\n"
    );
    assert!(matches(expected, rows), "{rows}");
}

async fn without_columns_there_are_name_and_age(api: Api) {
    let ns = api.namespace().await;
    let plain = api.definition(|_| {}).await;
    let things = plain.things(&ns);
    plain.create(&things, "c", json!({})).await.is(201);
    let shown = table(&api, &things).await.is(200).json();
    let names: Vec<_> = shown["columnDefinitions"].as_array().unwrap().iter().map(|column| &column["name"]).collect();
    assert_eq!(names, ["Name", "Age"]);
    assert_eq!(shown["rows"][0]["cells"][0], "c");
    assert_eq!(shown["rows"][0]["object"]["kind"], "PartialObjectMetadata");
}
