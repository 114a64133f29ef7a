//! A thread-local buffer to build strings in.

use std::cell::Cell;

/// Far larger than keys and label sets usually are; larger buffers are dropped.
const LARGEST_KEPT: usize = 64 << 10;

thread_local! {
    static SCRATCH: Cell<String> = const { Cell::new(String::new()) };
}

/// Calls `write` with an empty thread-local string, to build text that is then copied without an
/// extra allocation.
pub(crate) fn with_scratch<T>(write: impl FnOnce(&mut String) -> T) -> T {
    let mut scratch = SCRATCH.try_with(Cell::take).unwrap_or_default();
    scratch.clear();
    let written = write(&mut scratch);
    if scratch.capacity() <= LARGEST_KEPT {
        // Fails only while the thread exits.
        let _: Result<(), _> = SCRATCH.try_with(|slot| slot.set(scratch));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_writers_have_separate_strings() {
        let both = with_scratch(|outer| {
            outer.push_str("outer");
            let inner = with_scratch(|inner| {
                inner.push_str("inner");
                inner.clone()
            });
            (outer.clone(), inner)
        });
        assert_eq!(both, ("outer".to_owned(), "inner".to_owned()));
        assert!(with_scratch(|scratch| scratch.is_empty()));
    }
}
