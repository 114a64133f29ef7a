//! `serviceaccounts/token`: what tokens authenticate, and how they are reviewed.

use crate::harness::{Answer, Api, Case, Namespace, case, failure};
use base64::Engine as _;
use serde_json::{Value, json};

pub(crate) const CASES: &[Case] = &[
    case!(service_accounts_get_tokens, "`serviceaccounts/token` issues a token, which authenticates"),
    case!(tokens_are_bound, "a token is bound to a pod or a secret, and ends with it"),
    case!(token_requests_are_checked, "lifetime, names and bound objects are checked"),
    case!(the_issuer_of_tokens_is_described, "the OpenID configuration names the issuer, and the keys of its tokens"),
    case!(tokens_are_reviewed, "a TokenReview names the user of a token and its audiences, or what is wrong"),
];

async fn account(api: &Api, ns: &Namespace, name: &str) -> Value {
    api.post(&ns.path("serviceaccounts"), json!({"metadata": {"name": name}})).await.is(201).json()
}

async fn who_is(api: &Api, token: &str) -> Answer {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    api.request("POST", path).token(Some(token)).body("application/json", body).send().await
}

fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).expect("a token has three parts");
    serde_json::from_slice(&base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

async fn service_accounts_get_tokens(api: Api) {
    let ns = api.namespace().await;
    let account = account(&api, &ns, "robot").await;
    let path = ns.path("serviceaccounts/robot/token");
    let answer = api.post(&path, json!({"spec": {"audiences": []}})).await;
    answer.says(
        201,
        &format!(
            r#"{{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","metadata":{{"name":"robot","namespace":"{}","uid":"<uid>","creationTimestamp":"<time>"}},"spec":{{"audiences":["https://kubernetes.default.svc"],"expirationSeconds":3600,"boundObjectRef":null}},"status":{{"token":"<*>","expirationTimestamp":"<time>"}}}}
"#,
            ns.name
        ),
    );
    let token = answer.json()["status"]["token"].as_str().unwrap().to_owned();
    let claims = claims(&token);
    assert_eq!(claims["iss"], "https://kubernetes.default.svc");
    assert_eq!(claims["sub"], format!("system:serviceaccount:{}:robot", ns.name));
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 3600);
    let scope = json!({"namespace": ns.name, "serviceaccount": {"name": "robot", "uid": account["metadata"]["uid"]}});
    assert_eq!(claims["kubernetes.io"], scope);
    // It authenticates.
    let said = who_is(&api, &token).await.is(201).json();
    let user = json!({
        "username": format!("system:serviceaccount:{}:robot", ns.name), "uid": account["metadata"]["uid"],
        "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{}", ns.name), "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": [format!("JTI={}", claims["jti"].as_str().unwrap())]},
    });
    assert_eq!(said["status"]["userInfo"], user);
    let refused = api.request("GET", &ns.path("configmaps")).token(Some(&token)).send().await;
    assert!(refused.is(403).text().contains("system:serviceaccount"), "{}", refused.text());
    // Not with another signature, not for others, and not after the account.
    let (text, signature) = token.rsplit_once('.').unwrap();
    let mut forged: Vec<char> = signature.chars().collect();
    forged[0] = if forged[0] == 'A' { 'B' } else { 'A' };
    who_is(&api, &format!("{text}.{}", forged.iter().collect::<String>())).await.is(401);
    let other = api.post(&path, json!({"spec": {"audiences": ["others"]}})).await.is(201).json();
    who_is(&api, other["status"]["token"].as_str().unwrap()).await.is(401);
    api.delete(&ns.path("serviceaccounts/robot")).await.is(200);
    eventually_refused(&api, &token).await;
}

/// Waits until a token is refused: the real server remembers tokens for ten seconds.
async fn eventually_refused(api: &Api, token: &str) {
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
    while who_is(api, token).await.code != 401 {
        assert!(tokio::time::Instant::now() < deadline, "the token is refused soon");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

async fn tokens_are_bound(api: Api) {
    let ns = api.namespace().await;
    account(&api, &ns, "robot").await;
    let body = json!({
        "metadata": {"name": "p"},
        "spec": {"serviceAccountName": "robot", "nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    });
    let pod = api.post(&ns.path("pods"), body).await.is(201).json();
    let path = ns.path("serviceaccounts/robot/token");
    let bound = |kind: &str, name: &str| json!({"spec": {"audiences": [], "boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name}}});
    let made = api.post(&path, bound("Pod", "p")).await.is(201).json();
    let token = made["status"]["token"].as_str().unwrap();
    let scope = &claims(token)["kubernetes.io"];
    assert_eq!(scope["pod"], json!({"name": "p", "uid": pod["metadata"]["uid"]}));
    assert_eq!(scope["node"]["name"], "n");
    let said = who_is(&api, token).await.is(201).json();
    let extra = &said["status"]["userInfo"]["extra"];
    assert_eq!(extra["authentication.kubernetes.io/pod-name"], json!(["p"]));
    assert_eq!(extra["authentication.kubernetes.io/node-name"], json!(["n"]));
    api.delete(&ns.path("pods/p?gracePeriodSeconds=0")).await.is(200);
    eventually_refused(&api, token).await;
    api.post(&path, bound("Secret", "none")).await.is(404);
    api.post(&path, bound("ConfigMap", "c")).await.says(
        400,
        &failure(
            r#""message":"cannot bind token to object of type /v1, Kind=ConfigMap","reason":"BadRequest","code":400"#,
        ),
    );
    let other = json!({"metadata": {"name": "q"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    api.post(&ns.path("pods"), other).await.is(201);
    api.post(&path, bound("Pod", "q")).await.says(400, &failure(
        r#""message":"cannot bind token for serviceaccount \"robot\" to pod running with different serviceaccount name.","reason":"BadRequest","code":400"#,
    ));
}

async fn token_requests_are_checked(api: Api) {
    let ns = api.namespace().await;
    account(&api, &ns, "robot").await;
    let path = ns.path("serviceaccounts/robot/token");
    api.post(&path, json!({"spec": {"audiences": [], "expirationSeconds": 60}})).await.says(422, &failure(
        r#""message":"TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes","reason":"Invalid","details":{"group":"authentication.k8s.io","kind":"TokenRequest","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: 60: may not specify a duration less than 10 minutes","field":"spec.expirationSeconds"}]},"code":422"#,
    ));
    api.post(&path, json!({"metadata": {"name": "other"}, "spec": {"audiences": []}})).await.says(422, &failure(
        r#""message":"TokenRequest.authentication.k8s.io \"robot\" is invalid: metadata.name: Invalid value: \"other\": must match the service account name if specified","reason":"Invalid","details":{"name":"robot","group":"authentication.k8s.io","kind":"TokenRequest","causes":[{"reason":"FieldValueInvalid","message":"Invalid value: \"other\": must match the service account name if specified","field":"metadata.name"}]},"code":422"#,
    ));
    api.post(&ns.path("serviceaccounts/none/token"), json!({"spec": {"audiences": []}})).await.says(404, &failure(
        r#""message":"serviceaccounts \"none\" not found","reason":"NotFound","details":{"name":"none","kind":"serviceaccounts"},"code":404"#,
    ));
    api.get(&path).await.is(405);
}

async fn tokens_are_reviewed(api: Api) {
    let ns = api.namespace().await;
    let account = account(&api, &ns, "robot").await;
    let review =
        async |spec: Value| api.post("/apis/authentication.k8s.io/v1/tokenreviews", json!({"spec": spec})).await;
    let asked = json!({"spec": {"audiences": ["a", "https://kubernetes.default.svc"]}});
    let made = api.post(&ns.path("serviceaccounts/robot/token"), asked).await.is(201).json();
    let token = &made["status"]["token"];
    let said = review(json!({"token": token})).await.is(201).json();
    assert_eq!((&said["kind"], &said["spec"]), (&json!("TokenReview"), &json!({"token": token})));
    assert_eq!(said["status"]["authenticated"], true);
    assert_eq!(said["status"]["audiences"], json!(["https://kubernetes.default.svc"]));
    assert_eq!(said["status"]["user"]["username"], format!("system:serviceaccount:{}:robot", ns.name));
    assert_eq!(said["status"]["user"]["uid"], account["metadata"]["uid"]);
    let said = review(json!({"token": token, "audiences": ["a", "b"]})).await.is(201).json();
    assert_eq!((&said["status"]["authenticated"], &said["status"]["audiences"]), (&json!(true), &json!(["a"])));
    let said = review(json!({"token": token, "audiences": ["b"]})).await.is(201).json();
    let why = r#"token audiences ["a" "https://kubernetes.default.svc"] is invalid for the target audiences ["b"]"#;
    assert_eq!(said["status"]["authenticated"], Value::Null);
    assert!(said["status"]["error"].as_str().unwrap().contains(why), "{said}");
    // Other tokens.
    let said = review(json!({"token": api.nobody_token()})).await.is(201).json();
    let user = json!({"username": "nobody", "uid": "2", "groups": ["system:authenticated"]});
    let audiences = json!(["https://kubernetes.default.svc"]);
    assert_eq!(said["status"], json!({"authenticated": true, "user": user, "audiences": audiences}));
    let said = review(json!({"token": "unknown"})).await.is(201).json();
    assert_eq!(said["status"]["user"], json!({}));
    assert!(said["status"]["error"].as_str().unwrap().contains("invalid bearer token"), "{said}");
    review(json!({})).await.says(
        400,
        &failure(r#""message":"token is required for TokenReview in authentication","reason":"BadRequest","code":400"#),
    );
}

async fn the_issuer_of_tokens_is_described(api: Api) {
    let answer = api.get("/.well-known/openid-configuration").await;
    assert_eq!(answer.is(200).header("cache-control"), Some("public, max-age=3600"));
    let configuration = answer.json();
    assert_eq!(configuration["issuer"], "https://kubernetes.default.svc");
    assert!(configuration["jwks_uri"].as_str().unwrap().ends_with("/openid/v1/jwks"), "{configuration}");
    assert_eq!(configuration["id_token_signing_alg_values_supported"], json!(["ES256"]));
    let answer = api.get("/openid/v1/jwks").await;
    assert_eq!(answer.is(200).header("content-type"), Some("application/jwk-set+json"));
    let key = &answer.json()["keys"][0];
    assert_eq!((&key["kty"], &key["crv"], &key["alg"]), (&json!("EC"), &json!("P-256"), &json!("ES256")));
    // The key signs the tokens.
    let ns = api.namespace().await;
    account(&api, &ns, "robot").await;
    let made = api.post(&ns.path("serviceaccounts/robot/token"), json!({"spec": {"audiences": []}})).await.json();
    let token = made["status"]["token"].as_str().unwrap().to_owned();
    let decode = |text: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text).unwrap();
    let header: Value = serde_json::from_slice(&decode(token.split('.').next().unwrap())).unwrap();
    assert_eq!((&header["kid"], &header["alg"]), (&key["kid"], &json!("ES256")));
    let mut point = vec![4];
    point.extend(decode(key["x"].as_str().unwrap()));
    point.extend(decode(key["y"].as_str().unwrap()));
    let (text, signature) = token.rsplit_once('.').unwrap();
    let key = ring::signature::UnparsedPublicKey::new(&ring::signature::ECDSA_P256_SHA256_FIXED, point);
    key.verify(text.as_bytes(), &decode(signature)).unwrap();
}
