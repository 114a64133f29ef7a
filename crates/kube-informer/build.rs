//! Sets `unoptimized` where this crate is compiled without optimisation, as in a debug build of a
//! program that does not raise the `opt-level` of its dependencies.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(unoptimized)");
    if std::env::var_os("OPT_LEVEL").is_some_and(|level| level == "0") {
        println!("cargo::rustc-cfg=unoptimized");
    }
}
