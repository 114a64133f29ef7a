//! Guides: longer texts than the reference, whose code is tested.

#![expect(unused_imports, reason = "these are what the links of the pages are resolved with")]

pub mod operator {
    #![doc = include_str!("../docs/operator.md")]
    use crate::*;
}

pub mod production {
    #![doc = include_str!("../docs/production.md")]
    use crate::*;
}

pub mod shards {
    #![doc = include_str!("../docs/shards.md")]
    use crate::*;
}

pub mod from_kube_runtime {
    #![doc = include_str!("../docs/from-kube-runtime.md")]
    use crate::*;
}

pub mod from_controller_runtime {
    #![doc = include_str!("../docs/from-controller-runtime.md")]
    use crate::*;
}
