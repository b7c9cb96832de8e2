//! Sites whose blocks did not live long.

use crate::places::places;
use crate::{Filter, FrameVisibility, PlaceRow};
use mallow_base::add_fields;
use mallow_profile::Profile;
use mallow_profile::analysis::ShortLivedSite;

/// How many short-lived blocks a site has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShortLivedMetrics {
    /// Blocks that lived briefly.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// All blocks that were allocated there.
    pub allocations: u64,
}

/// The sites, those with most such blocks first.
#[derive(Clone, Debug)]
pub struct ShortLived {
    /// Of all sites, whatever the filter.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The rows that passed the filter.
    pub rows: Vec<PlaceRow<ShortLivedMetrics>>,
}

impl ShortLived {
    /// The rows over all processes' sites.
    pub fn of<'f>(
        profile: &Profile,
        sites: impl IntoIterator<Item = &'f ShortLivedSite>,
        shown: FrameVisibility,
        filter: &Filter,
    ) -> ShortLived {
        let (mut blocks, mut bytes) = (0u64, 0u64);
        let sites = sites.into_iter().map(|site| {
            blocks = blocks.saturating_add(site.blocks);
            bytes = bytes.saturating_add(site.bytes);
            (site.stack, site)
        });
        let mut rows = places(profile, shown, filter, sites, |row: &mut ShortLivedMetrics, site| {
            add_fields!(row, site; blocks, bytes, allocations);
        });
        rows.sort_by_key(|row| std::cmp::Reverse((row.metrics.blocks, row.metrics.bytes)));
        ShortLived { blocks, bytes, rows }
    }
}
