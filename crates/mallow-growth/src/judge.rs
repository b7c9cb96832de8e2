//! From evidence to a conclusion: every metric's trend, then the verdict, then what stands beside it.

use crate::findings::findings;
use crate::idle::idle;
use crate::metric_trend::MetricTrend;
use crate::metrics::Metrics;
use crate::verdict::{Decision, decide};
use crate::window::window;
use crate::{Basis, Conclusion, Evidence, Need, Rules, Verdict};

/// Judges a run.
///
/// May be called again with more observations while the verdict is [`Verdict::Inconclusive`]: 20, 40, 80 is what the error
/// rates were measured with. With fewer than 20 observations nothing is called growth, with fewer than 10 nothing at all.
pub fn judge(evidence: &Evidence, rules: &Rules) -> Conclusion {
    let metrics = Metrics::of(evidence, rules);
    let idle = idle(evidence, metrics.is_elsewhere, rules);
    let Decision { verdict, basis, mut needs } = decide(evidence, rules, &metrics, idle.as_ref());
    if verdict == Verdict::Inconclusive && !evidence.idle.is_empty() && idle.is_none() {
        needs.push(Need::Idle);
    }
    let trend = |metric: &Option<MetricTrend>| metric.as_ref().map(|metric| metric.trend);
    Conclusion {
        verdict,
        basis,
        by_age: metrics.by_age,
        is_elsewhere: metrics.is_elsewhere,
        window: window(&evidence.observations),
        heap: trend(&metrics.heap),
        steady: (basis == Basis::Stacks).then_some(metrics.steady.map(|steady| steady.trend)).flatten(),
        resident: metrics.resident.trend,
        trimmed: trend(&metrics.trimmed),
        mapped: trend(&metrics.mapped),
        allocator: trend(&metrics.allocator),
        managed: trend(&metrics.managed),
        idle_per_hour: idle.map(|idle| idle.per_hour),
        detectable_per_request: metrics
            .detection_limits(rules)
            .map(|detectable| detectable.seen)
            .reduce(f64::max),
        detectable_outside_per_request: metrics.sight_outside(),
        plateau: metrics.judged().1.plateau.or(metrics.kept().plateau),
        findings: findings(evidence, &metrics, rules),
        needs,
    }
}
