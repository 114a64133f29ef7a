//! Permissions that change while the informer runs.

use kube::Client;
use kube::api::{Api, DeleteParams};
use kube::core::DynamicObject;
use kube_informer::SyncError;
use kube_informer::client::ServerError;
use serde_json::{Value, json};

use super::deadline::{eventually, in_time};
use super::playground::{Playground, Query, bindings, config_maps};
use super::watched::{Plain, Watched};
use super::writer::Writer;
use crate::Error;
use crate::link::Link;

const SEED: u64 = 403;

pub(super) async fn run(playground: &Playground) -> Result<String, Error> {
    let namespaces = playground.namespaces("access", 1).await?;
    let mut writer = Writer::new(playground.client.clone(), SEED, vec![config_maps()], namespaces.clone());
    writer.write(30).await;
    let user = TestUser::new(playground).await?;
    let (link, config) = Link::between(&user.config).await?;
    let query = Query { namespaces: Some(namespaces), ..Query::default() };
    let watched = Watched::start("of a test user", kube_informer::client(config)?, &config_maps(), query, &Plain)?;

    match in_time("synced without permission", watched.informer.synced()).await? {
        Err(SyncError::Refused(cause)) if cause.is_forbidden() => {}
        other => return Err(format!("without permission, synced() says {other:?}").into()),
    }
    user.grant().await?;
    eventually("synced with permission", async || watched.informer.synced().await.map_err(|error| error.to_string()))
        .await?;
    watched.agrees(playground).await?;

    user.revoke().await?;
    // Open watches stay open: the server checks permissions only when they are opened.
    link.cut();
    watched.degraded("that it is forbidden", ServerError::is_forbidden).await?;
    let before = watched.events();
    writer.write(30).await;
    if watched.events() != before || watched.informer.lister().is_empty() {
        return Err("without permission the cache changes".into());
    }
    user.grant().await?;
    let objects = watched.agrees(playground).await?;
    let (events, errors) = (watched.events(), watched.errors.count());
    watched.shutdown().await?;
    Ok(format!(
        "403, granted, revoked, granted: {objects} objects, {events} events, {errors} refusals; {} writes (seed {SEED})",
        writer.written().count()
    ))
}

/// A test user, whom the administrator can impersonate.
struct TestUser<'a> {
    playground: &'a Playground,
    name: String,
    config: kube::Config,
    client: Client,
}

impl<'a> TestUser<'a> {
    async fn new(playground: &'a Playground) -> Result<Self, Error> {
        let name = format!("{}-user", playground.run);
        playground.reader_role(&name).await?;
        let mut config = playground.target.config.clone();
        config.auth_info.impersonate = Some(name.clone());
        config.auth_info.impersonate_groups = Some(vec!["system:authenticated".to_owned()]);
        let client = kube_informer::client(config.clone())?;
        Ok(Self { playground, name, config, client })
    }

    async fn grant(&self) -> Result<(), Error> {
        self.playground.bind(&self.name, json!({"kind": "User", "name": self.name})).await?;
        self.until(true).await
    }

    async fn revoke(&self) -> Result<(), Error> {
        let api: Api<DynamicObject> = Api::all_with(self.playground.client.clone(), &bindings());
        api.delete(&self.name, &DeleteParams::default()).await?;
        self.until(false).await
    }

    /// Waits until the server applies the permission.
    async fn until(&self, allowed: bool) -> Result<(), Error> {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"resource": "configmaps", "verb": "watch"}},
        });
        eventually("permissions are known", async || {
            let asked = http::Request::post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")
                .header("content-type", "application/json")
                .body(review.to_string().into_bytes())
                .map_err(|error| error.to_string())?;
            let answer: Value = self.client.request(asked).await.map_err(|error| error.to_string())?;
            let is = answer["status"]["allowed"] == true;
            if is == allowed { Ok(()) } else { Err(format!("allowed is {is}")) }
        })
        .await
    }
}
