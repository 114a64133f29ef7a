//! kube-rs's controller, with a custom resource.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use kube::runtime::finalizer::{Error as FinalizerError, Event as Finalizer, finalizer};
use kube::runtime::{Controller, watcher};
use kube::{Resource, ResourceExt as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::stage::{Stage, create, delete, get, patch};
use crate::Error;

const NAMESPACE: &str = "kube-rs";

const FINALIZER: &str = "boxes.programs.example.com/tidy";

pub(crate) async fn run(stage: &Stage) -> Result<String, Error> {
    stage.namespace(NAMESPACE).await?;
    stage.define(&definition()).await?;
    let (stop, stopped) = oneshot::channel::<()>();
    let reporter = Reporter { controller: "boxes".to_owned(), instance: None };
    let context = Arc::new(Context {
        client: stage.client.clone(),
        recorder: Recorder::new(stage.client.clone(), reporter),
        failure: Mutex::default(),
    });
    let boxes = Api::<Box>::namespaced(stage.client.clone(), NAMESPACE);
    let maps = Api::<ConfigMap>::namespaced(stage.client.clone(), NAMESPACE);
    let reconciling = Controller::new(boxes, watcher::Config::default())
        .owns(maps, watcher::Config::default().streaming_lists())
        .graceful_shutdown_on(async { drop(stopped.await) })
        .run(reconcile, retry, Arc::clone(&context))
        .for_each(async |_| {});
    let checking = async {
        let result = check(stage).await;
        drop(stop);
        result
    };
    let ((), result) = tokio::join!(reconciling, checking);
    result.map_err(|error| format!("{error}; its last failure: {:?}", context.last_failure()).into())
}

/// Writes objects and checks the controller's reactions.
async fn check(stage: &Stage) -> Result<String, Error> {
    let boxes = stage.within(NAMESPACE, "programs.example.com/v1", "Box", "boxes");
    let maps = stage.within(NAMESPACE, "v1", "ConfigMap", "configmaps");
    let made = create(
        &boxes,
        json!({"apiVersion": "programs.example.com/v1", "kind": "Box", "metadata": {"name": "a"}, "spec": {"size": 1}}),
    )
    .await?;
    let kept = |size: &'static str| {
        let maps = maps.clone();
        async move || Ok(get(&maps, "a").await?.filter(|map| map["data"]["size"] == size))
    };
    let map = stage.eventually("a map is made", None, kept("1")).await?;
    if map["metadata"]["ownerReferences"][0]["uid"] != made["metadata"]["uid"] {
        return Err(format!("the map has another owner: {}", map["metadata"]).into());
    }
    patch(&boxes, "a", &json!({"spec": {"size": 2}})).await?;
    stage.eventually("the map follows", None, kept("2")).await?;
    let observed = async || Ok(get(&boxes, "a").await?.filter(|boxed| boxed["status"]["size"] == 2));
    stage.eventually("the status follows", None, observed).await?;
    delete(&maps, "a").await?;
    let again = async || Ok(get(&maps, "a").await?.filter(|new| new["metadata"]["uid"] != map["metadata"]["uid"]));
    stage.eventually("a deleted map is made again", None, again).await?;
    let events = stage.within(NAMESPACE, "events.k8s.io/v1", "Event", "events");
    let recorded = async || {
        let events = events.list(&Default::default()).await?.items;
        Ok(events.into_iter().find(|event| event.data["regarding"]["uid"] == made["metadata"]["uid"]))
    };
    stage.eventually("an event is recorded", None, recorded).await?;
    delete(&boxes, "a").await?;
    let gone = async || Ok((get(&boxes, "a").await?.is_none() && get(&maps, "a").await?.is_none()).then_some(()));
    stage.eventually("a deleted box is tidied up", None, gone).await?;
    Ok("maps applied, recreated and deleted by a finalizer; status and events written".to_owned())
}

struct Context {
    client: kube::Client,
    recorder: Recorder,
    failure: Mutex<Option<String>>,
}

impl Context {
    fn last_failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Retries after a short delay.
#[expect(clippy::needless_pass_by_value, reason = "the controller hands over what it has")]
fn retry(_: Arc<Box>, error: &FinalizerError<kube::Error>, context: Arc<Context>) -> Action {
    *context.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
    Action::requeue(Duration::from_millis(100))
}

async fn reconcile(boxed: Arc<Box>, context: Arc<Context>) -> Result<Action, FinalizerError<kube::Error>> {
    let boxes = Api::<Box>::namespaced(context.client.clone(), NAMESPACE);
    finalizer(&boxes, FINALIZER, boxed, async |event| match event {
        Finalizer::Apply(boxed) => keep(&boxed, &context).await,
        Finalizer::Cleanup(boxed) => tidy(&boxed, &context).await,
    })
    .await
}

async fn keep(boxed: &Box, context: &Context) -> Result<Action, kube::Error> {
    let maps = Api::<ConfigMap>::namespaced(context.client.clone(), NAMESPACE);
    let boxes = Api::<Box>::namespaced(context.client.clone(), NAMESPACE);
    let (name, size) = (boxed.name_any(), boxed.spec.size);
    let map = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": [boxed.controller_owner_ref(&())]},
        "data": {"size": size.to_string()},
    });
    let params = PatchParams::apply("boxes").force();
    maps.patch(&name, &params, &Patch::Apply(map)).await?;
    boxes.patch_status(&name, &PatchParams::default(), &Patch::Merge(json!({"status": {"size": size}}))).await?;
    let note = Some(format!("size {size}"));
    let event =
        Event { type_: EventType::Normal, reason: "Kept".to_owned(), note, action: "Keep".to_owned(), secondary: None };
    context.recorder.publish(&event, &boxed.object_ref(&())).await?;
    Ok(Action::await_change())
}

async fn tidy(boxed: &Box, context: &Context) -> Result<Action, kube::Error> {
    let maps = Api::<ConfigMap>::namespaced(context.client.clone(), NAMESPACE);
    match maps.delete(&boxed.name_any(), &Default::default()).await {
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(Action::await_change()),
        Err(error) => Err(error),
        Ok(_) => Ok(Action::await_change()),
    }
}

/// The type of the definition boxes.programs.example.com.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Box {
    #[serde(rename = "apiVersion")]
    api_version: String,
    kind: String,
    metadata: ObjectMeta,
    spec: BoxSpec,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct BoxSpec {
    size: u32,
}

impl Resource for Box {
    type DynamicType = ();
    type Scope = kube::core::NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "Box".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "programs.example.com".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "boxes".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "boxes.programs.example.com"},
        "spec": {
            "group": "programs.example.com", "scope": "Namespaced", "names": {"plural": "boxes", "kind": "Box"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 0}}},
                        "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
                    },
                }},
            }],
        },
    })
}
