//! Runs parsers that use much stack for each level of nesting.

/// Stack size in bytes; the operating system commits only the part that is used.
const SIZE: usize = 256 * 1024 * 1024;

/// Runs a closure on a thread with a large stack, and waits for it.
///
/// # Errors
///
/// If no thread can be started, or the closure panics.
pub(crate) fn with_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(SIZE).spawn_scoped(scope, work);
        thread.map_err(|error| error.to_string())?.join().map_err(|_| "it could not be worked out".to_owned())
    })
}
