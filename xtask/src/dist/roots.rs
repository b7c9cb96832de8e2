//! Roots of other releases, as debootstrap makes them: the oldest and newest C libraries that can be had, and a release with the
//! installers that packages are tried with. They are made once and never changed: each trial gets a layer of its own.

use crate::run;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// Debian 11, with glibc 2.31.
    Oldest,
    /// Debian 12, the release that the tests were written against.
    Stable,
    /// The same with pip, npm and a linker.
    Installers,
    /// What becomes the next release.
    Newest,
    /// Nothing at all.
    Empty,
}

/// Installs packages in a root. That is apt's work, as debootstrap does not look for what fulfils a dependency under another name: of
/// npm's it finds most and not all.
fn add(packages: &[&str], root: &Path) -> Result<(), String> {
    if packages.is_empty() {
        return Ok(());
    }
    let apt = |words: &[&str]| {
        let mut apt = Command::new("chroot");
        apt.arg(root).args(["apt-get", "--quiet", "--yes", "--no-install-recommends"]).args(words);
        run::captured(apt.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C")).map(drop)
    };
    apt(&["update"])?;
    apt(&[&["install"], packages].concat())
}

impl Base {
    fn release(self) -> Option<(&'static str, &'static [&'static str])> {
        match self {
            Base::Oldest => Some(("bullseye", &[])),
            Base::Stable => Some(("bookworm", &[])),
            Base::Installers => Some(("bookworm", &["python3-venv", "npm", "gcc", "libc6-dev"])),
            Base::Newest => Some(("sid", &[])),
            Base::Empty => None,
        }
    }

    /// What people call it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Base::Oldest => "Debian 11",
            Base::Stable => "Debian 12",
            Base::Installers => "Debian 12 with installers",
            Base::Newest => "Debian unstable",
            Base::Empty => "musl alone",
        }
    }

    /// Where it is; it is made when it is not there.
    pub(super) fn ensure(self, kept: &Path) -> Result<PathBuf, String> {
        let folder = kept.join(format!("{self:?}").to_lowercase());
        if folder.is_dir() {
            return Ok(folder);
        }
        let unfinished = folder.with_extension("unfinished");
        let because = |error: std::io::Error| format!("{}: {error}.", unfinished.display());
        if unfinished.exists() {
            std::fs::remove_dir_all(&unfinished).map_err(because)?;
        }
        std::fs::create_dir_all(&unfinished).map_err(because)?;
        if let Some((release, packages)) = self.release() {
            let mut debootstrap = Command::new("debootstrap");
            debootstrap.args(["--variant=minbase", release]).arg(&unfinished);
            println!("    $ {}", run::as_typed(&debootstrap));
            run::captured(&mut debootstrap)?;
            add(packages, &unfinished)?;
            // Archives of packages, which nothing asks for again.
            run::captured(
                Command::new("find")
                    .arg(unfinished.join("var/cache/apt"))
                    .args(["-name", "*.deb", "-delete"]),
            )?;
        }
        std::fs::rename(&unfinished, &folder).map_err(because)?;
        Ok(folder)
    }
}
