//! A small leader election for the zoo: a lease that is renewed while work is done.

use std::time::Duration;

use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use serde_json::json;
use tokio::time::{Instant, sleep};

const RENEW: Duration = Duration::from_secs(60);
const LEASE: Duration = Duration::from_secs(150);

/// Acquires the lease and works until it cannot be renewed.
pub(crate) async fn run_while_leading(client: Client, work: impl Future<Output = ()>) {
    let lease = kube::core::GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease");
    let resource = kube::api::ApiResource::from_gvk(&lease);
    let leases: Api<DynamicObject> = Api::default_namespaced_with(client, &resource);
    let lease = DynamicObject::new("zoo", &resource).data(json!({"spec": {"leaseDurationSeconds": 150}}));
    while leases.get_opt("zoo").await.ok().flatten().is_none() {
        if leases.create(&PostParams::default(), &lease).await.is_err() {
            sleep(Duration::from_secs(1)).await;
        }
    }
    let renewing = async {
        let mut renewed = Instant::now();
        let mut transitions = 0;
        while renewed.elapsed() < LEASE {
            transitions += 1;
            let patch = json!({"spec": {"leaseTransitions": transitions}});
            if leases.patch("zoo", &PatchParams::default(), &Patch::Merge(patch)).await.is_ok() {
                renewed = Instant::now();
            }
            sleep(RENEW).await;
        }
    };
    tokio::select! {
        biased;
        () = renewing => {}
        () = work => {}
    }
}
