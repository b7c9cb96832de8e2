//! The heap tree of memcheck or helgrind in massif's format (`--xtree-memory` with a file name that ends in `.ms`):
//! its snapshots are not moments but metrics, such as all bytes ever allocated.

use super::Head;
use super::built::{add_site, builder_of, overgrown, process_of};
use super::snapshot::{self, Snapshot};
use super::text::Text;
use super::tree::Names;
use crate::{Format, ImportError, Imported};
use mallow_profile::{Availability, SiteTotals, Totals};

/// The metric of a tree, by the first word of its title.
#[derive(Clone, Copy)]
enum Metric {
    LeakedBytes,
    LeakedBlocks,
    Bytes,
    Allocations,
    FreedBytes,
    Frees,
}

/// Parses the trees, one metric after the other.
pub(super) fn read(text: &mut Text<'_>, head: Head, names: &mut Names) -> Result<Imported, ImportError> {
    let mut trees: Vec<(Metric, Snapshot)> = Vec::new();
    while let Some(snapshot) = snapshot::next(text, head.clock, names)? {
        trees.push((Metric::of(&snapshot)?, snapshot));
    }
    let Some((_, last)) = trees.last() else { return Err(text.expected("snapshot=0")) };
    let mut builder = builder_of(&head, last, Availability::NOTHING);
    let process = builder.add_process(process_of(&head, last));
    let mut frames = names.frames(text.bytes());
    for (metric, snapshot) in &trees {
        metric.is_known(builder.known());
        metric.put(&mut builder.process(process).totals, snapshot.bytes());
        for leaf in snapshot.leaves() {
            if let Some(totals) = metric.of_site(leaf.bytes) {
                add_site(&mut builder, process, &mut frames, &leaf, &totals).map_err(overgrown)?;
            }
        }
    }
    Ok(Imported { profile: builder.finish(), warnings: Vec::new(), complete: true })
}

impl Metric {
    fn of(snapshot: &Snapshot) -> Result<Metric, ImportError> {
        let title = snapshot.tree.as_ref().map_or("", |tree| tree.title.as_str());
        match title.split(' ').next().unwrap_or_default() {
            "curB" => Ok(Metric::LeakedBytes),
            "curBk" => Ok(Metric::LeakedBlocks),
            "totB" => Ok(Metric::Bytes),
            "totBk" => Ok(Metric::Allocations),
            "totFdB" => Ok(Metric::FreedBytes),
            "totFdBk" => Ok(Metric::Frees),
            _ => {
                let reason = format!(
                    "it is a tree of memcheck's leaks or of something else ({title:?}); write leaks as XML (--xml=yes), or the heap \
                     with --xtree-memory=full"
                );
                Err(ImportError::Unsupported { format: Format::Massif, reason })
            }
        }
    }

    fn is_known(self, known: &mut Availability) {
        match self {
            Metric::LeakedBytes => known.leaked = true,
            Metric::Allocations => known.allocations = true,
            Metric::LeakedBlocks => known.leaked_blocks = true,
            Metric::Bytes => known.bytes = true,
            Metric::FreedBytes | Metric::Frees => {}
        }
    }

    fn put(self, totals: &mut Totals, count: u64) {
        let sum = match self {
            Metric::LeakedBytes => &mut totals.leaked_bytes,
            Metric::LeakedBlocks => &mut totals.leaked_blocks,
            Metric::Bytes => &mut totals.bytes,
            Metric::Allocations => &mut totals.allocations,
            Metric::Frees => &mut totals.frees,
            Metric::FreedBytes => return,
        };
        // A metric occurs once, except in a damaged file.
        *sum = sum.saturating_add(count);
    }

    /// Returns the totals of a site. What was freed has no metric of its own.
    fn of_site(self, count: u64) -> Option<SiteTotals> {
        let mut site = SiteTotals::default();
        match self {
            Metric::LeakedBytes => site.leaked_bytes = count,
            Metric::LeakedBlocks => site.leaked_blocks = count,
            Metric::Bytes => site.bytes = count,
            Metric::Allocations => site.allocations = count,
            Metric::FreedBytes | Metric::Frees => return None,
        }
        Some(site)
    }
}
