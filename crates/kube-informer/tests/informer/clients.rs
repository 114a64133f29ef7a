//! The clients that this crate creates.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Config;
use kube::api::{Api, PostParams};
use kube_embedded::Server;
use kube_embedded::faults::{Fault, Rule};

#[tokio::test]
async fn the_client_for_informers_retries_no_write_and_the_other_one_does() {
    let server = Server::builder().start().await.unwrap();
    let config = Config::new(server.url().parse().unwrap());
    let map = |name: &str| {
        let map = serde_json::json!({"metadata": {"name": name, "namespace": "default"}});
        serde_json::from_value::<ConfigMap>(map).unwrap()
    };
    let create = async |client, name: &str| {
        server.faults().inject(Rule::new(Fault::status(503)).once());
        let api: Api<ConfigMap> = Api::namespaced(client, "default");
        api.create(&PostParams::default(), &map(name)).await
    };
    assert!(create(kube_informer::client(config.clone()).unwrap(), "a").await.is_err());
    assert!(create(kube_informer::client::client_with_retries(config).unwrap(), "b").await.is_ok());
}
