//! The figures of informers, as they last reported them.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube_informer::pipeline::{Figures, InformerName, Metrics};
use parking_lot::Mutex;

/// Collects the figures of informers for `/metrics`. Cheap to clone.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use kube_controller::manager::{InformerMetrics, Manager};
/// use kube_informer::Factory;
///
/// let metrics = InformerMetrics::default();
/// let collected = metrics.clone();
/// let factory = Factory::builder(client).defaults(|all| all.metrics(collected)).build()?;
/// let manager = Manager::builder(&factory).informer_metrics(&metrics).build()?;
/// # drop(manager);
/// # Ok(()) });
/// ```
///
/// The names are those of [`kube_informer`]'s feature `metrics`.
#[derive(Debug, Clone, Default)]
pub struct InformerMetrics(Arc<Mutex<BTreeMap<InformerId, Figures>>>);

/// What identifies an informer in metrics.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InformerId {
    name: String,
    group: String,
    version: String,
    resource: String,
    scope: String,
}

impl InformerMetrics {
    pub(super) fn figures(&self) -> Vec<(InformerId, Figures)> {
        self.0.lock().iter().map(|(id, figures)| (id.clone(), figures.clone())).collect()
    }
}

impl Metrics for InformerMetrics {
    fn report(&self, informer: &InformerName, figures: &Figures) {
        self.0.lock().insert(InformerId::of(informer), figures.clone());
    }

    fn ended(&self, informer: &InformerName) {
        self.0.lock().remove(&InformerId::of(informer));
    }
}

impl InformerId {
    fn of(informer: &InformerName) -> Self {
        Self {
            name: informer.name().to_owned(),
            group: informer.group().to_owned(),
            version: informer.version().to_owned(),
            resource: informer.resource().to_owned(),
            scope: informer.scope().to_owned(),
        }
    }

    pub(super) fn labels(&self) -> [(&str, &str); 5] {
        let Self { name, group, version, resource, scope } = self;
        [("informer", name), ("group", group), ("version", version), ("resource", resource), ("scope", scope)]
    }
}
