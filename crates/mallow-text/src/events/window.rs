//! The metrics of sites in a window, and what was live at a moment.

use super::Page;
use crate::plural;
use mallow_base::{Bytes, Percent};
use mallow_profile::analysis::WindowMetrics;
use mallow_view::window::{WindowMeasure, WindowSites};

/// Sites in each table.
const LIMIT: usize = 5;

/// Returns the totals, and a table for each question; with `at_only`, only what was live.
pub(super) fn window(page: &Page<'_>, found: &WindowSites, at_only: bool) -> Vec<String> {
    let totals = &found.totals;
    if at_only {
        return table(page, found, WindowMeasure::Live, "live");
    }
    let freed = (totals.freed_bytes, totals.frees);
    let line = |what: &str, (bytes, blocks): (u64, u64)| {
        format!("{what:<35}{:>9}  in {}", Bytes(bytes).to_string(), plural(blocks, "block"))
    };
    let mut out = vec![
        line("allocated in the window", WindowMeasure::Allocated.of(totals)),
        line("freed in the window", freed),
        line("live at its end", WindowMeasure::Live.of(totals)),
        line("allocated in it and live at its end", WindowMeasure::Kept.of(totals)),
    ];
    let headings = ["allocated in the window", "live at its end", "allocated in it and live at its end"];
    for (measure, heading) in WindowMeasure::ALL.into_iter().zip(headings) {
        out.push(String::new());
        out.extend(table(page, found, measure, heading));
    }
    out
}

fn table(page: &Page<'_>, found: &WindowSites, measure: WindowMeasure, heading: &str) -> Vec<String> {
    let mut found = found.clone();
    found.sort(measure);
    found.rows.retain(|row| measure.of(&row.metrics) != (0, 0));
    let mut shown = WindowMetrics::default();
    found.rows.iter().for_each(|row| shown.add(&row.metrics));
    let (bytes, blocks) = measure.of(&shown);
    let whole = measure.of(&found.totals).0;
    let mut out = vec![format!(
        "{}: {} in {} at {}",
        page.style.bold(heading),
        Bytes(bytes),
        plural(blocks, "block"),
        plural(found.rows.len() as u64, "site")
    )];
    let limit = page.sites.limit.unwrap_or(LIMIT);
    for row in found.rows.iter().take(limit) {
        let (bytes, blocks) = measure.of(&row.metrics);
        let share = Percent { part: bytes, whole }.to_string();
        let blocks = crate::metric(mallow_view::Measure::Allocations, blocks);
        out.push(format!("{:>10}{blocks:>12}{share:>8}  {}", Bytes(bytes).to_string(), page.name(row, 32)));
        out.extend(page.callers(row, 34));
    }
    out
}
