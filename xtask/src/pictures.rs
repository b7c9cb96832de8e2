//! `cargo xtask pictures`: runs the commands whose output README and the guide show as pictures, and draws it again.
//!
//! What runs them is `e2e/src/bin/pictures.rs`, because a test compares the same pictures with those that are kept.

use crate::{run, workspaces::Workspace};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Builds mallow, and draws with it.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    run::shown(Command::new("cargo").args(["build", "--package", "mallow"]).current_dir(root))?;
    let target = Workspace { folder: PathBuf::new() }.target_folder(root)?;
    let mut draw = Command::new("cargo");
    draw.args(["run", "--package", "e2e", "--bin", "pictures"]).current_dir(root);
    run::shown(draw.env("MALLOW_BIN", target.join("debug/mallow")))
}
