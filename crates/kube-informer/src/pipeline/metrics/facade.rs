//! The figures as metrics of the `metrics` crate.

use ::metrics::{counter, gauge};

use super::{Figures, Metrics};

/// Reports to the recorder that the program has installed for the `metrics` crate. Metrics are
/// named `kube_informer_…` and have the labels `informer` and, where there are several, `handler`
/// or `reason`.
///
/// That crate cannot unregister a metric: when a handler or an informer ends, its gauges are set to
/// zero.
///
/// ```
/// # kube_embedded::doctest([], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::Informer;
/// use kube_informer::pipeline::Facade;
///
/// let maps = Informer::<ConfigMap>::builder(client).metrics(Facade).start();
/// maps.synced().await?;
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Facade;

impl Metrics for Facade {
    fn report(&self, informer: &str, figures: &Figures) {
        let informer = informer.to_owned();
        let set = |name: &'static str, value: f64| gauge!(name, "informer" => informer.clone()).set(value);
        let count = |name: &'static str, value: u64| counter!(name, "informer" => informer.clone()).absolute(value);
        set("kube_informer_objects", float(figures.objects));
        set("kube_informer_bytes", float(figures.bytes));
        set("kube_informer_queue_deltas", float(figures.queue_deltas));
        set("kube_informer_queue_bytes", float(figures.queue_bytes));
        if let Some(age) = figures.last_contact_age {
            set("kube_informer_last_contact_age_seconds", age.as_secs_f64());
        }
        count("kube_informer_decodes_total", figures.decodes);
        count("kube_informer_deltas_total", figures.deltas);
        count("kube_informer_events_total", figures.events);
        let done = &figures.reflector;
        count("kube_informer_lists_total", done.lists + done.streaming_lists);
        count("kube_informer_watches_total", done.watches);
        count("kube_informer_errors_total", done.errors);
        count("kube_informer_decode_errors_total", done.decode_errors);
        count("kube_informer_probes_total", done.probes);
        count("kube_informer_stalls_total", done.stalls);
        let relists = &done.relists;
        for (reason, relists) in [
            ("expired", relists.expired),
            ("too_large", relists.too_large),
            ("went_back", relists.went_back),
            ("server_error", relists.server_error),
            ("refused", relists.refused),
            ("short_watches", relists.short_watches),
            ("undecodable", relists.undecodable),
        ] {
            counter!("kube_informer_relists_total", "informer" => informer.clone(), "reason" => reason)
                .absolute(relists);
        }
        for handler in &figures.handlers {
            let labels = of_handler(&informer, handler.handler);
            gauge!(BACKLOG, &labels).set(float(handler.backlog));
            gauge!(LAG, &labels).set(handler.lag.as_secs_f64());
            counter!("kube_informer_handler_overflows_total", &labels).absolute(handler.overflows);
            counter!("kube_informer_handler_panics_total", &labels).absolute(handler.panics);
        }
    }

    fn handler_ended(&self, informer: &str, handler: usize) {
        for name in [BACKLOG, LAG] {
            gauge!(name, &of_handler(informer, handler)).set(0.0);
        }
    }

    fn ended(&self, informer: &str) {
        for name in [
            "kube_informer_objects",
            "kube_informer_bytes",
            "kube_informer_queue_deltas",
            "kube_informer_queue_bytes",
            "kube_informer_last_contact_age_seconds",
        ] {
            gauge!(name, "informer" => informer.to_owned()).set(0.0);
        }
    }
}

const BACKLOG: &str = "kube_informer_handler_backlog";
const LAG: &str = "kube_informer_handler_lag_seconds";

fn of_handler(informer: &str, handler: usize) -> [(&'static str, String); 2] {
    [("informer", informer.to_owned()), ("handler", handler.to_string())]
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn float(number: usize) -> f64 {
    number as f64
}
