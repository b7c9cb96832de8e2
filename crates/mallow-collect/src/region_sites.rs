//! The sites of a region or of a whole process: which of very many are named.

use mallow_profile::{Fold, Folded, FoldedSite, RegionFigures, StackId};

/// Stacks of a run that are named by their allocations, and as many by what they left. A program's start may have ten
/// thousands, and nobody reads them: the others are one site without frames, so that sums stay complete.
const NAMED_MAX: usize = 500;

/// The sites that are named, in their order, and what is left of the others.
pub(crate) fn pruned(sites: Vec<(StackId, RegionFigures)>) -> Vec<(StackId, RegionFigures)> {
    if sites.len() <= NAMED_MAX {
        return sites;
    }
    let mut keep = vec![false; sites.len()];
    for figure in
        [|figures: &RegionFigures| figures.allocations, |figures: &RegionFigures| figures.remaining_blocks]
    {
        let mut order: Vec<usize> = (0..sites.len()).filter(|at| figure(&sites[*at].1) > 0).collect();
        order.sort_by_key(|at| std::cmp::Reverse(figure(&sites[*at].1)));
        order.into_iter().take(NAMED_MAX).for_each(|at| keep[at] = true);
    }
    let mut others = RegionFigures::default();
    let mut named = Vec::with_capacity(2 * NAMED_MAX + 1);
    for (site, keep) in sites.into_iter().zip(keep) {
        if keep { named.push(site) } else { others.add(&site.1) }
    }
    if others != RegionFigures::default() {
        named.push((Fold::NO_STACK, others));
    }
    named
}

/// The sites of a whole process.
pub(crate) fn of_folded(folded: &Folded) -> Vec<(StackId, RegionFigures)> {
    pruned(folded.sites.iter().map(|site| (site.stack, figures_of(site))).collect())
}

fn figures_of(site: &FoldedSite) -> RegionFigures {
    RegionFigures {
        allocations: site.totals.allocations,
        bytes: site.totals.bytes,
        reallocations: site.totals.reallocations,
        peak_bytes: 0,
        remaining_blocks: site.totals.leaked_blocks,
        remaining_bytes: site.totals.leaked_bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_very_many_stacks_those_that_matter_are_named_and_sums_stay_whole() {
        let figures = |allocations: u64, remaining_blocks: u64| RegionFigures {
            allocations,
            bytes: allocations * 10,
            remaining_blocks,
            ..RegionFigures::default()
        };
        let mut sites: Vec<(StackId, RegionFigures)> =
            (0..2000).map(|at| (StackId(at), figures(2000 - u64::from(at), 0))).collect();
        sites[1900].1 = figures(1, 1);
        let total = sites.iter().fold(RegionFigures::default(), |mut sum, site| {
            sum.add(&site.1);
            sum
        });
        let named = pruned(sites.clone());
        assert_eq!(named.len(), NAMED_MAX + 2);
        assert_eq!(named[NAMED_MAX], (StackId(1900), figures(1, 1)));
        assert_eq!(named[NAMED_MAX + 1].0, Fold::NO_STACK);
        let sum = named.iter().fold(RegionFigures::default(), |mut sum, site| {
            sum.add(&site.1);
            sum
        });
        assert_eq!(sum, total);
        assert_eq!(pruned(sites[..NAMED_MAX].to_vec()), sites[..NAMED_MAX]);
    }
}
