//! What the example `website` needs around it: a DNS server, and a demonstration.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use kube_embedded::Server;
use kube_informer::ObjectKey;
use serde_json::{Value, json};

use super::Result;

/// Stands for a DNS server outside of the cluster: the website of each host. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dns(Arc<Mutex<HashMap<String, ObjectKey>>>);

/// A host has one website.
#[derive(Debug)]
pub(crate) struct HostTaken {
    host: String,
    by: ObjectKey,
}

impl Dns {
    /// Sets the website of a host.
    pub(crate) async fn set(&self, host: &str, site: &ObjectKey) -> Result<(), HostTaken> {
        let mut hosts = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let by = hosts.entry(host.to_owned()).or_insert_with(|| site.clone()).clone();
        if by == *site { Ok(()) } else { Err(HostTaken { host: host.to_owned(), by }) }
    }

    /// Removes the entry of a host, if it is of this website.
    pub(crate) async fn remove(&self, host: &str, site: &ObjectKey) {
        let mut hosts = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        hosts.retain(|known, of| known != host || of != site);
    }

    /// Returns whether a host has a website.
    pub(crate) fn has(&self, host: &str) -> bool {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).contains_key(host)
    }
}

impl std::fmt::Display for HostTaken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the host {:?} belongs to the website {}", self.host, self.by)
    }
}

impl std::error::Error for HostTaken {}

/// Creates a website, starts its pods in the place of a cluster, changes it and deletes it.
pub(crate) async fn demonstrate(server: &Server) -> Result<()> {
    let site = json!({
        "apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": "blog", "namespace": "default"},
        "spec": {"image": "blog:1", "host": "blog.example.com", "replicas": 2},
    });
    server.create(&site)?;
    let (sites, deployments) = (server.objects("example.com/v1", "Website")?, server.objects("apps/v1", "Deployment")?);
    let is_ready = |status: &str, generation: i64| {
        let ready = sites.get("blog").map(|site| site["status"]["conditions"][0].clone()).unwrap_or_default();
        ready["status"] == status && ready["observedGeneration"] == generation
    };
    server.until(|_| is_ready("False", 1)).await;
    println!("blog: {}", message(&sites.get("blog")?));
    deployments.patch_status("blog", &json!({"status": {"observedGeneration": 1, "readyReplicas": 2}}))?;
    server.until(|_| is_ready("True", 1)).await;
    println!("blog: {}", message(&sites.get("blog")?));
    sites.patch("blog", &json!({"spec": {"image": "blog:2"}}))?;
    server.until(|_| is_ready("False", 2)).await;
    println!("blog: {}", message(&sites.get("blog")?));
    deployments.patch_status("blog", &json!({"status": {"observedGeneration": 2, "readyReplicas": 2}}))?;
    server.until(|_| is_ready("True", 2)).await;
    sites.delete("blog")?;
    server.until(|_| sites.get("blog").is_err()).await;
    println!("blog is gone, and its DNS entry");
    Ok(())
}

fn message(site: &Value) -> &str {
    site["status"]["conditions"][0]["message"].as_str().unwrap_or_default()
}
