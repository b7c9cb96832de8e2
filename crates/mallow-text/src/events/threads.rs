//! The metrics of each thread.

use super::Page;
use crate::columns::Columns;
use crate::{cut_end, metric, plural, printable};
use mallow_base::Bytes;
use mallow_profile::analysis::ThreadMetrics;
use mallow_view::Measure;
use mallow_view::threads::{ThreadRow, Threads};

/// The maximum number of threads in a table.
const LIMIT: usize = 20;

/// Returns a line for each thread, and one for all of them.
pub(super) fn threads(page: &Page<'_>, found: &Threads<'_>) -> Vec<String> {
    let word = page.style.bold("threads");
    let mut out = vec![format!("{word}: {}", found.rows.len())];
    if found.rows.is_empty() {
        return out;
    }
    let head = ["allocations", "bytes", "frees", "not own", "temporary", "live"];
    let [allocations, bytes, frees, others, temporary, live] = head;
    out.push(page.style.dim(&format!(
        "{allocations:>11}{bytes:>10}{frees:>11}{others:>10}{temporary:>11}{live:>11}  thread"
    )));
    let limit = page.sites.limit.unwrap_or(LIMIT);
    let several = found.rows.iter().any(|row| row.pid != found.rows[0].pid);
    for row in found.rows.iter().take(limit) {
        let line = columns(&row.metrics);
        let left = page.style.width.saturating_sub(line.columns() + 2);
        out.push(format!("{line}  {}", cut_end(&name(row, several), left)));
    }
    if found.rows.len() > limit {
        out.push(format!(
            "{} not shown; use --top to see more.",
            plural((found.rows.len() - limit) as u64, "more thread")
        ));
    }
    if found.rows.len() > 1 {
        out.push(format!("{}  all", columns(&found.totals)));
    }
    out
}

fn columns(metrics: &ThreadMetrics) -> String {
    let count = |value| metric(Measure::Allocations, value);
    format!(
        "{:>11}{:>10}{:>11}{:>10}{:>11}{:>11}",
        count(metrics.allocations),
        Bytes(metrics.bytes).to_string(),
        count(metrics.frees),
        count(metrics.frees_of_others),
        count(metrics.temporary),
        Bytes(metrics.live_bytes).to_string()
    )
}

fn name(row: &ThreadRow<'_>, several: bool) -> String {
    let tid = match row.tid {
        0 => String::new(),
        tid => tid.to_string(),
    };
    let process = if several { format!("{}/", row.pid) } else { String::new() };
    let name = printable(row.name);
    format!("{process}{tid} {name}").trim().to_owned()
}
