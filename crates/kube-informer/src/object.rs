//! Values that identify and describe an object: key, version, uid, metadata, labels, owners,
//! selectors and field paths.

// May use `codec`, to read them from encoded objects; must not use bodies, the store or informers.

pub use self::decode_error::DecodeError;
pub use self::key::ObjectKey;
pub use self::kind::{Encoded, Kind, Object};
pub use self::labels::Labels;
pub use self::metadata_only::MetadataOnly;
pub use self::or_text::OrText;
pub use self::owner::Owner;
pub use self::parse_error::ParseError;
pub use self::path::FieldPath;
pub use self::selector::{FieldSelector, Selector};
pub use self::uid::Uid;
pub use self::version::Version;

pub(crate) use self::cluster_scoped::is_built_in_cluster_scoped;
pub(crate) use self::intern::Interner;
pub(crate) use self::managed_fields::managed_fields;
pub(crate) use self::meta::Meta;
pub(crate) use self::names::{check_namespace, check_segment};
pub(crate) use self::path::Step;
pub(crate) use self::scratch::with_scratch;
pub(crate) use self::strings::Strings;

mod cluster_scoped;
mod decode_error;
mod intern;
mod key;
mod kind;
mod labels;
mod managed_fields;
mod meta;
mod metadata_only;
mod names;
mod or_text;
mod owner;
mod parse_error;
mod path;
mod scratch;
mod selector;
mod strings;
mod uid;
mod version;
