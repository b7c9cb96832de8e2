//! What judges us and is in no distribution: fetched from npm and PyPI once, and kept beside what cargo builds.
//!
//! Version and checksum are written beside the test that runs the judge, so that both read the same. As with
//! Debian's packages, what cannot be had is a failure.

use crate::{run, workspaces};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files that name a package, its version and its checksum, which tells whose it is: `sha512-` is npm's, `sha256:` PyPI's.
const PINNED: &[&str] = &[
    "crates/mallow-formats/tests/pympler/pinned.json",
    "crates/mallow-formats/tests/devtools_worker/pinned.json",
    "crates/mallow-formats/tests/speedscope_app/pinned.json",
    "e2e/tests/memray/pinned.json",
];

/// What only the long suite asks for: runtimes of other versions than a distribution has, which have files written for the tests, and greenlets for
/// each version of Python.
const LARGE: &[&str] = &["crates/mallow-formats/tests/runtimes", "e2e/tests/greenlet"];

/// Programs of crates.io, and their versions.
const PROGRAMS: &[(&str, &str)] = &[("hprof-slurp", "0.10.0"), ("reap", "0.3.3")];

struct Package {
    name: String,
    version: String,
    /// As the registry writes it: the algorithm, and the archive's checksum.
    integrity: String,
    /// The version of Python that a wheel is for, where it is not the one that installs it.
    python: Option<String>,
}

/// Fetches every judge that is not there.
pub(crate) fn ensure(root: &Path) -> Result<(), String> {
    let mut workspaces = workspaces::all(root)?.into_iter();
    let workspace = workspaces.find(workspaces::Workspace::is_root).ok_or("There is no root workspace.")?;
    let kept = workspace.target_folder(root)?.join("judges");
    PINNED.iter().try_for_each(|pinned| ensure_one(&root.join(pinned), &kept))?;
    build_pprof()
}

/// From Go 1.25 on, `go tool pprof` is built when it is first called: once here, not by each test that is the first one at the same time.
fn build_pprof() -> Result<(), String> {
    let path = run::captured(Command::new("go").args(["tool", "-n", "pprof"]))?;
    println!("    pprof of Go is {}", path.trim());
    Ok(())
}

/// Fetches what a file pins, if it is not there.
fn ensure_one(pinned: &Path, kept: &Path) -> Result<(), String> {
    let package = Package::read(pinned)?;
    let folder = kept.join(package.folder());
    if folder.is_dir() {
        println!("    {} is there", package.spec());
        return Ok(());
    }
    fetch(&package, &folder).map_err(|sentence| {
        format!("the tests need {}, which could not be fetched: {sentence}", package.spec())
    })
}

/// The files in the folders of [`LARGE`] that pin one.
fn large(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files: Vec<PathBuf> = Vec::new();
    for folder in LARGE {
        let folder = root.join(folder);
        let entries =
            std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}.", folder.display()))?;
        files.extend(entries.flatten().map(|entry| entry.path()));
    }
    files.retain(|path| path.extension().is_some_and(|ending| ending == "json"));
    files.sort();
    Ok(files)
}

/// Fetches the runtimes that are not there, and builds every judge that is a program of crates.io and is not there. That takes minutes, so only
/// the long suite asks them.
pub(crate) fn ensure_large(root: &Path) -> Result<(), String> {
    let mut workspaces = workspaces::all(root)?.into_iter();
    let workspace = workspaces.find(workspaces::Workspace::is_root).ok_or("There is no root workspace.")?;
    let kept = workspace.target_folder(root)?.join("judges");
    large(root)?.iter().try_for_each(|pinned| ensure_one(pinned, &kept))?;
    let kept = kept.join("programs");
    for (name, version) in PROGRAMS {
        let mut install = Command::new("cargo");
        // What is there in this version is left alone; without a lock file of its own a program would change with its libraries.
        install.args(["install", "--quiet", "--locked", "--version", version, name, "--root"]).arg(&kept);
        println!("    $ {}", run::as_typed(&install));
        run::captured(&mut install)?;
    }
    Ok(())
}

/// Unpacks it beside its place first, so that half a package never stands there.
fn fetch(package: &Package, folder: &Path) -> Result<(), String> {
    let mut unfinished = folder.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    let because = |error: std::io::Error| format!("{} cannot be written: {error}.", unfinished.display());
    if unfinished.exists() {
        std::fs::remove_dir_all(&unfinished).map_err(because)?;
    }
    std::fs::create_dir_all(&unfinished).map_err(because)?;
    if package.integrity.starts_with("sha256:") {
        install(package, &unfinished, because)?;
        return std::fs::rename(&unfinished, folder).map_err(because);
    }
    let mut pack = Command::new("npm");
    pack.args(["pack", "--json", "--prefer-offline", "--ignore-scripts", "--fetch-retries=1"]);
    pack.arg("--loglevel=error").arg(package.spec()).current_dir(&unfinished);
    println!("    $ {}", run::as_typed(&pack));
    let archive = package.archive(&run::captured(&mut pack)?)?;
    run::captured(Command::new("tar").arg("-xzf").arg(archive).current_dir(&unfinished))?;
    std::fs::rename(unfinished.join("package"), folder).map_err(because)?;
    std::fs::remove_dir_all(&unfinished).map_err(because)
}

/// Installs a wheel into a folder, if it is the one that was pinned: pip checks that.
fn install(
    package: &Package,
    folder: &Path,
    because: impl Fn(std::io::Error) -> String,
) -> Result<(), String> {
    let wanted = folder.join("wanted.txt");
    let line = format!("{}=={} --hash={}\n", package.name, package.version, package.integrity);
    std::fs::write(&wanted, line).map_err(because)?;
    let mut pip = Command::new("/usr/bin/python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:"]);
    if let Some(python) = &package.python {
        pip.args(["--python-version", python]);
    }
    pip.args(["--disable-pip-version-check", "--root-user-action=ignore", "--target"]).arg(folder);
    pip.arg("-r").arg(wanted);
    println!("    $ {}", run::as_typed(&pip));
    run::captured(&mut pip).map(drop)
}

impl Package {
    fn read(path: &Path) -> Result<Package, String> {
        let because = |what: String| format!("{} cannot be read: {what}.", path.display());
        let text = std::fs::read(path).map_err(|error| because(error.to_string()))?;
        let json: serde_json::Value =
            serde_json::from_slice(&text).map_err(|error| because(error.to_string()))?;
        let field = |name: &str| {
            let text = json[name].as_str().map(str::to_owned);
            text.ok_or_else(|| because(format!("it has no {name}")))
        };
        let python = json["python"].as_str().map(str::to_owned);
        Ok(Package {
            name: field("name")?,
            version: field("version")?,
            integrity: field("integrity")?,
            python,
        })
    }

    /// What npm calls it.
    fn spec(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }

    /// Where the test looks for it.
    fn folder(&self) -> String {
        let python = self.python.as_ref().map(|python| format!("-python{python}")).unwrap_or_default();
        format!("{}-{}{python}", self.name, self.version)
    }

    /// The file that npm says it wrote, if it is the one that was pinned; npm has checked what it fetched
    /// against the checksum that it prints.
    fn archive(&self, printed: &str) -> Result<PathBuf, String> {
        let json: serde_json::Value = serde_json::from_str(printed)
            .map_err(|error| format!("what npm printed cannot be read: {error}."))?;
        let (integrity, name) = (&json[0]["integrity"], &json[0]["filename"]);
        if *integrity != self.integrity.as_str() {
            return Err(format!(
                "the registry's has the checksum {integrity} instead of {}.",
                self.integrity
            ));
        }
        name.as_str().map(PathBuf::from).ok_or_else(|| "npm does not name the file it wrote.".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package() -> Package {
        Package {
            name: "judge".to_owned(),
            version: "1.2.3".to_owned(),
            integrity: "sha512-AA==".to_owned(),
            python: None,
        }
    }

    #[test]
    fn another_archive_than_the_pinned_one_is_refused() {
        let printed = r#"[{ "integrity": "sha512-AA==", "filename": "judge-1.2.3.tgz" }]"#;
        assert_eq!(package().archive(printed), Ok(PathBuf::from("judge-1.2.3.tgz")));
        let fault = package().archive(&printed.replace("AA", "BB")).unwrap_err();
        assert_eq!(fault, "the registry's has the checksum \"sha512-BB==\" instead of sha512-AA==.");
        assert!(package().archive("[]").is_err());
        assert!(package().archive("npm is tired").is_err());
    }

    #[test]
    fn every_pinned_package_can_be_read() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let always = PINNED.iter().map(|pinned| root.join(pinned));
        for pinned in always.chain(large(&root).unwrap()) {
            let package = Package::read(&pinned).unwrap();
            let is_known = ["sha512-", "sha256:"].iter().any(|start| package.integrity.starts_with(start));
            assert!(is_known, "{}", pinned.display());
        }
    }
}
