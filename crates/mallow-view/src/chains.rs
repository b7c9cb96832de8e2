//! Where blocks began that were resized most.

use crate::places::places;
use crate::{Filter, FrameVisibility, PlaceRow};
use mallow_profile::Profile;
use mallow_profile::analysis::{ChainTotals, Findings};

/// Chains of reallocations, by the site of their first block.
#[derive(Clone, Debug)]
pub struct Chains {
    /// Over all chains, whatever the filter.
    pub totals: ChainTotals,
    /// The rows that passed the filter; first the one whose block grew by most bytes.
    pub rows: Vec<PlaceRow<ChainTotals>>,
}

impl Chains {
    /// The chains of all processes.
    pub fn of(profile: &Profile, findings: &[Findings], shown: FrameVisibility, filter: &Filter) -> Chains {
        let mut totals = ChainTotals::default();
        findings.iter().for_each(|findings| totals.add(&findings.chains));
        let sites = findings.iter().flat_map(|findings| &findings.chain_sites);
        let sites = sites.map(|site| (site.origin, &site.totals));
        let mut rows = places(profile, shown, filter, sites, ChainTotals::add);
        rows.sort_by_key(|row| {
            let totals = &row.metrics;
            std::cmp::Reverse((totals.largest_growth.bytes(), totals.copied_bytes_max, totals.reallocations))
        });
        Chains { totals, rows }
    }
}
