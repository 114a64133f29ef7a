//! Resource usage of this process.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// The CPU time of all threads.
pub fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The wall clock, which is the same for all processes of a machine.
pub fn now_nanos() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// Current resident bytes.
pub fn resident() -> f64 {
    status("VmRSS:")
}

/// Maximum resident bytes since the last [`forget_peak`].
pub fn peak() -> f64 {
    status("VmHWM:")
}

/// Resets the peak.
pub fn forget_peak() {
    // If the kernel does not support it, peaks are those since the start.
    drop(fs::write("/proc/self/clear_refs", "5"));
}

fn status(name: &str) -> f64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes: f64 = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0.0);
    kilobytes * 1024.0
}
