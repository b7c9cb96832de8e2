//! What a failed test said, and how to run it alone, from what a test program printed.

use crate::run::Outcome;
use std::fmt;

/// Lines of a failure that are shown again at the end; everything stands further up.
const LINES_MAX: usize = 12;

/// A test that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failed {
    /// What one gives to `cargo xtask test` to have it alone.
    alone: String,
    /// Its name within its program; none of a program that ended badly without naming a test.
    name: Option<String>,
    /// Its first lines.
    said: Vec<String>,
}

impl Failed {
    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "  {}", self.alone)?;
        self.said.iter().try_for_each(|line| writeln!(f, "    {line}"))?;
        writeln!(f, "    alone: cargo xtask test {}", self.alone)
    }
}

/// The tests that failed in a run of `program`. A program that ended badly without naming a test is one failure itself.
pub(super) fn of(program: &str, outcome: &Outcome) -> Vec<Failed> {
    if outcome.is_success() {
        return Vec::new();
    }
    let text = &outcome.text;
    let mut failed: Vec<Failed> = failed_names(text)
        .into_iter()
        .map(|name| Failed {
            alone: format!("{program} {name}"),
            name: Some(name.to_owned()),
            said: said_by(text, name),
        })
        .collect();
    if failed.is_empty() {
        let last: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
        let mut said = vec![format!("It ended with {} and named no test; its last lines:", outcome.status)];
        said.extend(last[last.len().saturating_sub(LINES_MAX)..].iter().map(|line| (*line).to_owned()));
        failed.push(Failed { alone: program.to_owned(), name: None, said });
    }
    failed
}

/// How many tests a run's closing lines count, passed or not.
pub(super) fn tests_run(text: &str) -> u64 {
    let counted = |line: &str| {
        let rest = line.strip_prefix("test result: ")?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let before = |word: &str| {
            let at = words.iter().position(|found| found.trim_end_matches(';') == word)?;
            words[at.checked_sub(1)?].parse::<u64>().ok()
        };
        Some(before("passed")? + before("failed")?)
    };
    text.lines().filter_map(counted).sum()
}

/// Names in lines `test NAME ... FAILED`, each once.
fn failed_names(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"))
        .map(|name| name.split(" - should panic").next().unwrap_or(name))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The first lines of what the harness caught of a test: between `---- NAME stdout ----` and the next such line.
fn said_by(text: &str, name: &str) -> Vec<String> {
    let heading = format!("---- {name} stdout ----");
    let lines = text.lines().skip_while(|line| *line != heading).skip(1);
    let own = lines
        .take_while(|line| !line.starts_with("---- ") && !["failures:", "stack backtrace:"].contains(line));
    own.filter(|line| !line.trim().is_empty() && !line.starts_with("note: run with `RUST_BACKTRACE"))
        .take(LINES_MAX)
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    const FAILING: &str = "\
running 2 tests
test soak::a_leak ... FAILED
test soak::none ... ok

failures:

---- soak::a_leak stdout ----

thread 'soak::a_leak' panicked at e2e/tests/soak.rs:22:5:
clean, not leaking
note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace


failures:
    soak::a_leak

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    fn outcome(text: &str, code: i32) -> Outcome {
        Outcome { text: text.to_owned(), status: ExitStatus::from_raw(code << 8) }
    }

    #[test]
    fn a_failed_test_says_why_and_how_to_run_it_alone() {
        let failed = of("e2e", &outcome(FAILING, 101));
        let expected = "  e2e soak::a_leak\n    thread 'soak::a_leak' panicked at e2e/tests/soak.rs:22:5:\n    \
                        clean, not leaking\n    alone: cargo xtask test e2e soak::a_leak\n";
        assert_eq!(failed.iter().map(ToString::to_string).collect::<String>(), expected);
    }

    #[test]
    fn a_program_that_dies_is_a_failure_without_a_name() {
        let failed = of("mallow-wire all", &outcome("running 1 test\nfatal: broken\n", 134));
        let text = failed[0].to_string();
        assert!(
            text.contains("fatal: broken") && text.contains("cargo xtask test mallow-wire all"),
            "{text}"
        );
        assert_eq!(failed.len(), 1);
    }

    #[test]
    fn a_good_run_has_no_failure() {
        assert_eq!(of("e2e", &outcome("test result: ok. 3 passed; 0 failed; 0 ignored", 0)), []);
    }

    #[test]
    fn tests_are_counted_over_all_closing_lines() {
        assert_eq!(tests_run(FAILING), 2);
        assert_eq!(
            tests_run("test result: ok. 3 passed; 0 failed;\ntest result: ok. 4 passed; 0 failed;\n"),
            7
        );
        assert_eq!(tests_run("no tests here"), 0);
    }
}
