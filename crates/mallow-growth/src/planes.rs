//! Every plane's course, and which of them hold the memory.

use crate::holder;
use crate::plane::{Course, course};
use crate::series::{Point, plane};
use crate::steady::{Steady, steady};
use crate::{Basis, Evidence, Rules};

/// Each plane's course.
#[derive(Clone, Debug, Default)]
pub(crate) struct Planes {
    pub(crate) heap: Option<Course>,
    pub(crate) resident: Course,
    pub(crate) trimmed: Option<Course>,
    pub(crate) mapped: Option<Course>,
    pub(crate) allocator: Option<Course>,
    pub(crate) managed: Option<Course>,
    /// What is resident of the allocator's areas.
    pub(crate) areas: Option<Course>,
    /// Stacks of the live heap that grow by a constant.
    pub(crate) steady: Option<Steady>,
    /// The memory is on none of the heaps, see [`crate::holder`].
    pub(crate) is_elsewhere: bool,
    /// The heaps are a sliver of what the program holds, if that is not much either.
    pub(crate) is_sliver: bool,
    /// What may hide in resident memory, in bytes for each request, see [`holder::headroom`].
    pub(crate) hidden: f64,
}

/// How small a leak a plane shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sight {
    /// The smallest leak that would not have been passed, in bytes for each request.
    pub(crate) seen: f64,
    /// Growth below this is never called growth there.
    pub(crate) limit: f64,
}

impl Planes {
    pub(crate) fn of(evidence: &Evidence, rules: &Rules) -> Planes {
        let seen = &evidence.observations;
        let heap = |points: Vec<Point>| course(&points, rules.heap_per_request_min);
        let pages = |points: Vec<Point>| course(&points, rules.resident_per_request_min);
        let resident = plane(seen, |seen| Some(seen.resident_bytes)).map(pages).unwrap_or_default();
        Planes {
            hidden: holder::headroom(evidence) / resident.requests.max(1.0),
            resident,
            heap: plane(seen, |seen| seen.live_bytes).map(heap),
            trimmed: plane(seen, |seen| seen.trimmed_bytes).map(pages),
            mapped: plane(seen, |seen| seen.mapped_bytes).map(pages),
            allocator: plane(seen, |seen| seen.allocator_bytes).map(pages),
            managed: plane(seen, |seen| seen.managed_bytes).map(heap),
            areas: plane(seen, |seen| seen.areas_bytes).map(pages),
            steady: steady(evidence, rules),
            is_elsewhere: holder::is_elsewhere(evidence),
            is_sliver: holder::is_sliver(evidence),
        }
    }

    /// The plane that decides: live heap, or the managed heap, or resident memory.
    pub(crate) fn judged(&self) -> (Basis, &Course) {
        let heap = self.heap.as_ref().map(|heap| (Basis::LiveHeap, heap));
        let managed = self.managed.as_ref().map(|managed| (Basis::ManagedHeap, managed));
        let growing = |plane: &(Basis, &Course)| plane.1.grows();
        let kept = (Basis::Resident, self.kept());
        // Managed memory may lie outside of malloc; then it is where the growth is.
        let growing = heap.filter(growing).or(managed.filter(growing));
        match self.is_elsewhere {
            true => growing.unwrap_or(kept),
            false => growing.or(heap).or(managed).unwrap_or(kept),
        }
    }

    /// Resident memory, after trimming if there was any.
    pub(crate) fn kept(&self) -> &Course {
        self.trimmed.as_ref().unwrap_or(&self.resident)
    }

    /// The part of the resident growth that trimming takes away; none without trimming.
    pub(crate) fn returned(&self) -> Option<f64> {
        Some(1.0 - self.trimmed.as_ref()?.growth() / self.resident.growth())
    }

    /// How small a leak the planes show that hold the memory: each of them has to show it.
    pub(crate) fn sights(&self, rules: &Rules) -> impl Iterator<Item = Sight> {
        let of = |limit: f64| move |course: &Course| Sight { seen: course.sight, limit };
        let hidden = |sight: Sight| Sight { seen: sight.seen + self.hidden, ..sight };
        let heap = self.heap.as_ref().map(of(rules.heap_per_request_min));
        let managed = self.managed.as_ref().map(of(rules.heap_per_request_min));
        let is_resident = self.heap.is_none() || self.is_elsewhere;
        let resident = is_resident.then_some(self.kept()).map(of(rules.resident_per_request_min));
        // Of a run without two observations there is no slope, and nothing is known of a leak.
        let known = |sight: &Sight| sight.seen > 0.0;
        let heaps = [heap, managed].into_iter().flatten().filter(known);
        heaps.chain(resident.filter(known).map(hidden))
    }

    /// How small a leak resident memory shows where heaps alone are judged.
    pub(crate) fn sight_outside(&self) -> Option<f64> {
        let is_heaps = self.heap.is_some() && !self.is_elsewhere;
        is_heaps.then_some(self.kept().sight).filter(|seen| *seen > 0.0)
    }
}
