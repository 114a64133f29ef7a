use crate::harness::Case;

pub(crate) const CASES: &[Case] = &[];
