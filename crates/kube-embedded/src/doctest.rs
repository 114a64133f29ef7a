//! The setup of documentation examples.

use std::error::Error;

use serde_json::json;

use crate::Server;

/// Runs `example` with a server in the process that has a ConfigMap of each of these names.
///
/// For examples in documentation, in one hidden line. The maps are in the namespace `default`. `a`
/// has the labels `app=web` and `tier=gold` and the data `ip: 10.0.0.1`, `b` has `app=db`,
/// `tier=tin` and `10.0.0.2`; others have their name as both labels and `10.0.0.3`.
///
/// ```
/// kube_embedded::doctest(["a"], async |server| {
///     assert_eq!(server.objects("v1", "ConfigMap")?.get("a")?["data"]["ip"], "10.0.0.1");
///     Ok(())
/// });
/// ```
///
/// # Panics
///
/// If the example fails.
#[expect(clippy::panic, reason = "that is how an example fails")]
pub fn doctest<'a>(
    names: impl IntoIterator<Item = &'a str>,
    example: impl AsyncFnOnce(Server) -> Result<(), Box<dyn Error>>,
) {
    let ran =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Box::from).and_then(|runtime| {
            runtime.block_on(async {
                let server = Server::builder().in_process().start().await?;
                for name in names {
                    let (app, tier, ip) = match name {
                        "a" => ("web", "gold", "10.0.0.1"),
                        "b" => ("db", "tin", "10.0.0.2"),
                        other => (other, other, "10.0.0.3"),
                    };
                    server.create(&json!({
                        "apiVersion": "v1", "kind": "ConfigMap",
                        "metadata": {"name": name, "labels": {"app": app, "tier": tier}}, "data": {"ip": ip},
                    }))?;
                }
                example(server).await
            })
        });
    if let Err(error) = ran {
        panic!("{error}");
    }
}
