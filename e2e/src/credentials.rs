//! Credentials of the test control plane.

use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use serde_json::json;
use tokio::fs;

use crate::Error;

/// The issuer of service account tokens.
pub(crate) const ISSUER: &str = "https://kubernetes.default.svc";

/// The tokens of a user with all permissions, of a user without permissions, and of one who gets
/// some permissions to impersonate others.
pub(crate) const ADMIN: &str = "e2e-admin-token";
pub(crate) const NOBODY: &str = "e2e-nobody-token";
pub(crate) const IMPERSONATOR: &str = "e2e-impersonator-token";

/// How long the server accepts expired tokens, to tolerate clock skew.
const GRACE: Duration = Duration::from_secs(60);

/// The signing key of service account tokens.
#[derive(Debug)]
pub(crate) struct Credentials {
    signing: EcdsaKeyPair,
}

impl Credentials {
    /// Writes a certificate authority, the server's certificate, the service account key and the
    /// tokens to files.
    pub(crate) async fn write(folder: &Path) -> Result<Self, Error> {
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.distinguished_name.push(DnType::CommonName, "e2e-ca");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
        let key = KeyPair::generate()?;
        let mut server = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()])?;
        server.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let certificate = server.signed_by(&key, &authority)?;
        let service_accounts = KeyPair::generate()?;
        for (name, content) in [
            ("ca.crt", authority.pem()),
            ("server.crt", certificate.pem()),
            ("server.key", key.serialize_pem()),
            ("service-account.key", service_accounts.serialize_pem()),
            ("service-account.pub", service_accounts.public_key_pem()),
            (
                "tokens.csv",
                format!("{ADMIN},admin,1,system:masters\n{NOBODY},nobody,2\n{IMPERSONATOR},impersonator,3\n"),
            ),
        ] {
            fs::write(folder.join(name), content).await?;
        }
        let signing = EcdsaKeyPair::from_pkcs8(
            &ECDSA_P256_SHA256_FIXED_SIGNING,
            &service_accounts.serialize_der(),
            &SystemRandom::new(),
        )
        .map_err(|error| format!("the key for service accounts: {error}"))?;
        Ok(Self { signing })
    }

    /// Creates a service account token that the server accepts for this long. Like the server's own
    /// tokens, except for the lifetime.
    pub(crate) fn token(&self, account: &ServiceAccount, lifetime: Duration) -> Result<String, Error> {
        let issued = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.saturating_sub(GRACE);
        let ServiceAccount { namespace, name, uid } = account;
        let claims = json!({
            "iss": ISSUER,
            "aud": [ISSUER],
            "sub": format!("system:serviceaccount:{namespace}:{name}"),
            "iat": issued.as_secs(),
            "nbf": issued.as_secs(),
            "exp": (issued + lifetime).as_secs(),
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": uid}},
        });
        let head = json!({"alg": "ES256", "typ": "JWT"});
        let signed = format!("{}.{}", base64(head.to_string()), base64(claims.to_string()));
        let signature =
            self.signing.sign(&SystemRandom::new(), signed.as_bytes()).map_err(|error| format!("signing: {error}"))?;
        Ok(format!("{signed}.{}", base64(signature)))
    }
}

/// An existing service account.
#[derive(Debug)]
pub(crate) struct ServiceAccount {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

/// URL-safe base64 without padding, as used in tokens.
fn base64(bytes: impl AsRef<[u8]>) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}
