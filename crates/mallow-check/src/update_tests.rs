//! What an update would do, what it refuses, and doing it.

use super::*;
use mallow_gate::judge::{Settings, judge_found};
use mallow_gate::limit::Limits;
use mallow_gate::measurement::Measurement;
use mallow_gate::sample::{counts, environment};

struct Place {
    _folder: tempfile::TempDir,
    baselines: Baselines,
}

fn place() -> Place {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let baselines = Baselines::open(folder.path()).expect("it is there");
    Place { _folder: folder, baselines }
}

fn named(name: &str, allocations: u64) -> Measurement {
    Measurement { name: name.to_owned(), ..counts(Some(1000), &[allocations; 10]) }
}

impl Place {
    fn check(&self, tests: &[(&str, u64)]) -> CheckResult {
        let judged = tests.iter().map(|(name, allocations)| {
            let found = self.baselines.find(name, &environment()).expect("it can be read");
            judge_found(&named(name, *allocations), &found, &Limits::default(), &Settings::default())
        });
        CheckResult {
            tests: judged.collect(),
            environment: environment(),
            sentences: Vec::new(),
            update_command: "mallow check --update".to_owned(),
            folder: "/srv/demo/build".into(),
        }
    }

    fn plan(&self, check: &CheckResult, options: &Options) -> Update {
        plan(check, &self.baselines, options).expect("the folder can be read")
    }

    fn least(&self, name: &str) -> Option<u64> {
        match self.baselines.find(name, &environment()) {
            Ok(Found::Exact(baseline)) => baseline.spread(Metric::Allocations).map(|spread| spread.min),
            _ => None,
        }
    }
}

#[test]
fn new_baselines_are_made_then_changed_and_then_left_alone() {
    let place = place();
    let update = place.plan(&place.check(&[("a", 74_000)]), &Options::default());
    let row = update.tests[0].rows[0];
    assert_eq!((row.metric, row.before, row.after), (Metric::Allocations, None, 74_000));
    assert_eq!(row.text(Some(1000)), "74,000");
    assert_eq!(update.write().map(|paths| paths.len()), Ok(1));
    assert_eq!(place.least("a"), Some(74_000));

    let update = place.plan(&place.check(&[("a", 75_001)]), &Options::default());
    assert_eq!(update.tests[0].rows[0].text(Some(1000)), "74,000 -> 75,001 (+1.001 per operation)");
    assert_eq!(update.tests[0].rows[0].text(None), "74,000 -> 75,001");
    assert_eq!(update.tests[0].rows[3].text(Some(1000)), "0");
    assert_eq!(update.tests[0].path, place.baselines.path("a", &environment()));
    assert_eq!(update.write().map(|paths| paths.len()), Ok(1));

    let update = place.plan(&place.check(&[("a", 75_001)]), &Options::default());
    assert!(update.tests[0].is_same);
    assert_eq!(update.write(), Ok(Vec::new()));
}

#[test]
fn nothing_is_made_in_ci() {
    let place = place();
    let check = place.check(&[("a", 1)]);
    let update = place.plan(&check, &Options { is_ci: true, ..Options::default() });
    assert_eq!(update.tests, []);
    assert_eq!(
        update.refused,
        [
            "No baseline is made or changed in CI: keep `mallow check --json` as an artifact, run `mallow check --update --from \
          REPORT` at home and commit the files. Where CI is set by mistake, `CI=0` before the command tells so."
        ]
    );
    let blind = Options { is_ci: true, force: true, ..Options::default() };
    assert_eq!(place.plan(&check, &blind).tests, [], "to believe figures is not to let CI set them");
    assert_eq!(place.plan(&check, &Options::default()).tests.len(), 1);
}

#[test]
fn failed_and_blind_tests_change_nothing() {
    let place = place();
    place
        .plan(&place.check(&[("a", 5000), ("b", 5000)]), &Options::default())
        .write()
        .expect("it can be written");
    let mut check = place.check(&[("a", 0), ("b", 6000)]);
    mallow_gate::guards::mark_blind(&mut check.tests);
    check.tests[1].outcome = Outcome::Error;
    let update = place.plan(&check, &Options::default());
    assert_eq!(update.tests, []);
    assert_eq!(
        update.refused,
        [
            "a looks blind, so its baseline stays as it is; `--allow-missing-counts` accepts it.",
            "b failed, so its baseline stays as it is.",
        ]
    );
    let forced = place.plan(&check, &Options { force: true, ..Options::default() });
    assert_eq!(forced.refused, ["b failed, so its baseline stays as it is."]);
    forced.write().expect("it can be written");
    assert_eq!((place.least("a"), place.least("b")), (Some(0), Some(5000)));
}

#[test]
fn stale_baselines_are_removed() {
    let place = place();
    place
        .plan(&place.check(&[("a", 1), ("gone", 1)]), &Options::default())
        .write()
        .expect("it can be written");
    let mut check = place.check(&[("a", 1)]);
    let kept = place.baselines.names(&environment()).expect("it can be read");
    mallow_gate::guards::look_over(&mut check.tests, Some(&kept));
    let update = place.plan(&check, &Options::default());
    assert!(update.tests[1].baseline.is_none() && update.tests[1].rows.is_empty());
    assert_eq!(update.write(), Ok(vec![place.baselines.path("gone", &environment())]));
    assert_eq!((place.least("a"), place.least("gone")), (Some(1), None));
}

#[test]
fn other_environments_keep_their_baselines() {
    let place = place();
    let mut check = place.check(&[("a", 7)]);
    if let Some(measurement) = &mut check.tests[0].measurement {
        measurement.environment.processors = 64;
    }
    place.plan(&place.check(&[("a", 5)]), &Options::default()).write().expect("it can be written");
    let update = place.plan(&check, &Options::default());
    assert_eq!(update.tests[0].rows[0].before, None, "it is the first for that environment");
    update.write().expect("it can be written");
    assert_eq!(place.least("a"), Some(5));
    let mut there = environment();
    there.processors = 64;
    assert!(matches!(place.baselines.find("a", &there), Ok(Found::Exact(_))));
}
