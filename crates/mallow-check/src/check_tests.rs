//! Baselines of tests that are gone.

use super::*;
use mallow_gate::judge::{Settings, judge};
use mallow_gate::sample::{baseline, counts, environment};

fn named(name: &str, allocations: u64) -> Measurement {
    Measurement { name: name.to_owned(), ..counts(Some(1000), &[allocations; 10]) }
}

fn result(name: &str, before: u64, now: u64) -> TestResult {
    judge(&named(name, now), Some(&baseline(&named(name, before))), &Limits::default(), &Settings::default())
}

fn outcomes(results: &[TestResult]) -> Vec<(&str, Outcome)> {
    results.iter().map(|result| (result.name.as_str(), result.outcome)).collect()
}

#[test]
fn baselines_without_a_test_are_stale_in_a_full_run_only() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let baselines = Baselines::open(folder.path()).expect("it is there");
    for name in ["a", "gone", "broken.first", "broken"] {
        baselines.write(&baseline(&named(name, 5000))).expect("it can be written");
    }
    let mut elsewhere = baseline(&named("elsewhere", 1));
    elsewhere.environment.processors = 64;
    baselines.write(&elsewhere).expect("it can be written");
    let broken = TestResult::unmeasured("broken", Outcome::Error, String::new());
    let run = || vec![result("a", 5000, 5000), broken.clone()];
    let mut only = run();
    assert_eq!(look_over(&mut only, &baselines, &environment(), false).unwrap(), [""; 0]);
    assert_eq!(only.len(), 2);
    let mut full = run();
    assert_eq!(look_over(&mut full, &baselines, &environment(), true).unwrap(), [""; 0]);
    assert_eq!(outcomes(&full), [("a", Outcome::Ok), ("broken", Outcome::Error), ("gone", Outcome::Stale)]);
    let path = baselines.path("gone", &environment());
    assert_eq!(
        full[2].sentences,
        [format!(
            "{} is the baseline of a test that does not exist; a renamed test needs a new one. `--update` \
             removes it.",
            path.display()
        )]
    );
}
