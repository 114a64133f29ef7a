//! The environment of a program: a server, and a client to write and check.

use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Request;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::core::{ApiResource, DynamicObject};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::Instant;

use crate::Error;
use crate::program::Program;

/// Timeout for the expected effects of a program.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Timeout for the termination of a program.
const LAST_WORDS: Duration = Duration::from_secs(30);

/// A server with a client that checks what programs do there.
pub(crate) struct Stage {
    pub(crate) client: kube::Client,
    pub(crate) kubeconfig: PathBuf,
    folder: TempDir,
}

impl Stage {
    pub(crate) async fn new(kubeconfig: &Path) -> Result<Self, Error> {
        let read = Kubeconfig::read_from(kubeconfig)?;
        let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await?;
        let client = kube::Client::try_from(config)?;
        let folder = TempDir::with_prefix("kube-e2e-programs-")?;
        Ok(Self { client, kubeconfig: kubeconfig.to_owned(), folder })
    }

    /// Creates a namespace for a program.
    pub(crate) async fn namespace(&self, name: &str) -> Result<(), Error> {
        let namespace = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        Api::<Namespace>::all(self.client.clone()).create(&PostParams::default(), &namespace).await?;
        Ok(())
    }

    /// Creates the object of a YAML file, unconverted: the server accepts YAML.
    pub(crate) async fn post_yaml(&self, path: &str, yaml: String) -> Result<(), Error> {
        let request = Request::post(path).header("content-type", "application/yaml").body(yaml.into_bytes())?;
        self.client.request::<Value>(request).await.map_err(|error| format!("POST {path}: {error}"))?;
        Ok(())
    }

    /// Creates a definition, and waits until its kind is served.
    pub(crate) async fn define(&self, definition: &Value) -> Result<(), Error> {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let request = Request::post(path).header("content-type", "application/json");
        self.client.request::<Value>(request.body(serde_json::to_vec(definition)?)?).await?;
        let name = definition["metadata"]["name"].as_str().unwrap_or_default();
        self.served(name).await
    }

    /// Waits until the kind of a definition is served.
    pub(crate) async fn served(&self, name: &str) -> Result<(), Error> {
        let definitions = self.all("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions");
        let established = |definition: Value| {
            let conditions = definition["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let found =
                conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True");
            found.then_some(())
        };
        self.eventually(&format!("{name} is served"), None, async || {
            Ok(get(&definitions, name).await?.and_then(established))
        })
        .await
    }

    /// An API for the objects of a kind in a namespace.
    pub(crate) fn within(&self, namespace: &str, api_version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &resource(api_version, kind, plural))
    }

    fn all(&self, api_version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), &resource(api_version, kind, plural))
    }

    /// Starts a program that finds the server by `-kubeconfig`.
    pub(crate) fn start(&self, name: &'static str, path: &Path, arguments: &[&str]) -> Result<Program, Error> {
        let mut all = vec!["-kubeconfig".to_owned(), self.kubeconfig.display().to_string()];
        all.extend(arguments.iter().copied().map(str::to_owned));
        let mut program = Program::new(name, path.to_owned(), self.folder.path(), all);
        program.start()?;
        Ok(program)
    }

    /// Repeats a check on the server until it succeeds.
    pub(crate) async fn eventually<T>(
        &self,
        what: &str,
        mut by: Option<&mut Program>,
        mut read: impl AsyncFnMut() -> Result<Option<T>, Error>,
    ) -> Result<T, Error> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(seen) = read().await? {
                return Ok(seen);
            }
            let said = match &mut by {
                Some(program) => {
                    let ended = program.ended()?.map(|status| format!("it has ended with {status}"));
                    (ended, program.last_lines().await)
                }
                None => (None, String::new()),
            };
            match said {
                (Some(ended), said) => return Err(format!("{what}: {ended}\n{said}").into()),
                (None, said) if Instant::now() > deadline => {
                    return Err(format!("{what}: not within {} s\n{said}", TIMEOUT.as_secs()).into());
                }
                (None, _) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }
}

/// Reads an object, if it exists.
pub(crate) async fn get(api: &Api<DynamicObject>, name: &str) -> Result<Option<Value>, Error> {
    Ok(api.get_opt(name).await?.map(serde_json::to_value).transpose()?)
}

/// Creates an object.
pub(crate) async fn create(api: &Api<DynamicObject>, object: Value) -> Result<Value, Error> {
    Ok(serde_json::to_value(api.create(&PostParams::default(), &serde_json::from_value(object)?).await?)?)
}

/// Patches an object.
pub(crate) async fn patch(api: &Api<DynamicObject>, name: &str, patch: &Value) -> Result<(), Error> {
    api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// Patches the status of an object.
pub(crate) async fn patch_status(api: &Api<DynamicObject>, name: &str, patch: &Value) -> Result<(), Error> {
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(patch)).await?;
    Ok(())
}

/// Deletes an object.
pub(crate) async fn delete(api: &Api<DynamicObject>, name: &str) -> Result<(), Error> {
    api.delete(name, &DeleteParams::default()).await?;
    Ok(())
}

/// Terminates a program, which must exit cleanly.
pub(crate) async fn end(mut program: Program) -> Result<(), Error> {
    let ended = tokio::time::timeout(LAST_WORDS, program.stop()).await;
    match ended {
        Err(_) => Err(format!("it does not end when it is asked to\n{}", program.last_lines().await).into()),
        Ok(Err(error)) => Err(error),
        Ok(Ok(status)) if status.is_none_or(|status| status.success()) => Ok(()),
        Ok(Ok(_)) => Err(format!("it ends badly\n{}", program.last_lines().await).into()),
    }
}

fn resource(api_version: &str, kind: &str, plural: &str) -> ApiResource {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version: api_version.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}
