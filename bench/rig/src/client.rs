//! Drives a client through a scenario and measures it. The Go program does the same, step by step,
//! with the same names.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

pub use self::options::{Options, Scenario};
pub use self::reads::{Reads, families};

use crate::control::{Control, Counters};
use crate::process;
use crate::tally::Tally;

mod options;
mod reads;

/// A client to be measured.
pub trait Subject {
    /// Starts the client with one handler per state, each of which receives every event.
    fn start(&mut self, handlers: &[HandlerState]);

    /// How its cache is read, once it is synced.
    fn reads(&self) -> Reads;

    /// Additional handler depths to measure; empty if everything is decoded before a handler is
    /// called.
    fn deeper(&self) -> &'static [Depth];
}

/// The label used in selectors, with the value of the first object by key: the pods of one
/// workload.
pub const SELECTED: &str = "pod-template-hash";

/// What a handler does with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Depth {
    /// Reads the key.
    Keys,
    /// Reads five fields of the body of the new object.
    Fields,
    /// Reads the body of the new object.
    New,
    /// Reads the bodies of the old and the new object.
    Both,
}

/// The state of a handler. Each handler has its own, to avoid contention on the counters.
#[derive(Debug, Clone, Default)]
pub struct HandlerState {
    /// The events received so far.
    pub tally: Arc<Tally>,
    depth: Arc<AtomicU8>,
}

impl HandlerState {
    /// What the handler does with events.
    pub fn depth(&self) -> Depth {
        match self.depth.load(Ordering::Relaxed) {
            0 => Depth::Keys,
            1 => Depth::Fields,
            2 => Depth::New,
            _ => Depth::Both,
        }
    }

    fn set_depth(&self, depth: Depth) {
        self.depth.store(depth as u8, Ordering::Relaxed);
    }
}

/// Measurements by name.
pub type Figures = BTreeMap<String, f64>;

/// Runs a client as specified on the command line, and prints the measurements.
pub fn run(options: &Options, subject: impl Subject) -> io::Result<()> {
    let mut drive = Drive {
        control: Control::new(&options.server),
        handlers: Vec::new(),
        figures: Figures::new(),
        counted: Counters::default(),
        options: options.clone(),
        subject,
    };
    match options.scenario {
        Scenario::Life => drive.life()?,
        Scenario::Sync => drive.first_list(1)?,
        Scenario::Reads => drive.reads()?,
        Scenario::Handlers => drive.handlers()?,
        Scenario::Many => drive.many()?,
    }
    println!("{}", serde_json::to_string(&drive.figures)?);
    Ok(())
}

struct Drive<S> {
    control: Control,
    handlers: Vec<HandlerState>,
    figures: Figures,
    counted: Counters,
    options: Options,
    subject: S,
}

impl<S: Subject> Drive<S> {
    /// First list, updates, deletions, a full relist, and latencies.
    fn life(&mut self) -> io::Result<()> {
        self.first_list(1)?;
        self.updates(Depth::Keys)?;
        if self.options.churn > 0 {
            self.churn()?;
        }
        if self.options.relist {
            self.relist()?;
        }
        if !self.options.rates.is_empty() {
            self.wake_up()?;
        }
        for (per_second, count) in self.options.rates.clone() {
            let delays = self.delays(per_second, count, || {})?;
            self.percentiles(&format!("delay.{per_second}"), delays);
        }
        // Last, because decoded bodies are cached for some time and would count as memory of the
        // store.
        if self.options.deeper {
            self.subject.deeper().iter().try_for_each(|depth| self.updates(*depth))?;
        }
        Ok(())
    }

    /// So many objects that only some of them are read: first list, updates, and gets.
    fn many(&mut self) -> io::Result<()> {
        self.first_list(1)?;
        self.updates(Depth::Keys)?;
        let get = reads::get(&self.subject.reads(), self.options.read_millis);
        self.note("read.get", get);
        Ok(())
    }

    fn first_list(&mut self, handlers: u64) -> io::Result<()> {
        self.handlers = (0..handlers).map(|_| HandlerState::default()).collect();
        self.set_depth(self.options.depth);
        self.want(self.options.count);
        self.note("start.rss", process::resident());
        process::forget_peak();
        let (cpu, wall) = (process::cpu(), Instant::now());
        self.subject.start(&self.handlers);
        self.wait("the first list")?;
        self.note("sync.cpu", (process::cpu() - cpu).as_secs_f64());
        self.note("sync.wall", wall.elapsed().as_secs_f64());
        self.note("sync.peak", process::peak());
        self.settle();
        self.note("sync.cpu_settled", (process::cpu() - cpu).as_secs_f64());
        self.note("sync.peak_settled", process::peak());
        self.note("held.rss", process::resident());
        self.wire("sync")
    }

    fn updates(&mut self, depth: Depth) -> io::Result<()> {
        let (name, count) = match depth {
            Depth::Keys => ("keys", self.options.updates),
            Depth::Fields => ("fields", self.options.updates / 5),
            Depth::New => ("new", self.options.updates / 5),
            Depth::Both => ("both", self.options.updates / 5),
        };
        if count == 0 {
            return Ok(());
        }
        self.set_depth(depth);
        self.want(count);
        process::forget_peak();
        let (cpu, wall) = (process::cpu(), Instant::now());
        self.control.updates(count)?;
        self.wait("updates")?;
        let each = count as f64 / 1e6;
        self.note(&format!("updates.{name}.cpu"), (process::cpu() - cpu).as_secs_f64() / each);
        self.note(&format!("updates.{name}.wall"), wall.elapsed().as_secs_f64() / each);
        self.note(&format!("updates.{name}.peak"), process::peak());
        if depth == Depth::Keys {
            self.wire("updates")?;
            if let Some(bytes) = self.figures.get_mut("updates.bytes") {
                *bytes /= count as f64;
            }
        }
        Ok(())
    }

    fn churn(&mut self) -> io::Result<()> {
        let count = self.options.churn;
        self.want(2 * count);
        let cpu = process::cpu();
        self.control.churn(count)?;
        self.wait("deletions")?;
        self.note("churn.cpu", (process::cpu() - cpu).as_secs_f64() * 1e6 / (2 * count) as f64);
        Ok(())
    }

    fn relist(&mut self) -> io::Result<()> {
        self.settle();
        self.note("relist.before", process::resident());
        self.want(self.options.count);
        self.counted = self.control.counters()?;
        process::forget_peak();
        let cpu = process::cpu();
        self.control.relist()?;
        self.wait("the relist")?;
        self.note("relist.cpu", (process::cpu() - cpu).as_secs_f64());
        self.note("relist.peak", process::peak());
        self.wire("relist")
    }

    fn reads(&mut self) -> io::Result<()> {
        self.first_list(1)?;
        let reads = self.subject.reads();
        for (name, nanos) in reads.measure(self.options.read_millis) {
            self.note(&format!("read.{name}"), nanos);
        }
        let Some(&(per_second, count)) = self.options.rates.first() else { return Ok(()) };
        for (name, read) in [("get", &reads.get), ("list", &reads.list)] {
            let (stop, done) = (AtomicBool::new(false), AtomicU64::new(0));
            let (delays, elapsed) = std::thread::scope(|scope| {
                for thread in 0..2_usize {
                    let (stop, done) = (&stop, &done);
                    scope.spawn(move || {
                        for nth in (thread..).step_by(2) {
                            if stop.load(Ordering::Relaxed) {
                                break;
                            }
                            black_box(read(nth.wrapping_mul(7919)));
                            done.fetch_add(1, Ordering::Relaxed);
                        }
                    });
                }
                let start = Instant::now();
                let delays = self.delays(per_second, count, || stop.store(true, Ordering::Relaxed));
                (delays, start.elapsed())
            });
            self.note(&format!("beside.{name}.reads"), done.into_inner() as f64 / elapsed.as_secs_f64());
            self.percentiles(&format!("beside.{name}.delay"), delays?);
        }
        Ok(())
    }

    /// The cost of handlers: the same updates with the requested number of handlers. The runner
    /// compares with one handler.
    fn handlers(&mut self) -> io::Result<()> {
        let (handlers, count) = (self.options.handlers, self.options.updates);
        self.first_list(handlers)?;
        self.want(count);
        let cpu = process::cpu();
        self.control.updates(count)?;
        self.wait("updates")?;
        self.note("handlers.cpu", (process::cpu() - cpu).as_secs_f64() * 1e6 / count as f64);
        Ok(())
    }

    /// Waits until changes arrive again: after a relist a client may back off before it watches.
    fn wake_up(&self) -> io::Result<()> {
        self.want(1);
        self.control.updates(1)?;
        self.wait("an update")
    }

    /// The latencies from the server's write to the handler's call, in microseconds, sorted.
    fn delays(&self, per_second: u64, count: u64, end: impl FnOnce()) -> io::Result<Vec<f64>> {
        let Some(HandlerState { tally, .. }) = self.handlers.first() else { return Ok(Vec::new()) };
        tally.time(count as usize);
        self.want(count);
        self.control.rate(per_second, count)?;
        let waited = self.wait("updates at a rate");
        let received: BTreeMap<u64, u64> = tally.timed().into_iter().collect();
        end();
        waited?;
        let written = self.control.times()?;
        let delay = |(version, written): (u64, u64)| Some(received.get(&version)?.saturating_sub(written) as f64 / 1e3);
        let mut delays: Vec<f64> = written.into_iter().filter_map(delay).collect();
        delays.sort_by(f64::total_cmp);
        Ok(delays)
    }

    fn percentiles(&mut self, name: &str, delays: Vec<f64>) {
        for (percentile, of_thousand) in [("p50", 500), ("p99", 990), ("p999", 999)] {
            if let Some(delay) = delays.get(delays.len() * of_thousand / 1000) {
                self.note(&format!("{name}.{percentile}"), *delay);
            }
        }
    }

    /// Waits until the process is idle: background work after a first list is part of its cost.
    fn settle(&self) {
        const STEP: Duration = Duration::from_millis(500);
        let (quiet, longest) = (self.options.settle, 4 * self.options.settle);
        let (mut rested, start) = (Instant::now(), Instant::now());
        while rested.elapsed() < quiet && start.elapsed() < longest {
            let cpu = process::cpu();
            std::thread::sleep(STEP);
            if process::cpu() - cpu > STEP / 50 {
                rested = Instant::now();
            }
        }
    }

    fn wait(&self, what: &str) -> io::Result<()> {
        // Very many objects are made while they are sent, and may all be delivered at the end.
        let is_slow = self.options.scenario == Scenario::Many;
        let longest = Duration::from_secs(if is_slow { 1_200 } else { 30 });
        match self.handlers.iter().find(|handler| !handler.tally.wait(longest)) {
            None => Ok(()),
            Some(handler) => Err(io::Error::other(format!(
                "{what} did not arrive: {} events received in all",
                handler.tally.received()
            ))),
        }
    }

    /// Sets what handlers do with events.
    fn set_depth(&self, depth: Depth) {
        self.handlers.iter().for_each(|handler| handler.set_depth(depth));
    }

    /// Makes every handler expect this many more events; must be called before they can arrive.
    fn want(&self, more: u64) {
        self.handlers.iter().for_each(|handler| handler.tally.want(more));
    }

    /// Records the traffic since the last call.
    fn wire(&mut self, phase: &str) -> io::Result<()> {
        let now = self.control.counters()?;
        let before = std::mem::replace(&mut self.counted, now);
        self.note(&format!("{phase}.bytes"), (now.bytes - before.bytes) as f64);
        self.note(&format!("{phase}.requests"), (now.lists + now.watches - before.lists - before.watches) as f64);
        Ok(())
    }

    fn note(&mut self, name: &str, value: f64) {
        self.figures.insert(name.to_owned(), value);
    }
}
