//! Builds the recorder, a workspace of its own because it runs in other programs: without std, and with another
//! panic strategy. The library is then part of the `mallow` binary.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

const LIBRARY: &str = "libmallow_preload.so";
const TIMERS: &str = "libmallow_timers.so";
const SPAWNER: &str = "mallow-spawner";

fn main() -> ExitCode {
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    let variable =
        |name: &str| env::var_os(name).map(PathBuf::from).ok_or(format!("cargo did not set {name}"));
    let root = variable("CARGO_MANIFEST_DIR")?.join("../..");
    let out = variable("OUT_DIR")?;
    for watched in [
        "recorder/Cargo.toml",
        "recorder/Cargo.lock",
        "recorder/mallow-recorder",
        "recorder/mallow-preload",
        "recorder/mallow-spawner",
        "recorder/mallow-timers",
    ] {
        println!("cargo::rerun-if-changed={}", root.join(watched).display());
    }
    println!("cargo::rerun-if-changed={}", root.join("crates/mallow-wire").display());
    let target = out.join("recorder");
    let status = nested_cargo(&variable("CARGO")?)
        .args([
            "build",
            "--release",
            "--locked",
            "--package",
            "mallow-preload",
            "--package",
            "mallow-timers",
            "--package",
            SPAWNER,
            "--manifest-path",
        ])
        .arg(root.join("recorder/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        .status()
        .map_err(|error| format!("cannot run cargo for the recorder: {error}"))?;
    if !status.success() {
        return Err(format!("the recorder does not build: cargo ended with {status}"));
    }
    for name in [LIBRARY, TIMERS, SPAWNER] {
        copy(&target.join("release").join(name), &out.join(name))?;
    }
    Ok(())
}

/// Cargo without what the outer cargo tells its build scripts: flags meant for the outer workspace (coverage, sanitizers,
/// another linker) would end up in a library that is loaded into other programs.
fn nested_cargo(cargo: &Path) -> Command {
    let mut command = Command::new(cargo);
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        let kept =
            ["CARGO_HOME", "CARGO_NET_OFFLINE", "CARGO_BUILD_JOBS", "CARGO_TERM_COLOR", "CARGO_HTTP_CAINFO"];
        let is_cargos =
            text.starts_with("CARGO") && !kept.contains(&&*text) && !text.starts_with("CARGO_REGISTRIES_");
        let is_compilers = text.starts_with("RUSTC") || ["RUSTFLAGS", "RUSTDOCFLAGS"].contains(&&*text);
        if is_cargos || is_compilers {
            command.env_remove(&name);
        }
    }
    command
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(drop).map_err(|error| format!("cannot copy {}: {error}", from.display()))
}
