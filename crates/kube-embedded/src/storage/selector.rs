//! Label, field and shard selectors, with the real server's error messages for invalid ones.

mod field;
mod label;
mod shard;
mod validate;

pub(crate) use self::field::FieldSelector;
pub(crate) use self::label::LabelSelector;
pub(crate) use self::shard::ShardSelector;
pub(crate) use self::validate::{label_value_problem, qualified_name_problems};
