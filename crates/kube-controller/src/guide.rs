//! Guides: longer texts than the reference, whose code is tested.

#![expect(unused_imports, reason = "these are what the links of the pages are resolved with")]

pub mod production {
    #![doc = include_str!("../docs/production.md")]
    use crate::*;
}
