//! The server that both informers watch.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use http::Uri;
use kube::config::{KubeConfigOptions, Kubeconfig};
use tokio::fs;

use crate::Error;
use crate::control_plane::ControlPlane;

/// A server that can lose its history.
#[derive(Debug)]
pub(crate) enum Server<'a> {
    /// The real kube-apiserver.
    Real(&'a mut ControlPlane),
    /// The embedded server, with TLS on its own port.
    Embedded(kube_embedded::Server),
}

impl Server<'_> {
    pub(crate) async fn embedded() -> Result<Self, Error> {
        Ok(Self::Embedded(kube_embedded::Server::builder().tls().start().await?))
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Real(_) => "real",
            Self::Embedded(_) => "embedded",
        }
    }

    pub(crate) fn endpoint(&self) -> Result<Endpoint, Error> {
        let kubeconfig = match self {
            Self::Real(control_plane) => Kubeconfig::read_from(control_plane.kubeconfig())?,
            Self::Embedded(server) => Kubeconfig::from_yaml(&server.kubeconfig())?,
        };
        Ok(Endpoint { kubeconfig })
    }

    /// Makes watches from versions before this moment impossible.
    pub(crate) async fn lose_history(&mut self) -> Result<(), Error> {
        match self {
            // Its watch cache is lost when it is killed.
            Self::Real(control_plane) => {
                control_plane.apiserver.kill().await?;
                control_plane.apiserver.start()?;
                control_plane.ready().await?;
            }
            Self::Embedded(server) => server.compact_now(),
        }
        Ok(())
    }
}

/// How a server is reached.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    kubeconfig: Kubeconfig,
}

impl Endpoint {
    /// A client for writes.
    pub(crate) async fn client(&self) -> Result<kube::Client, Error> {
        let mut config = self.config().await?;
        config.default_retry = false;
        Ok(kube::Client::try_from(config)?)
    }

    pub(crate) async fn config(&self) -> Result<kube::Config, Error> {
        let options = KubeConfigOptions::default();
        Ok(kube::Config::from_custom_kubeconfig(self.kubeconfig.clone(), &options).await?)
    }

    /// The server's address.
    pub(crate) async fn address(&self) -> Result<SocketAddr, Error> {
        let (host, port) = self.host()?;
        Ok(tokio::net::lookup_host((host.as_str(), port)).await?.next().ok_or("the server's host is not known")?)
    }

    /// The same server, reached through this address.
    pub(crate) fn through(&self, address: SocketAddr) -> Result<Self, Error> {
        let (host, _) = self.host()?;
        let mut endpoint = self.clone();
        for cluster in endpoint.kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
            let Some(server) = &cluster.server else { continue };
            let scheme = if server.starts_with("https:") { "https" } else { "http" };
            cluster.server = Some(format!("{scheme}://{address}"));
            if host != address.ip().to_string() {
                cluster.tls_server_name.get_or_insert(host.clone());
            }
        }
        Ok(endpoint)
    }

    /// Writes a kubeconfig for other programs. JSON is valid YAML.
    pub(crate) async fn write(&self, folder: &Path) -> Result<PathBuf, Error> {
        let path = folder.join("kubeconfig");
        fs::write(&path, serde_json::to_vec(&self.kubeconfig)?).await?;
        Ok(path)
    }

    fn host(&self) -> Result<(String, u16), Error> {
        let context = self.kubeconfig.current_context.as_ref();
        let context = self.kubeconfig.contexts.iter().find(|named| Some(&named.name) == context);
        let cluster = context.and_then(|named| named.context.as_ref()).map(|context| &context.cluster);
        let cluster = self.kubeconfig.clusters.iter().find(|named| Some(&named.name) == cluster);
        let server = cluster.and_then(|named| named.cluster.as_ref()).and_then(|cluster| cluster.server.as_ref());
        let uri: Uri = server.ok_or("the kubeconfig names no server")?.parse()?;
        let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
        Ok((uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned(), port))
    }
}
