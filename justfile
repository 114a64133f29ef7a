# The whole gate and its parts. `just` alone lists them.

set shell := ["bash", "-euo", "pipefail", "-c"]

tools := justfile_directory() / "target/tools/bin"
export PATH := tools + ":" + env("PATH")

# What there is to run.
default:
    @just --list

# The whole gate: what CI runs.
check: fmt locks lint test readme doc public-api deny package budget

# The formatting, checked.
fmt:
    cargo fmt --all --check
    cargo fmt --all --check --manifest-path bench/Cargo.toml

# Both lock files against the manifests: the rig's goes stale with every dependency of the crates it measures. `just relock` mends it.
locks:
    cargo metadata --locked --format-version 1 > /dev/null
    cargo metadata --locked --format-version 1 --manifest-path bench/Cargo.toml > /dev/null

# The rig's lock file anew, after the dependencies of the crates changed.
relock:
    cargo update --workspace --manifest-path bench/Cargo.toml

# Clippy, warnings as errors; the measuring rig as well.
lint:
    cargo clippy --workspace --all-targets --all-features --locked -- --deny warnings
    cargo clippy --manifest-path bench/Cargo.toml --target-dir target --all-targets --locked -- --deny warnings

# Unit, integration and documentation tests. The whole workspace is named each time, so that dependencies have the same features and
# are built once; the rig's tests are built as the guard is.
test:
    cargo test --workspace --locked
    cargo test --workspace --all-features --locked --test informer --test workqueue
    cargo test --workspace --all-features --locked --doc
    cargo test --release --locked --manifest-path bench/Cargo.toml --target-dir target --package budget --package rig --lib --bin soak

# The commands that the README begins with.
readme:
    grep -qx 'cargo run --release -- demo' README.md
    grep -qx 'cargo test --workspace' README.md
    cargo run --release --locked -- demo --for 3s

# The picture in the README, anew.
picture:
    cargo build --release --locked
    cargo run -p kubectl-informer --example picture -- 118 32 9 target/release/kubectl-informer demo > target/demo.svg
    mv target/demo.svg docs/demo.svg

# The documentation, warnings as errors.
doc:
    RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --all-features --no-deps --document-private-items --locked

# The public items of the libraries against the lists in the repository: `just public-api`, and `just public-api write` to update them.
public-api what="check":
    .ci/public-api {{what}}

# Licences, sources and duplicates of the dependencies, and their known vulnerabilities where the database of them can be fetched. The
# tool runs once: optimising it would take longer than it does.
deny:
    command -v cargo-deny >/dev/null || cargo install --debug --locked cargo-deny --root target/tools
    cargo deny --locked check bans licenses sources
    .ci/advisories

# Every crate that is to be published, packaged and built from its package. A library names no release of Kubernetes
# itself, so the build gets one. Cargo takes what it unpacked of such packages before, in the same place and of the same
# version, for these: that goes first.
package:
    rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/kube{-embedded,-informer,ctl-informer}-*
    K8S_OPENAPI_ENABLED_VERSION=1.37 cargo package --package kube-embedded --package kube-informer --package kubectl-informer --locked --allow-dirty

# Both packages are named so that the features of dependencies, and with them the counts, are those of the whole rig.
# Instructions and bytes of fixed work against their budgets: `just budget`, and `just budget write` to set them anew.
budget what="check":
    .ci/valgrind
    cargo build --release --locked --manifest-path bench/Cargo.toml --target-dir target --package budget --package rig --bin budget
    target/release/budget {{what}}

# Side by side with client-go and kube-rs, e.g. `just bench --quick`; needs Go.
[positional-arguments]
bench *options:
    cargo build --release --locked --manifest-path bench/Cargo.toml --target-dir target
    target/release/bench "$@"

# More and more objects and handlers: whether cost grows with them and no faster; needs Go. `just growth --quick` to see that it runs.
growth *options:
    cargo build --release --locked --manifest-path bench/Cargo.toml --target-dir target
    target/release/bench growth {{options}}

# An hour beside a pretended cluster where things go wrong; fails unless memory is flat and nothing is lost. `just soak --for 2m` for less.
soak *options:
    cargo build --release --locked --manifest-path bench/Cargo.toml --target-dir target --package rig --bin soak
    target/release/soak {{options}}

# The benchmarks of one crate, e.g. `just microbench kube-informer --bench store`.
microbench crate *options:
    cargo bench -p {{crate}} {{options}}

# More seeds of the informer's simulation than the gate runs, e.g. `just sim 100000`.
sim seeds="10000":
    KUBE_INFORMER_SEEDS={{seeds}} cargo test --release -p kube-informer --test simulation

# The real kube-apiserver as judge; needs Go. Everything, or some steps: `just e2e informer`, `just e2e informer/tokens`.
e2e *steps: (build-e2e)
    target/debug/e2e {{steps}}

# With the features of `cargo test --workspace`, so that nothing is built twice.
[private]
build-e2e:
    cargo build --locked --workspace --bin e2e --bin kubectl-informer --test conformance

# The same with an older kube-apiserver as judge, by hand; its results are kept in e2e/results-old.md.
e2e-old *steps: (build-e2e)
    target/debug/e2e --old {{steps}}
    cp target/e2e/results-old.md e2e/results-old.md
