//! The figures as metrics of the `metrics` crate.

use ::metrics::{Label, counter, describe_counter, describe_gauge, gauge};

use super::{Figures, HandlerFigures, InformerName, Metrics};
use crate::shard::ShardSupport;

/// Reports to the recorder that the program has installed for the `metrics` crate. With the feature
/// `metrics`, informers without [other metrics](crate::InformerBuilder::metrics) report to it.
///
/// Metrics are named `kube_informer_…`. Their labels are `informer`, a unique
/// [name](InformerName), `group`, `version`, `resource` and `scope`, and where there are several,
/// `handler` or `reason`.
///
/// That crate cannot unregister a metric: when a handler or an informer ends, its gauges are set to
/// zero.
///
/// ```
/// # kube_embedded::doctest(["a"], async |server| {
/// # let client = kube::Client::new(server.service(), "default");
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube_informer::workqueue::DURATION_BUCKETS;
/// use kube_informer::{Informer, ObjectKey, WorkQueue};
/// use metrics_exporter_prometheus::{Matcher, PrometheusBuilder};
///
/// // Without buckets, this exporter shows histograms as summaries, which dashboards do not expect.
/// let prometheus = PrometheusBuilder::new()
///     .set_buckets_for_metric(Matcher::Prefix("workqueue_".to_owned()), &DURATION_BUCKETS)?
///     .build_recorder();
/// let page = prometheus.handle(); // `page.render()` is the response to Prometheus
/// metrics::set_global_recorder(prometheus)?;
///
/// let maps = Informer::<ConfigMap>::builder(client).start();
/// let queue = WorkQueue::<ObjectKey>::builder().name("maps").build();
/// let feed = maps.on_event(queue.enqueue());
/// feed.synced().await?;
/// assert!(page.render().contains(r#"workqueue_adds_total{name="maps"} 1"#));
/// # Ok(()) });
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct Facade;

/// A metric that has one value for each informer.
struct Metric {
    name: &'static str,
    help: &'static str,
    value: fn(&Figures) -> Option<f64>,
}

/// A metric that has one value for each handler.
struct HandlerMetric {
    name: &'static str,
    help: &'static str,
    value: fn(&HandlerFigures) -> f64,
}

const GAUGES: [Metric; 6] = [
    Metric {
        name: "kube_informer_objects",
        help: "Number of objects in the cache.",
        value: |figures| Some(float(figures.objects)),
    },
    Metric {
        name: "kube_informer_bytes",
        help: "Approximate size of the cached objects in bytes.",
        value: |figures| Some(float(figures.bytes)),
    },
    Metric {
        name: "kube_informer_queue_deltas",
        help: "Number of deltas from the server that wait to be applied to the cache.",
        value: |figures| Some(float(figures.queue_deltas)),
    },
    Metric {
        name: "kube_informer_queue_bytes",
        help: "Approximate size in bytes of the deltas that wait to be applied to the cache.",
        value: |figures| Some(float(figures.queue_bytes)),
    },
    Metric {
        name: "kube_informer_last_contact_age_seconds",
        help: "Seconds since anything was last received from the server.",
        value: |figures| Some(figures.last_contact_age?.as_secs_f64()),
    },
    Metric {
        name: "kube_informer_shard_honoured",
        help: "1 if the server sends only the objects of the shard, 0 if it sends others as well.",
        value: |figures| match figures.shard? {
            ShardSupport::Honoured => Some(1.0),
            ShardSupport::Ignored => Some(0.0),
            ShardSupport::Unknown => None,
        },
    },
];

/// A counter, with its value.
struct Total {
    name: &'static str,
    help: &'static str,
    value: fn(&Figures) -> u64,
}

const TOTALS: [Total; 10] = [
    Total {
        name: "kube_informer_decodes_total",
        help: "Number of bodies of objects that were decoded.",
        value: |figures| figures.decodes,
    },
    Total {
        name: "kube_informer_deltas_total",
        help: "Number of deltas from the server that were applied to the cache.",
        value: |figures| figures.deltas,
    },
    Total {
        name: "kube_informer_events_total",
        help: "Number of events that were produced, regardless of the number of handlers.",
        value: |figures| figures.events,
    },
    Total {
        name: "kube_informer_lists_total",
        help: "Number of lists that were begun.",
        value: |figures| figures.reflector.lists + figures.reflector.streaming_lists,
    },
    Total {
        name: "kube_informer_watches_total",
        help: "Number of watches that were begun.",
        value: |figures| figures.reflector.watches,
    },
    Total {
        name: "kube_informer_outside_shard_total",
        help: "Number of received objects that do not belong to the shard.",
        value: |figures| figures.reflector.outside,
    },
    Total {
        name: "kube_informer_errors_total",
        help: "Number of failed lists and watches.",
        value: |figures| figures.reflector.errors,
    },
    Total {
        name: "kube_informer_decode_errors_total",
        help: "Number of received objects whose metadata could not be decoded.",
        value: |figures| figures.reflector.decode_errors,
    },
    Total {
        name: "kube_informer_probes_total",
        help: "Number of requests that checked whether a silent watch is stale.",
        value: |figures| figures.reflector.probes,
    },
    Total {
        name: "kube_informer_stalls_total",
        help: "Number of watches that were found to be stale.",
        value: |figures| figures.reflector.stalls,
    },
];

const RELISTS: &str = "kube_informer_relists_total";

const HANDLER_GAUGES: [HandlerMetric; 2] = [
    HandlerMetric {
        name: "kube_informer_handler_backlog",
        help: "Number of events that are queued for the handler.",
        value: |handler| float(handler.backlog),
    },
    HandlerMetric {
        name: "kube_informer_handler_lag_seconds",
        help: "Seconds for which the queue of the handler has not been empty.",
        value: |handler| handler.lag.as_secs_f64(),
    },
];

const OVERFLOWS: &str = "kube_informer_handler_overflows_total";
const PANICS: &str = "kube_informer_handler_panics_total";

impl Metrics for Facade {
    fn begun(&self, _: &InformerName) {
        for Metric { name, help, .. } in GAUGES {
            describe_gauge!(name, help);
        }
        for Total { name, help, .. } in TOTALS {
            describe_counter!(name, help);
        }
        for HandlerMetric { name, help, .. } in HANDLER_GAUGES {
            describe_gauge!(name, help);
        }
        describe_counter!(RELISTS, "Number of lists that replaced a watch that could not be resumed, by reason.");
        describe_counter!(OVERFLOWS, "Number of times that the queue of the handler was full.");
        describe_counter!(PANICS, "Number of times that the handler panicked.");
    }

    fn report(&self, informer: &InformerName, figures: &Figures) {
        let labels = labels(informer);
        for Metric { name, value, .. } in GAUGES {
            if let Some(value) = value(figures) {
                gauge!(name, labels.clone()).set(value);
            }
        }
        for Total { name, value, .. } in TOTALS {
            counter!(name, labels.clone()).absolute(value(figures));
        }
        let relists = &figures.reflector.relists;
        for (reason, relists) in [
            ("expired", relists.expired),
            ("too_large", relists.too_large),
            ("went_back", relists.went_back),
            ("server_error", relists.server_error),
            ("refused", relists.refused),
            ("short_watches", relists.short_watches),
            ("undecodable", relists.undecodable),
            ("grown", relists.grown),
        ] {
            counter!(RELISTS, with(&labels, "reason", reason)).absolute(relists);
        }
        for handler in &figures.handlers {
            let labels = with(&labels, "handler", handler.handler.to_string());
            for HandlerMetric { name, value, .. } in HANDLER_GAUGES {
                gauge!(name, labels.clone()).set(value(handler));
            }
            counter!(OVERFLOWS, labels.clone()).absolute(handler.overflows);
            counter!(PANICS, labels).absolute(handler.panics);
        }
    }

    fn handler_ended(&self, informer: &InformerName, handler: usize) {
        let labels = with(&labels(informer), "handler", handler.to_string());
        for HandlerMetric { name, .. } in HANDLER_GAUGES {
            gauge!(name, labels.clone()).set(0.0);
        }
    }

    fn ended(&self, informer: &InformerName) {
        let labels = labels(informer);
        for Metric { name, .. } in GAUGES {
            gauge!(name, labels.clone()).set(0.0);
        }
    }
}

fn labels(informer: &InformerName) -> Vec<Label> {
    [
        ("informer", informer.name()),
        ("group", informer.group()),
        ("version", informer.version()),
        ("resource", informer.resource()),
        ("scope", informer.scope()),
    ]
    .map(|(key, value)| Label::new(key, value.to_owned()))
    .into()
}

fn with(labels: &[Label], key: &'static str, value: impl Into<::metrics::SharedString>) -> Vec<Label> {
    let mut labels = labels.to_vec();
    labels.push(Label::new(key, value));
    labels
}

#[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
fn float(number: usize) -> f64 {
    number as f64
}
