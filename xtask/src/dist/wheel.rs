//! Wheels for PyPI: `mallow-profiler`, which holds the program, and `mallow-markers`, which it brings along: the package `mallow` that
//! programs import and that `python -m mallow` runs, and the plugin for pytest.
//!
//! `wheel pack`, the Python project's own tool, writes the list of checksums and the archive.

use super::Release;
use super::stage::{Kind, Stage, read};
use super::tree::Tree;
use crate::run;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Who may install it. A static program runs beside either C library; the first name is what a pip before 20.3 knows.
const PLATFORMS: [&str; 3] = ["manylinux2014_x86_64", "manylinux_2_17_x86_64", "musllinux_1_1_x86_64"];

/// Files of the licences, in the folder that says what a wheel is.
const LICENCES: [&str; 5] =
    ["LICENSE-MIT", "LICENSE-APACHE", "NOTICE", "THIRD-PARTY.txt", "RUST-STANDARD-LIBRARY.html"];

/// By this pytest finds the plugin; `markers/python/pyproject.toml` says the same.
const PYTEST: &str = "[pytest11]\nmallow_pytest = mallow_pytest\n";

/// Makes both.
pub(super) fn build(release: &Release, tree: &Tree) -> Result<[PathBuf; 2], String> {
    Ok([markers(release, tree)?, profiler(release, tree)?])
}

fn profiler(release: &Release, tree: &Tree) -> Result<PathBuf, String> {
    let wheel = Wheel { release, name: "mallow_profiler", tag: format!("py3-none-{}", PLATFORMS.join(".")) };
    let version = &release.version;
    let needs = format!("Requires-Dist: mallow-markers=={version}\n");
    let stage =
        wheel.stage(tree, "Heap profiler, leak finder and allocation tests for Linux", &needs, &LICENCES)?;
    let program = tree.get(Path::new("bin/mallow"))?;
    stage.put(format!("mallow_profiler-{version}.data/scripts/mallow"), program, Kind::Program)?;
    wheel.pack(&stage)
}

fn markers(release: &Release, tree: &Tree) -> Result<PathBuf, String> {
    let wheel = Wheel { release, name: "mallow_markers", tag: "py3-none-any".to_owned() };
    wheel.pack(&wheel.of_markers(tree)?)
}

struct Wheel<'a> {
    release: &'a Release,
    name: &'static str,
    /// Interpreter, its binary interface, platforms.
    tag: String,
}

impl Wheel<'_> {
    /// What says what it is: <https://packaging.python.org/en/latest/specifications/core-metadata/>.
    fn stage(&self, tree: &Tree, summary: &str, needs: &str, licences: &[&str]) -> Result<Stage, String> {
        let (name, version) = (self.name, &self.release.version);
        let stage = Stage::new(self.release.out.join("stage").join(name))?;
        let info = format!("{name}-{version}.dist-info");
        let listed: String = licences.iter().map(|name| format!("License-File: {name}\n")).collect();
        let metadata = format!(
            "Metadata-Version: 2.4\nName: {}\nVersion: {version}\nSummary: {summary}\n\
             License-Expression: MIT OR Apache-2.0\n{listed}Requires-Python: >=3.7\n{needs}",
            name.replace('_', "-")
        );
        stage.put(format!("{info}/METADATA"), metadata, Kind::Data)?;
        let is_pure = self.tag.ends_with("-any");
        let tags: String = expanded(&self.tag).map(|tag| format!("Tag: {tag}\n")).collect();
        let wheel = format!("Wheel-Version: 1.0\nGenerator: mallow\nRoot-Is-Purelib: {is_pure}\n{tags}");
        stage.put(format!("{info}/WHEEL"), wheel, Kind::Data)?;
        for licence in licences {
            let text = tree.get(&Path::new(super::tree::DOC).join(licence))?;
            stage.put(format!("{info}/licenses/{licence}"), text, Kind::Data)?;
        }
        Ok(stage)
    }

    /// The package and the plugin, of the markers' sources.
    fn of_markers(&self, tree: &Tree) -> Result<Stage, String> {
        let stage =
            self.stage(tree, "Region markers for allocation tests with mallow", "", &LICENCES[..2])?;
        let sources = self.release.root.join("markers/python");
        for name in ["mallow/__init__.py", "mallow/__main__.py", "mallow_pytest.py"] {
            stage.put(name, read(&sources.join(name))?, Kind::Data)?;
        }
        let info = format!("{}-{}.dist-info", self.name, self.release.version);
        stage.put(format!("{info}/entry_points.txt"), PYTEST, Kind::Data)?;
        Ok(stage)
    }

    fn pack(&self, stage: &Stage) -> Result<PathBuf, String> {
        stage.set_times(self.release.epoch_s)?;
        let mut pack: Command = self.release.tool("/usr/bin/python3");
        pack.args(["-m", "wheel", "pack", "--dest-dir"]).arg(&self.release.out).arg(stage.path());
        run::captured(&mut pack)?;
        let path = self.release.out.join(format!("{}-{}-{}.whl", self.name, self.release.version, self.tag));
        if path.is_file() { Ok(path) } else { Err(format!("`wheel pack` did not write {}.", path.display())) }
    }
}

/// A tag for each platform of a tag for several.
fn expanded(tag: &str) -> impl Iterator<Item = String> {
    let (before, platforms) = tag.rsplit_once('-').unwrap_or((tag, ""));
    platforms.split('.').map(move |platform| format!("{before}-{platform}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_markers_bring_the_plugin_of_pytest() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned();
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().to_owned();
        let release = Release { root: root.clone(), version: "1.2.3".to_owned(), epoch_s: 0, out };
        let licence = |name: &&str| (Path::new(super::super::tree::DOC).join(name), Vec::new(), Kind::Data);
        let tree = Tree { files: LICENCES.iter().map(licence).collect() };
        let wheel = Wheel { release: &release, name: "mallow_markers", tag: "py3-none-any".to_owned() };
        let stage = wheel.of_markers(&tree).unwrap();
        let text = |name: &str| String::from_utf8(read(&stage.path().join(name)).unwrap()).unwrap();
        assert_eq!(text("mallow_markers-1.2.3.dist-info/entry_points.txt"), PYTEST);
        assert!(text("mallow_pytest.py").contains("def pytest_addoption("));
        let source: toml::Table =
            toml::from_str(&std::fs::read_to_string(root.join("markers/python/pyproject.toml")).unwrap())
                .unwrap();
        let entries = &source["project"]["entry-points"]["pytest11"];
        assert_eq!(
            format!("[pytest11]\nmallow_pytest = {}\n", entries["mallow_pytest"].as_str().unwrap()),
            PYTEST
        );
    }
}
