//! A process that creates objects all the time while it leads.

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Client;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube_controller::leadership::{LeaderElection, Leadership};
use kube_controller::manager::Manager;
use kube_informer::{Factory, Scope};
use serde_json::json;
use tokio::net::TcpListener;

use crate::Error;

/// Writes that are under way at the same time, so that some of them wait wherever it is stopped.
const WRITERS: usize = 8;

/// Between two writes of each: tests list all that was written.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs until a signal or the loss of leadership: `KUBECONFIG-FILE NAMESPACE IDENTITY`.
pub(crate) async fn run(arguments: &[String]) -> Result<(), Error> {
    let [kubeconfig, namespace, identity] = arguments else { return Err("three arguments are needed".into()) };
    let config = Kubeconfig::read_from(kubeconfig)?;
    let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?;
    let client = kube_informer::client(config)?;
    let election = LeaderElection::builder(client.clone(), namespace, "workers")
        .identity(identity)
        .lease_duration(Duration::from_secs(5))
        .renew_deadline(Duration::from_secs(3))
        .retry_period(Duration::from_secs(1))
        .build()?;
    let factory = Factory::new(client.clone());
    let secrets = factory.within(Scope::everything().namespace(&**namespace)).informer::<Secret>();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("serving {}", listener.local_addr()?);
    let (namespace, identity) = (namespace.clone(), identity.clone());
    let manager = Manager::builder(&factory)
        .task("write", move |leadership, stop| async move {
            let writers = (0..WRITERS).map(|nth| write(&leadership, &client, &namespace, format!("{identity}-{nth}")));
            tokio::select! {
                _ = futures_util::future::join_all(writers) => {}
                () = stop.requested() => {}
            }
            drop(secrets);
            Ok(())
        })
        .leader_election(election)
        .serve(listener)
        .build()?;
    let ended = manager.run().await;
    println!("{}", ended.as_ref().map_or_else(ToString::to_string, |()| "leadership released".to_owned()));
    Ok(ended?)
}

/// Writes for ever. What fails is tried again: a writer that has lost its leadership sends nothing.
async fn write(leadership: &Leadership, client: &Client, namespace: &str, stem: String) {
    let maps = Api::<ConfigMap>::namespaced(leadership.writer(client).client().clone(), namespace);
    let writer = stem.rsplit_once('-').map_or(&*stem, |(writer, _)| writer);
    for nth in 0_u64.. {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": format!("{stem}-{nth}"), "labels": {"writer": writer}},
        });
        let Ok(map) = serde_json::from_value(map) else { return };
        maps.create(&PostParams::default(), &map).await.ok();
        tokio::time::sleep(PAUSE).await;
    }
}
