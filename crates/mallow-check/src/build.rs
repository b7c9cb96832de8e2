//! From tests to commands: programs are built in release mode, interpreters found, environments put together.
//!
//! Nothing is built twice: a step of a build is repeated only when its command, its compiler's version or the contents
//! of a file that went into it have changed. Debug information names sources relative to the suite's folder, so that
//! sites look the same on every machine. A test that cannot be built is that test's error; the others go on.

mod command;
mod contents;
mod dependencies;
mod error;
mod native;
mod parallel;
mod place;
mod plan;
mod rust;
mod scripts;
mod step;
mod swift;
mod swift_form;
mod swift_package;
mod tools;

#[cfg(test)]
mod tests;

use crate::suite::Suite;
use crate::workdir::Workdir;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

pub use error::BuildError;
pub use tools::Tools;

use contents::Contents;
use place::Plan;
use step::Step;

/// A test that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// The test's name.
    pub name: String,
    /// The program, as an absolute path, and its arguments.
    pub command: Vec<OsString>,
    /// Variables to set for it, over those that this process has. Mallow's own are not among them.
    pub environment: Vec<(OsString, OsString)>,
    /// Its working folder.
    pub directory: PathBuf,
    /// The language's runtime with its version, such as `python 3.11`; `native` without one. None when it is not known
    /// what a command is.
    pub runtime: Option<String>,
    /// Whether it was built just now.
    pub was_built: bool,
}

/// Prepares the tests of a suite, each with a result of its own, in the order of the suite.
///
/// # Errors
///
/// When the suite's own `build` command fails: then no test has what it needs.
pub fn prepare(
    suite: &Suite,
    workdir: &Workdir,
    tools: &Tools,
) -> Result<Vec<Result<Prepared, BuildError>>, BuildError> {
    if let Some(line) = &suite.gate.build {
        command::run_build_line(line, suite, workdir)?;
    }
    let plans: Vec<Result<Plan, BuildError>> =
        suite.tests.iter().map(|test| plan::plan(test, suite, workdir, tools)).collect();
    let contents = Contents::default();
    let pieces = build_pieces(&plans, &contents, tools);
    let finish = |plan: &Result<Plan, BuildError>| match plan {
        Ok(plan) => finish(plan, &pieces, &contents),
        Err(error) => Err(error.clone()),
    };
    Ok(parallel::map(&plans, tools.jobs(), finish))
}

/// The result of a step: whether it had to be executed.
type Done = Result<bool, BuildError>;

/// Builds what several tests may share, each once.
fn build_pieces(
    plans: &[Result<Plan, BuildError>],
    contents: &Contents,
    tools: &Tools,
) -> HashMap<PathBuf, Done> {
    let mut pieces: Vec<&Step> = Vec::new();
    for piece in plans.iter().flatten().flat_map(|plan| &plan.pieces) {
        // Equal outputs are equal steps: an output is named after its command.
        if !pieces.iter().any(|there| there.output == piece.output) {
            pieces.push(piece);
        }
    }
    let done = parallel::map(&pieces, tools.jobs(), |piece| piece.run(contents));
    pieces.iter().map(|piece| piece.output.clone()).zip(done).collect()
}

fn finish(plan: &Plan, pieces: &HashMap<PathBuf, Done>, contents: &Contents) -> Result<Prepared, BuildError> {
    let mut was_built = false;
    let mut errors = Vec::new();
    for piece in &plan.pieces {
        match pieces.get(&piece.output) {
            Some(Ok(built)) => was_built |= built,
            Some(Err(error)) => errors.push(error.clone()),
            None => {}
        }
    }
    if let Some(error) = BuildError::joined(errors) {
        return Err(error);
    }
    if let Some(last) = &plan.last {
        was_built |= last.run(contents)?;
    }
    Ok(Prepared { was_built, ..plan.prepared.clone() })
}
