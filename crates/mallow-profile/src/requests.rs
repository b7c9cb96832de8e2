//! How blocks were requested: zeroed, as by `calloc`, with an alignment, as by `posix_memalign`, or neither.
//!
//! It is told apart while a program runs and kept by stack, for the whole recording: a window or a part of the blocks does not know it.

use mallow_base::add_fields;
use mallow_stacks::{ProcessIndex, StackId};
use std::collections::BTreeMap;

/// What a caller wanted of a block beside its size. A reallocation is none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Request {
    /// Zeroed memory: `calloc` and its like.
    Zeroed,
    /// An alignment: `posix_memalign`, `aligned_alloc`, `memalign`, `valloc`, C++'s `operator new` with one, and their like.
    Aligned,
}

/// Successful allocating calls of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requested {
    /// Their number.
    pub allocations: u64,
    /// Their requested bytes.
    pub bytes: u64,
}

/// The allocating calls of a stack or a process that wanted more than a size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestTotals {
    /// Those that wanted zeroed memory.
    pub zeroed: Requested,
    /// Those that wanted an alignment.
    pub aligned: Requested,
}

/// A site of a process, by its stack, and its requests.
pub type SiteRequests = (Option<StackId>, RequestTotals);

/// The requests of all sites that are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// Those of the processes whose source tells requests apart, sorted by stack. Sites without an entry have made plain requests alone.
    known: BTreeMap<ProcessIndex, Vec<SiteRequests>>,
}

impl Requested {
    /// A sum that does not fit stays at the largest number, as those of sites do: only a damaged file has such metrics.
    fn add(&mut self, other: &Requested) {
        add_fields!(self, other; allocations, bytes);
    }
}

impl RequestTotals {
    /// Adds one allocation.
    #[inline]
    pub fn count(&mut self, request: Request, bytes: u64) {
        let requested = match request {
            Request::Zeroed => &mut self.zeroed,
            Request::Aligned => &mut self.aligned,
        };
        requested.add(&Requested { allocations: 1, bytes });
    }

    /// Adds those of another stack.
    pub fn add(&mut self, other: &RequestTotals) {
        self.zeroed.add(&other.zeroed);
        self.aligned.add(&other.aligned);
    }

    /// Returns those of one kind.
    pub fn of(&self, request: Request) -> Requested {
        match request {
            Request::Zeroed => self.zeroed,
            Request::Aligned => self.aligned,
        }
    }
}

impl Requests {
    /// Adds requests of a process's sites, which are known from here on.
    pub fn add(&mut self, process: ProcessIndex, sites: impl Iterator<Item = SiteRequests>) {
        let known = self.known.entry(process).or_default();
        known.extend(sites);
        // Most are in order: a stack gets its number when it is first met.
        known.sort_by_key(|(stack, _)| *stack);
        known.dedup_by(|(stack, totals), (before, sum)| {
            let is_same = stack == before;
            if is_same {
                sum.add(totals);
            }
            is_same
        });
    }

    /// Forgets all: what is left of the sites is not what was counted.
    pub fn forget(&mut self) {
        *self = Requests::default();
    }

    /// Returns whether no process's source tells requests apart.
    pub fn are_unknown(&self) -> bool {
        self.known.is_empty()
    }

    /// Returns whether a process's source tells requests apart.
    pub fn knows(&self, process: ProcessIndex) -> bool {
        self.known.contains_key(&process)
    }

    /// Returns the requests of a site; none if its process's are not known.
    pub fn of(&self, process: ProcessIndex, stack: Option<StackId>) -> Option<RequestTotals> {
        let sites = self.known.get(&process)?;
        let at = sites.binary_search_by_key(&stack, |(stack, _)| *stack);
        Some(at.map_or_else(|_| RequestTotals::default(), |at| sites[at].1))
    }

    /// Returns the sites of a process that have made more than plain requests, sorted by stack, the one without a stack first.
    pub fn sites(&self, process: ProcessIndex) -> &[SiteRequests] {
        self.known.get(&process).map_or(&[], Vec::as_slice)
    }

    /// Gives processes new numbers, and drops those without one.
    pub(crate) fn renumber(&mut self, numbers: &[Option<ProcessIndex>]) {
        let number = |process: ProcessIndex| numbers.get(process.0 as usize).copied().flatten();
        let known = std::mem::take(&mut self.known).into_iter();
        self.known = known.filter_map(|(process, sites)| Some((number(process)?, sites))).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_a_damaged_file_add_up_without_overflow() {
        let mut totals = RequestTotals::default();
        let largest = Requested { allocations: u64::MAX, bytes: u64::MAX - 1 };
        totals.add(&RequestTotals { zeroed: largest, ..RequestTotals::default() });
        totals.add(&RequestTotals { zeroed: Requested { allocations: 1, bytes: 2 }, ..totals });
        assert_eq!(totals.zeroed, Requested { allocations: u64::MAX, bytes: u64::MAX });
    }

    #[test]
    fn a_site_without_an_entry_has_plain_requests_and_a_process_that_does_not_tell_has_none() {
        let mut requests = Requests::default();
        let (told, unknown) = (ProcessIndex(1), ProcessIndex(0));
        let mut totals = RequestTotals::default();
        totals.count(Request::Zeroed, 100);
        totals.count(Request::Aligned, 7);
        totals.count(Request::Zeroed, 1);
        requests.add(told, [(Some(StackId(4)), totals)].into_iter());
        let found = requests.of(told, Some(StackId(4))).unwrap();
        assert_eq!(found.of(Request::Zeroed), Requested { allocations: 2, bytes: 101 });
        assert_eq!(found.of(Request::Aligned), Requested { allocations: 1, bytes: 7 });
        assert_eq!(requests.of(told, None), Some(RequestTotals::default()));
        assert_eq!(requests.of(unknown, None), None);
        let none = RequestTotals::default();
        let others = [(Some(StackId(u32::MAX)), none), (Some(StackId(4)), none), (None, none)];
        requests.add(told, others.into_iter());
        assert_eq!(
            requests.sites(told),
            &[(None, none), (Some(StackId(4)), totals), (Some(StackId(u32::MAX)), none)]
        );
        assert_eq!([requests.knows(told), requests.knows(unknown)], [true, false]);
        assert!(requests.sites(unknown).is_empty());
        requests.renumber(&[None, Some(ProcessIndex(0))]);
        assert_eq!(requests.of(ProcessIndex(0), Some(StackId(4))), Some(totals));
        assert_eq!(requests.of(told, None), None);
    }
}
