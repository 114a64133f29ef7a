//! A simulated cluster with its own rate of change: leases and statuses of nodes often, pods and
//! what belongs to them seldom. `writes` counts.

use kube_embedded::Server;
use kube_embedded::pretend::{Pretend, Size};
use serde_json::{Value, json};

use crate::Error;

/// The server with the simulation.
pub struct Cluster {
    server: Server,
    pretend: Pretend,
}

impl Cluster {
    pub async fn start(nodes: u64, pods: u64, rate: f64) -> Result<Self, Error> {
        let server = Server::builder().start().await?;
        let pretend = Pretend::builder().size(Size { nodes, pods }).rate(rate).seed(7).start(&server).await?;
        Ok(Self { server, pretend })
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    pub fn obey(&self, line: &str) -> Result<Value, Error> {
        match line {
            "writes" => Ok(json!({"writes": self.pretend.writes() as f64})),
            _ => Err(format!("no such command: {line}").into()),
        }
    }
}
