//! `mallow_VERSION_amd64.deb`: the tree below `/usr`, where Debian's policy wants its parts.

use super::Release;
use super::stage::{Kind, Stage};
use super::tree::{DOC, Tree};
use crate::run;
use std::path::{Path, PathBuf};

/// Where Debian's zsh looks.
const ZSH_OF_DEBIAN: &str = "share/zsh/vendor-completions/_mallow";

/// Makes it.
pub(super) fn build(release: &Release, tree: &Tree) -> Result<PathBuf, String> {
    let stage = Stage::new(release.out.join("stage/deb"))?;
    let doc = Path::new("usr").join(DOC);
    let mut copyright = Vec::new();
    let mut packed = Vec::new();
    for (place, bytes, kind) in &tree.files {
        let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let place = match name.as_str() {
            "NOTICE" | "LICENSE-MIT" | "LICENSE-APACHE" => {
                copyright.extend_from_slice(bytes);
                copyright.extend_from_slice(b"\n\n");
                continue;
            }
            "CHANGELOG.md" => doc.join("changelog"),
            "_mallow" => Path::new("usr").join(ZSH_OF_DEBIAN),
            _ => Path::new("usr").join(place),
        };
        stage.put(&place, bytes, *kind)?;
        if ["CHANGELOG.md", "THIRD-PARTY.txt"].contains(&name.as_str()) || name.ends_with(".1") {
            packed.push(stage.path().join(place));
        }
    }
    run::captured(release.tool("gzip").args(["--best", "--no-name"]).args(packed))?;
    stage.put(doc.join("copyright"), copyright, Kind::Data)?;
    let installed: u64 = tree.files.iter().map(|(_, bytes, _)| bytes.len() as u64).sum();
    stage.put("DEBIAN/control", control(&release.version, installed.div_ceil(1024)), Kind::Data)?;
    stage.set_times(release.epoch_s)?;
    let package = release.out.join(format!("mallow_{}_amd64.deb", release.version));
    let mut dpkg = release.tool("dpkg-deb");
    // One thread, as what xz writes differs with their number.
    dpkg.args(["--build", "--root-owner-group", "-Zxz", "-z6", "--threads-max=1"]);
    run::shown(dpkg.arg(stage.path()).arg(&package))?;
    Ok(package)
}

fn control(version: &str, installed_kib: u64) -> String {
    format!(
        "Package: mallow\n\
         Version: {version}\n\
         Architecture: amd64\n\
         Maintainer: The authors of mallow <mallow@example.invalid>\n\
         Installed-Size: {installed_kib}\n\
         Section: devel\n\
         Priority: optional\n\
         Description: heap profiler, leak finder and allocation tests\n \
         mallow runs any program and records every allocation with its whole call\n \
         stack: where memory goes, what leaks, what allocates most. It holds the\n \
         allocations of tests against a baseline and servers under load against a\n \
         leak. Nothing has to be built again.\n"
    )
}
