//! Building and running tests: every test of the repository, those of one crate or file, those of what changed.
//!
//! Cargo builds the test programs and says which they are; we run them, because cargo runs one after the other and keeps a
//! core idle whenever the last test of a program is a long one. It must never pass when no test was run.

mod build;
mod choice;
mod failure;
mod tracks;

pub(crate) use choice::{Choice, choices_of_changes};

use crate::beside::{Beside, side_by_side};
use crate::packages::STATIC_TARGET;
use crate::run;
use crate::workspaces::{self, Workspace};
use failure::Failed;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs every test. The end-to-end tests drive the `mallow` that was built with them; in the long suite they drive the
/// release binary, and those that are too long for every change run as well.
pub(crate) fn all(root: &Path, mallow: Mallow, lints: Lints, beside: Beside<'_>) -> Result<(), String> {
    let binaries = side_by_side(|| build::programs(root, lints), beside.build)?;
    let path = mallow.path(root)?;
    let all = workspaces::all(root)?;
    let rest = || -> Result<Vec<Failed>, String> {
        let mut failed = Vec::new();
        for workspace in all.iter().filter(|it| !it.is_root() && !it.is_built_by_end_to_end_tests()) {
            // That it compiles is known from the lints.
            if has_tests(root, workspace)? {
                failed.extend(of_workspace(root, workspace, &path)?);
            }
        }
        (beside.tests)()?;
        Ok(failed)
    };
    verdict(&tracks::run(binaries, &path, mallow == Mallow::Release, mallow.left_out(), &rest)?)
}

/// Runs the end-to-end tests of every run over another `mallow` than the one that was built with them.
pub(crate) fn end_to_end(root: &Path, mallow: Mallow) -> Result<(), String> {
    let path = mallow.path(root)?;
    let programs = build::programs(root, Lints::Off)?.into_iter().filter(tracks::is_end_to_end).collect();
    verdict(&tracks::run(programs, &path, false, mallow.left_out(), &|| Ok(Vec::new()))?)
}

/// Runs the tests that were chosen.
pub(crate) fn chosen(root: &Path, choices: &[Choice]) -> Result<(), String> {
    let mut failed = Vec::new();
    for choice in choices {
        let workspace = Workspace { folder: choice.workspace.clone() };
        let mut command = workspace.cargo(root, "test");
        match choice.package.as_str() {
            "" => command.arg("--workspace"),
            package => command.args(["--package", package]),
        };
        command.args(&choice.target);
        if choice.needs_mallow() {
            run::shown(workspace.cargo(root, "build").args(["--package", "mallow"]))?;
            // Programs that end-to-end tests run.
            for package in ["mallow-alloc", "mallow-inside"] {
                run::shown(workspace.cargo(root, "build").args(["--package", package, "--examples"]))?;
            }
            command.env("MALLOW_BIN", Mallow::Dev.path(root)?);
        }
        command.arg("--").args(&choice.names);
        if choice.ignored_too {
            command.arg("--include-ignored");
        }
        let outcome = run::watched(&mut command)?;
        if choice.must_run_some() && failure::tests_run(&outcome.text) == 0 {
            return Err(format!("`{}` ran no test.", run::as_typed(&command)));
        }
        failed.extend(failure::of(&choice.word(), &outcome));
    }
    verdict(&failed)
}

/// Whether the build of the tests lints our crates as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lints {
    /// The plain compiler: what a developer's own `cargo build` has built is taken.
    Off,
    /// Clippy compiles, and its warnings are errors. One build instead of two, but not the one of a plain `cargo build`.
    Deny,
}

impl Lints {
    /// Says so to cargo, in the words of `cargo clippy`. Test programs are most of such a build, and are not optimized.
    pub(crate) fn into_build_of(self, root: &Path, cargo: &mut Command) {
        if self == Lints::Deny {
            cargo.env("RUSTC_WORKSPACE_WRAPPER", root.join("xtask/test-compiler.sh"));
            cargo.env("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__");
        }
    }
}

/// The `mallow` that end-to-end tests drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mallow {
    /// Built with the tests: overflow checks and debug assertions are on.
    Dev,
    /// What people build, in the long suite.
    Release,
    /// What people install: the static program of all packages, as `cargo xtask dist` has built it.
    HandedOut,
}

impl Mallow {
    /// End-to-end tests that it cannot pass.
    fn left_out(self) -> &'static [&'static str] {
        match self {
            Mallow::Dev => &[],
            // Their look-ups fail as they are told to, which is code of debug builds.
            Mallow::Release => &["lookups::"],
            // And a static program without names cannot be recorded.
            Mallow::HandedOut => &["lookups::", "gate::mallow_gates_itself"],
        }
    }

    /// Where it is; the release binary is built.
    pub(crate) fn path(self, root: &Path) -> Result<PathBuf, String> {
        let target = Workspace { folder: PathBuf::new() }.target_folder(root)?;
        match self {
            Mallow::Dev => Ok(target.join("debug/mallow")),
            Mallow::Release => {
                let mut cargo = Command::new("cargo");
                cargo.args(["build", "--release", "--package", "mallow"]).current_dir(root);
                run::shown(&mut cargo)?;
                Ok(target.join("release/mallow"))
            }
            Mallow::HandedOut => Ok(target.join(STATIC_TARGET).join("dist/mallow")),
        }
    }
}

/// Whether a workspace has a test, or an example in its documentation. Building all of its programs to learn that they have none would take
/// longer than most tests.
fn has_tests(root: &Path, workspace: &Workspace) -> Result<bool, String> {
    let has = |path: &Path| {
        std::fs::read_to_string(root.join(path))
            .map(|text| text.contains("#[test]") || text.contains("```"))
            .map_err(|error| format!("{} cannot be read: {error}.", path.display()))
    };
    let files = workspaces::tracked_files(root)?;
    let sources = files.iter().filter(|path| {
        path.starts_with(&workspace.folder) && path.extension().is_some_and(|ending| ending == "rs")
    });
    let found: Vec<bool> = sources.map(|path| has(path)).collect::<Result<_, _>>()?;
    Ok(found.contains(&true))
}

/// A workspace of its own: small, so cargo may run its tests, those of the documentation included.
fn of_workspace(root: &Path, workspace: &Workspace, mallow: &Path) -> Result<Vec<Failed>, String> {
    let mut command = workspace.cargo(root, "test");
    // The example of a crate with a gate runs it.
    command.arg("--workspace").env("MALLOW_BIN", mallow);
    let outcome = run::watched(&mut command)?;
    Ok(failure::of(&workspace.folder.display().to_string(), &outcome))
}

fn verdict(failed: &[Failed]) -> Result<(), String> {
    match failed {
        [] => Ok(()),
        [one] => Err(format!("a test failed.\n\n{one}")),
        many => {
            let listed: Vec<String> = many.iter().map(ToString::to_string).collect();
            Err(format!("{} tests failed.\n\n{}", many.len(), listed.join("\n")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspaces_with_a_test_or_an_example_are_run_and_the_others_are_not() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let has = |folder: &str| has_tests(root, &Workspace { folder: folder.into() }).unwrap();
        assert!(["recorder", "markers/rust", "programs/gate/examples/cargo"].into_iter().all(has));
        assert!(!["programs/soak/rust", "programs/counted-programs"].into_iter().any(has));
    }
}
