//! The guide: a longer text than the reference, whose code is tested.

#![expect(unused_imports, reason = "these are what the links of the page are resolved with")]

pub mod test_your_operator {
    #![doc = include_str!("../docs/test-your-operator.md")]
    use crate::*;
}
