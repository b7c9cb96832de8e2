//! Blocks that were resized by `realloc`, by the site that first allocated them.

use super::Page;
use crate::{cut_end, metric, plural};
use mallow_base::Bytes;
use mallow_profile::analysis::ChainTotals;
use mallow_view::Measure;
use mallow_view::chains::Chains;

/// Returns the metrics of all chains, and two lines for each site.
pub(super) fn chains(page: &Page<'_>, found: &Chains) -> Vec<String> {
    let totals = &found.totals;
    let word = page.style.bold("realloc chains");
    if totals.chains == 0 {
        return vec![format!("{word}: no block was resized")];
    }
    let mut out = vec![
        format!(
            "{word}: {} resized {}, the longest {}",
            plural(totals.chains, "block"),
            times(totals.reallocations),
            times(totals.longest)
        ),
        format!("at most {} copied by realloc", Bytes(totals.copied_bytes_max)),
        page.style.dim(&format!(
            "{:>11}{:>12}{:>9}{:>12}  largest growth",
            "blocks", "resized", "longest", "copied"
        )),
    ];
    for row in found.rows.iter().take(page.limit()) {
        let ChainTotals { chains, reallocations, longest, copied_bytes_max, largest_growth } = &row.metrics;
        let line = format!(
            "{:>11}{:>12}{:>9}{:>12}  {} to {} in {}",
            metric(Measure::Allocations, *chains),
            metric(Measure::Allocations, *reallocations),
            metric(Measure::Allocations, *longest),
            Bytes(*copied_bytes_max).to_string(),
            Bytes(largest_growth.first_bytes),
            Bytes(largest_growth.last_bytes),
            plural(largest_growth.reallocations, "call")
        );
        out.push(cut_end(&line, page.style.width));
        out.push(format!("{:12}{}", "", page.name(row, 12)));
        out.extend(page.callers(row, 12));
    }
    out.extend(page.more(found.rows.len()));
    out
}

fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{} times", metric(Measure::Allocations, count)) }
}
