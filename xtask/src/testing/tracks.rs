//! Runs test programs in two tracks: the end-to-end tests in one, because they wait for other programs most of the time, and
//! the unit tests in the other, one program after the other. Both together keep the cores busy to the end.

use super::build::Program;
use super::failure::{self, Failed};
use crate::run::{self, Outcome};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The package whose tests drive the `mallow` binary.
const END_TO_END: &str = "e2e";

/// A program that has run.
struct Row {
    name: String,
    tests: u64,
    took: Duration,
}

/// Runs all programs, shows a line for each, and gives the tests that failed. `mallow` is the binary that end-to-end tests
/// drive; `ignored_too` runs what only the long suite runs; `then` is done in the track of the unit tests, behind them.
pub(super) fn run(
    programs: Vec<Program>,
    mallow: &Path,
    ignored_too: bool,
    then: &(dyn Fn() -> Result<Vec<Failed>, String> + Sync),
) -> Result<Vec<Failed>, String> {
    let (end_to_end, own): (Vec<Program>, Vec<Program>) =
        programs.into_iter().partition(|program| program.package == END_TO_END);
    let rows = Mutex::new(Vec::new());
    let track = |programs: &[Program]| -> Result<Vec<Failed>, String> {
        let mut failed = Vec::new();
        for program in programs {
            let began = Instant::now();
            let outcome = run_one(program, mallow, ignored_too)?;
            let row =
                Row { name: program.name(), tests: failure::tests_run(&outcome.text), took: began.elapsed() };
            println!("{}", line(&row));
            // Both tracks print here: what belongs together is written at once.
            if !outcome.is_success() {
                println!("{}", outcome.text);
            }
            failed.extend(failure::of(&program.package, &outcome));
            rows.lock().map_err(|_| "a track of tests panicked.")?.push(row);
        }
        Ok(failed)
    };
    let (first, second) = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut failed = track(&own)?;
            failed.extend(then()?);
            Ok(failed)
        });
        (track(&end_to_end), other.join().unwrap_or_else(|_| Err("a track of tests panicked.".to_owned())))
    });
    let mut failed = first?;
    failed.extend(second?);
    let rows = rows.into_inner().map_err(|_| "a track of tests panicked.")?;
    let tests: u64 = rows.iter().map(|row| row.tests).sum();
    println!(
        "test result: {}. {} passed; {} failed; {} programs",
        if failed.is_empty() { "ok" } else { "FAILED" },
        tests.saturating_sub(failed.len() as u64),
        failed.len(),
        rows.len()
    );
    if tests == 0 {
        return Err("the test programs hold no test.".to_owned());
    }
    Ok(failed)
}

fn run_one(program: &Program, mallow: &Path, ignored_too: bool) -> Result<Outcome, String> {
    let mut command = Command::new(&program.path);
    command.current_dir(&program.folder).env("MALLOW_BIN", mallow);
    // Property tests look at other inputs in each run, so few of them in every run are many in a week.
    command.env("PROPTEST_CASES", if ignored_too { "1024" } else { "64" });
    if ignored_too {
        command.arg("--include-ignored");
    }
    if program.package == END_TO_END {
        // More than there are cores: most of them wait for others.
        command.arg("--test-threads=5");
    }
    // What cargo would say to the tests that it runs.
    command.env("CARGO_MANIFEST_DIR", &program.folder);
    run::kept(&mut command, |_| ())
}

fn line(row: &Row) -> String {
    format!("    {:<28}{:>5} tests{:>9.1} s", row.name, row.tests, row.took.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_its_line() {
        let row = Row { name: "mallow-cli all".to_owned(), tests: 42, took: Duration::from_millis(12_340) };
        assert_eq!(line(&row), "    mallow-cli all                 42 tests     12.3 s");
    }
}
