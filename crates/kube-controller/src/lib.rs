//! Kubernetes controllers on the caches of [`kube_informer`]: everything between a cache and a
//! process that runs in a cluster for years.
//!
//! ```
//! # kube_embedded::doctest([], async |server| {
//! # let client = kube::Client::new(server.service(), "default");
//! use k8s_openapi::api::apps::v1::Deployment;
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kube_controller::{Context, Controller, Error, Manager, Outcome};
//! use kube_informer::{Factory, Obj};
//!
//! /// Every deployment gets a config map with its number of replicas.
//! async fn reconcile(ctx: Context, deployment: Obj<Deployment>) -> Result<Outcome, Error> {
//!     let replicas = deployment.get()?.spec.replicas.unwrap_or(1);
//!     let map = serde_json::json!({
//!         "metadata": {"name": deployment.name()}, "data": {"replicas": replicas.to_string()},
//!     });
//!     ctx.apply::<ConfigMap>(&map).await?;
//!     Ok(Outcome::Done)
//! }
//!
//! let factory = Factory::new(client);
//! let mut builder = Controller::builder::<Deployment>(&factory);
//! builder.owns::<ConfigMap>();
//! let manager = Manager::builder(&factory).controller(builder.reconcile(reconcile)).build()?;
//! # let deployment = serde_json::json!({
//! #     "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
//! #     "spec": {
//! #         "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
//! #         "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
//! #     },
//! # });
//! # server.create(&deployment)?;
//! # let maps = server.objects("v1", "ConfigMap")?;
//! # manager.run_until(server.until(|_| maps.get("web").is_ok_and(|map| map["data"]["replicas"] == "3"))).await?;
//! # if false {
//! # let manager = Manager::builder(&factory).build()?;
//! manager.run().await?; // until SIGTERM
//! # }
//! # Ok(()) });
//! ```
//!
//! | module | what is inside |
//! |---|---|
//! | [`controller`] | [`Controller`] and its builder: what is watched, and what leads to a reconcile |
//! | [`context`], [`reconcile`], [`conditions`] | what a reconciler reads, writes and returns |
//! | [`leadership`] | leader election, and the clients whose writes are bound to it |
//! | [`sharding`] | processes that divide the objects of a controller between them |
//! | [`recorder`] | events for people |
//! | [`manager`] | the process: start, end, probes, metrics |
//! | [`filter`], [`figures`] | which changes matter; what was counted |
//! | [`guide`] | [write an operator](guide::operator), [run it in production](guide::production), [divide the objects between processes](guide::shards), [from kube-runtime](guide::from_kube_runtime), [from controller-runtime](guide::from_controller_runtime) |

pub mod conditions;
mod consistency;
pub mod context;
pub mod controller;
mod error;
mod error_chain;
pub mod figures;
pub mod filter;
mod finalizer;
pub mod guide;
pub mod leadership;
mod lru;
pub mod manager;
mod names;
mod panic_text;
pub mod reconcile;
pub mod recorder;
mod rng;
pub mod sharding;

pub use self::context::{Context, Patch, WriteError};
pub use self::controller::{Controller, ControllerBuilder, Monitor, Owned, Watch, Watched};
pub use self::error::Error;
pub use self::figures::Figures;
pub use self::filter::Filter;
pub use self::leadership::{Leadership, Writer};
pub use self::manager::Manager;
pub use self::reconcile::Outcome;
pub use self::recorder::Recorder;
pub use self::sharding::ShardGroup;
