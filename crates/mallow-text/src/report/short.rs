//! A short table for each measure: one line for each frame that names sites, and one for its callers.

use super::Page;
use super::leaks;
use crate::frame_text;
use crate::wording::callers;
use mallow_view::{Measure, Sites, lines};

/// Sites in each short table.
const SHORT_LIMIT: usize = 5;

impl Page<'_> {
    /// Returns one line for each naming frame, and one for its callers.
    pub(super) fn short_table(&self, sites: &Sites<'_>, measure: Measure) -> Vec<String> {
        let has_suppressed = measure == Measure::Leaked && self.suppressed.sites > 0;
        if !has_suppressed && !sites.rows.iter().any(|row| measure.concerns(&row.totals)) {
            return Vec::new();
        }
        let mut named = sites.by_naming_frame();
        named.sort(measure);
        let mut out = self.heading(sites, measure.into());
        let rows = named.rows.iter().filter(|row| measure.concerns(&row.totals));
        for row in rows.take(self.view.limit.unwrap_or(SHORT_LIMIT)) {
            let value = measure.of_site(&row.totals);
            let share = self.share(measure, value);
            let name = frame_text(named.frames(row).next(), self.style.name_width(20));
            out.push(format!("{:>10}  {share:>6}  {name}", self.value(measure, value)));
            let width = self.style.name_width(22);
            let stack = lines(named.frames(row), self.view.shown);
            if let Some(callers) = callers(stack.iter().skip(1).map(|line| line.frame), width) {
                out.push(format!("{:22}{}", "", self.style.dim(&callers)));
            }
            if measure == Measure::Leaked
                && let Some(verdict) = leaks::verdict(self.subject.leaks, row.stack)
            {
                out.push(format!("{:22}{}", "", self.style.dim(verdict)));
            }
        }
        out.push(String::new());
        out
    }
}
