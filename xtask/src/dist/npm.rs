//! `mallow-profiler-VERSION.tgz` for npm: the program itself is what npm links as `mallow`, so that nothing of Node's starts in between.

use super::Release;
use super::stage::{Kind, Stage};
use super::tree::{DOC, Tree};
use crate::run;
use serde_json::json;
use std::path::{Path, PathBuf};

const NAME: &str = "mallow-profiler";

/// Makes it.
pub(super) fn build(release: &Release, tree: &Tree) -> Result<PathBuf, String> {
    let stage = Stage::new(release.out.join("stage/npm"))?;
    let manifest = json!({
        "name": NAME,
        "version": release.version,
        "description": "Heap profiler, leak finder and allocation tests for Linux",
        "license": "MIT OR Apache-2.0",
        "keywords": ["profiler", "memory", "heap", "leak", "allocation"],
        "os": ["linux"],
        "cpu": ["x64"],
        "bin": { "mallow": "bin/mallow" },
        "files": ["bin", "LICENSE-MIT", "LICENSE-APACHE", "NOTICE", "THIRD-PARTY.txt", "RUST-STANDARD-LIBRARY.html"],
    });
    stage.put("package.json", format!("{manifest:#}\n"), Kind::Data)?;
    stage.put("bin/mallow", tree.get(Path::new("bin/mallow"))?, Kind::Program)?;
    for (place, bytes, kind) in tree.files.iter().filter(|(place, ..)| place.starts_with(DOC)) {
        if let Some(name) = place.file_name().filter(|name| *name != "CHANGELOG.md") {
            stage.put(name, bytes, *kind)?;
        }
    }
    stage.set_times(release.epoch_s)?;
    let mut pack = release.tool("npm");
    pack.args(["pack", "--ignore-scripts", "--loglevel=error", "--pack-destination"]).arg(&release.out);
    run::captured(pack.current_dir(stage.path()))?;
    Ok(release.out.join(format!("{NAME}-{}.tgz", release.version)))
}
