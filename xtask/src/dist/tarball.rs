//! `mallow-VERSION-x86_64-linux.tar.gz`: the tree under a folder of its own, to be unpacked below any prefix.

use super::Release;
use super::stage::Stage;
use super::tree::Tree;
use crate::run;
use std::path::PathBuf;

/// Makes it.
pub(super) fn build(release: &Release, tree: &Tree) -> Result<PathBuf, String> {
    let name = format!("mallow-{}-x86_64-linux", release.version);
    let stage = Stage::new(release.out.join("stage/tarball"))?;
    tree.put_into(&stage, &name)?;
    stage.set_times(release.epoch_s)?;
    let archive = release.out.join(format!("{name}.tar.gz"));
    let mut tar = release.tool("tar");
    tar.args(["--create", "--format=gnu", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"]);
    tar.arg("--use-compress-program=gzip --best --no-name").arg("--file").arg(&archive);
    run::shown(tar.arg("--directory").arg(stage.path()).arg(&name))?;
    Ok(archive)
}
