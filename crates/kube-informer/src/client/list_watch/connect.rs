//! Clients for informers and for writers.

use kube::client::ClientBuilder;
use kube::{Client, Config};

use super::server_name;

/// Creates a `kube::Client` for informers, without its own retries and decompression.
///
/// Nothing that is sent through this client is retried, writes included: an informer retries by
/// itself, other code has to. Use [`client_with_retries`] for that.
///
/// A client with kube's default settings works too, but its middleware repeats requests that were
/// answered with 429, 503 or 504 up to fifteen times, with waits of up to minutes, before the
/// informer receives the error: health, `on_watch_error` and metrics report an outage late, and
/// backoff is applied twice. This cannot be disabled on an existing client. Nor does another client
/// say which server it uses, so that the log cannot name it. With kube's `gzip`
/// feature, its middleware also reads only the first part of a compressed watch; the informer
/// detects that and then watches without compression.
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let client = kube_informer::client(kube::Config::infer().await?)?;
/// # Ok(())
/// # }
/// ```
pub fn client(mut config: Config) -> Result<Client, kube::Error> {
    config.default_retry = false;
    config.disable_compression = true;
    let names_server = server_name::layer(&config.cluster_url);
    Ok(ClientBuilder::try_from(config)?.with_layer(&names_server).build())
}

/// Creates a `kube::Client` for what a program sends besides its informers' requests, such as
/// writes: with kube's retries.
///
/// Requests that were answered with 429, 503 or 504 are sent again, up to fifteen times. A write
/// may have been executed before a 504: the repeated one may then fail with a conflict (409).
///
/// ```no_run
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::api::{Api, PostParams};
/// use kube_informer::Informer;
///
/// let config = kube::Config::infer().await?;
/// let maps = Informer::<ConfigMap>::builder(kube_informer::client(config.clone())?).start();
/// let writer = kube_informer::client::client_with_retries(config)?;
/// Api::default_namespaced(writer).create(&PostParams::default(), &ConfigMap::default()).await?;
/// # Ok(())
/// # }
/// ```
pub fn client_with_retries(mut config: Config) -> Result<Client, kube::Error> {
    config.default_retry = true;
    Client::try_from(config)
}
