//! Verdicts beside leaked sites, and the sites that would have leaked if the program had been killed.

use crate::{Style, cut_end, frame_text, plural};
use mallow_base::{Bytes, Micros};
use mallow_profile::{Profile, StackId};
use mallow_view::leaks::Leaks;

/// Sites in the table.
const LIMIT: usize = 5;

/// Returns the verdict on a leaked site; `None` if there is none.
pub(super) fn verdict(leaks: Option<&Leaks>, stack: Option<StackId>) -> Option<&'static str> {
    leaks?.conclusion(stack).map(mallow_profile::analysis::Verdict::sentence)
}

/// Returns sites that grew during the whole run and were freed only at the end; empty if there are none.
pub fn freed_at_end(profile: &Profile, leaks: &Leaks, limit: Option<usize>, style: Style) -> String {
    let rows = &leaks.freed_at_end;
    if rows.is_empty() {
        return String::new();
    }
    let bytes = rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.metrics.freed_at_end_bytes));
    let mut out = vec![
        String::new(),
        format!(
            "{}: {} at {}",
            style.bold("growing steadily, freed only in the last 2 % of the run"),
            Bytes(bytes),
            plural(rows.len() as u64, "site")
        ),
    ];
    for row in rows.iter().take(limit.unwrap_or(LIMIT)) {
        let name = frame_text(row.frames(profile).next(), style.name_width(12));
        out.push(format!("{:>10}  {name}", Bytes(row.metrics.freed_at_end_bytes).to_string()));
        let (first, last) = (Micros(row.metrics.first_us), Micros(row.metrics.last_us));
        let times = format!("first allocated after {first}, last after {last}");
        out.push(format!("{:12}{}", "", style.dim(&cut_end(&times, style.width.saturating_sub(12)))));
    }
    out.join("\n") + "\n"
}
