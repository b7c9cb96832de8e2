//! A check as SwiftNIO's allocation counter tests print it, for scripts that parse that.
//!
//! Four lines and a list of the runs per test, as `scaffolding.swift` of SwiftNIO's framework prints them since its
//! runs became a struct. Every metric is its own minimum over the runs, except for descriptors: there the first run
//! that left some counts. Verdicts are not part of that output; [`verdicts`] prints them separately.

use super::details::printable_lines;
use mallow_gate::measurement::{Measurement, Metric, Run};
use mallow_gate::result::{CheckResult, Outcome, TestResult};
use mallow_view::check::{stats, worst_first};
use std::fmt::Write;
use std::path::Path;

/// Returns the line before the tests of a program: the path of its source, or else of the program.
pub fn program(path: &Path) -> String {
    format!("- {}\n", path.display())
}

/// Returns the lines of one test; `None` if nothing was measured.
pub fn test(test: &TestResult) -> String {
    let Some(measurement) = test.measurement.as_ref().filter(|measurement| !measurement.runs.is_empty())
    else {
        return String::new();
    };
    let name = identifier(&test.name);
    let least =
        |metric: Metric| measurement.runs.iter().map(|run| run.of(metric).unwrap_or(0)).min().unwrap_or(0);
    let leaked_fds =
        measurement.runs.iter().map(|run| run.metrics.descriptors).find(|count| *count > 0).unwrap_or(0);
    let mut text = warnings(measurement);
    for (word, value) in [
        ("total_allocations", least(Metric::Allocations)),
        ("remaining_allocations", least(Metric::Remaining)),
        ("total_allocated_bytes", least(Metric::Bytes)),
        ("leaked_fds", leaked_fds),
    ] {
        // Writing into a `String` cannot fail.
        let _ = writeln!(text, "{name}.{word}: {value}");
    }
    let runs: Vec<String> = measurement.runs.iter().map(|run| described(run, &module(&test.name))).collect();
    let _ = writeln!(text, "DEBUG: [{}]", runs.join(", "));
    text
}

/// Returns the framework's warning about a run that did not become idle.
fn warnings(measurement: &Measurement) -> String {
    let unsettled = measurement.runs.iter().filter(|run| !run.settled);
    unsettled
        .map(|run| {
            let unfreeds = run.metrics.remaining_blocks;
            format!("WARNING: Giving up, shouldReachZero=true, unfreeds={unfreeds}\n")
        })
        .collect()
}

/// Formats a run as Swift describes the framework's struct. Remaining descriptors are counted, but their numbers are
/// not stored, so each is shown as -1.
fn described(run: &Run, module: &str) -> String {
    let metrics = &run.metrics;
    let descriptors = vec!["-1"; usize::try_from(metrics.descriptors.min(4096)).unwrap_or(0)].join(", ");
    format!(
        "{module}.Measurement(totalAllocations: {}, totalAllocatedBytes: {}, remainingAllocations: {}, leakedFDs: \
         [{descriptors}])",
        metrics.allocations, metrics.bytes, metrics.remaining_blocks
    )
}

/// Returns a test's name as SwiftNIO's scripts look for it: `test_[a-zA-Z0-9_-]+`.
fn identifier(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    if plain.starts_with("test_") { plain } else { format!("test_{plain}") }
}

/// Returns the Swift module that the framework would have made of the program.
fn module(name: &str) -> String {
    format!("Test_{}", identifier(name.split('.').next().unwrap_or(name)))
}

/// Returns one line for each verdict other than OK, and then how many there are of each; for stderr.
pub fn verdicts(result: &CheckResult) -> String {
    let mut text = String::new();
    for test in worst_first(result).into_iter().filter(|test| test.outcome != Outcome::Ok) {
        let why = printable_lines(&test.sentences.join(" "), usize::MAX).join(" ");
        let _ = writeln!(text, "{} {}: {why}", test.outcome.word(), identifier(&test.name));
    }
    let counts: Vec<String> =
        stats(result).iter().map(|(outcome, count)| format!("{count} {}", outcome.word())).collect();
    let _ = writeln!(text, "{}", counts.join(", "));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_gate::measurement::Metrics;
    use mallow_samples::check as sample;

    fn run(allocations: u64, bytes: u64, remaining_blocks: u64, descriptors: u64, settled: bool) -> Run {
        let metrics = Metrics { allocations, bytes, remaining_blocks, descriptors, ..Metrics::default() };
        Run { metrics, settled, ..Run::default() }
    }

    fn named(name: &str, runs: Vec<Run>) -> TestResult {
        let mut result = sample::regressed();
        result.name = name.to_owned();
        if let Some(measurement) = &mut result.measurement {
            measurement.runs = runs;
        }
        result
    }

    #[test]
    fn byte_for_byte_as_the_framework_prints() {
        let runs = vec![run(75_001, 4_138_056, 0, 0, true), run(75_003, 4_138_000, 0, 0, true)];
        let path = Path::new("/srv/nio/test_future_lots_of_callbacks.swift");
        let text = program(path) + &test(&named("test_future_lots_of_callbacks", runs));
        let expected = "\
- /srv/nio/test_future_lots_of_callbacks.swift
test_future_lots_of_callbacks.total_allocations: 75001
test_future_lots_of_callbacks.remaining_allocations: 0
test_future_lots_of_callbacks.total_allocated_bytes: 4138000
test_future_lots_of_callbacks.leaked_fds: 0
DEBUG: [Test_test_future_lots_of_callbacks.Measurement(totalAllocations: 75001, totalAllocatedBytes: 4138056, \
remainingAllocations: 0, leakedFDs: []), Test_test_future_lots_of_callbacks.Measurement(totalAllocations: 75003, \
totalAllocatedBytes: 4138000, remainingAllocations: 0, leakedFDs: [])]
";
        assert_eq!(text, expected);
    }

    #[test]
    fn names_are_what_the_scripts_can_read() {
        let runs = || vec![run(1, 2, 3, 0, true), run(1, 2, 4, 2, false), run(1, 2, 4, 1, true)];
        let expected = "\
WARNING: Giving up, shouldReachZero=true, unfreeds=4
test_http_parse_1.total_allocations: 1
test_http_parse_1.remaining_allocations: 3
test_http_parse_1.total_allocated_bytes: 2
test_http_parse_1.leaked_fds: 2
DEBUG: [Test_test_http.Measurement(totalAllocations: 1, totalAllocatedBytes: 2, remainingAllocations: 3, leakedFDs: []), \
Test_test_http.Measurement(totalAllocations: 1, totalAllocatedBytes: 2, remainingAllocations: 4, leakedFDs: [-1, -1]), \
Test_test_http.Measurement(totalAllocations: 1, totalAllocatedBytes: 2, remainingAllocations: 4, leakedFDs: [-1])]
";
        assert_eq!(test(&named("http.parse 1", runs())), expected);
    }

    #[test]
    fn what_was_not_measured_has_no_lines() {
        assert_eq!(test(&sample::bare("t", Outcome::Error)), "");
        assert_eq!(test(&named("t", Vec::new())), "");
    }

    #[test]
    fn verdicts_stand_apart() {
        let text = verdicts(&sample::check());
        let first = text.lines().next().unwrap_or_default();
        assert_eq!(
            first,
            "ERROR test_crashes: The program was killed by SIGSEGV in its third run; the last line it printed was: \
             about to crash?[31m"
        );
        assert!(!text.contains(".total_allocations"), "a script would take it for a count: {text}");
        assert!(
            text.ends_with(
                "\n1 ERROR, 1 BLIND, 3 REGRESSED, 1 FLAKY, 1 MISSING, 1 STALE, 1 IMPROVED, 3 OK\n"
            ),
            "{text}"
        );
        assert_eq!(text.lines().count(), 10);
    }
}
