//! Certificate signing requests: requester, approval and validation.

use crate::harness::{Api, Case, case, failure};
use base64::Engine as _;
use serde_json::{Value, json};

pub(crate) const CASES: &[Case] = &[
    case!(the_requester_of_a_certificate_is_the_user, "spec.username, uid and groups are those of the client"),
    case!(certificates_are_approved_by_a_subresource, "only `approval` sets and keeps the conditions of an approval"),
    case!(signing_requests_are_checked, "a request, its usages, signer and lifetime are checked"),
];

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

fn signing_request(name: &str) -> Value {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    let pem = params.serialize_request(&key).unwrap().pem().unwrap();
    json!({
        "metadata": {"name": name},
        "spec": {
            "request": base64::engine::general_purpose::STANDARD.encode(pem),
            "signerName": "example.com/signer", "usages": ["client auth"],
        },
    })
}

async fn the_requester_of_a_certificate_is_the_user(api: Api) {
    let name = api.unique("a");
    let mut request = signing_request(&name);
    request["spec"]["username"] = json!("somebody");
    request["spec"]["groups"] = json!(["them"]);
    request["status"] = json!({"conditions": [{"type": "Approved", "status": "True"}]});
    api.leave_to_clean_up(&format!("{REQUESTS}/{name}"));
    let made = api.post(REQUESTS, &request).await.is(201).json();
    assert_eq!(made["spec"]["username"], "admin");
    assert_eq!(made["spec"]["uid"], "1");
    assert_eq!(made["spec"]["groups"], json!(["system:masters", "system:authenticated"]));
    assert_eq!(made["spec"].get("extra"), None);
    assert_eq!(made["status"], json!({}));
    let owned = &made["metadata"]["managedFields"];
    assert!(!owned.to_string().contains("f:spec"), "the server resets the spec: {owned}");
    // Neither spec nor status are changed by an update.
    let mut changed = made.clone();
    changed["spec"]["usages"] = json!(["any"]);
    changed["metadata"]["labels"] = json!({"a": "b"});
    let updated = api.put(&format!("{REQUESTS}/{name}"), &changed).await.is(200).json();
    assert_eq!(updated["spec"], made["spec"]);
    assert_eq!(updated["metadata"]["labels"], json!({"a": "b"}));
}

async fn certificates_are_approved_by_a_subresource(api: Api) {
    let name = api.unique("a");
    let path = format!("{REQUESTS}/{name}");
    api.leave_to_clean_up(&path);
    let made = api.post(REQUESTS, signing_request(&name)).await.is(201).json();
    let (approval, status) = (format!("{path}/approval"), format!("{path}/status"));
    let mut wanted = made.clone();
    wanted["status"] = json!({"conditions": [{"type": "Approved", "status": "True", "reason": "r"}]});
    let forbidden = |why: &str| {
        failure(&format!(
            r#""message":"CertificateSigningRequest.certificates.k8s.io \"{name}\" is invalid: status.conditions: Forbidden: {why}","reason":"Invalid","details":{{"name":"{name}","group":"certificates.k8s.io","kind":"CertificateSigningRequest","causes":[{{"reason":"FieldValueForbidden","message":"Forbidden: {why}","field":"status.conditions"}}]}},"code":422"#
        ))
    };
    let refused = api.put(&status, &wanted).await;
    refused.says(422, &forbidden(r#"updates may not add a condition of type \"Approved\""#));
    wanted["spec"]["usages"] = json!(["any"]);
    wanted["status"]["certificate"] = json!("AAAA");
    wanted["metadata"]["labels"] = json!({"a": "b"});
    let approved = api.put(&approval, &wanted).await.is(200).json();
    let condition = &approved["status"]["conditions"][0];
    assert_eq!((&condition["type"], &condition["reason"]), (&json!("Approved"), &json!("r")));
    assert!(condition["lastUpdateTime"].is_string() && condition["lastTransitionTime"].is_string(), "{condition}");
    assert_eq!(approved["status"].get("certificate"), None);
    assert_eq!(approved["spec"], made["spec"]);
    assert_eq!(api.get(&approval).await.is(200).json(), approved);
    // It stays.
    let mut without = approved.clone();
    without["status"] = json!({});
    let refused = api.put(&approval, &without).await;
    refused.says(422, &forbidden(r#"updates may not remove a condition of type \"Approved\""#));
    let mut both = approved.clone();
    let denied = json!({"type": "Denied", "status": "True"});
    both["status"]["conditions"].as_array_mut().unwrap().push(denied);
    let refused = api.put(&approval, &both).await.is(422).json();
    let why = r#"Invalid value: "{conditions[{\"type\": \"Approved\"}], conditions[{\"type\": \"Denied\"}]}": must specify at most one of: `conditions[{"type": "Approved"}]`, `conditions[{"type": "Denied"}]`"#;
    assert_eq!(refused["details"]["causes"][0]["message"], why);
    // The status keeps the approval, and has the certificate.
    let mut issued = approved.clone();
    issued["status"]["conditions"][0]["reason"] = json!("other");
    let failed = json!({"type": "Failed", "status": "True"});
    issued["status"]["conditions"].as_array_mut().unwrap().push(failed);
    let issued = api.put(&status, &issued).await.is(200).json();
    let conditions = issued["status"]["conditions"].as_array().unwrap();
    assert_eq!((&conditions[0]["reason"], &conditions[1]["type"]), (&json!("r"), &json!("Failed")));
    let patch = json!({"status": {"certificate": "AAAA"}});
    let refused = api.patch(&status, "merge-patch", patch).await.is(422).json();
    let why =
        "status.certificate: Invalid value: \"<certificate data>\": must contain at least one CERTIFICATE PEM block";
    assert!(refused["message"].as_str().unwrap().ends_with(why), "{refused}");
}

async fn signing_requests_are_checked(api: Api) {
    let name = api.unique("a");
    let refused = async |field: &str, value: Value| {
        let mut request = signing_request(&name);
        request["spec"][field] = value;
        let answer = api.post(REQUESTS, &request).await.is(422).json();
        let message = answer["message"].as_str().unwrap().to_owned();
        message.split_once("is invalid: ").unwrap().1.to_owned()
    };
    let why = refused("request", json!("AAAA")).await;
    assert_eq!(why, r#"spec.request: Invalid value: "AAAA": PEM block type must be CERTIFICATE REQUEST"#);
    let why = refused("usages", json!([])).await;
    assert_eq!(why, "spec.usages: Required value");
    let why = refused("usages", json!(["client auth", "client auth"])).await;
    assert_eq!(why, r#"spec.usages[1]: Duplicate value: "client auth""#);
    let why = refused("usages", json!(["flying"])).await;
    assert!(
        why.starts_with(r#"spec.usages[0]: Unsupported value: "flying": supported values: "any", "cert sign","#),
        "{why}"
    );
    let why = refused("signerName", json!("a")).await;
    assert_eq!(
        why,
        r#"spec.signerName: Invalid value: "a": must be a fully qualified domain and path of the form 'example.com/signer-name'"#
    );
    let why = refused("signerName", json!("a/b")).await;
    assert_eq!(
        why,
        r#"spec.signerName: Invalid value: "a": should be a domain with at least two segments separated by dots"#
    );
    let why = refused("expirationSeconds", json!(60)).await;
    assert_eq!(
        why,
        "spec.expirationSeconds: Invalid value: 60: may not specify a duration less than 600 seconds (10 minutes)"
    );
}
