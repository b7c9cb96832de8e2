//! From the metrics to one word: the matrix.
//!
//! Live heap decides. Where it grows, the program leaks; where it stands, resident memory that grows is the allocator's or
//! nobody's. Resident memory alone never says that a program leaks: allocators keep what was freed, and only live heap knows. Of a program
//! whose memory is not malloc's ([`crate::holder`]), resident memory decides, by its own limit; then what grows is a mapping.

use crate::holder::own_bytes;
use crate::idle::Idle;
use crate::metric_trend::{GROWTH_OBSERVATIONS_MIN, MetricTrend};
use crate::metrics::Metrics;
use crate::series::median;
use crate::window::window;
use crate::{Basis, Evidence, Fault, ForeignHeap, Need, Observation, Rules, Shape, Verdict};

/// From so many observations on, resident memory that is neither growing nor certainly flat counts as flat beside a
/// flat heap.
const ENOUGH_OBSERVATIONS: usize = 40;

/// From so many on, a heap that was not collected may be called leaking, when its growth doubles.
const OVERWHELMING_OBSERVATIONS: usize = 40;

/// The part of a growth that explains it.
const EXPLAINS: f64 = 0.5;

/// Memory that an allocator keeps is worth a verdict from here on, ...
const KEPT_BYTES_MIN: f64 = 8.0 * 1_048_576.0;

/// ... and, if it is unknown how much there was before the work, from this part of resident memory on.
const KEPT_SHARE_MIN: f64 = 0.25;

/// A collector that is not forced runs when its heap has doubled: a rise by less than its heap may be garbage, ...
const GARBAGE_TIMES: f64 = 1.0;

/// ... and so may the first bytes (Go's collector lets 4 MiB come together before it runs at all).
const GARBAGE_BYTES: f64 = 4.0 * 1_048_576.0;

/// Growth of resident memory below the limit is doubtful from this part of the limit on, if only that metric shows
/// the memory.
const UNCERTAIN_SHARE: f64 = 0.25;

/// The verdict, and why.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decision {
    pub(crate) verdict: Verdict,
    pub(crate) basis: Basis,
    /// What would decide when it is open.
    pub(crate) needs: Vec<Need>,
}

impl Decision {
    fn of(verdict: Verdict, basis: Basis) -> Decision {
        Decision { verdict, basis, needs: Vec::new() }
    }

    fn open(basis: Basis, needs: Vec<Need>) -> Decision {
        Decision { verdict: Verdict::Inconclusive, basis, needs }
    }
}

/// Returns the verdict. A pass needs a sufficient detection limit.
pub(crate) fn decide(evidence: &Evidence, rules: &Rules, metrics: &Metrics, idle: Option<&Idle>) -> Decision {
    let decision = matrix(evidence, rules, metrics, idle);
    let is_pass = matches!(
        decision.verdict,
        Verdict::Clean | Verdict::Plateau | Verdict::Retention | Verdict::Fragmentation
    );
    let blind = metrics
        .detection_limits(rules)
        .filter(|detectable| detectable.seen > rules.sensitivity(detectable.limit));
    let worst = blind.max_by(|one, other| one.seen.total_cmp(&other.seen)).filter(|_| is_pass);
    let Some(detectable) = worst else { return decision };
    let wanted = rules.sensitivity(detectable.limit);
    // Noise does not depend on the number of requests in an iteration, so its part of a slope becomes smaller.
    let times = (wanted > detectable.limit)
        .then(|| (detectable.seen - detectable.limit) / (wanted - detectable.limit));
    let needs = vec![
        Need::Iterations(more_iterations(evidence.observations.len())),
        Need::Sensitivity { seen: detectable.seen, wanted, times },
    ];
    // No number of iterations would do.
    let needs = needs.into_iter().skip(usize::from(times.is_none())).collect();
    Decision::open(decision.basis, needs)
}

fn matrix(evidence: &Evidence, rules: &Rules, metrics: &Metrics, idle: Option<&Idle>) -> Decision {
    let seen = &evidence.observations;
    let basis = metrics.judged().0;
    let more = Need::Iterations(more_iterations(seen.len()));
    let uncollected = evidence.uncollected && metrics.managed.is_none();
    if evidence.faults.iter().any(|fault| counts(fault, rules)) {
        return Decision::of(Verdict::Invalid, basis);
    }
    let idle = idle.filter(|idle| idle.grows);
    let live = [&metrics.heap, &metrics.managed].map(Option::as_ref);
    if live.iter().flatten().any(|live| live.grows()) {
        if idle.is_some_and(|idle| idle.per_second() >= EXPLAINS * growth_per_second(seen, metrics)) {
            return Decision::of(Verdict::GrowsWhenIdle, basis);
        }
        let is_overwhelming = metrics.judged().1.doubles && seen.len() >= OVERWHELMING_OBSERVATIONS;
        return match uncollected && !is_overwhelming {
            true => Decision::open(basis, vec![Need::Collection]),
            false => Decision::of(Verdict::Leaking, basis),
        };
    }
    if idle.is_some() {
        return Decision::of(Verdict::GrowsWhenIdle, basis);
    }
    if let Some(decision) = by_stacks(metrics, uncollected, more.clone()) {
        return decision;
    }
    if metrics.is_elsewhere {
        return outside_of_heaps(evidence, rules, metrics, more);
    }
    if live.iter().flatten().any(|live| live.is_unclear()) {
        let collection = uncollected.then_some(Need::Collection);
        return Decision::open(basis, collection.into_iter().chain([more]).collect());
    }
    match metrics.heap {
        Some(_) => beside_a_flat_heap(evidence, rules, metrics, uncollected, more),
        None => resident_alone(evidence, metrics, more),
    }
}

/// Stacks that grow by a constant decide if the heap as a whole is unclear, or falls because others fall. If it is
/// flat, they grow at the expense of others.
fn by_stacks(metrics: &Metrics, uncollected: bool, more: Need) -> Option<Decision> {
    let steady = metrics.steady?;
    let shape = metrics.heap.as_ref()?.trend.shape;
    if uncollected || !matches!(shape, Shape::Unclear | Shape::Falls) {
        return None;
    }
    match steady.is_offset {
        true => Some(Decision::open(Basis::LiveHeap, vec![more])),
        false => Some(Decision::of(Verdict::Leaking, Basis::Stacks)),
    }
}

/// For memory that is on no observed heap, only resident memory is known.
fn outside_of_heaps(evidence: &Evidence, rules: &Rules, metrics: &Metrics, more: Need) -> Decision {
    let kept = metrics.kept();
    if kept.grows() && evidence.uncollected {
        return Decision::open(Basis::Resident, vec![Need::Collection]);
    }
    let is_uncollected = evidence.foreign_heap == ForeignHeap::Uncollected;
    if kept.grows() && is_uncollected && may_be_garbage(&evidence.observations, kept) {
        return Decision::open(Basis::Resident, vec![more, Need::Collection]);
    }
    if kept.grows() {
        return Decision::of(Verdict::Mappings, mapped_or_resident(metrics));
    }
    if let Some(decision) = if_uncertain(kept, rules, &more) {
        return decision;
    }
    match kept.stands() {
        true => Decision::of(at_rest(evidence, metrics), Basis::Resident),
        false => Decision::open(Basis::Resident, vec![more]),
    }
}

/// A rise of resident memory that is too large to pass is open: if it is less than the limit, the program's own
/// metrics may decide.
fn if_uncertain(kept: &MetricTrend, rules: &Rules, more: &Need) -> Option<Decision> {
    let limit = rules.resident_per_request_min;
    let own_tools = (kept.trend.per_request < limit).then_some(Need::OwnTools);
    let needs = [Some(more.clone()), own_tools].into_iter().flatten().collect();
    let is_open = kept.creeps && kept.trend.per_request >= UNCERTAIN_SHARE * limit;
    is_open.then(|| Decision::open(Basis::Resident, needs))
}

/// Returns whether what rose may wait for a collector that runs when its heap has doubled.
fn may_be_garbage(seen: &[Observation], kept: &MetricTrend) -> bool {
    let before = seen.first().map_or(0.0, own_bytes);
    kept.trend.last - kept.trend.first < (GARBAGE_TIMES * before).max(GARBAGE_BYTES)
}

fn mapped_or_resident(metrics: &Metrics) -> Basis {
    match metrics.mapped.as_ref().is_some_and(MetricTrend::grows) {
        true => Basis::Mapped,
        false => Basis::Resident,
    }
}

/// Twice as many as there are, and at least those that growth needs.
fn more_iterations(seen: usize) -> u32 {
    let more = if seen < GROWTH_OBSERVATIONS_MIN { GROWTH_OBSERVATIONS_MIN - seen } else { seen };
    u32::try_from(more).unwrap_or(u32::MAX)
}

/// Returns whether a fault exceeds what the rules allow. Faults without a metric always do.
fn counts(fault: &Fault, rules: &Rules) -> bool {
    match fault {
        Fault::Errors { failed, requests, .. } => {
            *requests == 0 || *failed as f64 > rules.errors_max * *requests as f64
        }
        Fault::Saturated { busy } => *busy >= rules.generator_busy_max || busy.is_nan(),
        Fault::Unread { .. } | Fault::Lost { .. } | Fault::Died { .. } => true,
    }
}

/// Returns how fast the judged metric grew while the program worked.
fn growth_per_second(seen: &[Observation], metrics: &Metrics) -> f64 {
    let (Some(first), Some(last)) = (seen.first(), seen.last()) else { return 0.0 };
    let requests = last.requests.saturating_sub(first.requests) as f64;
    metrics.judged().1.trend.per_request * requests / (last.seconds - first.seconds)
}

fn beside_a_flat_heap(
    evidence: &Evidence,
    rules: &Rules,
    metrics: &Metrics,
    uncollected: bool,
    more: Need,
) -> Decision {
    let basis = metrics.judged().0;
    if metrics.resident.grows() || metrics.kept().grows() {
        return match of_resident_growth(metrics) {
            Some(Verdict::Mappings) if uncollected => Decision::open(basis, vec![Need::Collection]),
            Some(Verdict::Mappings) => Decision::of(Verdict::Mappings, mapped_or_resident(metrics)),
            Some(verdict) => Decision::of(verdict, basis),
            None => Decision::open(basis, vec![more]),
        };
    }
    let kept = metrics.kept();
    // A flat heap means nothing for a program that has almost none.
    if let Some(decision) = if_uncertain(kept, rules, &more).filter(|_| metrics.is_sliver) {
        return decision;
    }
    let is_settled = kept.stands() || (evidence.observations.len() >= ENOUGH_OBSERVATIONS && !kept.creeps);
    match is_settled {
        true => Decision::of(at_rest(evidence, metrics), basis),
        false => Decision::open(basis, vec![more]),
    }
}

/// Returns the cause of the growth of resident memory, while the live heap is flat; `None` if it is unknown.
fn of_resident_growth(metrics: &Metrics) -> Option<Verdict> {
    let kept = metrics.kept().growth();
    let explains =
        |trend: &Option<MetricTrend>| trend.as_ref().map(|trend| trend.growth() >= EXPLAINS * kept);
    if metrics.resident.grows() && metrics.returned().is_some_and(|returned| returned >= EXPLAINS) {
        return Some(Verdict::Retention);
    }
    if explains(&metrics.mapped) == Some(true) {
        return Some(Verdict::Mappings);
    }
    match explains(&metrics.allocator) {
        Some(true) => Some(Verdict::Fragmentation),
        Some(false) => Some(Verdict::Mappings),
        // The allocator trimmed, and could release nothing.
        None if metrics.trimmed.is_some() => Some(Verdict::Fragmentation),
        // It cannot trim on request; but if its areas do not grow, it is not the allocator.
        None => {
            (metrics.heap.is_some() && explains(&metrics.areas) == Some(false)).then_some(Verdict::Mappings)
        }
    }
}

fn resident_alone(evidence: &Evidence, metrics: &Metrics, more: Need) -> Decision {
    let basis = metrics.judged().0;
    let kept = metrics.kept();
    if metrics.resident.grows() || kept.grows() {
        return match of_resident_growth(metrics) {
            Some(Verdict::Mappings) => Decision::of(Verdict::Mappings, mapped_or_resident(metrics)),
            Some(Verdict::Retention) => Decision::of(Verdict::Retention, basis),
            _ => Decision::open(basis, vec![Need::Recorder]),
        };
    }
    if kept.is_unclear() {
        return Decision::open(basis, vec![more, Need::Recorder]);
    }
    // Below the limit of this metric, but present: a small leak looks like that. So does a pool that fills.
    if kept.creeps {
        return Decision::open(basis, vec![Need::Recorder]);
    }
    Decision::of(at_rest(evidence, metrics), basis)
}

/// Nothing grows: is more kept than used, did it rise, or was there nothing at all?
fn at_rest(evidence: &Evidence, metrics: &Metrics) -> Verdict {
    let kept = Retained::of(evidence);
    if kept.is_much(kept.released, metrics.resident.trend.last) {
        return Verdict::Retention;
    }
    if kept.is_much(kept.stuck, metrics.kept().trend.last) {
        return Verdict::Fragmentation;
    }
    let metrics = [metrics.heap.as_ref(), metrics.managed.as_ref(), Some(metrics.kept())];
    match metrics.iter().flatten().any(|metric| metric.trend.shape == Shape::RoseThenFlat) {
        true => Verdict::Plateau,
        false => Verdict::Clean,
    }
}

/// Freed memory that the allocator keeps, in the judged window.
struct Retained {
    /// Released on request.
    released: f64,
    /// Not released: free, resident, and not there before the work.
    stuck: f64,
    /// How far resident memory is above its level before the work; `None` if that was not observed.
    excess: Option<f64>,
    live: f64,
}

impl Retained {
    fn of(evidence: &Evidence) -> Retained {
        let late = &evidence.observations[window(&evidence.observations)];
        let of = |metric: &dyn Fn(&Observation) -> Option<u64>| {
            median(late.iter().filter_map(metric).map(|bytes| bytes as f64))
        };
        let before = evidence.before.as_ref();
        // Resident for other reasons than live blocks: before the work, or at least files.
        let other = |seen: &Observation| match before {
            Some(before) => {
                let resident = before.trimmed_bytes.unwrap_or(before.resident_bytes);
                Some(resident.saturating_sub(before.live_bytes.unwrap_or(0)))
            }
            None => seen.mapped_bytes,
        };
        let stuck = |seen: &Observation| {
            let live = seen.live_bytes?;
            let unexplained = seen.trimmed_bytes?.saturating_sub(other(seen)?.saturating_add(live));
            // Stacks of new threads are unexplained too, and free memory of the allocator may be without pages: only
            // what is resident in its heap areas, beyond live blocks, is the allocator's. Large blocks are elsewhere,
            // so this is rather too little.
            let in_areas = seen.areas_bytes.map_or(u64::MAX, |areas| areas.saturating_sub(live));
            Some(unexplained.min(seen.held_free_bytes?).min(in_areas))
        };
        let above = |seen: &Observation| Some(seen.resident_bytes.saturating_sub(before?.resident_bytes));
        Retained {
            released: of(&|seen| Some(seen.resident_bytes.saturating_sub(seen.trimmed_bytes?))),
            stuck: of(&stuck),
            excess: before.map(|_| of(&above)),
            live: of(&|seen| seen.live_bytes),
        }
    }

    /// Returns whether that is worth a verdict: most of the memory that came with the work, or more than all that the
    /// program uses.
    fn is_much(&self, kept: f64, resident: f64) -> bool {
        let is_most = match self.excess {
            Some(excess) => kept >= EXPLAINS * excess,
            None => kept >= self.live && kept >= KEPT_SHARE_MIN * resident,
        };
        kept >= KEPT_BYTES_MIN && is_most
    }
}
