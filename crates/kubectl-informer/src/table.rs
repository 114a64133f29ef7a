//! Tables of objects: their cells, colours and lines.
//!
//! Uses `client` for the columns of custom kinds, and `terminal`.

pub(crate) mod grid;
pub(crate) mod lines;
mod tone;

pub(crate) use self::tone::tone_of;
