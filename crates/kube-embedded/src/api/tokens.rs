//! Tokens of service accounts: JSON web tokens, signed with a key of the server's own.

use std::fmt;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use serde_json::{Value, json};

use super::access::User;
use crate::admission::metadata;
use crate::cluster::Cluster;
use crate::kinds::GroupResource;
use crate::storage::Key;

/// The issuer of the tokens, and the audience of a token that names none.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";

/// How long an expired token is accepted, because clocks differ.
const LEEWAY_SECONDS: i64 = 60;

/// Signs tokens and checks them. The key is made for the first token.
#[derive(Default)]
pub(crate) struct TokenIssuer(OnceLock<Signer>);

struct Signer {
    key: EcdsaKeyPair,
    id: String,
}

impl fmt::Debug for TokenIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenIssuer").finish_non_exhaustive()
    }
}

/// What a token says: the user, and for which of the audiences.
#[derive(Debug)]
pub(crate) struct Identity {
    pub(crate) user: User,
    pub(crate) audiences: Vec<String>,
}

impl TokenIssuer {
    /// A token with these claims, besides its issuer. `None` if the system has no randomness.
    pub(crate) fn sign(&self, mut claims: Value) -> Option<String> {
        let signer = self.signer()?;
        claims["iss"] = json!(ISSUER);
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let text = format!("{}.{}", encode(&json!({"alg": "ES256", "kid": signer.id})), encode(&claims));
        let signature = signer.key.sign(&SystemRandom::new(), text.as_bytes()).ok()?;
        Some(format!("{text}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    fn signer(&self) -> Option<&Signer> {
        if self.0.get().is_none() {
            let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
            let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).ok()?;
            let key = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).ok()?;
            let id = URL_SAFE_NO_PAD.encode(digest(&SHA256, key.public_key().as_ref()));
            // A concurrent request may have set another key, which stays.
            self.0.set(Signer { key, id }).ok();
        }
        self.0.get()
    }

    /// The public key, as a JSON web key.
    pub(crate) fn web_key(&self) -> Option<Value> {
        let signer = self.signer()?;
        // An uncompressed point: a byte, and two coordinates.
        let (x, y) = signer.key.public_key().as_ref().get(1..)?.split_at_checked(32)?;
        let [x, y] = [x, y].map(|part| URL_SAFE_NO_PAD.encode(part));
        Some(json!({
            "use": "sig", "kty": "EC", "kid": signer.id, "crv": "P-256", "alg": "ES256", "x": x, "y": y,
        }))
    }

    /// The user of a token of a service account, for one of these audiences. `None` if it is no
    /// token of this issuer.
    ///
    /// # Errors
    ///
    /// Why such a token is not valid.
    pub(crate) fn read(&self, cluster: &Cluster, token: &str, audiences: &[&str]) -> Option<Result<Identity, String>> {
        let (text, signature) = token.rsplit_once('.')?;
        let (_, claims) = text.split_once('.')?;
        let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
        if claims["iss"] != ISSUER {
            return None;
        }
        let signer = self.0.get();
        let is_signed = signer.zip(URL_SAFE_NO_PAD.decode(signature).ok()).is_some_and(|(signer, signature)| {
            let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, signer.key.public_key());
            key.verify(text.as_bytes(), &signature).is_ok()
        });
        if !is_signed {
            return Some(Err("invalid signature, no keys found".to_owned()));
        }
        Some(identity(cluster, &claims, audiences))
    }
}

fn identity(cluster: &Cluster, claims: &Value, wanted: &[&str]) -> Result<Identity, String> {
    let given: Vec<&str> = claims["aud"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let audiences: Vec<String> =
        given.iter().filter(|given| wanted.contains(given)).map(|audience| (*audience).to_owned()).collect();
    if audiences.is_empty() {
        let list = |audiences: &[&str]| {
            let quoted: Vec<String> = audiences.iter().map(|audience| format!("{audience:?}")).collect();
            format!("[{}]", quoted.join(" "))
        };
        return Err(format!("token audiences {} is invalid for the target audiences {}", list(&given), list(wanted)));
    }
    let now = cluster.clock.now().as_second();
    if claims["exp"].as_i64().is_none_or(|end| now > end.saturating_add(LEEWAY_SECONDS)) {
        return Err("service account token has expired".to_owned());
    }
    let scope = &claims["kubernetes.io"];
    let text = |value: &Value, part: &str| value[part].as_str().unwrap_or_default().to_owned();
    let namespace = text(scope, "namespace");
    let (account, uid) = (text(&scope["serviceaccount"], "name"), text(&scope["serviceaccount"], "uid"));
    match uid_of(cluster, "serviceaccounts", Some(&namespace), &account) {
        None => return Err(format!("serviceaccounts \"{account}\" not found")),
        Some(found) if found != uid => {
            return Err(format!("service account UID ({found}) does not match claim ({uid})"));
        }
        Some(_) => {}
    }
    let extra = |key: &str| format!("authentication.kubernetes.io/{key}");
    let mut user = User::new(format!("system:serviceaccount:{namespace}:{account}"))
        .uid(uid)
        .group("system:serviceaccounts")
        .group(format!("system:serviceaccounts:{namespace}"))
        .extra(extra("credential-id"), format!("JTI={}", text(claims, "jti")));
    for (kind, plural) in [("secret", "secrets"), ("pod", "pods"), ("node", "nodes")] {
        let bound = &scope[kind];
        if !bound.is_object() {
            continue;
        }
        let (name, uid) = (text(bound, "name"), text(bound, "uid"));
        // The node of a pod is only reported.
        let is_bound = kind != "node" || !scope["pod"].is_object();
        let namespace = (kind != "node").then_some(namespace.as_str());
        if is_bound && uid_of(cluster, plural, namespace, &name).as_ref() != Some(&uid) {
            return Err("service account token has been invalidated".to_owned());
        }
        if kind != "secret" {
            user = user.extra(extra(&format!("{kind}-name")), name);
            if !uid.is_empty() {
                user = user.extra(extra(&format!("{kind}-uid")), uid);
            }
        }
    }
    Ok(Identity { user: user.authenticated(), audiences })
}

fn uid_of(cluster: &Cluster, plural: &'static str, namespace: Option<&str>, name: &str) -> Option<String> {
    find(cluster, plural, namespace, name).map(|object| metadata::text(&object, "uid").to_owned())
}

/// An object of the core group.
pub(crate) fn find(cluster: &Cluster, plural: &'static str, namespace: Option<&str>, name: &str) -> Option<Value> {
    let table = GroupResource { group: "".into(), resource: plural.into() };
    cluster.storage.get(&table, &Key::new(namespace, name)).map(|object| object.to_value())
}
