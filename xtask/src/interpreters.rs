//! Interpreters of other versions than this machine's, from Debian's other releases: unpacked side by side, each with its own C library.
//!
//! `MALLOW_PYTHONS` and `MALLOW_RUBIES` name them to the tests of scripts; what to export is printed.

use crate::{packages, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is taken from a release.
struct Release {
    name: &'static str,
    /// Other releases whose packages fulfil dependencies.
    beside: &'static [&'static str],
    pythons: &'static [&'static str],
    /// Programs, each with the name of the folder of its library.
    rubies: &'static [(&'static str, &'static str)],
}

const RELEASES: [Release; 4] = [
    Release { name: "bullseye", beside: &[], pythons: &[], rubies: &[("ruby2.7", "2.7.0")] },
    Release { name: "trixie", beside: &[], pythons: &[], rubies: &[("ruby3.3", "3.3.0")] },
    Release { name: "sid", beside: &[], pythons: &["python3.14", "python3.15"], rubies: &[] },
    Release { name: "experimental", beside: &["sid"], pythons: &[], rubies: &[("ruby3.4", "3.4.0")] },
];

/// Where a Ruby looks for its library, whose name is its version. The path is part of the program.
const RUBY_FOLDERS: [&str; 3] =
    ["usr/lib/ruby", "usr/lib/x86_64-linux-gnu/ruby", "usr/share/rubygems-integration"];
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Unpacks what is not there yet. Needs root, as the folders of Ruby's libraries get links.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    packages::ensure_for_interpreters()?;
    let archive = archive()?;
    let (mut pythons, mut rubies) = (Vec::new(), Vec::new());
    for release in &RELEASES {
        let folder = root.join("target/interpreters").join(release.name);
        if !folder.is_dir() {
            release.unpack(&archive, &folder)?;
        }
        let program = |name: &str| folder.join("usr/bin").join(name);
        for (ruby, version) in release.rubies {
            link_library(&folder, version)?;
            rubies.push(program(ruby));
        }
        pythons.extend(release.pythons.iter().copied().map(program));
    }
    for program in pythons.iter().chain(&rubies) {
        let version = run::captured(Command::new(program).arg("--version"))?;
        println!("    {:<12} {}", version.trim().split(" (").next().unwrap_or_default(), program.display());
    }
    println!("\nexport {} {}", setting("MALLOW_PYTHONS", &pythons), setting("MALLOW_RUBIES", &rubies));
    Ok(())
}

/// The archive from which this machine has its packages.
fn archive() -> Result<String, String> {
    let format = "$(REPO_URI) $(COMPONENT) $(RELEASE)";
    let mut known = Command::new("apt-get");
    let known = run::captured(known.args(["indextargets", "--format", format, "Created-By: Packages"]))?;
    let of_release = |line: &str| {
        let [address, "main", release] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
        (!release.contains('-')).then(|| address.to_owned())
    };
    known.lines().find_map(of_release).ok_or("apt has no archive of Debian in its sources.".to_owned())
}

impl Release {
    fn unpack(&self, archive: &str, folder: &Path) -> Result<(), String> {
        let unfinished = folder.with_extension("unfinished");
        let because = |error: std::io::Error| format!("{}: {error}.", unfinished.display());
        let _ = std::fs::remove_dir_all(&unfinished);
        let apt = unfinished.join("apt");
        for part in ["state/lists/partial", "cache/archives/partial"] {
            std::fs::create_dir_all(apt.join(part)).map_err(because)?;
        }
        // Nothing is installed, as far as it knows: so every dependency comes, the C library too.
        std::fs::write(apt.join("status"), "").map_err(because)?;
        let names = [&[self.name], self.beside].concat();
        let sources: String =
            names.iter().map(|name| format!("deb [signed-by={KEYS}] {archive} {name} main\n")).collect();
        std::fs::write(apt.join("sources.list"), sources).map_err(because)?;
        let programs: Vec<&str> =
            self.pythons.iter().chain(self.rubies.iter().map(|(name, _)| name)).copied().collect();
        println!("    {}: {}", self.name, programs.join(", "));
        run::captured(apt_in(&apt).arg("update"))?;
        run::captured(apt_in(&apt).args(["--download-only", "install"]).args(&programs))?;
        let archives = std::fs::read_dir(apt.join("cache/archives")).map_err(because)?;
        for package in archives.filter_map(|entry| Some(entry.ok()?.path())) {
            if package.extension().is_some_and(|ending| ending == "deb") {
                run::captured(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&unfinished))?;
            }
        }
        for program in programs {
            with_own_library(&unfinished, folder, program)?;
        }
        std::fs::remove_dir_all(&apt).map_err(because)?;
        std::fs::rename(&unfinished, folder).map_err(because)
    }
}

/// An apt that knows nothing of this machine.
fn apt_in(folder: &Path) -> Command {
    let mut apt = Command::new("apt-get");
    apt.args(["--quiet", "--yes", "--option", "APT::Install-Recommends=false"]);
    for (name, path) in [
        ("Dir::Etc::SourceList", "sources.list"),
        ("Dir::State", "state"),
        ("Dir::State::Status", "status"),
        ("Dir::Cache", "cache"),
    ] {
        apt.arg("--option").arg(format!("{name}={}", folder.join(path).display()));
    }
    apt.args(["--option", "Dir::Etc::SourceParts=-"]);
    apt
}

/// Has a program loaded by the loader of its own release, with that release's libraries.
fn with_own_library(now: &Path, later: &Path, program: &str) -> Result<(), String> {
    const FOLDERS: [&str; 2] = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"];
    let loader = FOLDERS.iter().map(|folder| format!("{folder}/ld-linux-x86-64.so.2"));
    let loader = loader.into_iter().find(|path| now.join(path).exists());
    let loader = loader.ok_or_else(|| format!("{program} came without a C library."))?;
    let libraries = FOLDERS.map(|folder| later.join(folder).display().to_string()).join(":");
    let mut patch = Command::new("patchelf");
    patch.arg("--set-interpreter").arg(later.join(loader));
    patch.args(["--force-rpath", "--set-rpath", &libraries]).arg(now.join("usr/bin").join(program));
    run::captured(&mut patch).map(drop)
}

fn link_library(folder: &Path, version: &str) -> Result<(), String> {
    for place in RUBY_FOLDERS {
        let (from, to) = (Path::new("/").join(place).join(version), folder.join(place).join(version));
        if !to.exists() || from.exists() {
            continue;
        }
        // One that leads nowhere is of a folder that is gone.
        let _ = std::fs::remove_file(&from);
        std::os::unix::fs::symlink(&to, &from)
            .map_err(|error| format!("{} cannot be made: {error}.", from.display()))?;
    }
    Ok(())
}

fn setting(variable: &str, programs: &[PathBuf]) -> String {
    let programs: Vec<String> = programs.iter().map(|program| program.display().to_string()).collect();
    format!("{variable}={}", programs.join(":"))
}
