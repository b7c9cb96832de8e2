//! The result of an aggregator before its sites are copied.

use super::site::EndedSites;
use super::{MemoryAdvice, SiteSummary, Summary, ThreadSummary};
use crate::{RequestTotals, StackId, Totals};

/// A process that has ended, as [`Summary`], with its sites as they were counted: each is summed up when it is read. A copy of those of
/// 100,000 stacks takes longer than to read them twice: 14 MB of memory have to be cleared for it.
#[derive(Debug, Default)]
pub struct Ended {
    /// As in [`Summary`], and so on.
    pub totals: Totals,
    /// See [`Summary`].
    pub peak_us: u64,
    /// See [`Summary`].
    pub frees_unmatched: u64,
    /// See [`Summary`].
    pub threads: Vec<ThreadSummary>,
    pub(super) requests: Option<Vec<RequestTotals>>,
    pub(super) sites: EndedSites,
    pub(super) advise: Option<MemoryAdvice>,
}

impl Ended {
    /// Returns one entry for each stack that made an allocating call, in the order of first calls.
    pub fn sites(&self) -> impl ExactSizeIterator<Item = SiteSummary> {
        self.sites.iter()
    }

    /// The entry at a place among these.
    #[inline]
    pub fn site(&self, place: usize) -> SiteSummary {
        self.sites.at(place)
    }

    /// Returns how blocks were requested, of each stack that has made more than plain requests, in the order of the sites; none where the events do not tell.
    pub fn requests(&self) -> Option<impl Iterator<Item = (StackId, RequestTotals)>> {
        self.requests.as_ref().map(|requests| self.sites.requests(requests))
    }

    /// Returns of how many stacks there are requests to tell.
    pub fn request_count(&self) -> Option<usize> {
        self.requests.as_ref().map(Vec::len)
    }

    /// Sums all up.
    pub fn into_summary(self) -> Summary {
        let requests = self.requests().map(Iterator::collect);
        let mut sites: Vec<SiteSummary> = Vec::with_capacity(self.sites().len());
        let bytes = sites.capacity() * size_of::<SiteSummary>();
        self.advise.into_iter().for_each(|advise| advise(sites.as_mut_ptr().cast(), bytes));
        sites.extend(self.sites());
        let Ended { totals, peak_us, frees_unmatched, threads, .. } = self;
        Summary { totals, peak_us, frees_unmatched, sites, threads, requests }
    }
}
