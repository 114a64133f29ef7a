//! One run of a plan: a server, a workload and the controller, on one thread and on paused time.
//!
//! [`conductor`] is what the parts of a run share, [`link`] is the connection of the controller,
//! [`replica`] the view of the API server that it is connected to.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::LocalBoxFuture;
use kube::Client;
use kube_embedded::{FirstAccess, Server};
use serde_json::{Value, json};
use tokio::task::LocalSet;
use tokio::time::{Instant, advance, sleep, sleep_until};

use self::conductor::Conductor;
use self::link::Link;
use self::replica::Pace;
use crate::plan::{FaultKind, Place, Plan};
use crate::state::ObjectName;
use crate::trace::{Ending, NoteKind, Trace};
use crate::workload::Step;

mod call;
mod conductor;
mod earlier;
mod link;
mod logs;
mod panics;
mod replica;
mod watch_body;

/// The time between a crash and the next start.
const RESTART: Duration = Duration::from_millis(100);

/// The time between the end of the controller's future, or a panic, and the next start, as a
/// kubelet waits.
const BACK_OFF: Duration = Duration::from_secs(10);

/// How far the clock jumps.
const JUMP: Duration = Duration::from_secs(3600);

/// The longest wait for the end of a run, after its last step.
const PATIENCE: Duration = Duration::from_secs(2 * 3600);

/// After this many starts a controller that ends again and again is not started any more.
const MAX_STARTS: usize = 50;

/// How a controller is started.
pub(crate) type Start = Arc<dyn Fn(Client) -> LocalBoxFuture<'static, ()> + Send + Sync>;

/// What every run of a search shares.
pub(crate) struct Setting {
    pub(crate) start: Start,
    pub(crate) objects: Vec<Value>,
    pub(crate) steps: Vec<Step>,
    /// How long nothing may be written before a step waits no longer.
    pub(crate) quiet: Duration,
    /// How long nothing may be written at the end.
    pub(crate) settle: Duration,
    /// The most writes of a run.
    pub(crate) max_writes: usize,
    /// The most requests of a run.
    pub(crate) max_requests: usize,
}

/// Whether a run collects the log lines of the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Logs {
    Drop,
    Keep,
}

/// Runs a plan on the calling thread.
pub(crate) fn run(setting: &Setting, plan: &Plan, logs: Logs) -> Trace {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    let runtime = runtime.expect("a runtime of one thread needs nothing that can be missing");
    let ((mut trace, panics), logs) = logs::collect(logs, || {
        panics::collect(|| {
            let tasks = LocalSet::new();
            let trace = tasks.block_on(&runtime, perform(setting, plan));
            // What the controller's processes have left is dropped while panics are still caught.
            drop(tasks);
            drop(runtime);
            trace
        })
    });
    trace.panics = panics;
    trace.logs = logs;
    trace
}

async fn perform(setting: &Setting, plan: &Plan) -> Trace {
    logs::start_clock();
    let server = server(plan.seed).await;
    // Numbers that a controller copies from a revision differ from seed to seed.
    for _ in 0..plan.seed % 5 {
        let marker = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-simulation"}});
        drop(server.create(&marker));
        drop(server.objects("v1", "ConfigMap").and_then(|maps| maps.delete("kube-simulation")));
    }
    let base = server.revision();
    let conductor = Conductor::start(server, plan, base);
    for object in &setting.objects {
        if let Err(status) = conductor.server().create(object) {
            conductor.refuse_step(format!("the initial object {}: {status}", ObjectName::of(object)));
        }
    }
    conductor.set_start();
    let supervisor = tokio::task::spawn_local(supervise(conductor.clone(), setting.start.clone()));
    for (nth, step) in setting.steps.iter().enumerate() {
        begin_faults(&conductor, plan, nth);
        if step.is_change() {
            conductor.note(NoteKind::Step, format!("step {nth}: {step}"));
            if let Err(status) = step.apply(conductor.server()) {
                conductor.refuse_step(format!("step {nth}: {step}: {status}"));
            }
        } else {
            quiet(&conductor, setting, setting.quiet, PATIENCE).await;
        }
        end_faults(&conductor, plan, nth).await;
        if conductor.excess(setting).is_some() {
            break;
        }
    }
    let ending = quiet(&conductor, setting, setting.settle, PATIENCE).await;
    conductor.stop();
    supervisor.abort();
    drop(supervisor.await);
    conductor.into_trace(ending)
}

async fn server(seed: u64) -> Server {
    // Times that a controller writes differ from seed to seed.
    let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_225_600 + seed % 1000 * 86_461);
    let server = Server::builder()
        .in_process()
        .seed(seed)
        .start_time(start)
        .garbage_collection()
        .namespace_deletion()
        .first_access(FirstAccess::Served)
        .history(1_000_000)
        .history_age(Duration::from_secs(30 * 86_400));
    server.start().await.expect("a server in the process needs nothing that can be missing")
}

/// Starts the controller, and starts it again when it has crashed or ended.
async fn supervise(conductor: Arc<Conductor>, start: Start) {
    for process in 0..MAX_STARTS {
        conductor.until_up().await;
        let session = conductor.new_session(process);
        conductor.note(NoteKind::Process, format!("process {process} starts"));
        let client = Client::new(Link::new(conductor.clone(), session.clone()), "default");
        let start = start.clone();
        let mut task = tokio::task::spawn_local(async move { start(client).await });
        let ended = tokio::select! {
            biased;
            () = session.severed() => None,
            ended = &mut task => Some(ended),
        };
        session.sever();
        match ended {
            None => {
                task.abort();
                drop(task.await);
                conductor.note(NoteKind::Process, format!("process {process} has crashed"));
                sleep(RESTART).await;
            }
            Some(ended) => {
                let how = if ended.is_ok() { "has ended" } else { "has panicked" };
                conductor.note(NoteKind::Process, format!("process {process} {how}"));
                sleep(BACK_OFF).await;
            }
        }
    }
    conductor.give_up();
}

/// Begins the faults that last from before this step.
fn begin_faults(conductor: &Arc<Conductor>, plan: &Plan, step: usize) {
    for (position, fault) in plan.faults.iter().enumerate() {
        if !matches!(fault.place, Place::Steps(from, _) if from == step) {
            continue;
        }
        conductor.reached(position, format!("{} begins", fault.kind));
        match fault.kind {
            FaultKind::Down => conductor.stop(),
            FaultKind::Disconnected => conductor.disconnect(),
            FaultKind::Overwritten => {
                if let Some(session) = conductor.session() {
                    session.replica().set_pace(Pace::Frozen);
                }
            }
            _ => {}
        }
    }
}

/// Ends the faults that last until after this step.
async fn end_faults(conductor: &Arc<Conductor>, plan: &Plan, step: usize) {
    for fault in &plan.faults {
        if !matches!(fault.place, Place::Steps(_, until) if until == step) {
            continue;
        }
        // The garbage collector and the like finish.
        sleep(Duration::from_secs(1)).await;
        conductor.note(NoteKind::Fault, format!("{} ends", fault.kind));
        match fault.kind {
            FaultKind::Down => conductor.start_again(),
            FaultKind::ClockJump => advance(JUMP).await,
            FaultKind::Disconnected | FaultKind::Overwritten => {
                conductor.compact();
                conductor.reconnect();
                if let Some(session) = conductor.session() {
                    session.replica().set_pace(Pace::Normal);
                    session.cut();
                }
            }
            _ => {}
        }
    }
}

/// Waits until nothing was written for `window`, no request is on its way and the controller runs,
/// but no longer than `patience`.
async fn quiet(conductor: &Arc<Conductor>, setting: &Setting, window: Duration, patience: Duration) -> Ending {
    let deadline = Instant::now() + patience;
    let mut since = Instant::now();
    loop {
        let now = Instant::now();
        if conductor.drain() {
            since = now;
        }
        if let Some(ending) = conductor.excess(setting) {
            return ending;
        }
        if now >= since + window && conductor.is_busy() {
            since = now;
        }
        if now >= since + window {
            return Ending::Settled;
        }
        if now >= deadline {
            return Ending::Restless;
        }
        let revision = conductor.drained();
        tokio::select! {
            biased;
            () = conductor.server().until(|server| server.revision() > revision) => {}
            () = sleep_until((since + window).min(deadline)) => {}
        }
    }
}
