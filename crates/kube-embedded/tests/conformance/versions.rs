//! `resourceVersion` and `resourceVersionMatch` on get, list and watch.

use crate::harness::{Api, Case, case, failure, invalid_list_options};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;
use tokio::time::Instant;

pub(crate) const CASES: &[Case] = &[
    case!(
        get_reads_the_object_at_any_version_reached,
        "get: \"\", \"0\" and any version reached answer the current object"
    ),
    case!(get_ignores_resource_version_match, "get: resourceVersionMatch is ignored, even a bogus one"),
    case!(get_refuses_an_unparsable_version_with_500, "get: an unparsable version is a 500 without a reason"),
    case!(
        get_of_an_uncached_kind_refuses_an_unparsable_version_with_400,
        "get of an event: an unparsable version is a 400"
    ),
    case!(Slow get_waits_three_seconds_for_a_version_to_come, "get: a version not reached is a 504 after 3 s"),
    case!(
        list_without_a_version_sees_the_last_write,
        "list: no version is the most recent state, its version that of the store"
    ),
    case!(list_at_zero_ignores_the_limit, "list: at \"0\" the limit is ignored, with and without NotOlderThan"),
    case!(
        list_at_zero_continues_a_token_without_limit,
        "list: at \"0\" with a token, all that follows it, at the token's version"
    ),
    case!(list_at_a_version_is_not_older, "list: at n without limit, the current state"),
    case!(list_at_a_version_with_limit_is_exact, "list: at n with a limit, the state at n"),
    case!(list_not_older_than_honours_the_limit, "list: NotOlderThan n with a limit pages the current state"),
    case!(list_exact_is_the_state_at_that_version, "list: Exact n is the state at n, and the list's version is n"),
    case!(list_exact_accepts_leading_zeros, "list: Exact 007 is 7"),
    case!(Slow list_exact_of_a_forgotten_version_is_expired, "list: Exact of a version that was compacted is a 410"),
    case!(list_refuses_a_version_with_a_token, "list: a version, even a bad one, with continue is a 400"),
    case!(list_reads_the_token_before_the_version, "list: a bad token is reported before a version beside it"),
    case!(list_refuses_a_match_without_a_version, "list: resourceVersionMatch without a version is a 422"),
    case!(
        list_refuses_a_match_with_a_token,
        "list: resourceVersionMatch with continue is a 422, reported with the other causes"
    ),
    case!(list_refuses_exact_at_zero, "list: Exact at \"0\" is a 422"),
    case!(list_refuses_an_unknown_match, "list: an unknown resourceVersionMatch is a 422, reported last"),
    case!(list_refuses_an_unparsable_version_with_400, "list: an unparsable version is a 400"),
    case!(list_takes_an_empty_match_for_none, "list: resourceVersionMatch= counts as absent"),
    case!(
        list_validates_options_before_it_parses_the_version,
        "list: the 422 of options comes before the 400 of the version"
    ),
    case!(list_refuses_send_initial_events, "list: sendInitialEvents, true or false, is a 422"),
    case!(Slow list_waits_three_seconds_for_a_version_to_come, "list: a version not reached is a 504 with Retry-After after 3 s"),
    case!(
        list_of_an_uncached_kind_does_not_wait,
        "list of events: a version not reached is a 504 at once, without Retry-After"
    ),
    case!(list_gives_up_at_the_requests_timeout, "list: timeout=1s cuts the wait short, with a Status without kind"),
    case!(list_refuses_an_unparsable_timeout, "list: an unparsable timeout is a 400"),
    case!(watch_from_a_version_sends_only_later_events, "watch: from n only events after n"),
    case!(
        watch_from_a_version_to_come_is_silent_until_then,
        "watch: from a version not reached is no error, earlier events are dropped"
    ),
    case!(watch_refuses_an_unparsable_version_with_500, "watch: an unparsable version is a 500, for every kind"),
    case!(Slow streaming_list_of_a_version_to_come_fails_in_the_stream, "streaming list: a version not reached is an ERROR event after 3 s"),
    case!(
        watch_refuses_a_match_without_send_initial_events,
        "watch: resourceVersionMatch without sendInitialEvents is a 422"
    ),
    case!(
        watch_refuses_send_initial_events_without_its_match,
        "watch: sendInitialEvents, true or false, requires NotOlderThan"
    ),
    case!(watch_from_a_version_ignores_a_token, "watch: continue is ignored from n, a 422 from \"\" and \"0\""),
    case!(watch_refuses_a_token, "watch: continue with resourceVersionMatch is a 422"),
    case!(
        watch_without_initial_events_sends_only_changes,
        "watch: sendInitialEvents=false sends no initial events, at any version"
    ),
    case!(
        watch_with_initial_events_at_a_version_sends_the_whole_state,
        "watch: sendInitialEvents=true at n sends the whole state"
    ),
];

const FAR: u64 = 999_999_999;

async fn get_reads_the_object_at_any_version_reached(api: Api) {
    let ns = api.namespace().await;
    let first = ns.configmap("a").await.version();
    let last = ns.change("a", "1").await.version();
    for version in ["", &last.to_string(), &first.to_string(), "1", "0"] {
        let answer = api.get(&ns.path(&format!("configmaps/a?resourceVersion={version}"))).await;
        // The request at the second version waits until the watch cache is up to date.
        assert_eq!(answer.is(200).version(), last, "at {version:?}");
    }
}

async fn get_ignores_resource_version_match(api: Api) {
    let ns = api.namespace().await;
    let version = ns.configmap("a").await.version();
    for query in [
        "resourceVersionMatch=Exact",
        "resourceVersionMatch=Bogus",
        &format!("resourceVersionMatch=Bogus&resourceVersion={version}"),
    ] {
        api.get(&ns.path(&format!("configmaps/a?{query}"))).await.is(200);
    }
}

async fn get_refuses_an_unparsable_version_with_500(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    api.get(&ns.path("configmaps/a?resourceVersion=abc")).await.says(
        500,
        &failure(r#""message":"resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax","code":500"#),
    );
    api.get(&ns.path("configmaps/a?resourceVersion=18446744073709551616")).await.says(
        500,
        &failure(
            r#""message":"resourceVersion: Invalid value: \"18446744073709551616\": strconv.ParseUint: parsing \"18446744073709551616\": value out of range","code":500"#,
        ),
    );
}

async fn get_of_an_uncached_kind_refuses_an_unparsable_version_with_400(api: Api) {
    let ns = api.namespace().await;
    let event = json!({"metadata": {"name": "e"}, "involvedObject": {"namespace": ns.name}});
    api.post(&ns.path("events"), event).await.is(201);
    api.get(&ns.path("events/e?resourceVersion=abc")).await.says(
        400,
        &failure(
            r#""message":"invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax","reason":"BadRequest","code":400"#,
        ),
    );
}

async fn get_waits_three_seconds_for_a_version_to_come(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let began = Instant::now();
    let answer = api.get(&ns.path(&format!("configmaps/a?resourceVersion={FAR}"))).await;
    answer.says(504, &too_large());
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_waited_three_seconds(began);
}

async fn list_without_a_version_sees_the_last_write(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let other = api.post(&ns.path("secrets"), json!({"metadata": {"name": "s"}})).await.is(201).version();
    let list = api.get(&ns.path("configmaps")).await;
    assert_eq!(list.names(), ["a"]);
    assert!(list.version() >= other, "the version of a list moves with writes to any kind");
}

async fn list_at_zero_ignores_the_limit(api: Api) {
    let ns = api.namespace().await;
    ns.configmaps(&["a", "b", "c"]).await;
    api.eventually(&ns.path("configmaps?resourceVersion=0"), |list| list.names().len() == 3).await;
    for query in ["resourceVersion=0&limit=1", "resourceVersion=0&limit=1&resourceVersionMatch=NotOlderThan"] {
        let list = api.get(&ns.path(&format!("configmaps?{query}"))).await;
        assert_eq!((list.names().len(), list.token()), (3, None), "{query}");
    }
}

async fn list_at_zero_continues_a_token_without_limit(api: Api) {
    let ns = api.namespace().await;
    ns.configmaps(&["a", "b", "c"]).await;
    let first = api.get(&ns.path("configmaps?limit=1")).await;
    ns.configmap("d").await;
    let token = first.token().unwrap();
    let rest = api.get(&ns.path(&format!("configmaps?limit=1&resourceVersion=0&continue={token}"))).await;
    assert_eq!(rest.is(200).names(), ["b", "c"]);
    assert_eq!((rest.version(), rest.token()), (first.version(), None));
}

async fn list_at_a_version_is_not_older(api: Api) {
    let ns = api.namespace().await;
    let first = ns.configmap("a").await.version();
    let last = ns.configmap("b").await.version();
    // The list may be served from a watch cache that has only reached the first version.
    let list =
        api.eventually(&ns.path(&format!("configmaps?resourceVersion={first}")), |list| list.names().len() == 2).await;
    assert!(list.version() >= last);
    let list = api.get(&ns.path(&format!("configmaps?resourceVersion={last}&resourceVersionMatch=NotOlderThan"))).await;
    assert_eq!(list.names(), ["a", "b"]);
}

async fn list_at_a_version_with_limit_is_exact(api: Api) {
    let ns = api.namespace().await;
    let first = ns.configmap("a").await.version();
    ns.configmap("b").await;
    let list = api.get(&ns.path(&format!("configmaps?resourceVersion={first}&limit=5"))).await;
    assert_eq!((list.is(200).names(), list.version()), (vec!["a".to_owned()], first));
}

async fn list_not_older_than_honours_the_limit(api: Api) {
    let ns = api.namespace().await;
    let first = ns.configmap("a").await.version();
    ns.configmaps(&["b", "c"]).await;
    let last = ns.version().await;
    let query = format!("configmaps?resourceVersion={last}&resourceVersionMatch=NotOlderThan&limit=2");
    let list = api.get(&ns.path(&query)).await;
    assert_eq!(list.is(200).names(), ["a", "b"]);
    assert!(list.version() > first);
    let rest = api.get(&ns.path(&format!("configmaps?continue={}", list.token().unwrap()))).await;
    assert_eq!((rest.names(), rest.version()), (vec!["c".to_owned()], list.version()));
}

async fn list_exact_is_the_state_at_that_version(api: Api) {
    let ns = api.namespace().await;
    ns.configmap("a").await;
    let then = ns.configmap("b").await.version();
    ns.change("a", "later").await;
    api.delete(&ns.path("configmaps/b")).await.is(200);
    ns.configmap("c").await;
    let list = api.get(&ns.path(&format!("configmaps?resourceVersion={then}&resourceVersionMatch=Exact"))).await;
    assert_eq!((list.is(200).names(), list.version()), (vec!["a".to_owned(), "b".to_owned()], then));
    assert_eq!(list.json()["items"][0].get("data"), None);
}

async fn list_exact_accepts_leading_zeros(api: Api) {
    let ns = api.namespace().await;
    let then = ns.configmap("a").await.version();
    let list = api.get(&ns.path(&format!("configmaps?resourceVersion=00{then}&resourceVersionMatch=Exact"))).await;
    assert_eq!(list.is(200).version(), then);
}

async fn list_exact_of_a_forgotten_version_is_expired(api: Api) {
    let ns = api.namespace().await;
    let answer = api.once_forgotten(&ns.path("configmaps?resourceVersion=1&resourceVersionMatch=Exact")).await;
    let expired =
        failure(r#""message":"The resourceVersion for the provided list is too old.","reason":"Expired","code":410"#);
    answer.says(410, &expired);
    assert_eq!(answer.header("retry-after"), None);
    api.get(&ns.path("configmaps?resourceVersion=1&limit=5")).await.says(410, &expired);
    api.get(&ns.path("configmaps?resourceVersion=1")).await.is(200);
}

async fn list_refuses_a_version_with_a_token(api: Api) {
    let ns = api.namespace().await;
    ns.configmaps(&["a", "b"]).await;
    let first = api.get(&ns.path("configmaps?limit=1")).await;
    let token = first.token().unwrap();
    let refusal = failure(
        r#""message":"specifying resource version is not allowed when using continue","reason":"BadRequest","code":400"#,
    );
    for version in [first.version().to_string().as_str(), "1", "abc"] {
        api.get(&ns.path(&format!("configmaps?limit=1&continue={token}&resourceVersion={version}")))
            .await
            .says(400, &refusal);
    }
}

const MATCH: &str = "resourceVersionMatch";
const FORBIDDEN: &str = "FieldValueForbidden";
const UNSUPPORTED: &str = "FieldValueNotSupported";
const NEEDS_VERSION: (&str, &str, &str) =
    (FORBIDDEN, MATCH, "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided");
const NOT_WITH_TOKEN: (&str, &str, &str) =
    (FORBIDDEN, MATCH, "Forbidden: resourceVersionMatch is forbidden when continue is provided");
const BOGUS: (&str, &str, &str) =
    (UNSUPPORTED, MATCH, r#"Unsupported value: "Bogus": supported values: "Exact", "NotOlderThan", """#);

async fn list_reads_the_token_before_the_version(api: Api) {
    let ns = api.namespace().await;
    api.get(&ns.path("configmaps?continue=bad!&resourceVersion=abc")).await.says(
        400,
        &failure(
            r#""message":"invalid continue token: continue key is not valid: illegal base64 data at input byte 3","reason":"BadRequest","code":400"#,
        ),
    );
}

async fn list_refuses_a_match_without_a_version(api: Api) {
    let ns = api.namespace().await;
    for query in ["resourceVersionMatch=Exact", "resourceVersionMatch=NotOlderThan&limit=1&resourceVersion="] {
        api.get(&ns.path(&format!("configmaps?{query}"))).await.says(422, &invalid_list_options(&[NEEDS_VERSION]));
    }
}

async fn list_refuses_a_match_with_a_token(api: Api) {
    let ns = api.namespace().await;
    ns.configmaps(&["a", "b"]).await;
    let first = api.get(&ns.path("configmaps?limit=1")).await;
    let (token, version) = (first.token().unwrap(), first.version());
    let path = ns.path(&format!("configmaps?continue={token}"));
    for kind in ["Exact", "NotOlderThan"] {
        let with = api.get(&format!("{path}&resourceVersionMatch={kind}&resourceVersion={version}")).await;
        with.says(422, &invalid_list_options(&[NOT_WITH_TOKEN]));
        let without = api.get(&format!("{path}&resourceVersionMatch={kind}")).await;
        without.says(422, &invalid_list_options(&[NEEDS_VERSION, NOT_WITH_TOKEN]));
    }
}

async fn list_refuses_exact_at_zero(api: Api) {
    let ns = api.namespace().await;
    let cause = (FORBIDDEN, MATCH, r#"Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0""#);
    for limit in ["", "&limit=1"] {
        let query = format!("configmaps?resourceVersion=0&resourceVersionMatch=Exact{limit}");
        api.get(&ns.path(&query)).await.says(422, &invalid_list_options(&[cause]));
    }
}

async fn list_refuses_an_unknown_match(api: Api) {
    let ns = api.namespace().await;
    api.get(&ns.path("configmaps?resourceVersion=1&resourceVersionMatch=Bogus"))
        .await
        .says(422, &invalid_list_options(&[BOGUS]));
    api.get(&ns.path("configmaps?resourceVersionMatch=Bogus"))
        .await
        .says(422, &invalid_list_options(&[NEEDS_VERSION, BOGUS]));
    api.get(&ns.path("configmaps?resourceVersionMatch=Bogus&continue=x"))
        .await
        .says(422, &invalid_list_options(&[NEEDS_VERSION, NOT_WITH_TOKEN, BOGUS]));
}

async fn list_refuses_an_unparsable_version_with_400(api: Api) {
    let ns = api.namespace().await;
    let refusal = failure(
        r#""message":"invalid resource version: resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax","reason":"BadRequest","code":400"#,
    );
    for query in ["", "&resourceVersionMatch=Exact", "&resourceVersionMatch=NotOlderThan", "&limit=1"] {
        api.get(&ns.path(&format!("configmaps?resourceVersion=abc{query}"))).await.says(400, &refusal);
    }
}

async fn list_takes_an_empty_match_for_none(api: Api) {
    let ns = api.namespace().await;
    api.get(&ns.path("configmaps?resourceVersionMatch=")).await.is(200);
    api.get(&ns.path("configmaps?resourceVersionMatch=&resourceVersion=0")).await.is(200);
}

async fn list_validates_options_before_it_parses_the_version(api: Api) {
    let ns = api.namespace().await;
    let answer = api.get(&ns.path("configmaps?resourceVersion=abc&resourceVersionMatch=Bogus")).await;
    answer.says(422, &invalid_list_options(&[BOGUS]));
}

async fn list_refuses_send_initial_events(api: Api) {
    let ns = api.namespace().await;
    let cause = (FORBIDDEN, "sendInitialEvents", "Forbidden: sendInitialEvents is forbidden for list");
    for value in ["true", "false"] {
        let answer = api.get(&ns.path(&format!("configmaps?sendInitialEvents={value}"))).await;
        answer.says(422, &invalid_list_options(&[cause]));
    }
}

async fn list_waits_three_seconds_for_a_version_to_come(api: Api) {
    let ns = api.namespace().await;
    let token = URL_SAFE_NO_PAD.encode(format!(r#"{{"v":"meta.k8s.io/v1","rv":{FAR},"start":"/a\u0000"}}"#));
    let paths = [
        ns.path(&format!("configmaps?resourceVersion={FAR}")),
        ns.path(&format!("configmaps?resourceVersion={FAR}&resourceVersionMatch=NotOlderThan")),
        ns.path(&format!("configmaps?resourceVersion={FAR}&resourceVersionMatch=Exact")),
        ns.path(&format!("configmaps?resourceVersion={FAR}&limit=1")),
        ns.path(&format!("configmaps?continue={token}")),
    ];
    let began = Instant::now();
    let answers = futures_util::future::join_all(paths.iter().map(|path| api.get(path))).await;
    for answer in &answers {
        answer.says(504, &too_large());
        assert_eq!(answer.header("retry-after"), Some("1"), "{}", answer.asked);
    }
    assert_waited_three_seconds(began);
}

async fn list_of_an_uncached_kind_does_not_wait(api: Api) {
    let ns = api.namespace().await;
    let answer = api.get(&ns.path(&format!("events?resourceVersion={FAR}"))).await;
    answer.says(
        504,
        &failure(&format!(
            r#""message":"Timeout: Too large resource version: {FAR}, current: <n>","reason":"Timeout","details":{{"causes":[{{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}}]}},"code":504"#
        )),
    );
    assert_eq!(answer.header("retry-after"), None);
}

async fn list_gives_up_at_the_requests_timeout(api: Api) {
    let ns = api.namespace().await;
    let answer = api.get(&ns.path(&format!("configmaps?resourceVersion={FAR}&timeout=1s"))).await;
    answer.says(
        504,
        "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"Timeout: request did not complete within the allotted timeout\",\"reason\":\"Timeout\",\"details\":{},\"code\":504}\n",
    );
}

async fn list_refuses_an_unparsable_timeout(api: Api) {
    let ns = api.namespace().await;
    api.get(&ns.path("configmaps?timeout=abc")).await.says(
        400,
        &failure(
            r#""message":"invalid timeout specified in the request URL - time: invalid duration \"abc\"","reason":"BadRequest","code":400"#,
        ),
    );
}

async fn watch_from_a_version_sends_only_later_events(api: Api) {
    let ns = api.namespace().await;
    let first = ns.configmap("a").await.version();
    ns.configmap("b").await;
    let mut watch = api.watch(&ns.path(&format!("configmaps?watch=true&resourceVersion={first}"))).await;
    watch.expect("ADDED", "b").await;
    ns.configmap("c").await;
    watch.expect("ADDED", "c").await;
}

async fn watch_from_a_version_to_come_is_silent_until_then(api: Api) {
    let ns = api.namespace().await;
    let start = ns.version().await + 5;
    let mut watch = api.watch(&ns.path(&format!("configmaps?watch=true&resourceVersion={start}"))).await;
    let mut versions = Vec::new();
    while versions.last().is_none_or(|&last| last <= start) {
        versions.push(ns.configmap(&format!("a{}", versions.len())).await.version());
    }
    assert_eq!(watch.next().await.version(), *versions.last().unwrap());
}

async fn watch_refuses_an_unparsable_version_with_500(api: Api) {
    let ns = api.namespace().await;
    for kind in ["configmaps", "events"] {
        api.get(&ns.path(&format!("{kind}?watch=true&resourceVersion=abc"))).await.says(
            500,
            &failure(
                r#""message":"resourceVersion: Invalid value: \"abc\": strconv.ParseUint: parsing \"abc\": invalid syntax","code":500"#,
            ),
        );
    }
}

async fn streaming_list_of_a_version_to_come_fails_in_the_stream(api: Api) {
    let ns = api.namespace().await;
    let began = Instant::now();
    let query = format!(
        "configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion={FAR}"
    );
    let mut watch = api.watch(&ns.path(&query)).await;
    assert_waited_three_seconds(began);
    watch.next().await.says(&format!("{{\"type\":\"ERROR\",\"object\":{}}}\n", too_large().trim_end()));
    watch.end().await;
}

async fn watch_refuses_a_match_without_send_initial_events(api: Api) {
    let ns = api.namespace().await;
    let cause = (
        FORBIDDEN,
        MATCH,
        "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
    );
    api.get(&ns.path("configmaps?watch=true&resourceVersionMatch=NotOlderThan&resourceVersion=1"))
        .await
        .says(422, &invalid_list_options(&[cause]));
    let unsupported = (UNSUPPORTED, MATCH, r#"Unsupported value: "Exact": supported values: "NotOlderThan""#);
    api.get(&ns.path("configmaps?watch=true&resourceVersionMatch=Exact&resourceVersion=1"))
        .await
        .says(422, &invalid_list_options(&[cause, unsupported]));
}

async fn watch_refuses_send_initial_events_without_its_match(api: Api) {
    let ns = api.namespace().await;
    let cause =
        (FORBIDDEN, MATCH, "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    let unsupported = |value| (UNSUPPORTED, MATCH, value);
    for value in ["true", "false"] {
        let path = ns.path(&format!("configmaps?watch=true&sendInitialEvents={value}"));
        api.get(&path).await.says(422, &invalid_list_options(&[cause]));
        for (kind, message) in [
            ("Exact", r#"Unsupported value: "Exact": supported values: "NotOlderThan""#),
            ("Bogus", r#"Unsupported value: "Bogus": supported values: "NotOlderThan""#),
        ] {
            api.get(&format!("{path}&resourceVersionMatch={kind}"))
                .await
                .says(422, &invalid_list_options(&[cause, unsupported(message)]));
        }
    }
}

async fn watch_refuses_a_token(api: Api) {
    let ns = api.namespace().await;
    let query = "configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&continue=x";
    api.get(&ns.path(query)).await.says(422, &invalid_list_options(&[NOT_WITH_TOKEN]));
}

async fn watch_from_a_version_ignores_a_token(api: Api) {
    let ns = api.namespace().await;
    let version = ns.version().await;
    let mut watch = api.watch(&ns.path(&format!("configmaps?watch=true&continue=x&resourceVersion={version}"))).await;
    ns.configmap("a").await;
    watch.expect("ADDED", "a").await;
    // Without a version it is treated as a streaming list, which has a match.
    for version in ["", "0"] {
        api.get(&ns.path(&format!("configmaps?watch=true&continue=x&resourceVersion={version}")))
            .await
            .says(422, &invalid_list_options(&[NOT_WITH_TOKEN]));
    }
}

async fn watch_without_initial_events_sends_only_changes(api: Api) {
    let ns = api.namespace().await;
    let first = ns.configmap("a").await.version();
    let last = ns.configmap("b").await.version();
    // A watch cache that lags behind would send older changes as new ones.
    api.get(&ns.path(&format!("configmaps?resourceVersion={last}"))).await.is(200);
    let path = ns.path("configmaps?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan");
    let mut unset = api.watch(&path).await;
    let mut zero = api.watch(&format!("{path}&resourceVersion=0")).await;
    let mut at = api.watch(&format!("{path}&resourceVersion={first}")).await;
    ns.configmap("c").await;
    unset.expect("ADDED", "c").await;
    zero.expect("ADDED", "c").await;
    at.expect("ADDED", "b").await;
    at.expect("ADDED", "c").await;
}

async fn watch_with_initial_events_at_a_version_sends_the_whole_state(api: Api) {
    let ns = api.namespace().await;
    let first = ns.configmap("a").await.version();
    let last = ns.configmap("b").await.version();
    // The last version first: after that the watch cache is up to date.
    for version in [last, first] {
        let query = format!(
            "configmaps?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion={version}"
        );
        let mut watch = api.watch(&ns.path(&query)).await;
        watch.expect("ADDED", "a").await;
        watch.expect("ADDED", "b").await;
        let mark = watch.next().await;
        assert!(mark.ends_initial_events() && mark.version() >= version, "{}", mark.text);
    }
}

fn too_large() -> String {
    failure(&format!(
        r#""message":"Timeout: Too large resource version: {FAR}, current: <n>","reason":"Timeout","details":{{"causes":[{{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}}],"retryAfterSeconds":1}},"code":504"#
    ))
}

#[track_caller]
fn assert_waited_three_seconds(began: Instant) {
    let waited = began.elapsed().as_secs_f32();
    assert!(waited >= 2.9, "waited {waited} s");
}
