//! What a check of allocation tests shows: tests worst first, which stacks changed, what was left behind, what varies.
//!
//! Stacks lose their plumbing and the program's start, and stacks that look the same then are one row.

mod verdict;

pub use verdict::{outcome, weight};

use crate::{FrameVisibility, is_own, lines, plumbing, without_interpreter};
use mallow_base::Frame;
use mallow_gate::measurement::{Metric, Metrics, Run, judged_run};
use mallow_gate::result::{CheckResult, Conclusion, Outcome, Position, SiteChange, Spread, TestResult};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::hash::Hash;

/// The tests, the worst first, and those with the same verdict in the order of the suite.
pub fn worst_first(result: &CheckResult) -> Vec<&TestResult> {
    let mut tests: Vec<&TestResult> = result.tests.iter().collect();
    tests.sort_by_key(|test| Reverse(test.outcome));
    tests
}

/// Returns how many tests have each verdict, the worst first; verdicts that no test has are omitted.
pub fn stats(result: &CheckResult) -> Vec<(Outcome, usize)> {
    let mut counts: Vec<(Outcome, usize)> = Vec::new();
    for test in worst_first(result) {
        match counts.last_mut() {
            Some((outcome, count)) if *outcome == test.outcome => *count += 1,
            _ => counts.push((test.outcome, 1)),
        }
    }
    counts
}

/// Returns the conclusion of a test for one metric; `None` if that was not judged.
pub fn conclusion(test: &TestResult, metric: Metric) -> Option<&Conclusion> {
    test.conclusions.iter().find(|conclusion| conclusion.metric == metric)
}

/// The conclusions that made the verdict: what is above its window, or when nothing is, what is below.
pub fn deciding(test: &TestResult) -> Vec<&Conclusion> {
    let position =
        |wanted: Position| test.conclusions.iter().filter(move |conclusion| conclusion.position == wanted);
    let above: Vec<&Conclusion> = position(Position::Above).collect();
    if above.is_empty() { position(Position::Below).collect() } else { above }
}

/// Returns the metrics by which a test's changed stacks are listed, of those that decided the verdict. Stacks have no
/// peak of their own, so bytes replace it; and bytes are omitted beside their count, because the same stacks have
/// both.
pub fn site_metrics(test: &TestResult) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    for conclusion in deciding(test) {
        let (metric, count) = match conclusion.metric {
            // Nor has resident memory; and time has no part in any stack.
            Metric::Bytes | Metric::Peak | Metric::PeakRss => (Metric::Bytes, Metric::Allocations),
            Metric::Wall => continue,
            Metric::RemainingBytes => (Metric::RemainingBytes, Metric::Remaining),
            // Objects have no stacks: those of allocations replace them.
            Metric::Objects | Metric::ObjectBytes => (Metric::Allocations, Metric::Allocations),
            Metric::RemainingObjects | Metric::RemainingObjectBytes => (Metric::Remaining, Metric::Remaining),
            metric => (metric, metric),
        };
        if !metrics.contains(&metric) && !metrics.contains(&count) {
            metrics.push(metric);
        }
    }
    if metrics.is_empty() { vec![Metric::Allocations] } else { metrics }
}

/// Returns the frames of a stack that people want to see, innermost first. The loop that runs a region is in every
/// stack of a test and is hidden, as long as another frame remains. `plumbing` are globs of the project's own.
pub fn visible<'a>(frames: &'a [Frame], plumbing: &[String]) -> Vec<&'a Frame> {
    let kept = without_interpreter(frames.iter().skip(plumbing::leading(frames, plumbing)));
    let shown: Vec<&Frame> = lines(kept.into_iter(), FrameVisibility::WithoutPlumbing)
        .into_iter()
        .map(|line| line.frame)
        .collect();
    let without_loop: Vec<&Frame> = shown.iter().copied().filter(|frame| !is_marker(frame)).collect();
    if without_loop.is_empty() { shown } else { without_loop }
}

/// Returns whether a frame is of the markers that a test includes: of the header, or of another language's package.
fn is_marker(frame: &Frame) -> bool {
    const FILES: [&str; 5] =
        ["/mallow.h", "/mallow_markers.rs", "/mallow/__init__.py", "/mallow.rb", "/mallow.js"];
    let is_file = |file: &String| FILES.iter().any(|ending| file.ends_with(ending));
    frame.function == "mallow_measure"
        || frame.function.starts_with("mallow_markers::")
        || frame.file.as_ref().is_some_and(is_file)
}

/// A stack whose share changed since the baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeRow<'a> {
    /// Its visible frames, innermost first.
    pub frames: Vec<&'a Frame>,
    /// The index of the line to blame.
    pub blamed: usize,
    /// The metric of one run before.
    pub before: u64,
    /// The metric of one run now.
    pub after: u64,
    /// Whether the baseline has the same stack, and not a similar one.
    pub exact: bool,
}

impl ChangeRow<'_> {
    /// After minus before.
    pub fn difference(&self) -> i128 {
        i128::from(self.after) - i128::from(self.before)
    }
}

/// The changes in one metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes<'a> {
    /// The metric.
    pub metric: Metric,
    /// The stacks that changed most.
    pub rows: Vec<ChangeRow<'a>>,
    /// How many more there are.
    pub more: usize,
    /// The sum of those.
    pub more_difference: i128,
}

/// Returns the stacks whose share of a metric changed, the largest change first and increases before decreases; at
/// most `max_rows` of them. Empty if the baseline does not have the metric.
pub fn changes(test: &TestResult, metric: Metric, max_rows: usize) -> Changes<'_> {
    let mut rows: Vec<ChangeRow<'_>> = Vec::new();
    let mut places: FxHashMap<Vec<&Frame>, usize> = FxHashMap::default();
    let is_told = |change: &&SiteChange| change.before.is_none_or(|before| before.of(metric).is_some());
    let all_tell = test.changes.iter().all(|change| is_told(&change));
    for change in test.changes.iter().filter(|_| all_tell) {
        let frames = visible(&change.frames, &test.plumbing);
        let at = *places.entry(frames.clone()).or_insert(rows.len());
        if at == rows.len() {
            let of = change.blamed.and_then(|at| change.frames.get(at));
            let blamed = blamed(&frames, of, &test.plumbing);
            rows.push(ChangeRow { frames, blamed, before: 0, after: 0, exact: true });
        }
        let of = |metrics: Option<Metrics>| metrics.and_then(|metrics| metrics.of(metric)).unwrap_or(0);
        let row = &mut rows[at];
        row.before = row.before.saturating_add(of(change.before));
        row.after = row.after.saturating_add(of(change.after));
        // A stack that one side lacks was matched with nothing, so there is no uncertain match to mark.
        row.exact &= change.exact || change.before.is_none() || change.after.is_none();
    }
    rows.retain(|row| row.difference() != 0);
    rows.sort_by_key(|row| (Reverse(row.difference().unsigned_abs()), row.difference() < 0));
    let rest = rows.split_off(max_rows.min(rows.len()));
    Changes {
        metric,
        rows,
        more: rest.len(),
        more_difference: rest.iter().map(ChangeRow::difference).fold(0, i128::saturating_add),
    }
}

/// The line to blame: where the stack leaves those of the baseline, or else the innermost of the project. What is new inside of
/// plumbing is its caller's doing.
fn blamed(visible: &[&Frame], of: Option<&Frame>, plumbing: &[String]) -> usize {
    let Some(of) = of else { return visible.iter().position(|frame| is_own(frame)).unwrap_or(0) };
    // Frames of one stack are in sequence: if this one is hidden, the next visible one outwards replaces it.
    let at =
        visible.iter().position(|frame| std::ptr::from_ref(*frame) >= std::ptr::from_ref(of)).unwrap_or(0);
    let outwards = visible.iter().skip(at);
    let passed = outwards.take_while(|frame| plumbing::is_leaf(frame, plumbing)).count();
    if at + passed < visible.len() { at + passed } else { at }
}

/// Moves the lines to blame from plumbing to its caller, so that all outputs show the same line.
pub fn settle_blame(result: &mut CheckResult) {
    for test in &mut result.tests {
        for change in &mut test.changes {
            let Some(of) = change.blamed.and_then(|at| change.frames.get(at)) else { continue };
            let visible = visible(&change.frames, &test.plumbing);
            let Some(settled) = visible.get(blamed(&visible, Some(of), &test.plumbing)) else { continue };
            change.blamed = change.frames.iter().position(|frame| std::ptr::eq(frame, *settled));
        }
    }
}

/// Returns whether nothing of the project has a line in the stacks that changed, or that made what a limit does not allow, so that no line can be
/// blamed.
pub fn lacks_lines(test: &TestResult) -> bool {
    let judged = test.measurement.as_ref().and_then(|measurement| judged_run(&measurement.runs));
    let is_told = test.outcome == Outcome::Regressed && test.changes.is_empty();
    let sites = judged.filter(|_| is_told).into_iter().flat_map(|run| &run.sites);
    let stacks: Vec<&[Frame]> = test.changes.iter().map(|change| &change.frames[..]).collect();
    let stacks: Vec<&[Frame]> = stacks.into_iter().chain(sites.map(|site| &site.frames[..])).collect();
    let frames = || stacks.iter().copied().flatten().filter(|frame| is_own(frame));
    frames().next().is_some() && frames().all(|frame| frame.line.is_none())
}

/// A stack that made much of a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargestRow<'a> {
    /// Its visible frames, innermost first.
    pub frames: Vec<&'a Frame>,
    /// The index of the innermost frame of the project.
    pub blamed: usize,
    /// The metric of one run.
    pub value: u64,
}

/// Returns the largest stacks of the judged run in a metric, at most `max_rows`, if there is nothing to compare with:
/// a limit is exceeded, and there is no baseline. Also how many more there are, and their sum. Stacks with the same
/// `look`, from the visible frames and the one to begin with, are one row.
pub fn largest<'a, L: Eq + Hash>(
    test: &'a TestResult,
    metric: Metric,
    max_rows: usize,
    look: impl Fn(&[&'a Frame], usize) -> L,
) -> (Vec<LargestRow<'a>>, usize, u64) {
    let has_reference = conclusion(test, metric).is_none_or(|conclusion| conclusion.reference.is_some());
    let run = test.measurement.as_ref().and_then(|measurement| judged_run(&measurement.runs));
    let Some(run) = run.filter(|_| test.outcome == Outcome::Regressed && !has_reference) else {
        return (Vec::new(), 0, 0);
    };
    let mut rows: Vec<LargestRow<'_>> = Vec::new();
    let mut places: FxHashMap<L, usize> = FxHashMap::default();
    for site in &run.sites {
        let frames = visible(&site.frames, &test.plumbing);
        let blamed = blamed(&frames, None, &test.plumbing);
        let at = *places.entry(look(&frames, blamed)).or_insert(rows.len());
        if at == rows.len() {
            rows.push(LargestRow { blamed, frames, value: 0 });
        }
        rows[at].value = rows[at].value.saturating_add(site.metrics.of(metric).unwrap_or(0));
    }
    rows.retain(|row| row.value > 0);
    rows.sort_by_key(|row| Reverse(row.value));
    let rest = rows.split_off(max_rows.min(rows.len()));
    let together = rest.iter().map(|row| row.value).fold(0, u64::saturating_add);
    (rows, rest.len(), together)
}

/// A stack that left blocks or descriptors in a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftRow<'a> {
    /// Its visible frames, innermost first.
    pub frames: Vec<&'a Frame>,
    /// Live blocks.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// File descriptors that are open.
    pub descriptors: u64,
}

/// The left-over blocks and descriptors of the judged run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left<'a> {
    /// The stacks that left most.
    pub rows: Vec<LeftRow<'a>>,
    /// How many more there are.
    pub more: usize,
    /// Their blocks together.
    pub more_blocks: u64,
    /// Their bytes together.
    pub more_bytes: u64,
    /// Their descriptors together.
    pub more_descriptors: u64,
}

/// Returns the left-over blocks and descriptors of the judged run, most first; at most `max_rows` stacks. Those with
/// the same `look` are one row.
pub fn left<'a, L: Eq + Hash>(
    test: &'a TestResult,
    max_rows: usize,
    look: impl Fn(&[&'a Frame]) -> L,
) -> Left<'a> {
    let mut rows: Vec<LeftRow<'_>> = Vec::new();
    let mut places: FxHashMap<L, usize> = FxHashMap::default();
    for site in &test.left {
        let frames = visible(&site.frames, &test.plumbing);
        let at = *places.entry(look(&frames)).or_insert(rows.len());
        if at == rows.len() {
            rows.push(LeftRow { frames, blocks: 0, bytes: 0, descriptors: 0 });
        }
        let row = &mut rows[at];
        row.blocks = row.blocks.saturating_add(site.metrics.remaining_blocks);
        row.bytes = row.bytes.saturating_add(site.metrics.remaining_bytes);
        row.descriptors = row.descriptors.saturating_add(site.metrics.descriptors);
    }
    rows.retain(|row| row.blocks > 0 || row.descriptors > 0);
    rows.sort_by_key(|row| Reverse((row.blocks.saturating_add(row.descriptors), row.bytes)));
    let rest = rows.split_off(max_rows.min(rows.len()));
    let sum = |of: fn(&LeftRow<'_>) -> u64| rest.iter().map(of).fold(0, u64::saturating_add);
    Left {
        more: rest.len(),
        more_blocks: sum(|row| row.blocks),
        more_bytes: sum(|row| row.bytes),
        more_descriptors: sum(|row| row.descriptors),
        rows,
    }
}

/// A stack whose allocations differ from run to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VaryingRow<'a> {
    /// Its visible frames, innermost first.
    pub frames: Vec<&'a Frame>,
    /// Its allocations in the runs.
    pub allocations: Spread,
}

/// Returns the stacks that make a test flaky, the most varying first; and how many more there are than `max_rows`.
/// Those with the same `look` are one row, with their sum in each run: their extremes need not be in the same runs.
pub fn varying<'a, L: Eq + Hash>(
    test: &'a TestResult,
    max_rows: usize,
    look: impl Fn(&[&'a Frame]) -> L,
) -> (Vec<VaryingRow<'a>>, usize) {
    let mut rows: Vec<(VaryingRow<'_>, Vec<&[Frame]>)> = Vec::new();
    let mut places: FxHashMap<L, usize> = FxHashMap::default();
    for site in &test.varying {
        let frames = visible(&site.frames, &test.plumbing);
        let at = *places.entry(look(&frames)).or_insert(rows.len());
        if at == rows.len() {
            rows.push((VaryingRow { frames, allocations: site.allocations }, Vec::new()));
        }
        rows[at].1.push(&site.frames);
    }
    for (row, stacks) in rows.iter_mut().filter(|(_, stacks)| stacks.len() > 1) {
        row.allocations = together(test, stacks).unwrap_or(row.allocations);
    }
    let mut rows: Vec<VaryingRow<'_>> = rows.into_iter().map(|(row, _)| row).collect();
    rows.retain(|row| row.allocations.range() > 0);
    rows.sort_by_key(|row| Reverse((row.allocations.range(), row.allocations.max)));
    let more = rows.split_off(max_rows.min(rows.len())).len();
    (rows, more)
}

/// Returns the spread of the sum of some stacks over the runs; `None` without runs.
fn together(test: &TestResult, stacks: &[&[Frame]]) -> Option<Spread> {
    let sum = |run: &Run| {
        let sites = run.sites.iter().filter(|site| stacks.contains(&site.frames.as_slice()));
        sites.map(|site| site.metrics.allocations).fold(0, u64::saturating_add)
    };
    Spread::of(&test.measurement.as_ref()?.runs.iter().map(sum).collect::<Vec<u64>>())
}

#[cfg(test)]
#[path = "check_tests.rs"]
mod tests;
