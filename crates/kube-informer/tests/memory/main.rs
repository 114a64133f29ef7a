//! Memory, measured by the allocator. A separate binary whose tests run one at a time, because no
//! other test may allocate meanwhile.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::alloc::System;
use std::sync::{Mutex, MutexGuard, PoisonError};

use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[path = "../support/hostile_server.rs"]
mod hostile_server;

mod goaway;
mod hostile;
mod hostile_answers;
mod trial;
mod workqueue;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Bytes that the process holds.
fn held() -> isize {
    let stats = ALLOCATOR.stats();
    stats.bytes_allocated as isize - stats.bytes_deallocated as isize
}

/// Keeps the other tests of this binary waiting.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
