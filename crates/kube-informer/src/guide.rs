//! Guides: longer than a page of the reference, and all of their code runs.

#![expect(unused_imports, reason = "these are what the pages' links are resolved with")]

#[doc = include_str!("../docs/getting-started.md")]
pub mod getting_started {
    use crate::*;
}

#[doc = include_str!("../docs/memory-and-speed.md")]
pub mod memory_and_speed {
    use crate::*;
}

#[doc = include_str!("../docs/testing.md")]
pub mod testing {
    use crate::*;
}

#[doc = include_str!("../docs/from-kube-runtime.md")]
pub mod from_kube_runtime {
    use crate::*;
}

#[doc = include_str!("../docs/client-go.md")]
pub mod client_go {
    use crate::*;
}
