//! What the compiler says about mistakes that the types prevent.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on is to fail")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Compiles a program with this crate and `kube`, as far as its types; returns the compiler's
/// messages for each build of the two that is in the target directory, the latest first.
///
/// Cargo does not say which builds belong to this test. With a `kube` that this crate was not built
/// with, the messages are about two versions of one crate.
fn messages(program: &str) -> impl Iterator<Item = String> + use<> {
    let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let (ours, kubes) = (builds(&deps, "kube_informer"), builds(&deps, "kube"));
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compile_errors");
    std::fs::create_dir_all(&out).unwrap();
    let source = out.join("program.rs");
    std::fs::write(&source, program).unwrap();
    let pairs: Vec<_> =
        ours.into_iter().flat_map(|ours| kubes.clone().into_iter().map(move |kube| (ours.clone(), kube))).collect();
    pairs.into_iter().map(move |(ours, kube)| {
        let external = |name: &str, path: &Path| [name, "=", path.to_str().unwrap()].concat();
        let ran = Command::new(rustc())
            .args(["--edition=2024", "--crate-type=lib", "--emit=metadata", "--color=never", "-L"])
            .arg(format!("dependency={}", deps.display()))
            .args(["--extern".to_owned(), external("kube_informer", &ours)])
            .args(["--extern".to_owned(), external("kube", &kube)])
            .arg("--out-dir")
            .arg(&out)
            .arg(&source)
            .output()
            .unwrap();
        String::from_utf8_lossy(&ran.stderr).into_owned()
    })
}

/// The compiler beside the cargo that runs this test.
fn rustc() -> OsString {
    let beside = std::env::var_os("CARGO").map(|cargo| Path::new(&cargo).with_file_name("rustc"));
    beside.filter(|path| path.exists()).map_or_else(|| "rustc".into(), Into::into)
}

/// The builds of a library, the latest first.
fn builds(deps: &Path, name: &str) -> Vec<PathBuf> {
    let prefix = format!("lib{name}-");
    let is_build = |path: &PathBuf| {
        let file = path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
        file.starts_with(&prefix) && file.ends_with(".rlib")
    };
    let mut found: Vec<PathBuf> =
        deps.read_dir().unwrap().map(|entry| entry.unwrap().path()).filter(is_build).collect();
    let built = |path: &PathBuf| path.metadata().and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    found.sort_by_key(|path| std::cmp::Reverse(built(path)));
    found
}

#[test]
fn a_kind_that_is_known_only_at_run_time_is_an_error_that_names_the_function_to_use() {
    let program = "pub fn informer(client: kube::Client) {
        let _ = kube_informer::Informer::<kube::core::DynamicObject>::builder(client).build();
    }";
    let hint = "name the resource, as in `Informer::builder_for(client, resource)`";
    let shown =
        messages(program).find(|messages| messages.contains(hint)).expect("no build of the crate shows the hint");
    println!("{shown}");
    assert!(shown.contains("a kind known when compiling is needed here"), "{shown}");
}
