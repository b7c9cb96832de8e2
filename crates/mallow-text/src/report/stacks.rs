//! The top sites by one metric, with their stacks.

use super::leaks;
use super::{LIMIT, Page, average_size};
use crate::columns::Columns;
use crate::wording::again;
use crate::{frame_text, metric, plural, printable};
use mallow_base::{Bytes, Count, Frame, Percent};
use mallow_profile::SiteTotals;
use mallow_view::{
    FrameVisibility, Line, Measure, Piece, SiteRow, Sites, SortKey, cut, lines, place, place_here,
};

/// The maximum number of lines of a stack; beyond it, its middle is left out.
const STACK_LINES_MAX: usize = 12;

impl Page<'_> {
    /// Returns the top sites with their stacks.
    pub(super) fn stacks(&self, sites: &Sites<'_>, key: SortKey) -> Vec<String> {
        let limit = self.view.limit.unwrap_or(LIMIT);
        let concerned: Vec<&SiteRow> = sites.rows.iter().filter(|row| key.concerns(&row.totals)).collect();
        if concerned.is_empty() {
            return self.nothing(key);
        }
        let mut out = self.heading(sites, key);
        out.push(String::new());
        for row in concerned.iter().take(limit) {
            let value = self.style.bold(&format!("{:>10}", self.key_value(key, &row.totals)));
            let share = match key {
                SortKey::Measure(measure) => {
                    format!("{:>6}  ", self.share(measure, measure.of_site(&row.totals)))
                }
                _ => String::new(),
            };
            out.push(format!("{value}  {share}{}", self.detail(key, &row.totals)).trim_end().to_owned());
            out.extend(self.leak_notes(key, row));
            out.extend(self.stack(sites, row, 12));
            out.push(String::new());
        }
        if concerned.len() > limit {
            out.push(self.not_shown(&concerned[limit..], key));
        }
        out
    }

    /// Returns the text that replaces an empty table.
    pub(super) fn nothing(&self, key: SortKey) -> Vec<String> {
        let suppressed = (key.weight() == Measure::Leaked).then(|| self.suppressed_line()).flatten();
        let word = self.style.bold(key.word());
        match suppressed {
            Some(line) => vec![format!("{word}: nothing that is not suppressed"), line],
            None => vec![format!("{word}: nothing")],
        }
    }

    /// Returns further notes on a site that leaks, for the lines below its metrics.
    fn leak_notes(&self, key: SortKey, row: &SiteRow) -> Vec<String> {
        if key.weight() != Measure::Leaked {
            return Vec::new();
        }
        let times = self.first_and_last(&row.totals);
        let verdict = leaks::verdict(self.subject.leaks, row.stack);
        let notes: Vec<&str> = [verdict, times.as_deref()].into_iter().flatten().collect();
        let note = notes.join("; ");
        let note = (!note.is_empty()).then(|| format!("{:12}{}", "", self.style.dim(&note)));
        note.into_iter().collect()
    }

    /// Formats when a site allocated.
    pub(super) fn first_and_last(&self, totals: &SiteTotals) -> Option<String> {
        if !self.profile.known.times || totals.allocations == 0 {
            return None;
        }
        let (first, last) = (self.time(totals.first_us), self.time(totals.last_us));
        Some(if totals.allocations == 1 {
            format!("allocated after {first}")
        } else {
            format!("first allocated after {first}, last after {last}")
        })
    }

    /// Returns a site's stack, indented by `indent` columns.
    pub(super) fn stack(&self, sites: &Sites<'_>, row: &SiteRow, indent: usize) -> Vec<String> {
        let stack = lines(sites.frames(row), self.view.shown);
        let width = self.style.name_width(indent);
        self.calls(&stack, width).into_iter().map(|line| format!("{:indent$}{line}", "")).collect()
    }

    /// Returns calls, one per line; of many, the middle is left out.
    pub(super) fn calls(&self, stack: &[Line<'_>], width: usize) -> Vec<String> {
        let all = self.view.shown == FrameVisibility::All;
        let line = |line: &Line<'_>| {
            let times =
                if line.times > 1 { format!("  × {}", Count(line.times as u64)) } else { String::new() };
            let left = width.saturating_sub(times.columns());
            let text = if all { whole_frame(line.frame) } else { frame_text(Some(line.frame), left) };
            format!("{text}{times}")
        };
        if stack.is_empty() {
            return vec![frame_text(None, width)];
        }
        if all {
            return stack.iter().map(line).collect();
        }
        let piece = |piece: &Piece<'_>| match piece {
            Piece::Line(shown) => line(shown),
            Piece::Again { lines, times } => self.style.dim(&again(*lines, *times)),
            Piece::Gap(count) => self.style.dim(&format!("… {count} more; use --all-frames to see them")),
        };
        cut(stack, STACK_LINES_MAX).iter().map(piece).collect()
    }

    /// Returns further notes on a site in a table of one metric.
    fn detail(&self, key: SortKey, totals: &SiteTotals) -> String {
        let known = &self.profile.known;
        let calls = metric(Measure::Allocations, totals.allocations);
        let allocations = if self.has(Measure::Allocations) && totals.allocations > 0 {
            plural(totals.allocations, "allocation")
        } else {
            String::new()
        };
        let each = |bytes: SortKey, blocks: SortKey| {
            let are_known = bytes.is_known(known) && blocks.is_known(known) && blocks.of_site(totals) > 1;
            let each = bytes.of_site(totals).checked_div(blocks.of_site(totals)).filter(|_| are_known);
            each.map(|each| format!("{} each", Bytes(each)))
        };
        let of = |blocks: SortKey| match (blocks.is_known(known), allocations.is_empty()) {
            (false, _) => allocations.clone(),
            (true, true) => plural(blocks.of_site(totals), "block"),
            (true, false) => format!("{} of {allocations}", plural(blocks.of_site(totals), "block")),
        };
        let bytes = self.has(Measure::Bytes).then(|| Bytes(totals.bytes).to_string());
        let size = each(Measure::Bytes.into(), Measure::Allocations.into());
        let parts = match key {
            SortKey::Measure(Measure::Allocations) | SortKey::Rate => vec![bytes, size],
            SortKey::Measure(Measure::Bytes) => vec![Some(allocations), size],
            SortKey::Measure(Measure::Peak) | SortKey::PeakBlocks => {
                let blocks = SortKey::PeakBlocks;
                vec![Some(of(blocks)), each(Measure::Peak.into(), blocks)]
            }
            SortKey::Measure(Measure::Leaked) | SortKey::LeakedBlocks => {
                let blocks = SortKey::LeakedBlocks;
                vec![Some(of(blocks)), each(Measure::Leaked.into(), blocks)]
            }
            SortKey::Measure(Measure::Temporary) => {
                let share = Percent { part: totals.temporary, whole: totals.allocations };
                vec![Some(format!("{share} of {allocations}")), size]
            }
            SortKey::Reallocations => vec![Some(format!("of {allocations}")), size],
            SortKey::Max => vec![Some(of(SortKey::MaxBlocks))],
            SortKey::MaxBlocks => vec![Some(format!("of {calls}, {}", Bytes(totals.live_bytes_max)))],
            SortKey::Size => vec![Some(allocations), bytes],
            SortKey::Reads | SortKey::Writes => {
                vec![Some(self.access_detail(totals)), bytes.map(|bytes| format!("of {bytes}"))]
            }
            SortKey::Unused => vec![Some(self.access_detail(totals)), Some(allocations)],
            SortKey::Lifetime => {
                let point = mallow_view::Point::of(totals, &self.profile.recording, known);
                let share = point.lifetime_share.map(|share| format!("{:.1}% of the run", share * 100.0));
                vec![share, Some(allocations), point.size.map(|size| format!("{} each", average_size(size)))]
            }
        };
        parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

/// Formats a frame with its whole name.
pub(crate) fn whole_frame(frame: &Frame) -> String {
    let place = place_here(frame).unwrap_or_else(|| place(frame));
    printable(format!("{} {place}", frame.function).trim_end())
}
