//! The steps of `cargo xtask ci`, their order, and the table of what each one took.
//!
//! Cheap steps come first, so that a misspelt line is known in seconds.

use crate::beside::{Beside, side_by_side};
use crate::testing::{Lints, Mallow};
use crate::workspaces::{self, Workspace};
use crate::{fuzz, miri, oracles, packages, recorder, run, slim, testing, tidy, wasm};
use std::path::Path;
use std::time::{Duration, Instant};

/// One thing that has to hold, also a subcommand of its own.
pub(crate) struct Step {
    /// What one types after `cargo xtask`.
    pub(crate) name: &'static str,
    /// Does it, for the repository in this folder.
    pub(crate) body: fn(&Path) -> Result<(), String>,
    /// The same within `ci`, where another step's build does part of the work.
    in_ci: InCi,
}

/// What `ci` does for a step.
enum InCi {
    Run(fn(&Path) -> Result<(), String>),
    /// An earlier step does it beside its own work, and says what it took.
    Beside(&'static str),
}

impl Step {
    const fn new(name: &'static str, body: fn(&Path) -> Result<(), String>) -> Step {
        Step { name, body, in_ci: InCi::Run(body) }
    }

    const fn in_ci(self, body: fn(&Path) -> Result<(), String>) -> Step {
        Step { in_ci: InCi::Run(body), ..self }
    }

    const fn beside(self, step: &'static str) -> Step {
        Step { in_ci: InCi::Beside(step), ..self }
    }
}

/// Every step, in the order of `ci`.
pub(crate) const STEPS: &[Step] = &[
    Step::new("packages", packages).beside("test"),
    Step::new("fmt", fmt).in_ci(fmt_with_tidy_beside),
    Step::new("tidy", tidy::run).beside("fmt"),
    // The root workspace is most of it, and is linted by the build of its tests.
    Step::new("clippy", clippy).in_ci(clippy_beside_the_root),
    Step::new("recorder", recorder::run),
    Step::new("test", test).in_ci(test_with_the_rest_beside),
    Step::new("miri", miri::run).beside("test"),
    Step::new("wasm", wasm::run).beside("test"),
    Step::new("slim", slim::run).beside("test"),
    Step::new("doc", doc).beside("test"),
    Step::new("fuzz", fuzz_shortly).beside("test"),
];

/// Each of the two keeps one core busy.
fn fmt_with_tidy_beside(root: &Path) -> Result<(), String> {
    side_by_side(|| fmt(root), || timed("tidy", || tidy::run(root)))
}

/// Packages are fetched and unpacked while tests are built, as only the tests themselves need them. The end-to-end tests wait for other programs
/// most of the time, and everything else is done meanwhile.
fn test_with_the_rest_beside(root: &Path) -> Result<(), String> {
    let rest = || {
        timed("miri", || miri::run_where_it_can_be_had(root))?;
        timed("wasm", || wasm::run_where_it_can_be_had(root))?;
        timed("slim", || slim::run(root))?;
        // What cargo would check all libraries for again, it has built for the tests.
        timed("doc", || doc_of_built_libraries(root))?;
        timed("fuzz", || fuzz_shortly(root))
    };
    let fetched = || timed("packages", || packages(root));
    testing::all(root, Mallow::Dev, Lints::Deny, Beside { build: &fetched, tests: &rest })
}

fn fuzz_shortly(root: &Path) -> Result<(), String> {
    fuzz::run(root, &fuzz::Plan::of_ci())
}

/// Runs every step and prints what each one took.
pub(crate) fn ci(root: &Path) -> Result<(), String> {
    let mut durations: Vec<(&str, Duration)> = Vec::new();
    for (index, step) in STEPS.iter().enumerate() {
        println!("\n[{}/{}] {}", index + 1, STEPS.len(), step.name);
        let body = match step.in_ci {
            InCi::Run(body) => body,
            InCi::Beside(other) => {
                println!("    was done beside `{other}`, which says what it took");
                continue;
            }
        };
        let started = Instant::now();
        let outcome = body(root);
        let took = started.elapsed();
        durations.push((step.name, took));
        if let Err(sentence) = outcome {
            print!("{}", table(&durations, Some(step.name)));
            return Err(with_cure(step.name, &sentence));
        }
        println!("    {} took {}", step.name, seconds(took));
    }
    print!("{}", table(&durations, None));
    Ok(())
}

/// Runs one step by itself and says what it took.
pub(crate) fn timed(name: &str, body: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let started = Instant::now();
    body().map_err(|sentence| with_cure(name, &sentence))?;
    println!("    {name} took {}", seconds(started.elapsed()));
    Ok(())
}

/// A step's sentence with the command that runs it again.
pub(crate) fn with_cure(name: &str, sentence: &str) -> String {
    format!("step `{name}` failed: {sentence}\nMend it, then run `cargo xtask {name}` again.")
}

fn table(durations: &[(&str, Duration)], failed: Option<&str>) -> String {
    let mut text = String::from("\nstep        took\n");
    for (name, took) in durations {
        let verdict = if failed == Some(*name) { "  failed" } else { "" };
        text.push_str(&format!("{name:<9}{:>9}{verdict}\n", seconds(*took)));
    }
    let total: Duration = durations.iter().map(|(_, took)| *took).sum();
    text.push_str(&format!("{:<9}{:>9}\n", "all", seconds(total)));
    text
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

fn packages(root: &Path) -> Result<(), String> {
    packages::ensure()?;
    oracles::ensure(root)
}

/// Complains where a workspace is not formatted.
pub(crate) fn fmt(root: &Path) -> Result<(), String> {
    for workspace in workspaces::all(root)? {
        run::shown(workspace.cargo(root, "fmt").args(["--all", "--", "--check"]))
            .map_err(|sentence| format!("{sentence} `cargo xtask fmt --fix` formats everything."))?;
    }
    Ok(())
}

/// Formats every workspace instead of complaining.
pub(crate) fn format_in_place(root: &Path) -> Result<(), String> {
    workspaces::all(root)?
        .iter()
        .try_for_each(|workspace| run::shown(workspace.cargo(root, "fmt").arg("--all")))
}

fn clippy(root: &Path) -> Result<(), String> {
    workspaces::all(root)?.iter().try_for_each(|workspace| lint(root, workspace))
}

/// What the tests build is linted by them.
fn clippy_beside_the_root(root: &Path) -> Result<(), String> {
    let is_linted_elsewhere =
        |workspace: &Workspace| workspace.is_root() || workspace.is_built_by_end_to_end_tests();
    let all = workspaces::all(root)?;
    all.iter().filter(|workspace| !is_linted_elsewhere(workspace)).try_for_each(|it| lint(root, it))
}

fn lint(root: &Path, workspace: &Workspace) -> Result<(), String> {
    let mut clippy = workspace.cargo(root, "clippy");
    run::shown(clippy.args(["--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn test(root: &Path) -> Result<(), String> {
    testing::all(root, Mallow::Dev, Lints::Off, Beside::NOTHING)
}

/// Builds the documentation of every crate, warnings as errors.
pub(crate) fn doc(root: &Path) -> Result<(), String> {
    for workspace in workspaces::all(root)?.iter().filter(is_documented) {
        let mut command = workspace.cargo(root, "doc");
        command.args(["--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
        run::shown(&mut command)?;
    }
    Ok(())
}

/// The documentation of all library crates, over the libraries that the tests were built with; binaries' pages are left to
/// [`doc`], which the long suite runs.
fn doc_of_built_libraries(root: &Path) -> Result<(), String> {
    for workspace in workspaces::all(root)?.iter().filter(is_documented) {
        let mut command = workspace.cargo(root, "test");
        command.args(["--workspace", "--doc", "--quiet"]).env("RUSTDOC", root.join("xtask/rustdoc-check.sh"));
        if workspace.is_root() {
            Lints::Deny.into_build_of(root, &mut command);
        }
        run::shown(&mut command)?;
    }
    Ok(())
}

fn is_documented(workspace: &&Workspace) -> bool {
    workspace.is_root() || workspace.folder == Path::new("recorder")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_each_step_and_their_sum() {
        let durations = [("fmt", Duration::from_millis(1250)), ("test", Duration::from_secs(600))];
        let expected =
            "\nstep        took\nfmt          1.2 s\ntest       600.0 s  failed\nall        601.2 s\n";
        assert_eq!(table(&durations, Some("test")), expected);
    }

    #[test]
    fn a_failure_names_the_command_to_run_again() {
        let sentence = with_cure("clippy", "`cargo clippy` failed.");
        assert_eq!(
            sentence,
            "step `clippy` failed: `cargo clippy` failed.\nMend it, then run `cargo xtask clippy` again."
        );
    }

    #[test]
    fn every_step_is_in_the_usage_text() {
        for step in STEPS {
            assert!(crate::USAGE.contains(&format!("\n  {} ", step.name)), "{} is missing", step.name);
        }
    }
}
