//! From evidence to a judgement: every plane's course, then the verdict, then what stands beside it.

use crate::findings::findings;
use crate::idle::idle;
use crate::plane::Course;
use crate::planes::Planes;
use crate::verdict::{Decision, decide};
use crate::window::window;
use crate::{Basis, Evidence, Judgement, Need, Rules, Verdict};

/// Judges a run.
///
/// May be called again with more observations while the verdict is [`Verdict::Inconclusive`]: 20, 40, 80 is what the error
/// rates were measured with. With fewer than 20 observations nothing is called growth, with fewer than 10 nothing at all.
pub fn judge(evidence: &Evidence, rules: &Rules) -> Judgement {
    let planes = Planes::of(evidence, rules);
    let idle = idle(evidence, planes.is_elsewhere, rules);
    let Decision { verdict, basis, mut needs } = decide(evidence, rules, &planes, idle.as_ref());
    if verdict == Verdict::Inconclusive && !evidence.idle.is_empty() && idle.is_none() {
        needs.push(Need::Idle);
    }
    let trend = |course: &Option<Course>| course.as_ref().map(|course| course.trend);
    Judgement {
        verdict,
        basis,
        is_elsewhere: planes.is_elsewhere,
        window: window(&evidence.observations),
        heap: trend(&planes.heap),
        steady: (basis == Basis::Stacks).then_some(planes.steady.map(|steady| steady.trend)).flatten(),
        resident: planes.resident.trend,
        trimmed: trend(&planes.trimmed),
        mapped: trend(&planes.mapped),
        allocator: trend(&planes.allocator),
        managed: trend(&planes.managed),
        idle_per_hour: idle.map(|idle| idle.per_hour),
        detectable_per_request: planes.sights(rules).map(|sight| sight.seen).reduce(f64::max),
        detectable_outside_per_request: planes.sight_outside(),
        plateau: planes.judged().1.plateau.or(planes.kept().plateau),
        findings: findings(evidence, &planes, rules),
        needs,
    }
}
