//! The recorder's unit tests under Miri, which finds what is undefined in unsafe code, and what two threads may not do at once.
//!
//! Miri knows no assembly and none of the kernel's maps, so these are the modules that need neither, or have a plain twin of the
//! one instruction that they need. The models go through every interleaving of safe code: Miri has nothing to find there, and would
//! take hours.

use crate::run;
use std::path::Path;
use std::process::Command;

/// What runs: parts of the tests' names.
const TESTS: [&str; 8] =
    ["bounds::", "modules::", "nodes::", "ring::", "sandbox::", "rules_give", "lines_are_parsed", "slack"];
const MODELS: [&str; 2] = ["no_interleaving", "stamps::"];
const TOOLCHAIN: &str = "nightly";

/// Runs them. Miri comes with a nightly compiler only, which is installed when it is not there.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    if !is_there() {
        install()?;
    }
    tests(root)
}

/// Within `ci`: where Miri cannot be had, which is said, the other steps still tell something.
pub(crate) fn run_where_it_can_be_had(root: &Path) -> Result<(), String> {
    if !is_there()
        && let Err(sentence) = install()
    {
        println!("    NOT RUN: Miri cannot be had here, and its step found out nothing. {sentence}");
        return Ok(());
    }
    tests(root)
}

fn tests(root: &Path) -> Result<(), String> {
    let mut command = under_nightly(root, &["cargo", "miri", "test", "--quiet"]);
    command.args(["--manifest-path", "recorder/Cargo.toml", "--package", "mallow-recorder", "--lib", "--"]);
    command.args(TESTS).args(MODELS.iter().flat_map(|name| ["--skip", name]));
    // The recorder reads addresses that it was given as numbers; tables of tests are never freed.
    command
        .env("MIRIFLAGS", "-Zmiri-permissive-provenance -Zmiri-ignore-leaks")
        .env("CARGO_INCREMENTAL", "0");
    run::shown(&mut command)
}

fn is_there() -> bool {
    run::captured(&mut under_nightly(Path::new("."), &["cargo", "miri", "--version"])).is_ok()
}

fn install() -> Result<(), String> {
    let mut rustup = Command::new("timeout");
    rustup.args(["300", "rustup", "toolchain", "install", TOOLCHAIN, "--profile", "minimal"]);
    run::captured(rustup.args(["--component", "miri", "--component", "rust-src"])).map(|_| ())
}

/// A command of the nightly toolchain. Cargo tells what it starts which toolchain it is; that is not for this one.
fn under_nightly(root: &Path, words: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", TOOLCHAIN]).args(words).current_dir(root);
    for name in
        ["RUSTUP_TOOLCHAIN", "CARGO", "RUSTC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTFLAGS"]
    {
        command.env_remove(name);
    }
    command
}
