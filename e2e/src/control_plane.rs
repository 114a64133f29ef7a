//! etcd and kube-apiserver, running.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use http::Request;
use kube::config::{KubeConfigOptions, Kubeconfig};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::fs;
use tokio::process::{Child, Command};

use crate::Error;
use crate::binaries::Binaries;

/// How long the server may take to come up.
const PATIENCE: Duration = Duration::from_secs(60);

/// The token of somebody who may do everything, and of somebody who may do nothing.
const ADMIN: &str = "e2e-admin-token";
const NOBODY: &str = "e2e-nobody-token";

/// A control plane of our own: killed, and its data thrown away, when dropped.
#[derive(Debug)]
pub(crate) struct ControlPlane {
    address: SocketAddr,
    folder: TempDir,
    _etcd: Child,
    apiserver: Child,
}

impl ControlPlane {
    pub(crate) async fn start(binaries: &Binaries) -> Result<Self, Error> {
        let folder = TempDir::with_prefix("kube-e2e-")?;
        let (client, peer, address) = (free_port()?, free_port()?, free_port()?);
        credentials(folder.path()).await?;
        let etcd = spawn(
            &binaries.path("etcd"),
            folder.path(),
            "etcd",
            &[
                format!("-data={}", folder.path().join("etcd").display()),
                format!("-client=http://{client}"),
                format!("-peer=http://{peer}"),
            ],
        )?;
        let file = |name: &str| folder.path().join(name).display().to_string();
        let apiserver = spawn(
            &binaries.path("kube-apiserver"),
            folder.path(),
            "kube-apiserver",
            &[
                format!("--etcd-servers=http://{client}"),
                "--bind-address=127.0.0.1".into(),
                format!("--secure-port={}", address.port()),
                format!("--tls-cert-file={}", file("server.crt")),
                format!("--tls-private-key-file={}", file("server.key")),
                format!("--cert-dir={}", folder.path().display()),
                "--service-account-issuer=https://kubernetes.default.svc".into(),
                format!("--service-account-key-file={}", file("service-account.pub")),
                format!("--service-account-signing-key-file={}", file("service-account.key")),
                "--service-cluster-ip-range=10.96.0.0/16".into(),
                "--authorization-mode=RBAC".into(),
                format!("--token-auth-file={}", file("tokens.csv")),
                // Nothing here makes service accounts or endpoints.
                "--disable-admission-plugins=ServiceAccount".into(),
                "--endpoint-reconciler-type=none".into(),
                // Old versions are forgotten while the conformance suite waits for it.
                "--etcd-compaction-interval=10s".into(),
            ],
        )?;
        let mut control_plane = Self { address, folder, _etcd: etcd, apiserver };
        control_plane.ready().await?;
        Ok(control_plane)
    }

    /// What the conformance suite must be told.
    pub(crate) fn conformance_environment(&self) -> [(&'static str, String); 4] {
        [
            ("KUBE_CONFORMANCE_URL", format!("https://{}", self.address)),
            ("KUBE_CONFORMANCE_CA", self.file("ca.crt").display().to_string()),
            ("KUBE_CONFORMANCE_TOKEN", ADMIN.to_owned()),
            ("KUBE_CONFORMANCE_NOBODY_TOKEN", NOBODY.to_owned()),
        ]
    }

    /// Clients that may do everything find the server with this.
    pub(crate) fn kubeconfig(&self) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: e2e\n\
             clusters:\n- name: e2e\n  cluster:\n    server: https://{}\n    certificate-authority: {}\n\
             users:\n- name: e2e\n  user:\n    token: {ADMIN}\n\
             contexts:\n- name: e2e\n  context:\n    cluster: e2e\n    user: e2e\n",
            self.address,
            self.file("ca.crt").display()
        )
    }

    /// A client that may do everything.
    pub(crate) async fn client(&self) -> Result<kube::Client, Error> {
        let kubeconfig = Kubeconfig::from_yaml(&self.kubeconfig())?;
        let mut config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        config.default_retry = false;
        Ok(kube::Client::try_from(config)?)
    }

    async fn ready(&mut self) -> Result<(), Error> {
        let client = self.client().await?;
        let began = Instant::now();
        loop {
            let request = Request::get("/readyz").body(Vec::new())?;
            if client.request_text(request).await.is_ok_and(|text| text == "ok") {
                println!("e2e: kube-apiserver is ready after {:.1} s", began.elapsed().as_secs_f64());
                return Ok(());
            }
            if let Some(status) = self.apiserver.try_wait()? {
                return Err(format!("kube-apiserver ended ({status}):\n{}", self.last_lines().await).into());
            }
            if began.elapsed() > PATIENCE {
                let waited = PATIENCE.as_secs();
                return Err(
                    format!("kube-apiserver is not ready after {waited} s:\n{}", self.last_lines().await).into()
                );
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn last_lines(&self) -> String {
        let log = fs::read_to_string(self.file("kube-apiserver.log")).await.unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Starts a program whose output goes to a log beside its data.
fn spawn(program: &Path, folder: &Path, name: &str, arguments: &[String]) -> io::Result<Child> {
    let log = std::fs::File::create(folder.join(format!("{name}.log")))?;
    Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .kill_on_drop(true)
        .spawn()
}

/// A port that was free a moment ago.
fn free_port() -> io::Result<SocketAddr> {
    std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// A certificate authority, the server's certificate, the key for service accounts, and the tokens.
async fn credentials(folder: &Path) -> Result<(), Error> {
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
        ("tokens.csv", format!("{ADMIN},admin,1,system:masters\n{NOBODY},nobody,2\n")),
    ] {
        fs::write(folder.join(name), content).await?;
    }
    Ok(())
}
