//! From evidence to a judgement: every plane's course, then the verdict, then what stands beside it.

use crate::findings::findings;
use crate::idle::idle;
use crate::plane::Course;
use crate::verdict::{Planes, verdict};
use crate::window::window;
use crate::{Evidence, Judgement, Need, Rules, Verdict};

/// Judges a run.
///
/// May be called again with more observations while the verdict is [`Verdict::Inconclusive`]: 20, 40, 80 is what the error
/// rates were measured with. With fewer than 20 observations nothing is called growth, with fewer than 10 nothing at all.
pub fn judge(evidence: &Evidence, rules: &Rules) -> Judgement {
    let planes = Planes::of(&evidence.observations, rules);
    let idle = idle(evidence, rules);
    let (verdict, mut needs) = verdict(evidence, rules, &planes, idle.as_ref());
    if verdict == Verdict::Inconclusive && !evidence.idle.is_empty() && idle.is_none() {
        needs.push(Need::Idle);
    }
    let trend = |course: &Option<Course>| course.as_ref().map(|course| course.trend);
    Judgement {
        verdict,
        window: window(&evidence.observations),
        heap: trend(&planes.heap),
        resident: planes.resident.trend,
        trimmed: trend(&planes.trimmed),
        mapped: trend(&planes.mapped),
        allocator: trend(&planes.allocator),
        managed: trend(&planes.managed),
        idle_per_hour: idle.map(|idle| idle.per_hour),
        detectable_per_request: detectable(&planes, rules),
        plateau: planes.judged().plateau.or(planes.kept().plateau),
        findings: findings(evidence, &planes, rules),
        needs,
    }
}

/// The smallest leak that this run would not have passed.
///
/// A leak adds the same to each pair's slope, so it moves the estimate and both ends of its interval by exactly itself. It is
/// called as soon as the lower end passes the limit, and clears the run no longer as soon as the upper one does.
fn detectable(planes: &Planes, rules: &Rules) -> Option<f64> {
    let judged = planes.judged();
    let limit = match planes.heap.is_some() || planes.managed.is_some() {
        true => rules.heap_per_request_min,
        false => rules.resident_per_request_min,
    };
    let trend = judged.trend;
    let half_width =
        (trend.per_request - trend.per_request_low).max(trend.per_request_high - trend.per_request);
    (judged.requests > 0.0).then_some(limit + half_width)
}
