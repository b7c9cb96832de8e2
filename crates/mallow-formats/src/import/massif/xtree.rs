//! The heap tree of memcheck or helgrind in massif's format (`--xtree-memory` with a file name that ends in `.ms`): what stands as a
//! snapshot is not a moment but a figure, such as all bytes ever allocated.

use super::Head;
use super::built::{add_site, builder_of, overgrown, process_of};
use super::snapshot::{self, Snapshot};
use super::text::Text;
use super::tree::Names;
use crate::{Format, ImportError, Imported};
use mallow_profile::{Known, SiteTotals, Totals};

/// What a tree counts, by the first word of its title.
#[derive(Clone, Copy)]
enum Figure {
    LeakedBytes,
    LeakedBlocks,
    Bytes,
    Allocations,
    FreedBytes,
    Frees,
}

/// Reads the trees, one figure after the other.
pub(super) fn read(text: &mut Text<'_>, head: Head, names: &mut Names) -> Result<Imported, ImportError> {
    let mut trees: Vec<(Figure, Snapshot)> = Vec::new();
    while let Some(snapshot) = snapshot::next(text, head.clock, names)? {
        trees.push((Figure::of(&snapshot)?, snapshot));
    }
    let Some((_, last)) = trees.last() else { return Err(text.expected("snapshot=0")) };
    let mut builder = builder_of(&head, last, Known::NOTHING);
    let process = builder.add_process(process_of(&head, last));
    let mut frames = names.frames(text.bytes());
    for (figure, snapshot) in &trees {
        figure.is_known(builder.known());
        figure.put(&mut builder.process(process).totals, snapshot.bytes());
        for leaf in snapshot.leaves() {
            if let Some(totals) = figure.of_site(leaf.bytes) {
                add_site(&mut builder, process, &mut frames, &leaf, &totals).map_err(overgrown)?;
            }
        }
    }
    Ok(Imported { profile: builder.finish(), warnings: Vec::new(), complete: true })
}

impl Figure {
    fn of(snapshot: &Snapshot) -> Result<Figure, ImportError> {
        let title = snapshot.tree.as_ref().map_or("", |tree| tree.title.as_str());
        match title.split(' ').next().unwrap_or_default() {
            "curB" => Ok(Figure::LeakedBytes),
            "curBk" => Ok(Figure::LeakedBlocks),
            "totB" => Ok(Figure::Bytes),
            "totBk" => Ok(Figure::Allocations),
            "totFdB" => Ok(Figure::FreedBytes),
            "totFdBk" => Ok(Figure::Frees),
            _ => {
                let reason = format!(
                    "it is a tree of memcheck's leaks or of something else ({title:?}); write leaks as XML (--xml=yes), or the heap \
                     with --xtree-memory=full"
                );
                Err(ImportError::Unsupported { format: Format::Massif, reason })
            }
        }
    }

    fn is_known(self, known: &mut Known) {
        match self {
            Figure::LeakedBytes => known.leaked = true,
            Figure::Allocations => known.allocations = true,
            Figure::LeakedBlocks => known.leaked_blocks = true,
            Figure::Bytes => known.bytes = true,
            Figure::FreedBytes | Figure::Frees => {}
        }
    }

    fn put(self, totals: &mut Totals, count: u64) {
        let sum = match self {
            Figure::LeakedBytes => &mut totals.leaked_bytes,
            Figure::LeakedBlocks => &mut totals.leaked_blocks,
            Figure::Bytes => &mut totals.bytes,
            Figure::Allocations => &mut totals.allocations,
            Figure::Frees => &mut totals.frees,
            Figure::FreedBytes => return,
        };
        // A figure comes once, but in a damaged file.
        *sum = sum.saturating_add(count);
    }

    /// What is freed has no figure of a site's own.
    fn of_site(self, count: u64) -> Option<SiteTotals> {
        let mut site = SiteTotals::default();
        match self {
            Figure::LeakedBytes => site.leaked_bytes = count,
            Figure::LeakedBlocks => site.leaked_blocks = count,
            Figure::Bytes => site.bytes = count,
            Figure::Allocations => site.allocations = count,
            Figure::FreedBytes | Figure::Frees => return None,
        }
        Some(site)
    }
}
