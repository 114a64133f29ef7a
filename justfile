# The whole gate and its parts. `just` alone lists them.

set shell := ["bash", "-euo", "pipefail", "-c"]

tools := justfile_directory() / "target/tools/bin"
export PATH := tools + ":" + env("PATH")

# Lists the recipes.
default:
    @just --list

# The whole gate: what CI runs.
check: fmt locks lint test readme doc public-api deny package budget

# Checks the formatting.
fmt:
    cargo fmt --all --check
    cargo fmt --all --check --manifest-path bench/Cargo.toml

# The rig's lock file becomes stale with every dependency change of the crates; `just relock` updates it.
# Checks both lock files against the manifests.
locks:
    cargo metadata --locked --format-version 1 > /dev/null
    cargo metadata --locked --format-version 1 --manifest-path bench/Cargo.toml > /dev/null

# Updates the rig's lock file, after a change of the crates' dependencies.
relock:
    cargo update --workspace --manifest-path bench/Cargo.toml

# Clippy with warnings as errors, on the workspace and on the measuring rig.
lint:
    cargo clippy --workspace --all-targets --all-features --locked -- --deny warnings
    cargo clippy --manifest-path bench/Cargo.toml --target-dir target --all-targets --locked -- --deny warnings

# Every command names the whole workspace, so that dependencies have the same features and are built once; the
# rig's tests are built like the budget guard.
# Unit, integration and documentation tests.
test:
    cargo test --workspace --locked
    cargo test --workspace --all-features --locked --test informer --test workqueue
    cargo test --workspace --all-features --locked --doc
    cargo test --release --locked --manifest-path bench/Cargo.toml --target-dir target --package budget --package rig --lib --bin soak

# Runs the commands at the top of the README.
readme:
    grep -qx 'cargo run --release -- demo' README.md
    grep -qx 'cargo test --workspace' README.md
    cargo run --release --locked -- demo --for 3s

# Regenerates the picture in the README.
picture:
    cargo build --release --locked
    cargo run -p kubectl-informer --example picture -- 118 32 9 target/release/kubectl-informer demo > target/demo.svg
    mv target/demo.svg docs/demo.svg

# Regenerates the screens of `top` in the documentation.
screens:
    KUBECTL_INFORMER_SCREENS=1 cargo test --workspace --test command -- the_screen_fits_at_every_size

# Builds the documentation with warnings as errors.
doc:
    RUSTDOCFLAGS="--deny warnings" cargo doc --workspace --all-features --no-deps --document-private-items --locked

# `just public-api write` updates the lists.
# Checks the public items of the libraries against the lists in the repository.
public-api what="check":
    .ci/public-api {{what}}

# The libraries have no CEL unless a feature asks for it: its parser brings sixteen crates.
# Advisories are checked where their database can be fetched. The tool is built without optimisation, which would
# take longer than the check.
# Checks licences, sources, duplicates and known vulnerabilities of the dependencies.
deny:
    command -v cargo-deny >/dev/null || cargo install --debug --locked cargo-deny --root target/tools
    cargo deny --locked check bans licenses sources
    tree=$(cargo tree --locked --package kube-embedded --package kube-informer --package kube-controller --edges normal --prefix none); ! grep --extended-regexp '^(cel|antlr4rust) ' <<< "$tree"
    .ci/advisories

# A library selects no release of Kubernetes itself, so the build sets one. Cargo would reuse an earlier unpacked
# package of the same version, so those are removed first.
# Packages every crate to be published and builds it from its package.
package:
    rm -rf "${CARGO_HOME:-$HOME/.cargo}"/registry/src/-*/kube{-controller,-embedded,-informer,-simulation,ctl-informer}-*
    K8S_OPENAPI_ENABLED_VERSION=1.37 cargo package --package kube-embedded --package kube-informer --package kube-controller --package kube-simulation --package kubectl-informer --locked --allow-dirty

# Names both packages, so that the features of dependencies, and thus the counts, are those of the whole rig.
# Checks instructions and bytes of fixed work against their budgets; `just budget write` sets the budgets.
budget what="check":
    .ci/valgrind
    cargo build --release --locked --manifest-path bench/Cargo.toml --target-dir target --package budget --package rig --bin budget
    target/release/budget {{what}}

# Side by side with client-go and kube-rs, e.g. `just bench --quick`; needs Go.
[positional-arguments]
bench *options:
    cargo build --release --locked --manifest-path bench/Cargo.toml --target-dir target
    target/release/bench "$@"

# What a new user's debug build costs: compiling, syncing 5,000 pods, warnings. Builds everything once, in a
# temporary folder.
# Makes and times a project outside the workspace.
first-hour *folder:
    bench/first-hour {{folder}}

# Time and peak memory of `get pods -A` in every form, beside those of a kubectl, such as the one of `just e2e`.
get-bench kubectl *options:
    bench/get {{kubectl}} {{options}}

# Measures how cost grows with objects and handlers; needs Go. `just growth --quick` is a short run.
growth *options:
    cargo build --release --locked --manifest-path bench/Cargo.toml --target-dir target
    target/release/bench growth {{options}}

# Fails unless memory is flat and no event is lost. `just soak --for 2m` is a shorter run.
# Runs informers for an hour against a simulated cluster with injected faults.
soak *options:
    cargo build --release --locked --manifest-path bench/Cargo.toml --target-dir target --package rig --bin soak
    target/release/soak {{options}}

# Writes the pages that list the cases of the conformance suite: a table in the README of kube-embedded, and
# its CONFORMANCE.md.
conformance-pages:
    cargo test --workspace --test conformance -- --write-documentation

# The benchmarks of one crate, e.g. `just microbench kube-informer --bench store`.
microbench crate *options:
    cargo bench -p {{crate}} {{options}}

# More seeds of the informer's simulation than the gate runs, e.g. `just sim 100000`.
sim seeds="10000":
    KUBE_INFORMER_SEEDS={{seeds}} cargo test --release -p kube-informer --test simulation

# More seeds of the leader election than the gate runs, e.g. `just elections 10000`.
elections seeds="3000":
    KUBE_CONTROLLER_SEEDS={{seeds}} cargo test --release -p kube-controller --test leadership model -- --nocapture

# More seeds of groups that divide ranges than the gate runs, e.g. `just shards 10000`.
shards seeds="1000":
    KUBE_CONTROLLER_SEEDS={{seeds}} cargo test --release -p kube-controller --test leadership shard_model -- --nocapture

# More seeds of read-your-writes than the gate runs, and the seeds with which kube-runtime creates twice.
read-your-writes seeds="1000":
    KUBE_CONTROLLER_SEEDS={{seeds}} cargo test --release -p kube-controller --test controller read_your_writes -- --nocapture

# More seeds and plans of the controllers that have no bug than the gate runs: none may raise an alarm.
# Searches correct controllers, e.g. `just search 100`.
search seeds="20" plans="100":
    KUBE_SIMULATION_SEEDS={{seeds}} KUBE_SIMULATION_PLANS={{plans}} cargo test --release -p kube-simulation --test search alarm -- --nocapture

# Mutated input in every parser, with random seeds: the targets are the tests in modules named
# `fuzz`, and the time is divided among them. `just fuzz 5` is five minutes. A failing seed is printed, and
# `FUZZ_SEED=… cargo test …` with the name of the target runs it again.
# Fuzzes for an hour.
fuzz minutes="60":
    #!/usr/bin/env bash
    set -euo pipefail
    tests=(cargo test --profile fuzz --locked -p kube-embedded -p kube-informer -p kubectl-informer --lib --bins --test codec fuzz::)
    targets=$("${tests[@]}" -- --list | grep -c ': test$')
    FUZZ_SECONDS=$(({{minutes}} * 60 * $(nproc) / targets)) "${tests[@]}" --no-fail-fast -- --nocapture

# Tests against the real kube-apiserver; needs Go. Some steps only: `just e2e informer/tokens`.
e2e *steps: (build-e2e)
    target/debug/e2e {{steps}}

# Uses the features of `cargo test --workspace`, so that nothing is built twice.
[private]
build-e2e:
    cargo build --locked --workspace --bin e2e --bin kubectl-informer --test conformance --example foo --example website

# The same against an older kube-apiserver, run manually; writes e2e/results-old.md.
e2e-old *steps: (build-e2e)
    target/debug/e2e --old {{steps}}
    cp target/e2e/results-old.md e2e/results-old.md
