//! Catches panics of the controller's tasks, which tokio swallows, with their message and place.

use std::cell::RefCell;
use std::panic;
use std::sync::Once;

thread_local! {
    /// The panics on this thread, while a run collects them.
    static COLLECTED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Runs `work`, and returns the panics on this thread. They are not printed.
pub(crate) fn collect<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |panicked| {
            let is_collected = COLLECTED.try_with(|collected| {
                let mut collected = collected.borrow_mut();
                let Some(panics) = &mut *collected else { return false };
                let message = panicked.payload();
                let message = message
                    .downcast_ref::<&str>()
                    .copied()
                    .or_else(|| message.downcast_ref::<String>().map(String::as_str));
                let message = message.unwrap_or("a panic without a message");
                let place = panicked.location().map(|place| format!(" at {}:{}", place.file(), place.line()));
                panics.push(format!("{message}{}", place.unwrap_or_default()));
                true
            });
            if !is_collected.unwrap_or(false) {
                previous(panicked);
            }
        }));
    });
    COLLECTED.set(Some(Vec::new()));
    let done = work();
    (done, COLLECTED.take().unwrap_or_default())
}
