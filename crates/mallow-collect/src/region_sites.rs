//! The sites of a region or of a whole process: which of very many are named.

use mallow_profile::{Aggregator, Ended, RegionMetrics, SiteSummary, StackId};

/// Stacks of a run that are resolved by their allocations, and as many by what they left. A program's start may have
/// ten thousands that no one reads: the others are merged into one site without frames, so that sums stay complete.
const NAMED_MAX: usize = 500;

/// The sites that are named, in their order, and what is left of the others.
pub(crate) fn pruned(sites: Vec<(StackId, RegionMetrics)>) -> Vec<(StackId, RegionMetrics)> {
    if sites.len() <= NAMED_MAX {
        return sites;
    }
    let mut keep = vec![false; sites.len()];
    for metric in
        [|metrics: &RegionMetrics| metrics.allocations, |metrics: &RegionMetrics| metrics.remaining_blocks]
    {
        let mut order: Vec<usize> = (0..sites.len()).filter(|at| metric(&sites[*at].1) > 0).collect();
        order.sort_by_key(|at| std::cmp::Reverse(metric(&sites[*at].1)));
        order.into_iter().take(NAMED_MAX).for_each(|at| keep[at] = true);
    }
    let mut others = RegionMetrics::default();
    let mut named = Vec::with_capacity(2 * NAMED_MAX + 1);
    for (site, keep) in sites.into_iter().zip(keep) {
        if keep { named.push(site) } else { others.add(&site.1) }
    }
    if others != RegionMetrics::default() {
        named.push((Aggregator::NO_STACK, others));
    }
    named
}

/// The sites of a whole process.
pub(crate) fn of_folded(folded: &Ended) -> Vec<(StackId, RegionMetrics)> {
    pruned(folded.sites().map(|site| (site.stack, metrics_of(&site))).collect())
}

fn metrics_of(site: &SiteSummary) -> RegionMetrics {
    RegionMetrics {
        allocations: site.totals.allocations,
        bytes: site.totals.bytes,
        reallocations: site.totals.reallocations,
        peak_bytes: 0,
        remaining_blocks: site.totals.leaked_blocks,
        remaining_bytes: site.totals.leaked_bytes,
        temporary: site.totals.temporary,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_largest_of_many_stacks_are_symbolized_and_sums_are_complete() {
        let metrics = |allocations: u64, remaining_blocks: u64| RegionMetrics {
            allocations,
            bytes: allocations * 10,
            remaining_blocks,
            ..RegionMetrics::default()
        };
        let mut sites: Vec<(StackId, RegionMetrics)> =
            (0..2000).map(|at| (StackId(at), metrics(2000 - u64::from(at), 0))).collect();
        sites[1900].1 = metrics(1, 1);
        let total = sites.iter().fold(RegionMetrics::default(), |mut sum, site| {
            sum.add(&site.1);
            sum
        });
        let named = pruned(sites.clone());
        assert_eq!(named.len(), NAMED_MAX + 2);
        assert_eq!(named[NAMED_MAX], (StackId(1900), metrics(1, 1)));
        assert_eq!(named[NAMED_MAX + 1].0, Aggregator::NO_STACK);
        let sum = named.iter().fold(RegionMetrics::default(), |mut sum, site| {
            sum.add(&site.1);
            sum
        });
        assert_eq!(sum, total);
        assert_eq!(pruned(sites[..NAMED_MAX].to_vec()), sites[..NAMED_MAX]);
    }
}
