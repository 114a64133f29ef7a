//! The metrics of a manager, with the names of controller-runtime and client-go where they have
//! one.

use kube_informer::pipeline::{Figures as InformerFigures, HandlerFigures};

use super::informer_metrics::InformerId;
use super::page::Page;
use super::request_metrics::RequestKind;
use crate::figures::Figures;
use crate::recorder::RecorderFigures;
use crate::sharding::ShardFigures;

/// A metric with one value for each controller.
struct Metric<T> {
    name: &'static str,
    help: &'static str,
    value: fn(&T) -> f64,
}

const fn metric<T>(name: &'static str, help: &'static str, value: fn(&T) -> f64) -> Metric<T> {
    Metric { name, help, value }
}

const COUNTERS: [Metric<Figures>; 11] = [
    metric("controller_runtime_reconcile_errors_total", "Attempts that failed.", |f| count(f.attempts.error)),
    metric(
        "controller_runtime_terminal_reconcile_errors_total",
        "Attempts that failed with an error that is not retried.",
        |f| count(f.terminal_errors),
    ),
    metric("controller_runtime_reconcile_panics_total", "Attempts that panicked.", |f| count(f.panics)),
    metric("controller_runtime_reconcile_timeouts_total", "Attempts that took too long.", |f| count(f.timeouts)),
    metric("kube_controller_applies_left_out_total", "Applies that would have changed nothing.", |f| {
        count(f.writes.applies_left_out)
    }),
    metric("kube_controller_writes_refused_total", "Writes that the server refused.", |f| count(f.writes.refused)),
    metric("kube_controller_writes_unknown_total", "Writes whose outcome is unknown.", |f| count(f.writes.unknown)),
    metric(
        "kube_controller_consistency_waits_total",
        "Times that a key was due before its own writes were visible.",
        |f| count(f.consistency.waits),
    ),
    metric("kube_controller_consistency_given_up_total", "Waits for own writes that took too long.", |f| {
        count(f.consistency.given_up)
    }),
    metric(
        "kube_controller_disconnected_waits_total",
        "Times that a key was due while the connection of its kind's watch was lost.",
        |f| count(f.consistency.disconnected_waits),
    ),
    metric(
        "kube_controller_disconnected_given_up_total",
        "Waits for the watch of a key's kind that took too long.",
        |f| count(f.consistency.disconnected_given_up),
    ),
];

const GAUGES: [Metric<Figures>; 4] = [
    metric("controller_runtime_max_concurrent_reconciles", "Number of workers.", |f| size(f.workers)),
    metric("controller_runtime_active_workers", "Attempts that are running.", |f| size(f.active)),
    metric("kube_controller_consistency_waiting", "Keys that wait for their own writes.", |f| {
        size(f.consistency.waiting)
    }),
    metric("kube_controller_delayed", "Keys that wait for their delay.", |f| size(f.queue.delayed)),
];

const QUEUE_COUNTERS: [Metric<Figures>; 2] = [
    metric("workqueue_adds_total", "Runs that were requested, without those already pending.", |f| count(f.queue.adds)),
    metric("workqueue_retries_total", "Items that were retried or added with a delay.", |f| count(f.queue.retries)),
];

const QUEUE_GAUGES: [Metric<Figures>; 3] = [
    metric("workqueue_depth", "Items that wait for a worker.", |f| size(f.queue.depth)),
    metric("workqueue_unfinished_work_seconds", "Seconds that the running items have run, in total.", |f| {
        f.queue.unfinished.as_secs_f64()
    }),
    metric("workqueue_longest_running_processor_seconds", "Seconds that the longest running item has run.", |f| {
        f.queue.longest_running.as_secs_f64()
    }),
];

pub(super) fn controllers(page: &mut Page, controllers: &[(String, Figures)]) {
    let mut total = page.counter("controller_runtime_reconcile_total", "Attempts by result.");
    for (name, Figures { attempts, .. }) in controllers {
        let results = [
            ("success", attempts.success),
            ("requeue_after", attempts.requeue_after),
            ("requeue", attempts.requeue),
            ("error", attempts.error),
        ];
        for (result, count) in results {
            total.sample(&[("controller", name), ("result", result)], count);
        }
    }
    let mut writes = page.counter("kube_controller_writes_total", "Writes that were sent, by operation.");
    for (name, Figures { writes: of, .. }) in controllers {
        let operations = [("apply", of.applied), ("create", of.created), ("patch", of.patched), ("delete", of.deleted)];
        for (operation, count) in operations {
            writes.sample(&[("controller", name), ("operation", operation)], count);
        }
    }
    for Metric { name, help, value } in COUNTERS {
        let mut counter = page.counter(name, help);
        controllers.iter().for_each(|(name, figures)| counter.sample(&[("controller", name)], value(figures)));
    }
    for Metric { name, help, value } in GAUGES {
        let mut gauge = page.gauge(name, help);
        controllers.iter().for_each(|(name, figures)| gauge.sample(&[("controller", name)], value(figures)));
    }
    let mut times = page.histogram("controller_runtime_reconcile_time_seconds", "How long attempts took.");
    controllers.iter().for_each(|(name, figures)| times.distribution(&[("controller", name)], &figures.durations));
    queues(page, controllers);
}

fn queues(page: &mut Page, controllers: &[(String, Figures)]) {
    for Metric { name, help, value } in QUEUE_COUNTERS {
        let mut counter = page.counter(name, help);
        controllers.iter().for_each(|(name, figures)| counter.sample(&queue_labels(name), value(figures)));
    }
    for Metric { name, help, value } in QUEUE_GAUGES {
        let mut gauge = page.gauge(name, help);
        controllers.iter().for_each(|(name, figures)| gauge.sample(&queue_labels(name), value(figures)));
    }
    let mut waited = page.histogram("workqueue_queue_duration_seconds", "Seconds that an item waited for a worker.");
    controllers.iter().for_each(|(name, figures)| waited.distribution(&queue_labels(name), &figures.queue.waited));
    let mut worked = page.histogram("workqueue_work_duration_seconds", "Seconds that a worker took for an item.");
    controllers.iter().for_each(|(name, figures)| worked.distribution(&queue_labels(name), &figures.queue.worked));
}

/// The labels of controller-runtime.
fn queue_labels(name: &str) -> [(&str, &str); 2] {
    [("name", name), ("controller", name)]
}

const RECORDER_COUNTERS: [Metric<RecorderFigures>; 5] = [
    metric("kube_controller_events_recorded_total", "Events that were recorded.", |f| count(f.recorded)),
    metric("kube_controller_events_published_total", "Requests for events that were accepted.", |f| count(f.published)),
    metric("kube_controller_events_dropped_total", "Events that were dropped by a full queue.", |f| count(f.dropped)),
    metric("kube_controller_events_limited_total", "Requests for events that the rate limit left out.", |f| {
        count(f.limited)
    }),
    metric("kube_controller_events_failed_total", "Requests for events that failed for good.", |f| count(f.failed)),
];

pub(super) fn recorders(page: &mut Page, recorders: &[(String, RecorderFigures)]) {
    for Metric { name, help, value } in RECORDER_COUNTERS {
        let mut counter = page.counter(name, help);
        recorders.iter().for_each(|(name, figures)| counter.sample(&[("controller", name)], value(figures)));
    }
}

const GROUP_COUNTERS: [Metric<ShardFigures>; 5] = [
    metric("kube_controller_shard_claimed_total", "Ranges that were claimed after a release.", |f| count(f.claimed)),
    metric("kube_controller_shard_taken_over_total", "Ranges that were claimed after the lease had expired.", |f| {
        count(f.taken_over)
    }),
    metric("kube_controller_shard_released_total", "Ranges that were released.", |f| count(f.released)),
    metric("kube_controller_shard_lost_total", "Ranges that were lost with the lease.", |f| count(f.lost)),
    metric("kube_controller_shard_without_owner_seconds_total", "Seconds that the claimed ranges had no owner.", |f| {
        f.without_owner.as_secs_f64()
    }),
];

/// The groups of sharded controllers, and the number of objects that each controller holds.
pub(super) fn groups(page: &mut Page, groups: &[(String, ShardFigures)], objects: &[(String, usize)]) {
    if groups.is_empty() {
        return;
    }
    let mut ranges = page.gauge("kube_controller_shard_ranges", "Ranges that this process holds.");
    groups.iter().for_each(|(name, figures)| ranges.sample(&[("group", name)], figures.ranges_held));
    for Metric { name, help, value } in GROUP_COUNTERS {
        let mut counter = page.counter(name, help);
        groups.iter().for_each(|(group, figures)| counter.sample(&[("group", group)], value(figures)));
    }
    let help = "The longest time that a claimed range had no owner.";
    let mut longest = page.gauge("kube_controller_shard_longest_without_owner_seconds", help);
    for (name, figures) in groups {
        longest.sample(&[("group", name)], figures.longest_without_owner.as_secs_f64());
    }
    let mut held = page.gauge("kube_controller_shard_objects", "Objects in the ranges that this process holds.");
    objects.iter().for_each(|(controller, count)| held.sample(&[("controller", controller)], count));
}

pub(super) fn election(page: &mut Page, lease: &str, is_leading: bool) {
    let name = lease.split_once('/').map_or(lease, |(_, name)| name);
    let help = "Whether this process leads: 1 if it holds the lease, 0 if not.";
    page.gauge("leader_election_master_status", help).sample(&[("name", name)], u8::from(is_leading));
}

pub(super) fn requests(page: &mut Page, counts: &[(RequestKind, u64)]) {
    let help = "Requests to the API server, by method and status of the response.";
    let mut counter = page.counter("rest_client_requests_total", help);
    for (RequestKind { method, code }, count) in counts {
        counter.sample(&[("code", &code.to_string()), ("method", method)], count);
    }
}

const INFORMER_GAUGES: [Metric<InformerFigures>; 3] = [
    metric("kube_informer_objects", "Objects in the cache.", |f| size(f.objects)),
    metric("kube_informer_bytes", "Approximate size of the cached objects in bytes.", |f| size(f.bytes)),
    metric("kube_informer_queue_deltas", "Deltas that wait to be applied to the cache.", |f| size(f.queue_deltas)),
];

const INFORMER_COUNTERS: [Metric<InformerFigures>; 6] = [
    metric("kube_informer_deltas_total", "Deltas from the server that were applied.", |f| count(f.deltas)),
    metric("kube_informer_events_total", "Events that were produced.", |f| count(f.events)),
    metric("kube_informer_lists_total", "Lists that were begun.", |f| {
        count(f.reflector.lists + f.reflector.streaming_lists)
    }),
    metric("kube_informer_watches_total", "Watches that were begun.", |f| count(f.reflector.watches)),
    metric("kube_informer_errors_total", "Failed lists and watches.", |f| count(f.reflector.errors)),
    metric("kube_informer_stalls_total", "Watches that were found to be stale.", |f| count(f.reflector.stalls)),
];

const HANDLER_GAUGES: [Metric<HandlerFigures>; 2] = [
    metric("kube_informer_handler_backlog", "Events that are queued for the handler.", |f| size(f.backlog)),
    metric("kube_informer_handler_lag_seconds", "Seconds for which the queue has not been empty.", |f| {
        f.lag.as_secs_f64()
    }),
];

pub(super) fn informers(page: &mut Page, informers: &[(InformerId, InformerFigures)]) {
    for Metric { name, help, value } in INFORMER_GAUGES {
        let mut gauge = page.gauge(name, help);
        informers.iter().for_each(|(id, figures)| gauge.sample(&id.labels(), value(figures)));
    }
    for Metric { name, help, value } in INFORMER_COUNTERS {
        let mut counter = page.counter(name, help);
        informers.iter().for_each(|(id, figures)| counter.sample(&id.labels(), value(figures)));
    }
    let mut age = page.gauge("kube_informer_last_contact_age_seconds", "Seconds since anything was received.");
    for (id, figures) in informers {
        if let Some(contact) = figures.last_contact_age {
            age.sample(&id.labels(), contact.as_secs_f64());
        }
    }
    for Metric { name, help, value } in HANDLER_GAUGES {
        let mut gauge = page.gauge(name, help);
        for (id, figures) in informers {
            for handler in &figures.handlers {
                let number = handler.handler.to_string();
                let labels = [&id.labels()[..], &[("handler", &*number)]].concat();
                gauge.sample(&labels, value(handler));
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
fn count(count: u64) -> f64 {
    count as f64
}

#[expect(clippy::cast_precision_loss, reason = "exact up to 2^53")]
fn size(size: usize) -> f64 {
    size as f64
}
