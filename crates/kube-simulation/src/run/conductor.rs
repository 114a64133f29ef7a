//! What the parts of a run share: the server, the plan, the record of what happened.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use kube_embedded::Server;
use parking_lot::Mutex;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Setting;
use super::call::Call;
use super::replica::{Pace, Replica};
use crate::plan::{FaultKind, Place, Plan};
use crate::state::ObjectName;
use crate::trace::{Ending, Note, NoteKind, Request, RequestKind, TimedChange, Trace};

/// How long a replica that is behind stays behind.
const BEHIND: Duration = Duration::from_secs(30);

/// How long a lost lease cannot be written.
const WITHOUT_LEASE: Duration = Duration::from_secs(180);

/// The state of a run.
#[derive(Debug)]
pub(crate) struct Conductor {
    server: Server,
    plan: Plan,
    started: Instant,
    record: Mutex<Record>,
    /// Whether the controller may run.
    up: watch::Sender<bool>,
}

#[derive(Debug)]
struct Record {
    trace: Trace,
    /// The revision up to which the changes were read.
    drained: u64,
    seen: HashMap<String, usize>,
    rng: Pcg64Mcg,
    session: Option<Arc<Session>>,
    /// The view at which the next process starts, behind the latest revision.
    next_behind: Option<u64>,
    pending: usize,
    is_disconnected: bool,
    leases_fail_until: Option<Instant>,
    /// Whether the controller ended so often that it is not started any more.
    has_given_up: bool,
}

/// The connections of one process of the controller.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) process: usize,
    signal: watch::Sender<Signal>,
    replica: Mutex<Arc<Replica>>,
    /// The watches that the server refuses with 410 when they are opened again.
    gone: Mutex<HashSet<String>>,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Signal {
    /// Whether the process is gone: nothing it sends reaches the server, and nothing is answered.
    pub(crate) is_severed: bool,
    /// How often the watches were broken.
    pub(crate) cuts: u64,
}

/// What a request has to know when it is sent.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// Its position in the record.
    pub(crate) position: usize,
    /// The faults at this request, by their position in the plan.
    pub(crate) faults: Vec<(usize, FaultKind)>,
    /// How long the request takes to the server, and the response back.
    pub(crate) latency: [Duration; 2],
}

impl Conductor {
    /// `base` is the revision before the first write of the run.
    pub(crate) fn start(server: Server, plan: &Plan, base: u64) -> Arc<Self> {
        let record = Record {
            trace: Trace { reached: vec![false; plan.faults.len()], ..Trace::default() },
            drained: base,
            seen: HashMap::new(),
            rng: Pcg64Mcg::seed_from_u64(plan.seed),
            session: None,
            next_behind: None,
            pending: 0,
            is_disconnected: false,
            leases_fail_until: None,
            has_given_up: false,
        };
        let up = watch::channel(true).0;
        Arc::new(Self { server, plan: plan.clone(), started: Instant::now(), record: Mutex::new(record), up })
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    pub(crate) fn note(&self, kind: NoteKind, text: impl Into<String>) {
        let at = self.started.elapsed();
        self.record.lock().trace.notes.push(Note { at, kind, text: text.into() });
    }

    /// Records that a fault of the plan happened.
    pub(crate) fn reached(&self, position: usize, text: impl Into<String>) {
        self.note(NoteKind::Fault, text);
        self.record.lock().trace.reached[position] = true;
    }

    pub(crate) fn refuse_step(&self, text: String) {
        self.record.lock().trace.refused_steps.push(text);
    }

    /// Starts the connections of the next process.
    pub(crate) fn new_session(self: &Arc<Self>, process: usize) -> Arc<Session> {
        let behind = self.record.lock().next_behind.take();
        let replica = Mutex::new(self.replica(behind, process as u64));
        let signal = watch::channel(Signal::default()).0;
        let session = Arc::new(Session { process, signal, replica, gone: Mutex::default() });
        self.record.lock().session = Some(session.clone());
        session
    }

    /// A replica that is up to date, or one that is behind for half a minute.
    fn replica(self: &Arc<Self>, behind: Option<u64>, number: u64) -> Arc<Replica> {
        let (now, seed) = (self.server.revision(), self.plan.seed.wrapping_add(number));
        let Some(behind) = behind else { return Replica::start(self, now, Pace::Normal, seed) };
        let replica = Replica::start(self, now.saturating_sub(behind), Pace::Frozen, seed);
        replica.set_pace_for(Pace::Frozen, BEHIND);
        replica
    }

    /// The controller starts from here.
    pub(crate) fn set_start(&self) {
        self.record.lock().trace.start = self.server.revision();
    }

    /// The connections of the latest process.
    pub(crate) fn session(&self) -> Option<Arc<Session>> {
        self.record.lock().session.clone()
    }

    /// Lets the next process start at a view that is behind.
    pub(crate) fn start_behind(&self, behind: u64) {
        self.record.lock().next_behind = Some(behind);
    }

    /// Connects the process to another replica, which is behind. Its watches end with 410.
    pub(crate) fn move_behind(self: &Arc<Self>, session: &Session, behind: u64) {
        let replica = self.replica(Some(behind), 100);
        *session.replica.lock() = replica;
        let record = self.record.lock();
        let sent = record.trace.requests.iter().filter(|request| request.process == session.process);
        let watches = sent.filter(|request| request.kind == RequestKind::Watch);
        session.gone.lock().extend(watches.map(|request| request.signature.clone()));
        drop(record);
        session.cut();
    }

    /// Stops the controller until [`Conductor::start_again`].
    pub(crate) fn stop(&self) {
        self.up.send_replace(false);
        if let Some(session) = self.session() {
            session.sever();
        }
    }

    pub(crate) fn start_again(&self) {
        self.up.send_replace(true);
    }

    /// Waits until the controller may run.
    pub(crate) async fn until_up(&self) {
        // The sender lives as long as this value, so that the wait cannot fail.
        drop(self.up.subscribe().wait_for(|up| *up).await);
    }

    pub(crate) fn give_up(&self) {
        self.note(NoteKind::Process, "the controller ended too often, and is not started any more");
        self.record.lock().has_given_up = true;
    }

    /// Refuses the connections of the controller until [`Conductor::reconnect`].
    pub(crate) fn disconnect(&self) {
        self.record.lock().is_disconnected = true;
        if let Some(session) = self.session() {
            session.cut();
        }
    }

    pub(crate) fn reconnect(&self) {
        self.record.lock().is_disconnected = false;
    }

    pub(crate) fn is_disconnected(&self) -> bool {
        self.record.lock().is_disconnected
    }

    /// Lets writes of leases fail for a while.
    pub(crate) fn lose_lease(&self) {
        self.record.lock().leases_fail_until = Some(Instant::now() + WITHOUT_LEASE);
    }

    pub(crate) fn has_lost_lease(&self) -> bool {
        self.record.lock().leases_fail_until.is_some_and(|until| Instant::now() < until)
    }

    /// Compacts the history, after it was read.
    pub(crate) fn compact(&self) {
        self.drain();
        self.server.compact_now();
    }

    /// Reads the changes since the last call. Returns whether one of them counts.
    pub(crate) fn drain(&self) -> bool {
        let mut record = self.record.lock();
        let changes = self.server.changes_after(record.drained).unwrap_or_default();
        let at = self.started.elapsed();
        let mut counts = false;
        for change in changes {
            record.drained = change.revision;
            counts |= !ObjectName::of(&change.object).is_background();
            record.trace.changes.push(TimedChange { at, change });
        }
        counts
    }

    /// The revision up to which the changes were read.
    pub(crate) fn drained(&self) -> u64 {
        self.record.lock().drained
    }

    /// Whether a request is on its way.
    pub(crate) fn is_busy(&self) -> bool {
        let record = self.record.lock();
        record.pending > 0 && !record.has_given_up
    }

    /// How a run ends that has more writes or requests than it may have.
    pub(crate) fn excess(&self, setting: &Setting) -> Option<Ending> {
        let record = self.record.lock();
        if record.trace.changes.len() > setting.max_writes {
            Some(Ending::Restless)
        } else if record.trace.requests.len() > setting.max_requests {
            Some(Ending::Busy)
        } else {
            None
        }
    }

    /// Records a request, and decides what happens to it.
    pub(crate) fn arrive(&self, session: &Session, call: &Call) -> Arrival {
        let mut record = self.record.lock();
        let record = &mut *record;
        let nth = record.seen.entry(call.signature.clone()).or_default();
        *nth += 1;
        let nth = *nth;
        let here = Place::Request(call.signature.clone(), nth);
        let faults = self.plan.faults.iter().enumerate().filter(|(_, fault)| fault.place == here);
        let faults = faults.map(|(position, fault)| (position, fault.kind)).collect();
        let millis = [record.rng.random_range(1..=3), record.rng.random_range(0..=2)];
        record.pending += usize::from(call.kind != RequestKind::Watch);
        let position = record.trace.requests.len();
        record.trace.requests.push(Request {
            signature: call.signature.clone(),
            nth,
            kind: call.kind,
            allows_any: call.oldest == Some(0),
            sent: self.started.elapsed(),
            answered: None,
            code: None,
            revisions: None,
            process: session.process,
        });
        Arrival { position, faults, latency: millis.map(Duration::from_millis) }
    }

    /// Records what the server did with a request.
    pub(crate) fn carried_out(&self, arrival: &Arrival, revisions: (u64, u64)) {
        self.record.lock().trace.requests[arrival.position].revisions = Some(revisions);
        self.drain();
    }

    /// Records the response that the controller receives; `None` is none.
    pub(crate) fn answered(&self, arrival: &Arrival, code: Option<u16>) {
        let at = self.started.elapsed();
        let mut record = self.record.lock();
        let request = &mut record.trace.requests[arrival.position];
        (request.answered, request.code) = (Some(at), code);
    }

    /// A request is over, answered or not.
    pub(crate) fn leave(&self) {
        self.record.lock().pending -= 1;
    }

    /// What happened, at the end of the run.
    pub(crate) fn into_trace(self: &Arc<Self>, ending: Ending) -> Trace {
        self.drain();
        let trace = std::mem::take(&mut self.record.lock().trace);
        Trace { ending, ..trace }
    }
}

impl Session {
    pub(crate) fn replica(&self) -> Arc<Replica> {
        self.replica.lock().clone()
    }

    pub(crate) fn signals(&self) -> watch::Receiver<Signal> {
        self.signal.subscribe()
    }

    /// Ends the process: nothing it sends reaches the server from now on.
    pub(crate) fn sever(&self) {
        self.signal.send_modify(|signal| signal.is_severed = true);
    }

    pub(crate) async fn severed(&self) {
        // The sender lives as long as this value, so that the wait cannot fail.
        drop(self.signal.subscribe().wait_for(|signal| signal.is_severed).await);
    }

    /// Breaks the open watches.
    pub(crate) fn cut(&self) {
        self.signal.send_modify(|signal| signal.cuts += 1);
    }

    /// Whether this watch is to be refused with 410, once.
    pub(crate) fn is_gone(&self, signature: &str) -> bool {
        self.gone.lock().remove(signature)
    }
}
