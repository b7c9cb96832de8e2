//! Every metric's trend, and which of them hold the memory.

use crate::holder;
use crate::metric_trend::{MetricTrend, trend_by_age, trend_of};
use crate::series::{Point, points_of};
use crate::steady::{Steady, steady};
use crate::{Basis, Evidence, Observation, Rules};

/// Each metric's trend.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics {
    pub(crate) heap: Option<MetricTrend>,
    pub(crate) resident: MetricTrend,
    pub(crate) trimmed: Option<MetricTrend>,
    pub(crate) mapped: Option<MetricTrend>,
    pub(crate) allocator: Option<MetricTrend>,
    pub(crate) managed: Option<MetricTrend>,
    /// Resident memory of the allocator's areas.
    pub(crate) areas: Option<MetricTrend>,
    /// The heap is that of one worker by its age.
    pub(crate) by_age: bool,
    /// Stacks of the live heap that grow by a constant.
    pub(crate) steady: Option<Steady>,
    /// The memory is on none of the heaps, see [`crate::holder`].
    pub(crate) is_elsewhere: bool,
    /// The heaps are a sliver of what the program holds, if that is not much either.
    pub(crate) is_sliver: bool,
    /// What resident memory may hide, in bytes per request, see [`holder::headroom`].
    pub(crate) hidden: f64,
}

/// The trend of a heap, and whether it is by age. Where workers are replaced it is the worse of two: that of one worker by its age, and that of the
/// processes that stay.
fn heap_of(
    evidence: &Evidence,
    rules: &Rules,
    bytes: fn(&Observation) -> Option<u64>,
) -> (Option<MetricTrend>, bool) {
    let limit = rules.heap_per_request_min;
    let over_requests = |seen: &[Observation]| Some(trend_of(&points_of(seen, bytes)?, limit));
    if evidence.workers.is_empty() {
        return (over_requests(&evidence.observations), false);
    }
    let workers = points_of(&evidence.workers, bytes)
        .map(|points| trend_by_age(&points, limit, rules.sensitivity(limit)));
    let staying = over_requests(&evidence.staying);
    let badness = |trend: &Option<MetricTrend>| {
        trend.as_ref().map_or((false, false), |trend| (trend.grows(), trend.is_unclear()))
    };
    let is_worse = badness(&staying) > badness(&workers);
    if is_worse { (staying, false) } else { (workers, true) }
}

/// The detection limit of a metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DetectionLimit {
    /// The smallest leak that would not have been passed, in bytes for each request.
    pub(crate) seen: f64,
    /// Growth below this is never called growth there.
    pub(crate) limit: f64,
}

impl Metrics {
    pub(crate) fn of(evidence: &Evidence, rules: &Rules) -> Metrics {
        let seen = &evidence.observations;
        let pages = |points: Vec<Point>| trend_of(&points, rules.resident_per_request_min);
        let resident = points_of(seen, |seen| Some(seen.resident_bytes)).map(pages).unwrap_or_default();
        let (heap_trend, by_age) = heap_of(evidence, rules, |seen| seen.live_bytes);
        let (managed, _) = heap_of(evidence, rules, |seen| seen.managed_bytes);
        Metrics {
            hidden: holder::headroom(evidence) / resident.requests.max(1.0),
            resident,
            heap: heap_trend,
            by_age,
            trimmed: points_of(seen, |seen| seen.trimmed_bytes).map(pages),
            mapped: points_of(seen, |seen| seen.mapped_bytes).map(pages),
            allocator: points_of(seen, |seen| seen.allocator_bytes).map(pages),
            managed,
            areas: points_of(seen, |seen| seen.areas_bytes).map(pages),
            // Of a stack there is only the sum over workers.
            steady: steady(evidence, rules).filter(|_| evidence.workers.is_empty()),
            is_elsewhere: holder::is_elsewhere(evidence),
            is_sliver: holder::is_sliver(evidence),
        }
    }

    /// Returns the metric that decides: live heap, or the managed heap, or resident memory.
    pub(crate) fn judged(&self) -> (Basis, &MetricTrend) {
        let heap = self.heap.as_ref().map(|heap| (Basis::LiveHeap, heap));
        let managed = self.managed.as_ref().map(|managed| (Basis::ManagedHeap, managed));
        let growing = |metric: &(Basis, &MetricTrend)| metric.1.grows();
        let kept = (Basis::Resident, self.kept());
        // Managed memory may lie outside of malloc; then it is where the growth is.
        let growing = heap.filter(growing).or(managed.filter(growing));
        match self.is_elsewhere {
            true => growing.unwrap_or(kept),
            false => growing.or(heap).or(managed).unwrap_or(kept),
        }
    }

    /// Resident memory, after trimming if there was any.
    pub(crate) fn kept(&self) -> &MetricTrend {
        self.trimmed.as_ref().unwrap_or(&self.resident)
    }

    /// Returns the part of the resident growth that trimming removes; `None` without trimming.
    pub(crate) fn returned(&self) -> Option<f64> {
        Some(1.0 - self.trimmed.as_ref()?.growth() / self.resident.growth())
    }

    /// Returns the detection limits of the metrics that hold the memory: each of them has to show a leak.
    pub(crate) fn detection_limits(&self, rules: &Rules) -> impl Iterator<Item = DetectionLimit> {
        let of = |limit: f64| move |trend: &MetricTrend| DetectionLimit { seen: trend.detectable, limit };
        let hidden =
            |detectable: DetectionLimit| DetectionLimit { seen: detectable.seen + self.hidden, ..detectable };
        let heap = self.heap.as_ref().map(of(rules.heap_per_request_min));
        let managed = self.managed.as_ref().map(of(rules.heap_per_request_min));
        let is_resident = self.heap.is_none() || self.is_elsewhere;
        let resident = is_resident.then_some(self.kept()).map(of(rules.resident_per_request_min));
        // Of a run without two observations there is no slope, and nothing is known of a leak.
        let known = |detectable: &DetectionLimit| detectable.seen > 0.0;
        let heaps = [heap, managed].into_iter().flatten().filter(known);
        heaps.chain(resident.filter(known).map(hidden))
    }

    /// Returns the detection limit of resident memory if only heaps are judged.
    pub(crate) fn sight_outside(&self) -> Option<f64> {
        // What workers hold outside of their heaps goes with them, and no series of all of them shows it.
        let is_heaps = self.heap.is_some() && !self.is_elsewhere && !self.by_age;
        is_heaps.then_some(self.kept().detectable).filter(|seen| *seen > 0.0)
    }
}
