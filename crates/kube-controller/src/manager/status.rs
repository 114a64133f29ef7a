//! What the HTTP server reports: health, readiness, metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kube_informer::Factory;
use parking_lot::Mutex;

use super::informer_metrics::InformerMetrics;
use super::metrics;
use super::page::Page;
use super::request_metrics::RequestMetrics;
use crate::controller::Monitor;
use crate::recorder::Recorder;
use crate::sharding::ShardGroup;

/// The state of a manager, shared with its HTTP server.
pub(super) struct Status {
    factory: Factory,
    phase: Mutex<Phase>,
    /// The namespace and name of the lease.
    lease: Option<Arc<str>>,
    /// Also while it stops: until the lease is released or lost.
    holds_lease: AtomicBool,
    pub(super) monitors: Vec<Monitor>,
    pub(super) groups: Vec<ShardGroup>,
    pub(super) recorders: Vec<Recorder>,
    pub(super) informers: Option<InformerMetrics>,
    pub(super) requests: Option<RequestMetrics>,
    pub(super) extra_metrics: Vec<Box<dyn Fn() -> String + Send + Sync>>,
    pub(super) ready_checks: Vec<Check>,
    pub(super) health_checks: Vec<Check>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The caches are being filled.
    Caches,
    /// The caches are full, and another process may lead.
    Standby,
    Leading,
    Stopping,
}

/// A condition of the user.
pub(super) struct Check {
    pub(super) name: String,
    pub(super) check: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
}

/// The result of all checks, in the format of Kubernetes' own programs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) is_ok: bool,
    pub(super) text: String,
}

impl Status {
    pub(super) fn new(factory: Factory) -> Self {
        Self {
            factory,
            phase: Mutex::new(Phase::Caches),
            lease: None,
            holds_lease: AtomicBool::new(false),
            monitors: Vec::new(),
            groups: Vec::new(),
            recorders: Vec::new(),
            informers: None,
            requests: None,
            extra_metrics: Vec::new(),
            ready_checks: Vec::new(),
            health_checks: Vec::new(),
        }
    }

    pub(super) fn elects(&mut self, lease: &str) {
        self.lease = Some(lease.into());
    }

    pub(super) fn enter(&self, phase: Phase) {
        if phase == Phase::Leading {
            self.holds_lease.store(true, Ordering::Relaxed);
        }
        *self.phase.lock() = phase;
    }

    /// The lease was released, or the leadership lost.
    pub(super) fn lease_gone(&self) {
        self.holds_lease.store(false, Ordering::Relaxed);
    }

    pub(super) fn health(&self) -> Report {
        let ping = ("ping".to_owned(), Ok(()));
        Report::new([ping].into_iter().chain(results(&self.health_checks)))
    }

    /// A process that does not lead is ready: it takes over at once.
    pub(super) fn readiness(&self) -> Report {
        let phase = *self.phase.lock();
        // Full once, caches serve reads; whether they are up to date is in the metrics.
        let missing = if phase == Phase::Caches { self.factory.missing() } else { Vec::new() };
        let caches = missing.iter().map(|missing| ("cache".to_owned(), Err(missing.to_string())));
        let manager = match phase {
            Phase::Caches => Err("starting".to_owned()),
            Phase::Standby | Phase::Leading => Ok(()),
            Phase::Stopping => Err("shutting down".to_owned()),
        };
        Report::new([("manager".to_owned(), manager)].into_iter().chain(caches).chain(results(&self.ready_checks)))
    }

    pub(super) fn metrics(&self) -> String {
        let mut page = Page::default();
        let controllers: Vec<_> =
            self.monitors.iter().map(|monitor| (monitor.name().to_owned(), monitor.figures())).collect();
        metrics::controllers(&mut page, &controllers);
        let groups: Vec<_> = self.groups.iter().map(|group| (group.name().to_owned(), group.figures())).collect();
        let objects = self.monitors.iter().filter_map(|one| Some((one.name().to_owned(), one.objects_held()?)));
        metrics::groups(&mut page, &groups, &objects.collect::<Vec<_>>());
        let recorders: Vec<_> =
            self.recorders.iter().map(|recorder| (recorder.controller().to_owned(), recorder.figures())).collect();
        metrics::recorders(&mut page, &recorders);
        if let Some(lease) = &self.lease {
            metrics::election(&mut page, lease, self.holds_lease.load(Ordering::Relaxed));
        }
        if let Some(informers) = &self.informers {
            metrics::informers(&mut page, &informers.figures());
        }
        if let Some(requests) = &self.requests {
            metrics::requests(&mut page, &requests.counts());
        }
        let mut text = page.into_text();
        for render in &self.extra_metrics {
            text.push_str(&render());
        }
        text
    }
}

fn results(checks: &[Check]) -> impl Iterator<Item = (String, Result<(), String>)> {
    checks.iter().map(|check| (check.name.clone(), (check.check)()))
}

impl Report {
    fn new(checks: impl Iterator<Item = (String, Result<(), String>)>) -> Self {
        let (mut is_ok, mut text) = (true, String::new());
        for (name, result) in checks {
            let line = match result {
                Ok(()) => format!("[+]{name} ok\n"),
                Err(why) => {
                    is_ok = false;
                    format!("[-]{name} failed: {}\n", why.escape_debug())
                }
            };
            text.push_str(&line);
        }
        text.push_str(if is_ok { "check passed\n" } else { "check failed\n" });
        Self { is_ok, text }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

    use http::Response;
    use kube::Client;
    use kube::client::Body;
    use tower::service_fn;

    use super::*;

    #[tokio::test]
    async fn the_lease_counts_as_held_until_it_is_released_or_lost() {
        let service = service_fn(async |_: http::Request<Body>| Ok::<_, std::io::Error>(Response::new(Body::empty())));
        let mut status = Status::new(Factory::new(Client::new(service, "default")));
        status.elects("default/a");
        let held = |status: &Status| {
            let page = status.metrics();
            let line = page.lines().find(|line| line.starts_with("leader_election_master_status{")).unwrap();
            line.ends_with(" 1")
        };
        status.enter(Phase::Standby);
        assert!(!held(&status));
        status.enter(Phase::Leading);
        assert!(held(&status));
        status.enter(Phase::Stopping);
        assert!(held(&status), "the lease is renewed while running attempts end");
        status.lease_gone();
        assert!(!held(&status));
    }
}
