//! The documentation: examples, guarantees and names in the pages match the code.

mod client_go_names;
mod compile_errors;
mod examples;
mod pages;
