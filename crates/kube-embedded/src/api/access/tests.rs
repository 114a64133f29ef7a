use super::*;
use crate::http::request::Verb;

fn refused(action: Action<'_>) -> String {
    let nobody = User::new("nobody");
    let status = Access::closed().check(&Attributes { user: &nobody, action }).unwrap_err();
    String::from_utf8(status.to_json()).unwrap()
}

fn may(access: &Access, user: &User, action: Action<'_>) -> bool {
    access.check(&Attributes { user, action }).is_ok()
}

#[test]
fn an_unknown_token_is_unauthorized() {
    let access = Access::closed().token("good", User::new("alice"));
    let status = access.authenticate(Some("Bearer bad")).unwrap_err();
    assert_eq!(
        String::from_utf8(status.to_json()).unwrap(),
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Unauthorized","reason":"Unauthorized","code":401}"#
    );
}

#[test]
fn a_known_token_makes_its_user_authenticated_and_no_token_anonymous() {
    let access = Access::closed().token("good", User::new("alice").group("developers"));
    let alice = access.authenticate(Some("bearer  good")).unwrap();
    assert_eq!((alice.name(), alice.groups().join(",")), ("alice", "developers,system:authenticated".to_owned()));
    for none in [None, Some("Basic YTpi"), Some("Bearer "), Some("Bearer"), Some("")] {
        let anonymous = access.authenticate(none).unwrap();
        assert_eq!(anonymous.name(), "system:anonymous", "{none:?}");
        assert_eq!(anonymous.groups(), ["system:unauthenticated"], "{none:?}");
    }
}

#[test]
fn an_open_server_allows_every_request() {
    let admin = Access::open().authenticate(Some("Bearer whatever")).unwrap();
    assert_eq!(admin.name(), "system:admin");
    assert!(may(&Access::open(), &admin, Action::on("", "secrets").verb(Verb::DeleteCollection)));
    assert!(may(&Access::open(), &admin, Action::path("get", "/metrics")));
}

#[test]
fn a_refused_list_reads_as_the_real_server_says_it() {
    assert_eq!(
        refused(Action::on("", "configmaps").verb(Verb::List).namespace("ssa")),
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"configmaps is forbidden: User \"nobody\" cannot list resource \"configmaps\" in API group \"\" in the namespace \"ssa\"","reason":"Forbidden","details":{"kind":"configmaps"},"code":403}"#
    );
}

#[test]
fn a_refused_subresource_is_named_in_full_and_its_object_in_the_details() {
    assert_eq!(
        refused(Action::on("", "pods").verb(Verb::Get).subresource("log").namespace("web").name("x")),
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"pods \"x\" is forbidden: User \"nobody\" cannot get resource \"pods/log\" in API group \"\" in the namespace \"web\"","reason":"Forbidden","details":{"name":"x","kind":"pods"},"code":403}"#
    );
}

#[test]
fn a_refusal_at_the_cluster_scope_names_the_group() {
    assert_eq!(
        refused(Action::on("ex.io", "foos").verb(Verb::Watch)),
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"foos.ex.io is forbidden: User \"nobody\" cannot watch resource \"foos\" in API group \"ex.io\" at the cluster scope","reason":"Forbidden","details":{"group":"ex.io","kind":"foos"},"code":403}"#
    );
}

#[test]
fn a_refused_path_has_empty_details() {
    assert_eq!(
        refused(Action::path("get", "/metrics")),
        r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"forbidden: User \"nobody\" cannot get path \"/metrics\"","reason":"Forbidden","details":{},"code":403}"#
    );
}

#[test]
fn a_closed_server_serves_health_to_everyone_and_discovery_to_authenticated_users() {
    let access = Access::closed().token("t", User::new("alice"));
    let (alice, anonymous) = (access.authenticate(Some("Bearer t")).unwrap(), access.authenticate(None).unwrap());
    for path in ["/version", "/healthz", "/livez", "/readyz"] {
        assert!(may(&access, &anonymous, Action::path("get", path)), "{path}");
    }
    for path in ["/api", "/api/v1", "/apis", "/apis/apps/v1", "/openapi/v3"] {
        assert!(may(&access, &alice, Action::path("get", path)), "{path}");
        assert!(!may(&access, &anonymous, Action::path("get", path)), "{path}");
    }
    assert!(!may(&access, &alice, Action::path("get", "/metrics")));
}

#[test]
fn the_last_rule_that_fits_decides() {
    let pods = || Action::on("", "pods").verb(Verb::List).namespace("web");
    let alice = User::new("alice");
    let access = Access::closed().allow(Rule::new().user("alice"));
    assert!(may(&access, &alice, pods()));
    let access = access.deny(Rule::new().resource("", "pods"));
    assert!(!may(&access, &alice, pods()));
    let access = access.allow(Rule::new().namespace("web"));
    assert!(may(&access, &alice, pods()));
    assert!(!may(&access, &alice, Action::on("", "pods").verb(Verb::List).namespace("db")));
}

#[test]
fn members_of_system_masters_may_do_everything() {
    let root = User::new("root").group("system:masters");
    assert!(may(&Access::closed(), &root, Action::on("", "secrets").verb(Verb::Delete).namespace("web").name("x")));
}

#[test]
fn verbs_are_distinct() {
    let alice = User::new("alice");
    let access = Access::closed().allow(Rule::new().verb(Verb::List));
    for (verb, allowed) in
        [(Verb::List, true), (Verb::Watch, false), (Verb::Get, false), (Verb::DeleteCollection, false)]
    {
        assert_eq!(may(&access, &alice, Action::on("", "pods").verb(verb)), allowed, "{verb}");
    }
    assert!(!may(&access, &alice, Action::on("", "pods")), "a method that is no verb");
}

#[test]
fn resources_are_written_as_in_roles() {
    let alice = User::new("alice");
    let fits = |group: &str, pattern: &str, action: Action<'_>| {
        may(&Access::closed().allow(Rule::new().resource(group, pattern)), &alice, action)
    };
    let pods = || Action::on("", "pods").verb(Verb::Get);
    let log = || pods().subresource("log");
    for (group, pattern, whole, part) in [
        ("", "pods", true, false),
        ("", "pods/log", false, true),
        ("", "pods/*", false, true),
        ("", "*/log", false, true),
        ("", "*/status", false, false),
        ("", "*", true, true),
        ("*", "pods", true, false),
        ("apps", "*", false, false),
        ("", "services", false, false),
    ] {
        assert_eq!((fits(group, pattern, pods()), fits(group, pattern, log())), (whole, part), "{group} {pattern}");
    }
}

#[test]
fn a_rule_about_a_namespace_or_a_name_means_no_more_than_that() {
    let alice = User::new("alice");
    let access = Access::closed().allow(Rule::new().namespace("web").namespace("db").name("one"));
    let pods = || Action::on("", "pods").verb(Verb::Get);
    assert!(may(&access, &alice, pods().namespace("web").name("one")));
    assert!(may(&access, &alice, pods().namespace("db").name("one")));
    assert!(!may(&access, &alice, pods().namespace("web").name("two")));
    assert!(!may(&access, &alice, pods().namespace("web")));
    assert!(!may(&access, &alice, pods().name("one")));
    assert!(!may(&access, &alice, Action::path("get", "/metrics")));
}

#[test]
fn a_path_may_end_in_a_star_and_is_no_resource() {
    let alice = User::new("alice");
    let access = Access::closed().allow(Rule::new().verb(Verb::Get).path("/metrics").path("/debug/*"));
    assert!(may(&access, &alice, Action::path("get", "/metrics")));
    assert!(may(&access, &alice, Action::path("get", "/debug/pprof")));
    assert!(!may(&access, &alice, Action::path("post", "/debug/pprof")));
    assert!(!may(&access, &alice, Action::path("get", "/metrics/cadvisor")));
    assert!(!may(&access, &alice, Action::on("", "pods").verb(Verb::Get)));
}

mod of_requests {
    use http::{HeaderMap, Method};

    use super::*;
    use crate::http::negotiate::{Negotiated, Served};
    use crate::http::query::Query;
    use crate::http::request::{Head, Target};

    fn refused(method: Method, uri: &str) -> String {
        let uri: http::Uri = uri.parse().unwrap();
        let (headers, query) = (HeaderMap::new(), Query::parse(uri.query().unwrap_or_default()));
        let (wish, form) = Negotiated::read(&headers, &query, Served::BuiltIn);
        let head = Head { method, target: Target::parse(uri.path()), uri, headers, query, wish, form };
        let (wanted, user) = (RequestAction::read(&head), User::new("u"));
        let attributes = Attributes { user: &user, action: wanted.action(&head) };
        attributes.forbidden("").message().to_owned()
    }

    #[test]
    fn a_request_is_refused_for_what_it_asks() {
        for (method, uri, message) in [
            (
                Method::GET,
                "/api/v1/namespaces/web/pods?watch=1",
                r#"pods is forbidden: User "u" cannot watch resource "pods" in API group "" in the namespace "web""#,
            ),
            (
                Method::GET,
                "/apis/apps/v1/deployments?fieldSelector=metadata.name%3Dx",
                r#"deployments.apps "x" is forbidden: User "u" cannot list resource "deployments" in API group "apps" at the cluster scope"#,
            ),
            (
                Method::DELETE,
                "/api/v1/namespaces/web",
                r#"namespaces "web" is forbidden: User "u" cannot delete resource "namespaces" in API group "" in the namespace "web""#,
            ),
            (
                Method::POST,
                "/api/v1/namespaces/web/pods/x/eviction",
                r#"pods "x" is forbidden: User "u" cannot create resource "pods/eviction" in API group "" in the namespace "web""#,
            ),
            (Method::GET, "/apis/apps/v1", r#"forbidden: User "u" cannot get path "/apis/apps/v1""#),
            (Method::POST, "/metrics?x=1", r#"forbidden: User "u" cannot post path "/metrics""#),
        ] {
            assert_eq!(refused(method, uri), message, "{uri}");
        }
    }
}

mod of_other_users {
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::*;

    const AUTHENTICATION: &str = "authentication.k8s.io";

    fn wanted(headers: &[(&'static str, &[u8])]) -> Result<Option<User>, Status> {
        let headers: HeaderMap = headers
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap()))
            .collect();
        requested(&headers)
    }

    /// The groups of `wanted` if a user may list pods on its behalf, else the message of the
    /// refusal.
    fn acting(access: &Access, requester: &User, wanted: &User) -> Result<String, String> {
        let user = impersonate(access, requester, wanted, &Action::on("", "pods").verb(Verb::List));
        user.map(|user| user.groups().join(",")).map_err(|status| status.message().to_owned())
    }

    #[test]
    fn a_name_that_is_no_text_is_a_user_all_the_same() {
        let user = wanted(&[("impersonate-user", b"b\xc3\xb6b")]).unwrap().unwrap();
        assert_eq!(user.name(), "böb");
        let user = wanted(&[("impersonate-user", b"b\xffb")]).unwrap().unwrap();
        assert_eq!(user.name(), "b\u{fffd}b");
        assert_eq!(wanted(&[("impersonate-user", b"")]).unwrap(), None);
        assert_eq!(wanted(&[("impersonate-uid", b"1")]).unwrap_err().code(), 400);
    }

    #[test]
    fn a_key_is_unescaped_if_all_of_it_is_valid() {
        let extra = |name: &'static str| {
            let user = wanted(&[("impersonate-user", b"ann"), (name, b"v")]).unwrap().unwrap();
            user.extra.keys().next().unwrap().clone()
        };
        assert_eq!(extra("impersonate-extra-acme.io%2fscopes"), "acme.io/scopes");
        assert_eq!(extra("impersonate-extra-50%"), "50%");
        assert_eq!(extra("impersonate-extra-%2f%zz"), "%2f%zz");
    }

    #[test]
    fn the_permission_for_a_name_is_not_one_for_groups_or_extra_fields() {
        let access = Access::closed().allow(Rule::new().verb("impersonate").resource("", "users").name("ann"));
        let requester = User::new("bob");
        let ann = || User::new("ann");
        assert_eq!(acting(&access, &requester, &ann()).unwrap(), "system:authenticated");
        for more in [ann().group("system:masters"), ann().uid("1"), ann().extra("scopes", "all"), User::new("eve")] {
            assert!(acting(&access, &requester, &more).is_err(), "{more:?}");
        }
    }

    #[test]
    fn a_service_account_impersonates_its_own_node_only() {
        let access = Access::closed()
            .allow(Rule::new().verb("impersonate-on:associated-node:list").resource("", "pods"))
            .allow(Rule::new().verb("impersonate:associated-node").resource(AUTHENTICATION, "nodes").name("*"));
        let agent = User::new("system:serviceaccount:web:agent").extra("authentication.kubernetes.io/node-name", "n-1");
        assert_eq!(
            acting(&access, &agent, &User::new("system:node:n-1")).unwrap(),
            "system:nodes,system:authenticated"
        );
        assert_eq!(
            acting(&access, &agent, &User::new("system:node:n-2")).unwrap_err(),
            r#"pods is forbidden: User "system:serviceaccount:web:agent" cannot impersonate-on:arbitrary-node:list resource "pods" in API group "" at the cluster scope"#
        );
    }

    #[test]
    fn many_groups_may_be_permitted_at_once() {
        let access = Access::closed()
            .allow(Rule::new().verb("impersonate-on:user-info:list").resource("", "pods"))
            .allow(Rule::new().verb("impersonate:user-info").resource(AUTHENTICATION, "users"))
            .allow(Rule::new().verb("impersonate:user-info").resource(AUTHENTICATION, "groups").name("*"));
        let of = |groups: &[&str]| groups.iter().fold(User::new("ann"), |user, group| user.group(*group));
        assert!(acting(&access, &User::new("bob"), &of(&["a", "b", "c", "d"])).is_ok());
        assert!(acting(&access, &User::new("bob"), &of(&["a", "b", "c"])).is_err());
    }

    #[test]
    fn markup_in_a_refusal_is_escaped() {
        let status = Access::closed()
            .check(&Attributes { user: &User::new("<b>&"), action: Action::path("get", "/x") })
            .unwrap_err();
        assert_eq!(status.message(), r#"forbidden: User "&lt;b&gt;&amp;" cannot get path "/x""#);
    }
}
