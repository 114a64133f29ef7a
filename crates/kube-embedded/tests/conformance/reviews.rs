//! Access reviews and OpenAPI: the requests that tools make before any other.

use crate::harness::{Api, Case, Message, case, failure};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

pub(crate) const CASES: &[Case] = &[
    case!(everybody_may_ask_what_they_may, "SelfSubjectAccessReview: yes for one, no for another"),
    case!(others_may_be_asked_about, "SubjectAccessReview and its local form, by user and groups"),
    case!(
        questions_that_make_no_sense_are_422,
        "neither or both kinds of attributes, and no user to ask about, are 422"
    ),
    case!(everybody_may_ask_who_they_are, "SelfSubjectReview names the user and the groups"),
    case!(
        a_user_may_act_as_another,
        "Impersonate-User: those who may are taken for the other one, those who may not are refused"
    ),
    case!(rules_are_listed, "SelfSubjectRulesReview lists what a user may do"),
    case!(openapi_documents_are_indexed, "/openapi/v3 leads to each document under a hash, which may be kept for ever"),
    case!(
        definitions_are_described,
        "the OpenAPI document of a custom kind has its schema under its group, version and kind"
    ),
    case!(version_2_is_served_as_protobuf, "/openapi/v2 as protobuf has the definitions of the JSON, and its ETag"),
    case!(custom_kinds_are_described_in_version_2, "/openapi/v2 describes custom kinds, without what it cannot say"),
];

const SELF: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";

async fn everybody_may_ask_what_they_may(api: Api) {
    let body = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "a"}}});
    let expected = |allowed: bool| {
        format!(
            "{{\"kind\":\"SelfSubjectAccessReview\",\"apiVersion\":\"authorization.k8s.io/v1\",\"metadata\":{{}},\"spec\":{{\"resourceAttributes\":{{\"namespace\":\"a\",\"verb\":\"get\",\"resource\":\"pods\"}}}},\"status\":{{\"allowed\":{allowed}}}}}\n"
        )
    };
    api.post(SELF, &body).await.says(201, &expected(true));
    let nobody = api.request("POST", SELF).token(Some(api.nobody_token())).body("application/json", &body);
    nobody.send().await.says(201, &expected(false));
    api.get(SELF).await.is(405);
}

async fn others_may_be_asked_about(api: Api) {
    let ask = async |spec: Value| {
        let answer = api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", json!({"spec": spec})).await;
        answer.is(201).json()["status"]["allowed"].clone()
    };
    let pods = json!({"verb": "list", "resource": "pods"});
    assert_eq!(ask(json!({"user": "nobody", "resourceAttributes": pods})).await, false);
    assert_eq!(ask(json!({"user": "root", "groups": ["system:masters"], "resourceAttributes": pods})).await, true);
    let path = json!({"verb": "get", "path": "/apis"});
    assert_eq!(
        ask(json!({"user": "a", "groups": ["system:authenticated"], "nonResourceAttributes": path})).await,
        true
    );
    let local = "/apis/authorization.k8s.io/v1/namespaces/a/localsubjectaccessreviews";
    let within = json!({"verb": "list", "resource": "pods", "namespace": "a"});
    let answer = api.post(local, json!({"spec": {"user": "nobody", "resourceAttributes": within}})).await;
    assert_eq!(answer.is(201).json()["status"]["allowed"], false);
}

async fn questions_that_make_no_sense_are_422(api: Api) {
    api.post(SELF, json!({"spec": {}})).await.says(422, &failure(
        r#""message":".authorization.k8s.io \"\" is invalid: spec: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified","reason":"Invalid","details":{"group":"authorization.k8s.io","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified","field":"spec"}]},"code":422"#,
    ));
    let body = json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
    api.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", body).await.says(422, &failure(
        r#""message":".authorization.k8s.io \"\" is invalid: spec.user: Invalid value: \"\": at least one of user or group must be specified","reason":"Invalid","details":{"group":"authorization.k8s.io","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: \"\": at least one of user or group must be specified","field":"spec.user"}]},"code":422"#,
    ));
}

async fn everybody_may_ask_who_they_are(api: Api) {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let nobody = api.request("POST", path).token(Some(api.nobody_token())).body("application/json", body);
    let said = nobody.send().await.is(201).json();
    assert_eq!(said["status"]["userInfo"]["username"], "nobody");
    // From the third column of the token file.
    assert_eq!(said["status"]["userInfo"]["uid"], "2");
    assert_eq!(said["status"]["userInfo"]["groups"], json!(["system:authenticated"]));
}

async fn a_user_may_act_as_another(api: Api) {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let ask = |token: Option<&str>| {
        let request =
            api.request("POST", path).header("impersonate-user", "impersonated").header("impersonate-group", "g");
        let request = if let Some(token) = token { request.token(Some(token)) } else { request };
        request.body("application/json", &body)
    };
    let said = ask(None).send().await.is(201).json();
    assert_eq!(said["status"]["userInfo"]["username"], "impersonated");
    assert_eq!(said["status"]["userInfo"]["groups"], json!(["g", "system:authenticated"]));
    ask(Some(api.nobody_token())).send().await.says(403, &failure(
        r#""message":"selfsubjectreviews.authentication.k8s.io is forbidden: User \"nobody\" cannot impersonate-on:user-info:create resource \"selfsubjectreviews\" in API group \"authentication.k8s.io\" at the cluster scope","reason":"Forbidden","details":{"group":"authentication.k8s.io","kind":"selfsubjectreviews"},"code":403"#,
    ));
}

async fn rules_are_listed(api: Api) {
    let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
    let body = json!({"spec": {"namespace": "default"}});
    let everything = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
    let mine = api.post(path, &body).await.is(201).json();
    assert!(mine["status"]["resourceRules"].as_array().unwrap().contains(&everything), "{mine}");
    let nobody = api.request("POST", path).token(Some(api.nobody_token())).body("application/json", &body);
    let theirs = nobody.send().await.is(201).json();
    assert!(!theirs["status"]["resourceRules"].as_array().unwrap().contains(&everything), "{theirs}");
    assert!(theirs["status"]["nonResourceRules"].to_string().contains("/openapi/*"), "{theirs}");
    assert_eq!(theirs["status"]["incomplete"], false);
}

async fn openapi_documents_are_indexed(api: Api) {
    let index = api.get("/openapi/v3").await;
    assert_eq!(index.is(200).header("content-type"), Some("text/plain; charset=utf-8"));
    let url = index.json()["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap().to_owned();
    let document = api.get(&url).await;
    assert_eq!(document.is(200).header("cache-control"), Some("public, immutable"));
    let hash = url.split_once("?hash=").unwrap().1;
    assert_eq!(document.header("etag"), Some(format!("\"{hash}\"").as_str()));
    let schemas = &document.json()["components"]["schemas"];
    assert_eq!(schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["replicas"]["type"], "integer");
    let plain = api.get("/openapi/v3/apis/apps/v1").await;
    assert_eq!(plain.is(200).header("cache-control"), Some("no-cache, private"));
    let moved = api.get("/openapi/v3/apis/apps/v1?hash=X").await;
    assert_eq!(moved.is(301).header("location"), Some(url.as_str()));
    api.get("/openapi/v3/nope").await.says(404, "");
    let old = api.request("GET", "/openapi/v2").header("accept", "application/json").send().await.is(200).json();
    assert_eq!(
        old["definitions"]["io.k8s.api.core.v1.Pod"]["properties"]["spec"]["$ref"],
        "#/definitions/io.k8s.api.core.v1.PodSpec"
    );
}

async fn definitions_are_described(api: Api) {
    let kind = api
        .definition(|body| {
            body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] =
                json!({"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}});
        })
        .await;
    let path = format!("/openapi/v3/apis/{}/v1", kind.group);
    let document =
        api.eventually(&path, |answer| answer.code == 200 && answer.text().contains("\"size\"")).await.json();
    let mut domain: Vec<&str> = kind.group.split('.').collect();
    domain.reverse();
    let schema = &document["components"]["schemas"][format!("{}.v1.Thing", domain.join("."))];
    assert_eq!(schema["properties"]["spec"]["properties"]["size"]["type"], "integer", "{document}");
    let identity = json!({"group": kind.group, "kind": "Thing", "version": "v1"});
    assert_eq!(schema["x-kubernetes-group-version-kind"], json!([identity]));
    let collection = format!("/apis/{}/v1/namespaces/{{namespace}}/things", kind.group);
    assert_eq!(document["paths"][collection]["post"]["x-kubernetes-group-version-kind"], identity);
}

async fn custom_kinds_are_described_in_version_2(api: Api) {
    let spec = json!({
        "type": "object", "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 1, "default": 1},
            "color": {"type": "string", "enum": ["red"], "nullable": true},
            "port": {"x-kubernetes-int-or-string": true},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "either": {"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}]},
            "list": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
                "items": {"type": "object", "required": ["n"], "properties": {"n": {"type": "string", "default": "d"}}},
            },
            "map": {"type": "object", "additionalProperties": {"type": "integer", "format": "int32"}},
        },
    });
    let kind = api
        .definition(|body| {
            body["spec"]["versions"][0]["schema"]["openAPIV3Schema"] =
                json!({"type": "object", "properties": {"spec": spec}});
            body["spec"]["versions"][0]["subresources"] = json!({"status": {}});
        })
        .await;
    let mut domain: Vec<&str> = kind.group.split('.').collect();
    domain.reverse();
    let name = format!("{}.v1.Thing", domain.join("."));
    let deadline = Instant::now() + Duration::from_secs(120);
    let document = loop {
        let asked = api.request("GET", "/openapi/v2").header("accept", "application/json");
        let document = asked.send().await.is(200).json();
        if document["definitions"].get(&name).is_some() {
            break document;
        }
        assert!(Instant::now() < deadline, "{name} is described soon");
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let definition = &document["definitions"][&name];
    let shown = json!({
        "type": "object", "required": ["size"],
        "properties": {
            "size": {"type": "integer", "minimum": 1},
            "color": {"enum": ["red"]},
            "port": {"x-kubernetes-int-or-string": true},
            "free": {"x-kubernetes-preserve-unknown-fields": true},
            "either": {"type": "object", "properties": {"a": {"type": "string"}}},
            "list": {
                "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
                "items": {"type": "object", "required": ["n"], "properties": {"n": {"type": "string"}}},
            },
            "map": {"type": "object", "additionalProperties": {"type": "integer", "format": "int32"}},
        },
    });
    assert_eq!(definition["properties"]["spec"], shown);
    assert_eq!(definition["properties"]["kind"]["type"], "string");
    assert_eq!(
        definition["properties"]["metadata"]["$ref"],
        "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    );
    let identity = json!({"group": kind.group, "kind": "Thing", "version": "v1"});
    assert_eq!(definition["x-kubernetes-group-version-kind"], json!([identity]));
    assert_eq!(document["definitions"][format!("{name}List")]["required"], json!(["items"]));
    let collection = format!("/apis/{}/v1/namespaces/{{namespace}}/things", kind.group);
    let post = &document["paths"][&collection]["post"];
    assert_eq!((&post["x-kubernetes-action"], &post["x-kubernetes-group-version-kind"]), (&json!("post"), &identity));
    assert_eq!(post["parameters"][0]["schema"]["$ref"], format!("#/definitions/{name}"));
    let one = document["paths"][format!("{collection}/{{name}}")].as_object().unwrap();
    for method in ["get", "put", "patch", "delete"] {
        assert!(one.contains_key(method), "{method}");
    }
    assert!(document["paths"].get(format!("{collection}/{{name}}/status")).is_some());
}

async fn version_2_is_served_as_protobuf(api: Api) {
    let get = |accept: &str| api.request("GET", "/openapi/v2").header("accept", accept);
    let returned = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    // The first is what kubectl sends.
    for accept in ["application/com.github.proto-openapi.spec.v2@v1.0+protobuf", returned] {
        let answer = get(accept).send().await;
        assert_eq!(answer.is(200).header("content-type"), Some(returned));
        let document = Message(answer.body.to_vec());
        assert_eq!(document.text_of(1), "2.0");
        let definitions = document.field(9).expect("definitions").fields(1);
        // Kinds of other cases come and go.
        let names = definitions.iter().map(|definition| definition.text_of(1));
        let names: BTreeSet<String> = names.filter(|name| name.starts_with("io.k8s.")).collect();
        let json = get("application/json").send().await.is(200).json();
        let expected = json["definitions"].as_object().unwrap().keys().filter(|name| name.starts_with("io.k8s."));
        assert_eq!(names, expected.cloned().collect());

        let deployment = definitions.iter().find(|each| each.text_of(1) == "io.k8s.api.apps.v1.Deployment");
        let schema = deployment.and_then(|deployment| deployment.field(2)).expect("a schema");
        assert_eq!(schema.field(22).map(|kind| kind.text_of(1)).as_deref(), Some("object"));
        let properties = schema.field(25).expect("properties").fields(1);
        let spec = properties.iter().find(|property| property.text_of(1) == "spec").and_then(|spec| spec.field(2));
        assert_eq!(
            spec.map(|spec| spec.text_of(1)).as_deref(),
            Some("#/definitions/io.k8s.api.apps.v1.DeploymentSpec")
        );
        let extensions = schema.fields(31);
        let identity = extensions.iter().find(|each| each.text_of(1) == "x-kubernetes-group-version-kind");
        let identity = identity.and_then(|identity| identity.field(2)).expect("a kind").text_of(2);
        assert!(identity.contains("Deployment") && identity.contains("apps"), "{identity}");
    }
    get("application/xml").send().await.says(406, "");
    // Unless a kind of another case comes or goes in between.
    let mut codes = Vec::new();
    while codes.last() != Some(&304) {
        assert!(codes.len() < 100, "{codes:?}");
        let tag = get("application/json").send().await.is(200).header("etag").unwrap().to_owned();
        codes.push(get("application/json").header("if-none-match", &tag).send().await.code);
    }
}
