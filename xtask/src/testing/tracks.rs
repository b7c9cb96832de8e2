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

pub(super) fn is_end_to_end(program: &Program) -> bool {
    program.package == END_TO_END
}

/// When so many have failed alone as well, the rest is not tried again.
const AGAIN_MAX: usize = 5;

/// A program that has run.
struct Row {
    name: String,
    tests: u64,
    took: Duration,
}

/// Runs all programs, shows a line for each, and gives the tests that failed. `mallow` is the binary that end-to-end tests
/// drive; `ignored_too` runs what only the long suite runs; `left_out` names end-to-end tests that this binary cannot pass; `then` is done in the track of the unit tests, behind them.
pub(super) fn run(
    programs: Vec<Program>,
    mallow: &Path,
    ignored_too: bool,
    left_out: &[&str],
    then: &(dyn Fn() -> Result<Vec<Failed>, String> + Sync),
) -> Result<Vec<Failed>, String> {
    let (end_to_end, own): (Vec<Program>, Vec<Program>) = programs.into_iter().partition(is_end_to_end);
    let rows = Mutex::new(Vec::new());
    let track = |programs: &[Program]| -> Result<Vec<(Program, Failed)>, String> {
        let mut failed = Vec::new();
        for program in programs {
            let began = Instant::now();
            let outcome = run_one(program, mallow, ignored_too, Only::AllBut(left_out))?;
            let row =
                Row { name: program.name(), tests: failure::tests_run(&outcome.text), took: began.elapsed() };
            println!("{}", line(&row));
            // Both tracks print here: what belongs together is written at once.
            if !outcome.is_success() {
                println!("{}", outcome.text);
            }
            failed.extend(
                failure::of(&program.package, &outcome).into_iter().map(|failed| (program.clone(), failed)),
            );
            rows.lock().map_err(|_| "a track of tests panicked.")?.push(row);
        }
        Ok(failed)
    };
    let (first, second) = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let failed = track(&own)?;
            Ok((failed, then()?))
        });
        (track(&end_to_end), other.join().unwrap_or_else(|_| Err("a track of tests panicked.".to_owned())))
    });
    let (of_own, of_rest) = second?;
    let again = |program: &Program, name: &str| run_one(program, mallow, ignored_too, Only::Test(name));
    let (mut failed, beside_others) = fail_alone(first?, &again)?;
    failed.extend(of_own.into_iter().map(|(_, failed)| failed).chain(of_rest));
    for failed in &beside_others {
        println!(
            "\nfailed beside others, and passed alone: a test that a busy machine can refute is to be mended.\n{failed}"
        );
    }
    let rows = rows.into_inner().map_err(|_| "a track of tests panicked.")?;
    let tests: u64 = rows.iter().map(|row| row.tests).sum();
    println!(
        "test result: {}. {} passed; {} failed; {} programs; {} passed only alone",
        if failed.is_empty() { "ok" } else { "FAILED" },
        tests.saturating_sub(failed.len() as u64),
        failed.len(),
        rows.len(),
        beside_others.len()
    );
    if tests == 0 {
        return Err("the test programs hold no test.".to_owned());
    }
    Ok(failed)
}

/// Runs the end-to-end tests that failed once more, each alone: they judge real programs, beside others and a build on two cores. What fails
/// again comes first; the second list passed, and is shown, so that nobody takes it for green.
fn fail_alone(
    failed: Vec<(Program, Failed)>,
    again: &dyn Fn(&Program, &str) -> Result<Outcome, String>,
) -> Result<(Vec<Failed>, Vec<Failed>), String> {
    let (mut alone, mut beside_others) = (Vec::new(), Vec::new());
    for (program, failed) in failed {
        // That one of them passed says nothing of very many.
        let passed = match failed.name().filter(|_| alone.len() < AGAIN_MAX) {
            Some(name) => {
                let outcome = again(&program, name)?;
                outcome.is_success() && failure::tests_run(&outcome.text) == 1
            }
            None => false,
        };
        if passed { beside_others.push(failed) } else { alone.push(failed) }
    }
    Ok((alone, beside_others))
}

/// Which tests of a program are run.
#[derive(Clone, Copy)]
enum Only<'a> {
    /// All but those whose names contain one of these.
    AllBut(&'a [&'a str]),
    /// The one of this name.
    Test(&'a str),
}

fn run_one(program: &Program, mallow: &Path, ignored_too: bool, only: Only<'_>) -> Result<Outcome, String> {
    let mut command = Command::new(&program.path);
    command.current_dir(&program.folder).env("MALLOW_BIN", mallow);
    // Property tests look at other inputs in each run, so few of them in every run are many in a week.
    command.env("PROPTEST_CASES", if ignored_too { "1024" } else { "64" });
    if ignored_too {
        command.arg("--include-ignored");
    }
    match only {
        Only::Test(name) => _ = command.args(["--exact", name]),
        Only::AllBut(left_out) if is_end_to_end(program) => {
            // More than there are cores: most of them wait for others.
            command.arg("--test-threads=5");
            command.args(left_out.iter().flat_map(|name| ["--skip", name]));
        }
        Only::AllBut(_) => {}
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
    fn what_fails_beside_others_fails_only_if_it_fails_alone() {
        let program = |name: &str| Program {
            package: END_TO_END.to_owned(),
            target: name.to_owned(),
            path: "all".into(),
            folder: "e2e".into(),
        };
        let text = |name: &str| format!("test {name} ... FAILED\n");
        let outcome = |text: &str, code: i32| Outcome {
            text: text.to_owned(),
            status: std::os::unix::process::ExitStatusExt::from_raw(code << 8),
        };
        let failed =
            |name: &str| (program("all"), failure::of(END_TO_END, &outcome(&text(name), 101)).remove(0));
        let died = (program("all"), failure::of(END_TO_END, &outcome("killed\n", 137)).remove(0));
        let again = |_: &Program, name: &str| {
            Ok(match name {
                "load" => outcome("test result: ok. 1 passed; 0 failed;\n", 0),
                "gone" => outcome("test result: ok. 0 passed; 0 failed;\n", 0),
                _ => outcome("test result: FAILED. 0 passed; 1 failed;\n", 101),
            })
        };
        let all = vec![failed("load"), failed("bug"), failed("gone"), died.clone()];
        let (alone, beside_others) = fail_alone(all, &again).unwrap();
        let names = |failed: &[Failed]| {
            failed.iter().map(|failed| failed.name().map(str::to_owned)).collect::<Vec<_>>()
        };
        let own = |name: &str| Some(name.to_owned());
        assert_eq!(names(&alone), [own("bug"), own("gone"), None]);
        assert_eq!(names(&beside_others), [own("load")]);
        // After many failures nothing is tried again.
        let many = (0..AGAIN_MAX).map(|_| failed("bug")).chain([failed("load")]).collect();
        assert_eq!(fail_alone(many, &again).unwrap().0.len(), AGAIN_MAX + 1);
    }

    #[test]
    fn a_program_has_its_line() {
        let row = Row { name: "mallow-cli all".to_owned(), tests: 42, took: Duration::from_millis(12_340) };
        assert_eq!(line(&row), "    mallow-cli all                 42 tests     12.3 s");
    }
}
