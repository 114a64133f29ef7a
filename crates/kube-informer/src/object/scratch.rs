//! Room to put texts together in.

use std::cell::Cell;

/// Far larger than keys and label sets usually are; what has grown beyond is not kept.
const LARGEST_KEPT: usize = 64 << 10;

thread_local! {
    static SCRATCH: Cell<String> = const { Cell::new(String::new()) };
}

/// Hands an empty string of this thread's to `write`: what is put together only to be copied needs no allocation of its own.
pub(crate) fn with_scratch<T>(write: impl FnOnce(&mut String) -> T) -> T {
    let mut scratch = SCRATCH.try_with(Cell::take).unwrap_or_default();
    scratch.clear();
    let written = write(&mut scratch);
    if scratch.capacity() <= LARGEST_KEPT {
        // A thread that is ending has no place for it any more.
        let _: Result<(), _> = SCRATCH.try_with(|place| place.set(scratch));
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_writes_while_another_writes_has_a_string_of_its_own() {
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
