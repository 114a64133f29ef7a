//! A generated certificate authority and server certificate.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// The TLS configuration of a server, generated at each start.
pub(crate) struct Tls {
    pub(crate) acceptor: TlsAcceptor,
    /// The certificate authority that clients must trust.
    pub(crate) authority_pem: String,
}

impl Tls {
    /// Generates an authority and a certificate for `localhost` and an address.
    pub(crate) fn new(address: IpAddr) -> io::Result<Self> {
        Self::make(address).map_err(|error| io::Error::other(format!("making a certificate for {address}: {error}")))
    }

    fn make(address: IpAddr) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let mut authority = CertificateParams::new(Vec::new())?;
        authority.distinguished_name.push(rcgen::DnType::CommonName, "kube-embedded-ca");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
        let mut names = vec!["localhost".to_owned(), "kubernetes".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        if !address.is_loopback() && !address.is_unspecified() {
            names.push(address.to_string());
        }
        let mut server = CertificateParams::new(names)?;
        server.distinguished_name.push(rcgen::DnType::CommonName, "kube-embedded");
        server.use_authority_key_identifier_extension = true;
        server.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate()?;
        let certificate = server.signed_by(&key, &authority)?;
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Self { acceptor: Arc::new(config).into(), authority_pem: authority.pem() })
    }
}
