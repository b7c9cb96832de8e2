//! The verdict: a pure function of a measurement, a baseline and limits.
//!
//! # What is judged, and why so
//!
//! **Allocations** are judged by the least value over the runs, because what disturbs a count (another thread, a cache
//! that is filled) adds to it. Without a limit of their own they may be off the baseline by one in a hundred
//! operations, rounded down, at most 50: strays pass, one allocation per operation never does. For n operations the
//! slack is at most n/100, so from any value in the window (two slacks wide) n more is outside for every n from 1 on.
//! Below 100 operations, and where nobody said how many there are, the slack is 0: the count is exact.
//!
//! **Blocks and descriptors left behind** are exact: a block belongs to the run it was born in, so nothing disturbs
//! them. One leak in 100 operations is smaller than the slack of allocations, and is found here alone. With 100 operations
//! or more it leaves something in *every* run, so the least value tells it. With fewer it is seen only in some runs, as is
//! a block that is kept once (a table that grows). Both halves of the runs then are looked at: a leak leaves
//! something in at least as many runs of each half as the half has hundreds of operations. Where a half has fewer than a
//! hundred, nobody can tell, and the verdict is FLAKY, never OK: more operations or more runs are asked for.
//! With extended runs (20) this is so below 10 operations.
//!
//! **Bytes, peak, bytes left and temporary allocations** are free unless limited. They vary with the lengths of paths, names and numbers, and with
//! when threads overlap, so their spread is shown but never makes a test flaky; with a limit, the least value is held
//! against it.
//!
//! **Times and resident memory** are those of whole processes without the recorder, which are run where they have a limit. Resident memory is judged as
//! bytes are; times by their interval (see `times`), against a limit and never against a baseline. What has a limit and was not measured is never OK.

mod compare;
mod ignore;
mod sentence;
mod times;
mod window;

use crate::baseline::{Baseline, Found};
use crate::limit::{Limit, Limits};
use crate::measurement::{Measurement, Metric, Run, Site, judged_run};
use crate::result::{Conclusion, Outcome, Position, Spread, TestResult};
use crate::{site_diff, spread};
use compare::Confidence;
pub use sentence::per_operation;

/// Settings of the judge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Compare with a baseline of another environment if there is no other.
    pub ignore_environment: bool,
}

/// Returns whether a measurement should get as many runs again before it is judged: its minimum of allocations is not
/// known to be the floor, or some runs left blocks that others did not, and there were too few operations to
/// distinguish a leak from a block that is kept once (see the head of this module).
pub fn wants_more_runs(measurement: &Measurement) -> bool {
    let runs = &measurement.runs;
    let is_unsteady = [Metric::Allocations, Metric::Objects]
        .into_iter()
        .any(|metric| Spread::of_runs(runs, metric).is_some_and(|spread| !spread.is_steady()));
    let may_leak = [Metric::Remaining, Metric::Descriptors].into_iter().any(|metric| {
        let differs = Spread::of_runs(runs, metric).is_some_and(|spread| spread.range() > 0);
        differs && window::runs_per_hundred(measurement.ops) > 1
    });
    is_unsteady || may_leak
}

/// Returns whether it should have as many runs again because its times are not clear.
pub fn wants_more_times(measurement: &Measurement, limits: &Limits) -> bool {
    let Some(Limit::Absolute { max: Some(max), .. }) = limits.of(Metric::Wall) else { return false };
    times::position(&measurement.runs, max).is_none()
}

/// Judges a measurement by the baseline that was found for it; if there are only those of other environments, by the nearest one, which then is
/// not used but named. [`TestResult::duration_us`] is left 0.
pub fn judge_found(measurement: &Measurement, found: &Found, limits: &Limits, how: &Settings) -> TestResult {
    match found {
        Found::Exact(baseline) => judge(measurement, Some(baseline), limits, how),
        Found::None => judge(measurement, None, limits, how),
        Found::OtherEnvironment(others) => {
            let nearest =
                others.iter().min_by_key(|o| o.environment.differences(&measurement.environment).len());
            judge(measurement, nearest, limits, how)
        }
    }
}

/// Judges what was measured. A baseline of another environment or of another number of operations is not used, and
/// the sentences say so. [`TestResult::duration_us`] is left 0.
pub fn judge(
    measurement: &Measurement,
    baseline: Option<&Baseline>,
    limits: &Limits,
    how: &Settings,
) -> TestResult {
    let mut measurement = measurement.clone();
    let mut sentences = Vec::new();
    if measurement.runs.is_empty() {
        sentences.push("No run was measured, so there is nothing to judge.".to_owned());
        return finish(measurement, Outcome::Error, sentences);
    }
    let baseline = usable(baseline, &mut measurement, how, &mut sentences);
    ignore::leave_out(&mut measurement, &limits.ignore_sites);
    let baseline = baseline.map(|baseline| ignore::without(baseline, &limits.ignore_sites));
    let verdict = Verdict::of(&mut measurement, baseline.as_deref(), limits, &mut sentences);
    if verdict.outcome == Outcome::Ok {
        // Why a baseline was not used, where limits are enough.
        measurement.notes.append(&mut sentences);
    }
    let mut result =
        TestResult { conclusions: verdict.conclusions, ..finish(measurement, verdict.outcome, sentences) };
    explain(&mut result, baseline.as_deref());
    result
}

/// The baseline, if it is for what was measured.
fn usable<'a>(
    baseline: Option<&'a Baseline>,
    measurement: &mut Measurement,
    how: &Settings,
    sentences: &mut Vec<String>,
) -> Option<&'a Baseline> {
    let baseline = baseline?;
    let differences = baseline.environment.differences(&measurement.environment);
    if !differences.is_empty() && !how.ignore_environment {
        sentences.push(sentence::other_environment(&differences));
        return None;
    }
    if baseline.ops != measurement.ops {
        sentences.push(sentence::other_operations(baseline.ops, measurement.ops, &measurement.name));
        return None;
    }
    if !differences.is_empty() {
        let list = differences.join("; ");
        measurement
            .notes
            .push(format!("Compared with a baseline of another environment, as requested: {list}."));
    }
    Some(baseline)
}

/// The verdict of all metrics.
struct Verdict {
    outcome: Outcome,
    conclusions: Vec<Conclusion>,
}

impl Verdict {
    fn of(
        measurement: &mut Measurement,
        baseline: Option<&Baseline>,
        limits: &Limits,
        sentences: &mut Vec<String>,
    ) -> Self {
        let mut conclusions = Vec::new();
        let mut is_flaky = false;
        note_unmeasured(measurement, limits);
        for metric in Metric::ALL {
            let Some(judged) = compare::judge_metric(measurement, baseline, limits, metric) else {
                continue;
            };
            let said = sentence::of(&judged.conclusion, judged.confidence, measurement, limits);
            match judged.confidence {
                Confidence::Noted if judged.conclusion.position == Position::Within => {
                    measurement.notes.extend(said)
                }
                _ => sentences.extend(said),
            }
            is_flaky |= matches!(judged.confidence, Confidence::Flaky | Confidence::FewOperations);
            conclusions.push(judged.conclusion);
        }
        let has = |position| conclusions.iter().any(|j| j.position == position);
        let is_set = |metric| window::is_set(metric, limits, baseline);
        let is_broken = conclusions.iter().any(|j| j.position == Position::Above && is_set(j.metric));
        let open =
            window::unknown(&conclusions).map(|metric| sentence::missing(&measurement.name, metric, limits));
        let unknown = open.or_else(|| {
            let metric = window::without_reference(&conclusions, limits)?;
            Some(sentence::without_reference(&measurement.name, metric))
        });
        let is_missing = unknown.is_some();
        let is_seen = measurement.unseen.is_empty();
        if let Some(sentence) = unknown.filter(|_| is_seen) {
            // Broken limits come first.
            let at = if is_broken { sentences.len() } else { 0 };
            sentences.insert(at, sentence);
        }
        let outcome = if !is_seen {
            sentences.splice(0..0, measurement.unseen.iter().cloned());
            Outcome::Blind
        } else if is_broken {
            Outcome::Regressed
        } else if is_missing {
            Outcome::Missing
        } else if has(Position::Above) {
            Outcome::Regressed
        } else if is_flaky {
            Outcome::Flaky
        } else if has(Position::Below) {
            Outcome::Improved
        } else {
            Outcome::Ok
        };
        Self { outcome, conclusions }
    }
}

/// Handles metrics with a limit that were not measured. Objects that no runtime reports are removed.
fn note_unmeasured(measurement: &mut Measurement, limits: &Limits) {
    let runs = &measurement.runs;
    let is_unmeasured = |metric: &Metric| {
        matches!(metric, Metric::Temporary | Metric::PeakRss | Metric::Wall)
            && Spread::of_runs(runs, *metric).is_none()
    };
    let sentences: Vec<String> = limits.limited().filter(is_unmeasured).map(sentence::not_measured).collect();
    measurement.unseen.extend(sentences);
}

/// Adds which sites changed, which vary and which left blocks.
fn explain(result: &mut TestResult, baseline: Option<&Baseline>) {
    let Some(measurement) = &result.measurement else { return };
    let above =
        |metric| result.conclusions.iter().any(|j| j.metric == metric && j.position == Position::Above);
    let has_left = above(Metric::Remaining) || above(Metric::RemainingBytes) || above(Metric::Descriptors);
    let Some(run) = judged_run(&measurement.runs) else { return };
    result.left = site_diff::left(run);
    if result.left.is_empty() && (has_left || result.outcome == Outcome::Flaky) {
        // A leak of fewer than one block per run is not in the run with the fewest allocations.
        let most = |run: &&Run| (run.metrics.remaining_blocks, run.metrics.descriptors);
        result.left = measurement.runs.iter().max_by_key(most).map(site_diff::left).unwrap_or_default();
    }
    let is_unsteady =
        result.conclusions.iter().any(|j| j.metric == Metric::Allocations && !j.spread.is_steady());
    if result.outcome == Outcome::Flaky || (is_unsteady && result.outcome != Outcome::Ok) {
        result.varying = spread::varying_sites(&measurement.runs);
    }
    let is_changed = matches!(result.outcome, Outcome::Regressed | Outcome::Improved | Outcome::Flaky);
    if let (true, Some(baseline)) = (is_changed, baseline) {
        let focus = focus(&result.conclusions);
        result.changes = site_diff::changes(baseline, run, focus);
    }
}

/// The metric that the changes should explain: what is above its window, else what is below, else allocations.
fn focus(conclusions: &[Conclusion]) -> Metric {
    let first = |position| conclusions.iter().find(|j| j.position == position).map(|j| j.metric);
    first(Position::Above).or_else(|| first(Position::Below)).unwrap_or(Metric::Allocations)
}

fn finish(measurement: Measurement, outcome: Outcome, sentences: Vec<String>) -> TestResult {
    TestResult {
        name: measurement.name.clone(),
        outcome,
        sentences,
        conclusions: Vec::new(),
        changes: Vec::new(),
        varying: Vec::new(),
        left: Vec::<Site>::new(),
        plumbing: Vec::new(),
        measurement: Some(measurement),
        duration_us: 0,
    }
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "judge_properties.rs"]
mod properties;
