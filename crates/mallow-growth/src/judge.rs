//! From evidence to a verdict.

use crate::{Evidence, GrowingStack, Judgement, Observation, Rules, StackSeries, Trend, Verdict};

/// Judges a run.
pub fn judge(evidence: &Evidence, _rules: &Rules) -> Judgement {
    Judgement {
        verdict: Verdict::Inconclusive,
        window: 0..evidence.observations.len(),
        heap: None,
        resident: Trend::default(),
        trimmed: None,
        mapped: None,
        allocator: None,
        managed: None,
        idle_per_hour: None,
        detectable_per_request: None,
        plateau: None,
        findings: Vec::new(),
        needs: Vec::new(),
    }
}

/// The stacks that grow, those that grow most first. `stacks` hold one figure for each of the observations.
pub fn growing_stacks(
    _observations: &[Observation],
    _stacks: &[StackSeries],
    _rules: &Rules,
) -> Vec<GrowingStack> {
    Vec::new()
}
