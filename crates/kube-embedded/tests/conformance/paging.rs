//! limit and continue.

use crate::harness::{Api, Case, case, failure};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

pub(crate) const CASES: &[Case] = &[
    case!(a_page_says_how_to_go_on, "a page carries continue and remainingItemCount, the last one neither"),
    case!(
        pages_show_the_state_of_the_first,
        "each page has the first page's version and state, whatever is written meanwhile"
    ),
    case!(a_limit_that_is_not_reached_gives_no_token, "limit equal to the number of items: no continue"),
    case!(no_limit_is_zero_or_negative, "limit=0 and negative limits are none"),
    case!(an_unparsable_limit_is_refused, "limit=abc and limit= are 400"),
    case!(a_selector_hides_the_remaining_count, "with a label or field selector there is no remainingItemCount"),
    case!(
        a_selected_page_is_filled_to_the_limit,
        "with a selector a page holds limit matching items, the next may be empty"
    ),
    case!(a_name_selector_never_continues, "fieldSelector metadata.name=x reads one key: never a continue"),
    case!(
        a_token_names_the_last_key,
        "a token is base64url of version, revision and the last key with a leading slash and a NUL"
    ),
    case!(a_token_over_all_namespaces_names_both, "across namespaces the token's key is /namespace/name"),
    case!(a_token_of_an_uncached_kind_has_no_slash, "a token of events has no leading slash"),
    case!(a_token_may_lack_slash_and_nul, "tokens without the leading slash or the NUL are accepted"),
    case!(
        a_token_at_the_latest_revision_restarts_consistency,
        "a token with a negative rv continues at the latest version"
    ),
    case!(Slow a_token_of_a_forgotten_version_is_expired, "a token of a compacted version is a 410 that carries one to go on with"),
    case!(bad_tokens_are_refused, "bad tokens are 400 with the reason why"),
    case!(uncached_kinds_honour_the_limit_at_zero, "events: limit is honoured at resourceVersion 0"),
    case!(custom_resources_page_likewise, "pages of custom resources, with their own key order"),
];

async fn a_page_says_how_to_go_on(api: Api) {
    let ns = api.namespace().await;
    ns.configmaps(&["a", "b", "c"]).await;
    let first = api.get(&ns.path("configmaps?limit=2")).await;
    assert_eq!(first.names(), ["a", "b"]);
    assert_eq!(first.json()["metadata"]["remainingItemCount"], 1);
    let item = |name: &str| {
        let ns = &ns.name;
        format!(
            r#"{{"metadata":{{"name":"{name}","namespace":"{ns}","uid":"<uid>","resourceVersion":"<n>","creationTimestamp":"<time>"}}}}"#
        )
    };
    first.says(
        200,
        &format!(
            "{{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"<n>\",\"continue\":\"<token>\",\"remainingItemCount\":1}},\"items\":[{},{}]}}\n",
            item("a"),
            item("b")
        ),
    );
    let rest = api.get(&ns.path(&format!("configmaps?limit=2&continue={}", first.token().unwrap()))).await;
    rest.says(
        200,
        &format!(
            "{{\"kind\":\"ConfigMapList\",\"apiVersion\":\"v1\",\"metadata\":{{\"resourceVersion\":\"{}\"}},\"items\":[{}]}}\n",
            first.version(),
            item("c")
        ),
    );
}

async fn pages_show_the_state_of_the_first(api: Api) {
    let ns = api.namespace().await;
    ns.configmaps(&["a", "b", "c", "d"]).await;
    let mut page = api.get(&ns.path("configmaps?limit=1")).await;
    let version = page.version();
    ns.change("b", "later").await;
    api.delete(&ns.path("configmaps/c")).await.is(200);
    ns.configmap("bb").await;
    let mut seen = page.names();
    let mut remaining = 3;
    while let Some(token) = page.token() {
        assert_eq!(page.json()["metadata"]["remainingItemCount"], remaining);
        page = api.get(&ns.path(&format!("configmaps?limit=1&continue={token}"))).await;
        assert_eq!(page.is(200).version(), version);
        assert_eq!(page.json()["items"][0].get("data"), None, "a later change shows");
        seen.extend(page.names());
        remaining -= 1;
    }
    assert_eq!(seen, ["a", "b", "c", "d"]);
}

async fn a_limit_that_is_not_reached_gives_no_token(api: Api) {
    let ns = api.namespace().await;
    ns.configmaps(&["a", "b"]).await;
    for limit in [2, 3] {
        let list = api.get(&ns.path(&format!("configmaps?limit={limit}"))).await;
        assert_eq!((list.names().len(), list.token()), (2, None));
        assert_eq!(list.json()["metadata"].get("remainingItemCount"), None);
    }
}

async fn no_limit_is_zero_or_negative(api: Api) {
    let ns = api.namespace().await;
    ns.configmaps(&["a", "b"]).await;
    for limit in ["0", "-1"] {
        let list = api.get(&ns.path(&format!("configmaps?limit={limit}"))).await;
        assert_eq!((list.is(200).names().len(), list.token()), (2, None), "limit={limit}");
    }
}

async fn an_unparsable_limit_is_refused(api: Api) {
    let ns = api.namespace().await;
    let refusal = |value: &str, why: &str| {
        failure(&format!(
            r#""message":"strconv.ParseInt: parsing \"{value}\": {why}","reason":"BadRequest","code":400"#
        ))
    };
    for value in ["abc", "1.5", "0x10", ""] {
        api.get(&ns.path(&format!("configmaps?limit={value}"))).await.says(400, &refusal(value, "invalid syntax"));
    }
    let large = "99999999999999999999";
    api.get(&ns.path(&format!("configmaps?limit={large}"))).await.says(400, &refusal(large, "value out of range"));
}

async fn a_selector_hides_the_remaining_count(api: Api) {
    let ns = api.namespace().await;
    for name in ["a", "b", "c"] {
        ns.create(json!({"metadata": {"name": name, "labels": {"app": "x"}}})).await;
    }
    for selector in ["labelSelector=app%3Dx", "fieldSelector=metadata.name!%3Dzz"] {
        let list = api.get(&ns.path(&format!("configmaps?limit=1&{selector}"))).await;
        assert!(list.token().is_some(), "{selector}");
        assert_eq!(list.json()["metadata"].get("remainingItemCount"), None, "{selector}");
    }
}

async fn a_selected_page_is_filled_to_the_limit(api: Api) {
    let ns = api.namespace().await;
    for (name, app) in [("a", "x"), ("b", "y"), ("c", "x"), ("d", "y"), ("e", "y")] {
        ns.create(json!({"metadata": {"name": name, "labels": {"app": app}}})).await;
    }
    let path = ns.path("configmaps?limit=2&labelSelector=app%3Dx");
    let first = api.get(&path).await;
    assert_eq!(first.names(), ["a", "c"]);
    let rest = api.get(&format!("{path}&continue={}", first.token().unwrap())).await;
    assert_eq!((rest.is(200).names().len(), rest.token()), (0, None));
}

async fn a_name_selector_never_continues(api: Api) {
    let ns = api.namespace().await;
    ns.configmaps(&["a", "b"]).await;
    let list = api.get(&ns.path("configmaps?limit=1&fieldSelector=metadata.name%3Da")).await;
    assert_eq!((list.is(200).names(), list.token()), (vec!["a".to_owned()], None));
}

async fn a_token_names_the_last_key(api: Api) {
    let ns = api.namespace().await;
    ns.configmaps(&["a", "b"]).await;
    let list = api.get(&ns.path("configmaps?limit=1")).await;
    assert_eq!(
        decode(&list.token().unwrap()),
        format!(r#"{{"v":"meta.k8s.io/v1","rv":{},"start":"/a\u0000"}}"#, list.version())
    );
}

async fn a_token_over_all_namespaces_names_both(api: Api) {
    let kind = api.definition(|_| {}).await;
    let ns = api.namespace().await;
    for name in ["a", "b"] {
        kind.create(&kind.things(&ns), name, Value::Null).await;
    }
    let list = api.get(&format!("{}?limit=1", kind.all())).await;
    assert_eq!(
        decode(&list.token().unwrap()),
        format!(r#"{{"v":"meta.k8s.io/v1","rv":{},"start":"/{}/a\u0000"}}"#, list.version(), ns.name)
    );
    let rest = api.get(&format!("{}?limit=1&continue={}", kind.all(), list.token().unwrap())).await;
    assert_eq!(rest.names(), ["b"]);
}

async fn a_token_of_an_uncached_kind_has_no_slash(api: Api) {
    let ns = api.namespace().await;
    for name in ["a", "b"] {
        let event = json!({"metadata": {"name": name}, "involvedObject": {"namespace": ns.name}});
        api.post(&ns.path("events"), event).await.is(201);
    }
    let list = api.get(&ns.path("events?limit=1")).await;
    assert_eq!(
        decode(&list.token().unwrap()),
        format!(r#"{{"v":"meta.k8s.io/v1","rv":{},"start":"a\u0000"}}"#, list.version())
    );
    let rest = api.get(&ns.path(&format!("events?continue={}", list.token().unwrap()))).await;
    assert_eq!((rest.names(), rest.version()), (vec!["b".to_owned()], list.version()));
}

async fn a_token_may_lack_slash_and_nul(api: Api) {
    let ns = api.namespace().await;
    ns.configmaps(&["a", "b", "c"]).await;
    let version = ns.version().await;
    for (start, names) in [
        (r"/a\u0000", &["b", "c"][..]),
        (r"a\u0000", &["b", "c"]),
        ("/b", &["b", "c"]),
        ("b", &["b", "c"]),
        (r"/zz\u0000", &[]),
    ] {
        let token = token(&format!(r#"{{"v":"meta.k8s.io/v1","rv":{version},"start":"{start}"}}"#));
        let list = api.get(&ns.path(&format!("configmaps?continue={token}"))).await;
        assert_eq!(
            (list.is(200).names(), list.version()),
            (names.iter().map(ToString::to_string).collect(), version),
            "{start}"
        );
    }
}

async fn a_token_at_the_latest_revision_restarts_consistency(api: Api) {
    let ns = api.namespace().await;
    ns.configmaps(&["a", "b", "c"]).await;
    let latest = token(r#"{"v":"meta.k8s.io/v1","rv":-1,"start":"a\u0000"}"#);
    let written = ns.change("b", "1").await.version();
    let list = api.get(&ns.path(&format!("configmaps?limit=1&continue={latest}"))).await;
    assert_eq!(list.is(200).names(), ["b"]);
    assert!(list.version() >= written);
    assert_eq!(list.json()["metadata"]["remainingItemCount"], 1);
    assert_eq!(
        decode(&list.token().unwrap()),
        format!(r#"{{"v":"meta.k8s.io/v1","rv":{},"start":"/b\u0000"}}"#, list.version())
    );
}

async fn a_token_of_a_forgotten_version_is_expired(api: Api) {
    let ns = api.namespace().await;
    ns.configmaps(&["a", "b", "c"]).await;
    let old = token(r#"{"v":"meta.k8s.io/v1","rv":1,"start":"/a\u0000"}"#);
    let answer = api.once_forgotten(&ns.path(&format!("configmaps?limit=1&continue={old}"))).await;
    answer.says(410, "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{\"continue\":\"<token>\"},\"status\":\"Failure\",\"message\":\"The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.\",\"reason\":\"Expired\",\"code\":410}\n");
    assert_eq!(answer.header("retry-after"), None);
    let fresh = answer.token().unwrap();
    assert_eq!(decode(&fresh), r#"{"v":"meta.k8s.io/v1","rv":-1,"start":"a\u0000"}"#);
    let rest = api.get(&ns.path(&format!("configmaps?limit=1&continue={fresh}"))).await;
    assert_eq!(rest.is(200).names(), ["b"]);
    assert!(rest.token().is_some());
}

async fn bad_tokens_are_refused(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let v1 = |rest: &str| token(&format!(r#"{{"v":"meta.k8s.io/v1",{rest}}}"#));
    for (token, why) in [
        (v1(r#""rv":0,"start":"/a\u0000""#), "incorrect encoded start resourceVersion (version meta.k8s.io/v1)"),
        (v1(r#""start":"/a\u0000""#), "incorrect encoded start resourceVersion (version meta.k8s.io/v1)"),
        (v1(r#""rv":5,"start":"""#), "encoded start key empty (version meta.k8s.io/v1)"),
        (v1(r#""rv":5,"start":"/../x""#), "/../x"),
        (token(r#"{"v":"x","rv":5,"start":"/a"}"#), "server does not recognize this encoded version x"),
        (token("{"), "unexpected end of JSON input"),
        ("*".to_owned(), "illegal base64 data at input byte 0"),
        ("a".to_owned(), "illegal base64 data at input byte 0"),
    ] {
        api.get(&ns.path(&format!("configmaps?limit=1&continue={token}"))).await.says(
            400,
            &failure(&format!(
                r#""message":"invalid continue token: continue key is not valid: {why}","reason":"BadRequest","code":400"#
            )),
        );
    }
}

async fn uncached_kinds_honour_the_limit_at_zero(api: Api) {
    let ns = api.namespace().await;
    for name in ["a", "b"] {
        let event = json!({"metadata": {"name": name}, "involvedObject": {"namespace": ns.name}});
        api.post(&ns.path("events"), event).await.is(201);
    }
    let list = api.get(&ns.path("events?limit=1&resourceVersion=0")).await;
    assert_eq!(list.names(), ["a"]);
    assert!(list.token().is_some());
}

async fn custom_resources_page_likewise(api: Api) {
    let kind = api.definition(|_| {}).await;
    let ns = api.namespace().await;
    let path = kind.things(&ns);
    for name in ["a", "b"] {
        kind.create(&path, name, Value::Null).await;
    }
    let item = |name: &str| {
        format!(
            r#"{{"apiVersion":"{}/v1","kind":"Thing","metadata":{{"creationTimestamp":"<time>","generation":1,"name":"{name}","namespace":"{}","resourceVersion":"<n>","uid":"<uid>"}}}}"#,
            kind.group, ns.name
        )
    };
    let first = api.get(&format!("{path}?limit=1")).await;
    first.says(
        200,
        &format!(
            "{{\"apiVersion\":\"{}/v1\",\"items\":[{}],\"kind\":\"ThingList\",\"metadata\":{{\"continue\":\"<token>\",\"remainingItemCount\":1,\"resourceVersion\":\"<n>\"}}}}\n",
            kind.group,
            item("a")
        ),
    );
    let rest = api.get(&format!("{path}?limit=1&continue={}", first.token().unwrap())).await;
    rest.says(
        200,
        &format!(
            "{{\"apiVersion\":\"{}/v1\",\"items\":[{}],\"kind\":\"ThingList\",\"metadata\":{{\"continue\":\"\",\"resourceVersion\":\"{}\"}}}}\n",
            kind.group,
            item("b"),
            first.version()
        ),
    );
}

fn token(json: &str) -> String {
    URL_SAFE_NO_PAD.encode(json)
}

fn decode(token: &str) -> String {
    String::from_utf8(URL_SAFE_NO_PAD.decode(token).expect("base64url without padding")).unwrap()
}
