//! Discovery, and the responses for paths that are not served.

use crate::harness::{Api, Case, case, failure};
use serde_json::{Value, json};

pub(crate) const CASES: &[Case] = &[
    case!(the_root_lists_the_paths, "/ lists the paths, sorted and indented"),
    case!(probes_list_their_checks, "?verbose of a probe lists its checks, each has its own path"),
    case!(metrics_are_prometheus_text, "/metrics counts the objects of each resource"),
    case!(
        the_version_is_pretty_json,
        "/version: pretty JSON, emulation and compatibility included, no line break at its end"
    ),
    case!(the_probes_say_ok, "/livez, /readyz and /healthz: ok as plain text, to any method and Accept"),
    case!(the_core_group_lists_its_versions, "/api: APIVersions, without apiVersion"),
    case!(groups_are_listed, "/apis: APIGroupList with versions and preferred version"),
    case!(one_group_is_shown, "/apis/apps: APIGroup"),
    case!(an_unknown_group_is_not_found_in_plain_text, "/apis/nope: 404 in plain text"),
    case!(resources_of_the_core_are_listed, "/api/v1: an APIResourceList without apiVersion, sorted by name"),
    case!(
        resources_of_a_group_are_listed,
        "/apis/apps/v1: an APIResourceList; resources with verbs, kind, scope, short names"
    ),
    case!(discovery_is_aggregated_by_accept, "/api and /apis with the v2 Accept: APIGroupDiscoveryList"),
    case!(aggregated_discovery_has_an_etag, "aggregated discovery: ETag, 304 to If-None-Match, Vary, public"),
    case!(
        old_aggregated_discovery_is_not_acceptable,
        "v2beta1 alone is a 406, with application/json behind it the legacy form"
    ),
    case!(aggregated_discovery_is_only_for_roots, "/api/v1 with the aggregated Accept is a 406"),
    case!(
        unknown_resources_of_a_known_group_are_a_status,
        "an unknown resource or version of a built-in group: 404 Status"
    ),
    case!(unknown_paths_are_plain_text, "any other unknown path: 404 page not found"),
    case!(objects_that_are_missing_are_named, "404 of an object names it, its kind and group"),
    case!(
        methods_that_do_not_fit_are_refused,
        "405: PUT and PATCH of collections, POST of objects, HEAD, OPTIONS and unknown methods"
    ),
    case!(all_namespaces_can_only_be_read, "POST and DELETE across namespaces and DELETE of all namespaces are 405"),
    case!(questions_are_discovered, "reviews of access are listed with create as their only verb"),
];

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

async fn the_version_is_pretty_json(api: Api) {
    for path in ["/version", "/version/"] {
        let answer = api.get(path).await;
        assert_eq!(answer.is(200).header("content-type"), Some("application/json"));
        answer.says(200, "{\n  \"major\": \"1\",\n  \"minor\": \"37\",\n  \"emulationMajor\": \"1\",\n  \"emulationMinor\": \"37\",\n  \"minCompatibilityMajor\": \"1\",\n  \"minCompatibilityMinor\": \"36\",\n  \"gitVersion\": \"v1.37.<*>\",\n  \"gitCommit\": \"<*>\",\n  \"gitTreeState\": \"<*>\",\n  \"buildDate\": \"<time>\",\n  \"goVersion\": \"<*>\",\n  \"compiler\": \"<*>\",\n  \"platform\": \"<*>\"\n}");
    }
}

async fn the_probes_say_ok(api: Api) {
    for path in ["/livez", "/readyz", "/healthz"] {
        for (method, accept) in [("GET", "text/html"), ("GET", "application/json"), ("POST", "*/*")] {
            let answer = api.request(method, path).header("accept", accept).send().await;
            answer.says(200, "ok");
            assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        }
    }
    api.get("/livez/ping").await.says(200, "ok");
    api.get("/livez/nope").await.says(404, "404 page not found\n");
}

async fn the_core_group_lists_its_versions(api: Api) {
    api.get("/api").await.says(
        200,
        "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"],\"serverAddressByClientCIDRs\":[{\"clientCIDR\":\"0.0.0.0/0\",\"serverAddress\":\"<*>\"}]}\n",
    );
}

async fn groups_are_listed(api: Api) {
    let answer = api.get("/apis").await;
    assert!(answer.is(200).text().starts_with(r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":""#));
    let json = answer.json();
    let groups = json["groups"].as_array().unwrap();
    let apps = groups.iter().find(|group| group["name"] == "apps").expect("apps is served");
    let version = json!({"groupVersion": "apps/v1", "version": "v1"});
    assert_eq!(apps, &json!({"name": "apps", "versions": [version], "preferredVersion": version}));
    for group in ["batch", "apiextensions.k8s.io", "coordination.k8s.io", "rbac.authorization.k8s.io"] {
        assert!(groups.iter().any(|other| other["name"] == group), "{group}");
    }
}

async fn one_group_is_shown(api: Api) {
    for path in ["/apis/apps", "/apis/apps/"] {
        api.get(path).await.says(200, "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\",\"name\":\"apps\",\"versions\":[{\"groupVersion\":\"apps/v1\",\"version\":\"v1\"}],\"preferredVersion\":{\"groupVersion\":\"apps/v1\",\"version\":\"v1\"}}\n");
    }
}

async fn an_unknown_group_is_not_found_in_plain_text(api: Api) {
    for path in ["/apis/nope.example.com", "/apis/nope.example.com/v1", "/apis/nope.example.com/v1/things"] {
        let answer = api.get(path).await;
        answer.says(404, "404 page not found\n");
        assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
}

async fn resources_of_the_core_are_listed(api: Api) {
    let answer = api.get("/api/v1").await;
    let text = answer.is(200).text();
    assert!(text.starts_with(r#"{"kind":"APIResourceList","groupVersion":"v1","resources":["#), "{text}");
    let json = answer.json();
    let names: Vec<_> =
        json["resources"].as_array().unwrap().iter().map(|resource| resource["name"].as_str().unwrap()).collect();
    assert!(names.is_sorted(), "{names:?}");
    assert!(names.contains(&"pods") && names.contains(&"pods/status"));
    assert!(text.contains(r#"{"name":"configmaps","singularName":"configmap","namespaced":true,"kind":"ConfigMap","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["cm"],"storageVersionHash":""#), "{text}");
}

async fn resources_of_a_group_are_listed(api: Api) {
    let answer = api.get("/apis/apps/v1").await;
    let text = answer.is(200).text();
    assert!(
        text.starts_with(r#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"apps/v1","resources":["#),
        "{text}"
    );
    assert!(text.contains(r#"{"name":"deployments","singularName":"deployment","namespaced":true,"kind":"Deployment","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["deploy"],"categories":["all"],"storageVersionHash":""#), "{text}");
    assert!(text.contains(r#"{"name":"deployments/status","singularName":"","namespaced":true,"kind":"Deployment","verbs":["get","patch","update"]}"#), "{text}");
}

async fn discovery_is_aggregated_by_accept(api: Api) {
    let get = async |path: &str| api.request("GET", path).header("accept", AGGREGATED).send().await;
    let core = get("/api").await;
    assert_eq!(core.is(200).header("content-type"), Some(AGGREGATED));
    assert!(core.text().starts_with(r#"{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[{"metadata":{},"versions":[{"version":"v1","resources":["#));
    assert!(core.text().contains(r#"{"resource":"configmaps","responseKind":{"group":"","version":"","kind":"ConfigMap"},"scope":"Namespaced","singularResource":"configmap","verbs":["create","delete","deletecollection","get","list","patch","update","watch"],"shortNames":["cm"]}"#));
    let groups = get("/apis").await;
    let json = groups.is(200).json();
    let apps = json["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|group| group["metadata"]["name"] == "apps")
        .expect("apps is served");
    let resources = &apps["versions"][0]["resources"];
    let deployments =
        resources.as_array().unwrap().iter().find(|resource| resource["resource"] == "deployments").unwrap();
    assert_eq!(deployments["responseKind"], json!({"group": "", "version": "", "kind": "Deployment"}));
    let subresources: Vec<_> = deployments["subresources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["subresource"].as_str().unwrap())
        .collect();
    assert!(subresources.contains(&"status"), "{subresources:?}");
    assert_eq!(apps["versions"][0]["freshness"], "Current");
}

async fn aggregated_discovery_has_an_etag(api: Api) {
    // The core group, which does not change when definitions are created and deleted.
    let first = api.request("GET", "/api").header("accept", AGGREGATED).send().await;
    let tag = first.header("etag").expect("an ETag").to_owned();
    assert!(
        tag.len() == 130 && tag.starts_with('"') && tag[1..129].bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{tag}"
    );
    assert_eq!(first.header("cache-control"), Some("public"));
    assert_eq!(first.header("vary"), Some("Accept"));
    let again = api.request("GET", "/api").header("accept", AGGREGATED).header("if-none-match", &tag).send().await;
    again.says(304, "");
    assert_eq!(again.header("etag"), Some(tag.as_str()));
}

async fn old_aggregated_discovery_is_not_acceptable(api: Api) {
    let old = AGGREGATED.replace("v=v2;", "v=v2beta1;");
    api.request("GET", "/api").header("accept", &old).send().await.is(406);
    let answer = api.request("GET", "/api").header("accept", &format!("{old},application/json")).send().await;
    assert_eq!(answer.is(200).json()["kind"], "APIVersions");
    let answer =
        api.request("GET", "/apis").header("accept", &format!("{AGGREGATED},{old},application/json")).send().await;
    assert_eq!(answer.is(200).json()["kind"], "APIGroupDiscoveryList");
}

async fn aggregated_discovery_is_only_for_roots(api: Api) {
    for path in ["/api/v1", "/apis/apps"] {
        api.request("GET", path).header("accept", AGGREGATED).send().await.is(406);
    }
}

async fn unknown_resources_of_a_known_group_are_a_status(api: Api) {
    let refusal = failure(
        r#""message":"the server could not find the requested resource","reason":"NotFound","details":{},"code":404"#,
    );
    for path in [
        "/api/v1/nope",
        "/api/v1/namespaces/default/nope",
        "/api/v1/namespaces/default/nope/x",
        "/api/v1/namespaces/default/configmaps/x/status",
        "/api/v1/namespaces/default/pods/x/nope",
        "/api/v2",
        "/apis/apps/v1/nope",
        "/apis/apps/v9",
        "/apis/apps/v9/deployments",
    ] {
        api.get(path).await.says(404, &refusal);
    }
}

async fn unknown_paths_are_plain_text(api: Api) {
    for path in ["/nope", "/nope/nope", "/livez/nope/nope", "/livez/"] {
        for method in ["GET", "POST", "DELETE"] {
            api.request(method, path).send().await.says(404, "404 page not found\n");
        }
    }
    // These documents are served for any method.
    for path in ["/apis", "/apis/apps"] {
        api.request("POST", path).send().await.is(200);
    }
}

async fn objects_that_are_missing_are_named(api: Api) {
    for (path, message, details) in [
        (
            "/api/v1/namespaces/default/configmaps/nope",
            r#"configmaps \"nope\" not found"#,
            r#"{"name":"nope","kind":"configmaps"}"#,
        ),
        ("/api/v1/nodes/nope", r#"nodes \"nope\" not found"#, r#"{"name":"nope","kind":"nodes"}"#),
        ("/api/v1/namespaces/nope", r#"namespaces \"nope\" not found"#, r#"{"name":"nope","kind":"namespaces"}"#),
        (
            "/apis/apps/v1/namespaces/default/deployments/nope",
            r#"deployments.apps \"nope\" not found"#,
            r#"{"name":"nope","group":"apps","kind":"deployments"}"#,
        ),
    ] {
        let refusal = failure(&format!(r#""message":"{message}","reason":"NotFound","details":{details},"code":404"#));
        api.get(path).await.says(404, &refusal);
        api.delete(path).await.says(404, &refusal);
    }
}

const NOT_ALLOWED: &str = r#""message":"the server does not allow this method on the requested resource","reason":"MethodNotAllowed","details":{},"code":405"#;

async fn methods_that_do_not_fit_are_refused(api: Api) {
    for (method, path) in [
        ("PUT", "/api/v1/namespaces/default/configmaps"),
        ("PATCH", "/api/v1/namespaces/default/configmaps"),
        ("POST", "/api/v1/namespaces/default/configmaps/a"),
        ("OPTIONS", "/api/v1/namespaces/default/configmaps"),
        ("FOO", "/api/v1/namespaces/default/configmaps"),
        ("POST", "/api"),
        ("DELETE", "/version"),
    ] {
        let answer = api.request(method, path).body("application/json", Value::Null).send().await;
        answer.says(405, &failure(NOT_ALLOWED));
    }
    for path in ["/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/configmaps/a", "/version"] {
        api.request("HEAD", path).send().await.says(405, "");
    }
}

async fn all_namespaces_can_only_be_read(api: Api) {
    for (method, path) in
        [("POST", "/api/v1/configmaps"), ("DELETE", "/api/v1/configmaps"), ("DELETE", "/api/v1/namespaces")]
    {
        let answer =
            api.request(method, path).body("application/json", json!({"metadata": {"name": "a"}})).send().await;
        answer.says(405, &failure(NOT_ALLOWED));
    }
}

async fn questions_are_discovered(api: Api) {
    let listed = api.get("/apis/authorization.k8s.io/v1").await;
    listed.says(200, "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"authorization.k8s.io/v1\",\"resources\":[{\"name\":\"localsubjectaccessreviews\",\"singularName\":\"localsubjectaccessreview\",\"namespaced\":true,\"kind\":\"LocalSubjectAccessReview\",\"verbs\":[\"create\"]},{\"name\":\"selfsubjectaccessreviews\",\"singularName\":\"selfsubjectaccessreview\",\"namespaced\":false,\"kind\":\"SelfSubjectAccessReview\",\"verbs\":[\"create\"]},{\"name\":\"selfsubjectrulesreviews\",\"singularName\":\"selfsubjectrulesreview\",\"namespaced\":false,\"kind\":\"SelfSubjectRulesReview\",\"verbs\":[\"create\"]},{\"name\":\"subjectaccessreviews\",\"singularName\":\"subjectaccessreview\",\"namespaced\":false,\"kind\":\"SubjectAccessReview\",\"verbs\":[\"create\"]}]}\n");
    let authentication = api.get("/apis/authentication.k8s.io/v1").await.is(200).json();
    assert_eq!(authentication["resources"][0]["name"], "selfsubjectreviews");
    let groups = api.get("/apis").await.is(200).json();
    let names: Vec<&str> =
        groups["groups"].as_array().unwrap().iter().filter_map(|group| group["name"].as_str()).collect();
    let at = names.iter().position(|name| *name == "authentication.k8s.io").unwrap();
    assert_eq!(
        names[at - 1..at + 3],
        ["events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "autoscaling"]
    );
    api.get("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").await.is(405);
    api.get("/apis/authorization.k8s.io/v1/nothing").await.is(404);
}

async fn the_root_lists_the_paths(api: Api) {
    for root in ["/", "/index.html"] {
        let answer = api.get(root).await;
        assert_eq!(answer.is(200).header("content-type"), Some("application/json"));
        assert!(answer.text().starts_with("{\n  \"paths\": [\n    \"/"), "{}", answer.text());
        let paths = answer.json()["paths"].as_array().unwrap().clone();
        assert!(paths.is_sorted_by_key(|path| path.as_str().unwrap().to_owned()), "{paths:?}");
        for path in [
            "/api",
            "/api/v1",
            "/apis",
            "/apis/",
            "/apis/apps",
            "/apis/apps/v1",
            "/healthz",
            "/healthz/ping",
            "/livez",
            "/livez/ping",
            "/metrics",
            "/openapi/v2",
            "/openapi/v3",
            "/openapi/v3/",
            "/readyz",
            "/readyz/ping",
            "/version",
        ] {
            assert!(paths.contains(&json!(path)), "{path} is not in {paths:?}");
        }
    }
}

async fn probes_list_their_checks(api: Api) {
    let mut all = Vec::new();
    for probe in ["livez", "healthz", "readyz"] {
        let listed = api.get(&format!("/{probe}?verbose")).await.is(200).text();
        let lines: Vec<&str> = listed.lines().collect();
        let (verdict, checks) = lines.split_last().expect("lines");
        assert_eq!(*verdict, format!("{probe} check passed"));
        assert!(
            checks.contains(&"[+]ping ok") && checks.contains(&"[+]poststarthook/rbac/bootstrap-roles ok"),
            "{listed}"
        );
        for check in ["ping", "etcd", "poststarthook/rbac/bootstrap-roles"] {
            api.get(&format!("/{probe}/{check}")).await.says(200, "ok");
        }
        api.get(&format!("/{probe}/nonsense")).await.is(404);
        all.push(checks.iter().map(ToString::to_string).collect::<Vec<_>>());
    }
    assert_eq!((all[0].len(), &all[0]), (34, &all[1]));
    let only_ready = ["[+]etcd-readiness ok", "[+]informer-sync ok", "[+]shutdown ok"];
    let of_ready: Vec<&String> = all[2].iter().filter(|check| !all[0].contains(check)).collect();
    assert_eq!(of_ready, only_ready);
    let excluded = api.get("/livez?verbose&exclude=etcd&exclude=x&exclude=y").await;
    excluded.says(
        200,
        "<*>[+]etcd excluded: ok\n<*>warn: some health checks cannot be excluded: no matches for \"x\",\"y\"\nlivez check passed\n",
    );
}

async fn metrics_are_prometheus_text(api: Api) {
    let answer = api.get("/metrics").await;
    let content_type = answer.is(200).header("content-type").unwrap().to_owned();
    assert!(content_type.starts_with("text/plain; version=0.0.4"), "{content_type}");
    let text = answer.text();
    assert!(text.contains("# TYPE apiserver_resource_objects gauge\n"), "{text}");
    assert!(text.contains("\napiserver_resource_objects{group=\"\",resource=\"namespaces\"} "), "{text}");
    assert!(text.contains("\nkubernetes_build_info{"), "{text}");
}
