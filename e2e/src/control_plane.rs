//! A running etcd and kube-apiserver.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use http::Request;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::fs;

use crate::Error;
use crate::binaries::Binaries;
use crate::credentials::{ADMIN, Credentials, IMPERSONATOR, ISSUER, NOBODY};
use crate::program::Program;
use crate::target::Target;

/// Startup timeout, sufficient for an overloaded machine.
const TIMEOUT: Duration = Duration::from_secs(200);

/// A control plane for tests. Dropping it kills the processes and deletes their data.
#[derive(Debug)]
pub(crate) struct ControlPlane {
    address: SocketAddr,
    target: Target,
    pub(crate) credentials: Credentials,
    /// The address of etcd.
    store: SocketAddr,
    pub(crate) etcd: Program,
    pub(crate) apiserver: Program,
    // Declared last, so that it is dropped after the programs that write to it.
    folder: TempDir,
}

impl ControlPlane {
    /// Starts a control plane with the default features.
    pub(crate) async fn start(binaries: &Binaries) -> Result<Self, Error> {
        Self::start_with(binaries, None).await
    }

    /// Starts a control plane whose lists and watches obey shard selectors.
    pub(crate) async fn start_sharded(binaries: &Binaries) -> Result<Self, Error> {
        Self::start_with(binaries, Some("--feature-gates=ShardedListAndWatch=true")).await
    }

    async fn start_with(binaries: &Binaries, flag: Option<&str>) -> Result<Self, Error> {
        let folder = TempDir::with_prefix("kube-e2e-")?;
        let (client, peer, address) = (free_port()?, free_port()?, free_port()?);
        let credentials = Credentials::write(folder.path()).await?;
        let kubeconfig = folder.path().join("kubeconfig");
        fs::write(&kubeconfig, kubeconfig_of(address, folder.path())).await?;
        let target = Target::new(binaries.path("kubectl"), kubeconfig.into()).await?;
        let etcd = Program::new("etcd", binaries.path("etcd"), folder.path(), etcd_flags(folder.path(), client, peer));
        let mut flags = apiserver_flags(folder.path(), client, address);
        flags.extend(flag.map(str::to_owned));
        let apiserver = Program::new("kube-apiserver", binaries.path("kube-apiserver"), folder.path(), flags);
        let mut control_plane = Self { address, target, credentials, store: client, etcd, apiserver, folder };
        control_plane.etcd.start()?;
        control_plane.apiserver.start()?;
        let took = control_plane.ready().await?;
        println!("e2e: kube-apiserver is ready after {:.1} s", took.as_secs_f64());
        Ok(control_plane)
    }

    /// The environment variables for the conformance suite.
    pub(crate) fn conformance_environment(&self) -> [(&'static str, String); 5] {
        [
            ("KUBE_CONFORMANCE_URL", format!("https://{}", self.address)),
            ("KUBE_CONFORMANCE_CA", self.file("ca.crt").display().to_string()),
            ("KUBE_CONFORMANCE_TOKEN", ADMIN.to_owned()),
            ("KUBE_CONFORMANCE_NOBODY_TOKEN", NOBODY.to_owned()),
            ("KUBE_CONFORMANCE_IMPERSONATOR_TOKEN", IMPERSONATOR.to_owned()),
        ]
    }

    /// The connection settings of clients.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// The path of a kubeconfig with all permissions.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.file("kubeconfig")
    }

    /// Waits until the server is ready. Returns how long that took.
    pub(crate) async fn ready(&mut self) -> Result<Duration, Error> {
        let client = self.target.client()?;
        let began = Instant::now();
        loop {
            let request = Request::get("/readyz").body(Vec::new())?;
            if client.request_text(request).await.is_ok_and(|text| text == "ok") {
                return Ok(began.elapsed());
            }
            for program in [&mut self.etcd, &mut self.apiserver] {
                if let Some(status) = program.ended()? {
                    return Err(format!("ended too soon ({status}):\n{}", program.last_lines().await).into());
                }
            }
            if began.elapsed() > TIMEOUT {
                let (waited, said) = (TIMEOUT.as_secs(), self.apiserver.last_lines().await);
                return Err(format!("kube-apiserver is not ready after {waited} s:\n{said}").into());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Waits until either program has ended. Returns which one and how.
    pub(crate) async fn ended(&mut self) -> Result<String, Error> {
        tokio::select! {
            said = self.etcd.wait() => said,
            said = self.apiserver.wait() => said,
        }
    }

    /// The version that etcd reports.
    pub(crate) async fn etcd_version(&self) -> Result<String, Error> {
        let version = self.ask_etcd("/v3/maintenance/status", &json!({})).await?;
        Ok(version["version"].as_str().unwrap_or("unknown").to_owned())
    }

    /// Compacts etcd up to its current revision, which is returned.
    pub(crate) async fn compact(&self) -> Result<u64, Error> {
        let range = self.ask_etcd("/v3/kv/range", &json!({"key": "AA==", "limit": 1})).await?;
        let revision = range["header"]["revision"].as_str().unwrap_or_default().parse()?;
        let compaction = json!({"revision": revision, "physical": true});
        self.ask_etcd("/v3/kv/compaction", &compaction).await?;
        Ok(revision)
    }

    async fn ask_etcd(&self, path: &str, body: &Value) -> Result<Value, Error> {
        let client = kube::Client::try_from(kube::Config::new(format!("http://{}", self.store).parse()?))?;
        let request = Request::post(path).body(serde_json::to_vec(body)?)?;
        Ok(serde_json::from_str(&client.request_text(request).await?)?)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn etcd_flags(folder: &Path, client: SocketAddr, peer: SocketAddr) -> Vec<String> {
    vec![
        format!("-data={}", folder.join("etcd").display()),
        format!("-client=http://{client}"),
        format!("-peer=http://{peer}"),
    ]
}

fn apiserver_flags(folder: &Path, etcd: SocketAddr, address: SocketAddr) -> Vec<String> {
    let file = |name: &str| folder.join(name).display().to_string();
    vec![
        format!("--etcd-servers=http://{etcd}"),
        "--bind-address=127.0.0.1".into(),
        format!("--secure-port={}", address.port()),
        format!("--tls-cert-file={}", file("server.crt")),
        format!("--tls-private-key-file={}", file("server.key")),
        format!("--cert-dir={}", folder.display()),
        format!("--service-account-issuer={ISSUER}"),
        format!("--service-account-key-file={}", file("service-account.pub")),
        format!("--service-account-signing-key-file={}", file("service-account.key")),
        "--service-cluster-ip-range=10.96.0.0/16".into(),
        "--authorization-mode=RBAC".into(),
        format!("--token-auth-file={}", file("tokens.csv")),
        // There are no controllers that create service accounts or endpoints.
        "--disable-admission-plugins=ServiceAccount".into(),
        "--endpoint-reconciler-type=none".into(),
        // The conformance suite waits for old versions to be compacted.
        "--etcd-compaction-interval=10s".into(),
    ]
}

fn kubeconfig_of(address: SocketAddr, folder: &Path) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: e2e\n\
         clusters:\n- name: e2e\n  cluster:\n    server: https://{address}\n    certificate-authority: {}\n\
         users:\n- name: e2e\n  user:\n    token: {ADMIN}\n\
         contexts:\n- name: e2e\n  context:\n    cluster: e2e\n    user: e2e\n",
        folder.join("ca.crt").display()
    )
}

/// A port that was free a moment ago.
fn free_port() -> io::Result<SocketAddr> {
    std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}
