//! From the planes to one word: the matrix.
//!
//! Live heap decides. Where it grows, the program leaks; where it stands, resident memory that grows is the allocator's or
//! nobody's. Resident memory alone never says that a program leaks: allocators keep what was freed, and only live heap knows.

use crate::idle::Idle;
use crate::plane::{Course, GROWTH_OBSERVATIONS_MIN, course};
use crate::series::{Point, median, plane};
use crate::window::window;
use crate::{Evidence, Fault, Need, Observation, Rules, Shape, Verdict};

/// From so many observations on, resident memory that neither grows nor stands for certain is taken as standing beside a flat heap.
const ENOUGH_OBSERVATIONS: usize = 40;

/// From so many on, a heap that was not collected may be called leaking, when its growth doubles.
const OVERWHELMING_OBSERVATIONS: usize = 40;

/// The part of a growth that explains it.
const EXPLAINS: f64 = 0.5;

/// What an allocator keeps is worth a verdict from here on, ...
const KEPT_BYTES_MIN: f64 = 8.0 * 1_048_576.0;

/// ... and, when nobody knows how much there was before the work, from this part of resident memory on.
const KEPT_SHARE_MIN: f64 = 0.25;

/// Each plane's course.
#[derive(Clone, Debug, Default)]
pub(crate) struct Planes {
    pub(crate) heap: Option<Course>,
    pub(crate) resident: Course,
    pub(crate) trimmed: Option<Course>,
    pub(crate) mapped: Option<Course>,
    pub(crate) allocator: Option<Course>,
    pub(crate) managed: Option<Course>,
}

impl Planes {
    pub(crate) fn of(seen: &[Observation], rules: &Rules) -> Planes {
        let heap = |points: Vec<Point>| course(&points, rules.heap_per_request_min);
        let pages = |points: Vec<Point>| course(&points, rules.resident_per_request_min);
        Planes {
            heap: plane(seen, |seen| seen.live_bytes).map(heap),
            resident: plane(seen, |seen| Some(seen.resident_bytes)).map(pages).unwrap_or_default(),
            trimmed: plane(seen, |seen| seen.trimmed_bytes).map(pages),
            mapped: plane(seen, |seen| seen.mapped_bytes).map(pages),
            allocator: plane(seen, |seen| seen.allocator_bytes).map(pages),
            managed: plane(seen, |seen| seen.managed_bytes).map(heap),
        }
    }

    /// The plane that decides: live heap, or the managed heap, or resident memory.
    pub(crate) fn judged(&self) -> &Course {
        let managed = self.managed.as_ref();
        // Managed memory may lie outside of malloc; then it is where the growth is.
        let growing =
            managed.filter(|managed| managed.grows() && !self.heap.as_ref().is_some_and(Course::grows));
        growing.or(self.heap.as_ref()).or(managed).unwrap_or_else(|| self.kept())
    }

    /// Resident memory, after trimming if there was any.
    pub(crate) fn kept(&self) -> &Course {
        self.trimmed.as_ref().unwrap_or(&self.resident)
    }

    /// The part of the resident growth that trimming takes away; none without trimming.
    fn returned(&self) -> Option<f64> {
        Some(1.0 - self.trimmed.as_ref()?.growth() / self.resident.growth())
    }
}

/// The verdict, and what would decide when it is open.
pub(crate) fn verdict(
    evidence: &Evidence,
    rules: &Rules,
    planes: &Planes,
    idle: Option<&Idle>,
) -> (Verdict, Vec<Need>) {
    let seen = &evidence.observations;
    let more = Need::Iterations(more_iterations(seen.len()));
    let uncollected = evidence.uncollected && planes.managed.is_none();
    if evidence.faults.iter().any(|fault| counts(fault, rules)) {
        return (Verdict::Invalid, Vec::new());
    }
    let idle = idle.filter(|idle| idle.grows);
    let live = [&planes.heap, &planes.managed].map(Option::as_ref);
    if live.iter().flatten().any(|live| live.grows()) {
        if idle.is_some_and(|idle| idle.per_second() >= EXPLAINS * growth_per_second(seen, planes)) {
            return (Verdict::GrowsWhenIdle, Vec::new());
        }
        let is_overwhelming = planes.judged().doubles && seen.len() >= OVERWHELMING_OBSERVATIONS;
        return match uncollected && !is_overwhelming {
            true => (Verdict::Inconclusive, vec![Need::Collection]),
            false => (Verdict::Leaking, Vec::new()),
        };
    }
    if idle.is_some() {
        return (Verdict::GrowsWhenIdle, Vec::new());
    }
    if live.iter().flatten().any(|live| live.is_unclear()) {
        let collection = uncollected.then_some(Need::Collection);
        return (Verdict::Inconclusive, collection.into_iter().chain([more]).collect());
    }
    match planes.heap {
        Some(_) => beside_a_flat_heap(evidence, planes, uncollected, more),
        None => resident_alone(evidence, planes, more),
    }
}

/// Twice as many as there are, and at least those that growth needs.
fn more_iterations(seen: usize) -> u32 {
    let more = if seen < GROWTH_OBSERVATIONS_MIN { GROWTH_OBSERVATIONS_MIN - seen } else { seen };
    u32::try_from(more).unwrap_or(u32::MAX)
}

/// Whether a fault goes beyond what the rules allow. Those without a figure always do.
fn counts(fault: &Fault, rules: &Rules) -> bool {
    match fault {
        Fault::Errors { failed, requests, .. } => {
            *requests == 0 || *failed as f64 > rules.errors_max * *requests as f64
        }
        Fault::Saturated { busy } => *busy >= rules.generator_busy_max || busy.is_nan(),
        Fault::Lost { .. } | Fault::Died { .. } => true,
    }
}

/// How fast the judged plane grew while the program worked.
fn growth_per_second(seen: &[Observation], planes: &Planes) -> f64 {
    let (Some(first), Some(last)) = (seen.first(), seen.last()) else { return 0.0 };
    let requests = last.requests.saturating_sub(first.requests) as f64;
    planes.judged().trend.per_request * requests / (last.seconds - first.seconds)
}

fn beside_a_flat_heap(
    evidence: &Evidence,
    planes: &Planes,
    uncollected: bool,
    more: Need,
) -> (Verdict, Vec<Need>) {
    if planes.resident.grows() || planes.kept().grows() {
        return match of_resident_growth(planes) {
            Some(Verdict::Mappings) if uncollected => (Verdict::Inconclusive, vec![Need::Collection]),
            Some(verdict) => (verdict, Vec::new()),
            None => (Verdict::Inconclusive, vec![more]),
        };
    }
    let kept = planes.kept();
    let is_settled = kept.stands() || (evidence.observations.len() >= ENOUGH_OBSERVATIONS && !kept.creeps);
    match is_settled {
        true => (at_rest(evidence, planes), Vec::new()),
        false => (Verdict::Inconclusive, vec![more]),
    }
}

/// Whose the growing resident memory is, while live heap stands; none when nothing tells.
fn of_resident_growth(planes: &Planes) -> Option<Verdict> {
    let kept = planes.kept().growth();
    let explains = |course: &Option<Course>| course.as_ref().map(|course| course.growth() >= EXPLAINS * kept);
    if planes.resident.grows() && planes.returned().is_some_and(|returned| returned >= EXPLAINS) {
        return Some(Verdict::Retention);
    }
    if explains(&planes.mapped) == Some(true) {
        return Some(Verdict::Mappings);
    }
    match explains(&planes.allocator) {
        Some(true) => Some(Verdict::Fragmentation),
        Some(false) => Some(Verdict::Mappings),
        // The allocator was asked, and could give nothing back.
        None => planes.trimmed.as_ref().map(|_| Verdict::Fragmentation),
    }
}

fn resident_alone(evidence: &Evidence, planes: &Planes, more: Need) -> (Verdict, Vec<Need>) {
    let kept = planes.kept();
    if planes.resident.grows() || kept.grows() {
        return match of_resident_growth(planes) {
            Some(verdict @ (Verdict::Retention | Verdict::Mappings)) => (verdict, Vec::new()),
            _ => (Verdict::Inconclusive, vec![Need::Recorder]),
        };
    }
    if kept.is_unclear() {
        return (Verdict::Inconclusive, vec![more, Need::Recorder]);
    }
    // Below the limit of this plane, and yet there: a small leak looks like that. So does a pool that fills.
    if kept.creeps {
        return (Verdict::Inconclusive, vec![Need::Recorder]);
    }
    (at_rest(evidence, planes), Vec::new())
}

/// Nothing grows: is more kept than used, did it rise, or was there nothing at all?
fn at_rest(evidence: &Evidence, planes: &Planes) -> Verdict {
    let kept = Kept::of(evidence);
    if kept.is_much(kept.released, planes.resident.trend.last) {
        return Verdict::Retention;
    }
    if kept.is_much(kept.stuck, planes.kept().trend.last) {
        return Verdict::Fragmentation;
    }
    let planes = [planes.heap.as_ref(), planes.managed.as_ref(), Some(planes.kept())];
    match planes.iter().flatten().any(|plane| plane.trend.shape == Shape::RoseThenFlat) {
        true => Verdict::Plateau,
        false => Verdict::Clean,
    }
}

/// What the allocator keeps of what was freed, in the judged window.
struct Kept {
    /// Given back on demand.
    released: f64,
    /// Not given back: free, resident, and not there before the work.
    stuck: f64,
    /// By how much resident memory lies above where it was before the work; none when nobody looked.
    excess: Option<f64>,
    live: f64,
}

impl Kept {
    fn of(evidence: &Evidence) -> Kept {
        let late = &evidence.observations[window(&evidence.observations)];
        let of = |figure: &dyn Fn(&Observation) -> Option<u64>| {
            median(late.iter().filter_map(figure).map(|bytes| bytes as f64))
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
            // Stacks of new threads are unexplained too, and what the allocator holds free may be without pages: only what is
            // resident where the heap lies, beyond what lives, is the allocator's. Large blocks live elsewhere, so that this is
            // rather too little.
            let in_areas = seen.areas_bytes.map_or(u64::MAX, |areas| areas.saturating_sub(live));
            Some(unexplained.min(seen.held_free_bytes?).min(in_areas))
        };
        let above = |seen: &Observation| Some(seen.resident_bytes.saturating_sub(before?.resident_bytes));
        Kept {
            released: of(&|seen| Some(seen.resident_bytes.saturating_sub(seen.trimmed_bytes?))),
            stuck: of(&stuck),
            excess: before.map(|_| of(&above)),
            live: of(&|seen| seen.live_bytes),
        }
    }

    /// Whether that is worth a verdict: most of what came with the work, or more than all that the program uses.
    fn is_much(&self, kept: f64, resident: f64) -> bool {
        let is_most = match self.excess {
            Some(excess) => kept >= EXPLAINS * excess,
            None => kept >= self.live && kept >= KEPT_SHARE_MIN * resident,
        };
        kept >= KEPT_BYTES_MIN && is_most
    }
}
