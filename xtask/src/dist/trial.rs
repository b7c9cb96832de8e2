//! `cargo xtask dist --try`: each package is installed in a clean root, records a program there with names, reports it, and is removed
//! again. The steps are shell scripts beside this file, as somebody would type them.
//!
//! It needs root, for mounts that end with each trial.

use super::Release;
use super::roots::Base;
use crate::{packages, run};
use std::process::Command;

/// How a root is made, and commands for the steps.
const ROOT: &str = include_str!("trial/root.sh");

/// A way to install, and in which roots it is tried with which steps.
pub(super) const WAYS: [(&str, &[(Base, &str)]); 7] = [
    ("tarball", &[(Base::Oldest, TARBALL), (Base::Stable, TARBALL), (Base::Newest, TARBALL)]),
    ("musl", &[(Base::Empty, include_str!("trial/musl.sh"))]),
    ("deb", &[(Base::Oldest, DEB), (Base::Stable, DEB), (Base::Newest, DEB)]),
    ("image", &[(Base::Stable, include_str!("trial/image.sh"))]),
    ("wheel", &[(Base::Installers, include_str!("trial/wheel.sh"))]),
    ("npm", &[(Base::Installers, include_str!("trial/npm.sh"))]),
    ("cargo", &[(Base::Installers, include_str!("trial/cargo.sh"))]),
];

const TARBALL: &str = include_str!("trial/tarball.sh");
const DEB: &str = include_str!("trial/deb.sh");

/// Tries the ways that are named, or all.
pub(super) fn run(release: &Release, only: &[String]) -> Result<(), String> {
    if run::captured(Command::new("id").arg("-u"))?.trim() != "0" {
        return Err("roots of other systems are mounted, which needs root; run it with sudo.".to_owned());
    }
    if !release.out.join("crates/ORDER").is_file() {
        return Err("there are no packages to try; run `cargo xtask dist` first.".to_owned());
    }
    packages::ensure_for_dist()?;
    let is_wanted = |name: &str| only.is_empty() || only.iter().any(|it| it == name);
    for (way, trials) in WAYS.iter().filter(|(name, _)| is_wanted(name)) {
        for (base, steps) in *trials {
            trial(release, *base, steps).map_err(|fault| format!("{way} on {}: {fault}", base.name()))?;
            println!("    {way} on {}: installed, recorded, reported, removed", base.name());
        }
    }
    Ok(())
}

fn trial(release: &Release, base: Base, steps: &str) -> Result<(), String> {
    let roots = release.root.join("target/roots");
    let base = base.ensure(&roots)?;
    // On the disk of the roots, as layers are.
    let work = tempfile::Builder::new().prefix("trial-").tempdir_in(&roots);
    let work = work.map_err(|error| format!("there is no folder for a trial: {error}."))?;
    let sysroot =
        run::captured(Command::new("rustc").args(["--print", "sysroot"]).current_dir(&release.root))?;
    let mut shell = Command::new("unshare");
    shell.args(["--mount", "--propagation", "private", "sh", "-euc", &format!("{ROOT}\n{steps}")]);
    shell.env("BASE", base).env("WORK", work.path()).env("PACKAGES", &release.out);
    shell.env("VERSION", &release.version).env("SYSROOT", sysroot.trim_end());
    run::captured(&mut shell)
        .map(drop)
        .map_err(|fault| fault.rsplit("): ").next().unwrap_or_default().to_owned())
}
