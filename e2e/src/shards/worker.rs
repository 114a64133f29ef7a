//! A process with a sharded controller, which creates an object for every attempt.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube_controller::leadership::LeaseTiming;
use kube_controller::sharding::{Change, Participant, ShardGroup};
use kube_controller::{Context, Controller, Manager, Outcome, Watch};
use kube_informer::shard::{HashRange, ShardKey};
use kube_informer::{Factory, Obj, Scope, Uid};
use serde_json::json;

use crate::Error;

/// The epochs of the ranges that are held.
type Epochs = Arc<Mutex<BTreeMap<HashRange, u64>>>;

/// Runs until a signal: `KUBECONFIG-FILE NAMESPACE GROUP NAME`.
pub(crate) async fn run(arguments: &[String]) -> Result<(), Error> {
    let [kubeconfig, namespace, group, name] = arguments else { return Err("four arguments are needed".into()) };
    let config = Kubeconfig::read_from(kubeconfig)?;
    let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    let client = kube_informer::client(config)?;
    let seconds = Duration::from_secs;
    let member = format!("{name}-{}", std::process::id());
    let group = ShardGroup::builder(client.clone(), namespace, group)
        .key(ShardKey::Uid)
        .ranges(32)
        .member(&member)
        .timing(LeaseTiming::new(seconds(5), seconds(3), seconds(1))?)
        .build()?;
    let factory = Factory::new(client);
    let epochs = Epochs::default();
    let (known, participant) = (Arc::clone(&epochs), group.participate());
    let watch = Watch::<Deployment>::kind().within(Scope::everything().namespace(&**namespace));
    let controller = Controller::builder_with(&factory, watch).reconcile(move |ctx, deployment| {
        let (epochs, member) = (Arc::clone(&epochs), member.clone());
        async move { write(&ctx, &deployment, &member, &epochs).await }
    });
    let manager = Manager::builder(&factory).controller(controller.sharded(&group)).build()?;
    tokio::select! {
        ended = manager.run() => Ok(ended?),
        () = follow(participant, &known) => Ok(()),
    }
}

/// Knows the epochs of the ranges that are held.
async fn follow(mut participant: Participant, epochs: &Epochs) {
    loop {
        let change = participant.next().await;
        if let Change::Draining(tenure) = &change {
            participant.ended(tenure, Some(BTreeMap::new()));
        }
        let mut known = epochs.lock().unwrap_or_else(PoisonError::into_inner);
        match change {
            Change::Gained(tenure) => _ = known.insert(tenure.range(), tenure.epoch()),
            Change::Lost(tenure) => known.retain(|range, epoch| (*range, *epoch) != (tenure.range(), tenure.epoch())),
            _ => {}
        }
    }
}

async fn write(
    ctx: &Context,
    deployment: &Obj<Deployment>,
    member: &str,
    epochs: &Epochs,
) -> Result<Outcome, kube_controller::Error> {
    let hash = deployment.uid().map(Uid::fnv_1a).unwrap_or_default();
    let found = {
        let epochs = epochs.lock().unwrap_or_else(PoisonError::into_inner);
        epochs.iter().find(|(range, _)| range.contains(hash)).map(|(range, epoch)| (range.start(), *epoch))
    };
    // Known a moment after the controller knows it.
    let Some((range, epoch)) = found else { return Ok(Outcome::Requeue) };
    let map = json!({
        "metadata": {
            "generateName": "attempt-",
            "labels": {
                "member": member, "uid": deployment.uid().map(ToString::to_string),
                "generation": deployment.generation().map(|generation| generation.to_string()),
                "epoch": epoch.to_string(), "range": format!("{range:016x}"),
            },
        },
    });
    ctx.create::<ConfigMap>(&map).await?;
    Ok(Outcome::Done)
}
