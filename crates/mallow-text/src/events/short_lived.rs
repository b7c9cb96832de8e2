//! Sites by their short-lived blocks.

use super::Page;
use crate::{metric, plural};
use mallow_base::{Bytes, Percent};
use mallow_view::Measure;
use mallow_view::short_lived::ShortLived;

/// Returns one line for each site, and one for its callers.
pub(super) fn short_lived(page: &Page<'_>, word: &str, what: &str, found: &ShortLived) -> Vec<String> {
    let blocks = plural(found.blocks, "block");
    let heading = format!("{}: {blocks}, {}, {what}", page.style.bold(word), Bytes(found.bytes));
    let mut out = vec![heading];
    if found.rows.is_empty() {
        return out;
    }
    out.push(page.style.dim(&format!("{:>12}{:>9}{:>11}  site", "blocks", "of all", "bytes")));
    for row in found.rows.iter().take(page.limit()) {
        let metrics = &row.metrics;
        let share = Percent { part: metrics.blocks, whole: metrics.allocations }.to_string();
        out.push(format!(
            "{:>12}{share:>9}{:>11}  {}",
            metric(Measure::Temporary, metrics.blocks),
            Bytes(metrics.bytes).to_string(),
            page.name(row, 34)
        ));
        out.extend(page.callers(row, 34));
    }
    out.extend(page.more(found.rows.len()));
    out
}
