//! Tokens that expire while the informer runs.

use std::path::Path;
use std::time::Duration;

use kube::api::{Api, PostParams};
use kube::config::AuthInfo;
use kube::core::DynamicObject;
use kube_informer::client::ServerError;
use serde_json::json;
use tokio::fs;

use super::deadline::eventually;
use super::playground::{Playground, Query, builtin, config_maps};
use super::watched::{Eager, Watched};
use super::writer::Writer;
use crate::Error;
use crate::credentials::{Credentials, ServiceAccount};
use crate::link::Link;

const SEED: u64 = 401;
/// Long enough to sync on an overloaded machine.
const SHORT: Duration = Duration::from_secs(30);
const LONG: Duration = Duration::from_secs(3600);

pub(super) async fn run(playground: &Playground, credentials: &Credentials) -> Result<String, Error> {
    let namespaces = playground.namespaces("tokens", 1).await?;
    let account = account(playground, &namespaces[0]).await?;
    let mut writer = Writer::new(playground.client.clone(), SEED, vec![config_maps()], namespaces.clone());
    writer.write(20).await;
    let folder = tempfile::TempDir::with_prefix("kube-e2e-")?;
    let keys = Keys { folder: folder.path(), credentials, account: &account };
    let short = keys.issue(SHORT).await?;

    // From a token file, as in a pod, and from an exec credential plugin.
    let mut watched = Vec::new();
    let mut links = Vec::new();
    for (name, auth_info) in [("with a token file", keys.in_a_file()?), ("with a program", keys.by_a_program()?)] {
        let (link, mut config) = Link::between(&playground.target.config).await?;
        config.auth_info = auth_info;
        let query = Query { namespaces: Some(namespaces.clone()), ..Query::default() };
        watched.push(Watched::start(name, kube_informer::client(config)?, &config_maps(), query, &Eager)?);
        links.push(link);
    }
    for one in &watched {
        // The server may not have applied the account's permissions yet.
        eventually("synced", async || one.informer.synced().await.map_err(|error| error.to_string())).await?;
        one.agrees(playground).await?;
    }

    let mut config = playground.target.config.clone();
    config.auth_info = AuthInfo { token: Some(short.into()), ..AuthInfo::default() };
    let expired = kube_informer::client(config)?;
    eventually("the token expires", async || match expired.apiserver_version().await {
        Err(kube::Error::Api(status)) if status.code == 401 => Ok(()),
        other => Err(format!("{:?}", other.map(|version| version.git_version))),
    })
    .await?;
    // Open watches stay open: the server checks tokens only when they are opened.
    links.iter().for_each(Link::cut);
    for one in &watched {
        one.degraded("that it is not authorized", ServerError::is_unauthorized).await?;
    }
    writer.write(30).await;
    keys.issue(LONG).await?;
    let mut objects = 0;
    for one in &watched {
        objects = one.agrees(playground).await?;
    }
    let errors: usize = watched.iter().map(|one| one.errors.count()).sum();
    for one in watched {
        one.shutdown().await?;
    }
    Ok(format!(
        "a token file and a program, each with a token of {} s: 401, then renewed; {objects} objects, {errors} refusals",
        SHORT.as_secs()
    ))
}

/// The tokens of a service account, in files that are rewritten.
struct Keys<'a> {
    folder: &'a Path,
    credentials: &'a Credentials,
    account: &'a ServiceAccount,
}

impl Keys<'_> {
    async fn issue(&self, lifetime: Duration) -> Result<String, Error> {
        let token = self.credentials.token(self.account, lifetime)?;
        fs::write(self.folder.join("token"), &token).await?;
        // The reported expiry is in the past, so that the plugin is called each time.
        let credential = json!({
            "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
            "status": {"token": token, "expirationTimestamp": "2020-01-01T00:00:00Z"},
        });
        fs::write(self.folder.join("credential"), credential.to_string()).await?;
        Ok(token)
    }

    fn in_a_file(&self) -> Result<AuthInfo, Error> {
        Ok(serde_json::from_value(json!({"tokenFile": self.folder.join("token")}))?)
    }

    fn by_a_program(&self) -> Result<AuthInfo, Error> {
        let exec = json!({
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "cat",
            "args": [self.folder.join("credential")],
        });
        Ok(serde_json::from_value(json!({"exec": exec}))?)
    }
}

/// Creates a service account that may read config maps.
async fn account(playground: &Playground, namespace: &str) -> Result<ServiceAccount, Error> {
    let accounts = builtin("", "v1", "ServiceAccount", "serviceaccounts");
    let api: Api<DynamicObject> = Api::namespaced_with(playground.client.clone(), namespace, &accounts);
    let made = api.create(&PostParams::default(), &DynamicObject::new("reader", &accounts)).await?;
    let name = format!("{}-reader", playground.run);
    playground.reader_role(&name).await?;
    playground.bind(&name, json!({"kind": "ServiceAccount", "namespace": namespace, "name": "reader"})).await?;
    Ok(ServiceAccount {
        namespace: namespace.to_owned(),
        name: "reader".to_owned(),
        uid: made.metadata.uid.unwrap_or_default(),
    })
}
