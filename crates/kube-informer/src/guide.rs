//! Guides: longer texts than the reference, whose code is tested.

#![expect(unused_imports, reason = "these are what the links of the pages are resolved with")]

pub mod getting_started {
    #![doc = include_str!("../docs/getting-started.md")]
    use super::names::*;
}

pub mod programs {
    #![doc = include_str!("../docs/programs.md")]
    use super::names::*;
}

pub mod controllers {
    #![doc = include_str!("../docs/controllers.md")]
    use super::names::*;
}

pub mod what_happens_if {
    #![doc = include_str!("../docs/what-happens-if.md")]
    use super::names::*;
}

pub mod memory_and_speed {
    #![doc = include_str!("../docs/memory-and-speed.md")]
    use super::names::*;
}

pub mod testing {
    #![doc = include_str!("../docs/testing.md")]
    use super::names::*;
}

pub mod hostile_server {
    #![doc = include_str!("../docs/hostile-server.md")]
    use super::names::*;
}

pub mod from_kube_runtime {
    #![doc = include_str!("../docs/from-kube-runtime.md")]
    use super::names::*;
}

pub mod client_go {
    #![doc = include_str!("../docs/client-go.md")]
    use super::names::*;
}

/// Every public name, as the links of the pages are resolved in the module that includes them.
mod names {
    pub(super) use crate::{
        body::*, client::*, codec::*, factory::*, informer::*, object::*, one_shot::*, pipeline::*, reflector::*,
        shard::*, store::*, workqueue::*, *,
    };
}
