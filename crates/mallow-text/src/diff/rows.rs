//! A site that differs: its difference, and its stack.

use super::{Beside, DiffWords, INDENT, Page, mark, percent, signed, value};
use crate::report::whole_frame;
use crate::wording::{again, callers};
use crate::{Style, frame_text, plural};
use mallow_base::Frame;
use mallow_stacks::{StackProfile, Weights};
use mallow_view::diff::{DiffRow, Section};
use mallow_view::{FrameVisibility, Line, Piece, cut, short_name};

/// The maximum number of lines of a stack; beyond it, its middle is left out.
const STACK_LINES_MAX: usize = 8;

impl<P: StackProfile<Weights: Weights<Metric: DiffWords>>> Page<'_, P> {
    pub(super) fn row(&self, row: &DiffRow<'_, P::Weights>, style: Style, is_whole: bool) -> Vec<String> {
        let change = row.change(self.by());
        let difference = format!("{:>12}", signed(self.by(), change.difference(), self.per()));
        let mut out = vec![String::new()];
        out.push(format!("{}  {}", style.bold(&difference), self.detail(row)).trim_end().to_owned());
        out.extend(if is_whole || self.is_all() { self.stack(row, style) } else { self.callers(row, style) });
        out
    }

    pub(super) fn is_all(&self) -> bool {
        self.0.options.shown == FrameVisibility::All
    }

    /// Returns the naming frame, and its callers.
    pub(super) fn callers(&self, row: &DiffRow<'_, P::Weights>, style: Style) -> Vec<String> {
        let width = style.name_width(INDENT);
        let frames = row.after.as_ref().or(row.before.as_ref()).map_or(&[][..], |side| &side.frames);
        let mut out = vec![format!("{:INDENT$}{}", "", frame_text(frames.first().copied(), width))];
        if let Some(was) = was(row) {
            let text = format!("was {}", frame_text(Some(was), width.saturating_sub(4)));
            out.push(format!("{:INDENT$}{}", "", style.dim(&text)));
        }
        if let Some(callers) = callers(frames.iter().skip(1).copied(), width.saturating_sub(2)) {
            out.push(format!("{:INDENT$}  {}", "", style.dim(&callers)));
        }
        out
    }

    /// Returns the text beside the difference: the total, and the confidence of the match.
    pub(super) fn detail(&self, row: &DiffRow<'_, P::Weights>) -> String {
        let change = row.change(self.by());
        match row.section {
            Section::New | Section::Gone => self.other_metrics(row),
            _ => {
                let metrics = format!(
                    "{} → {}",
                    value(self.by(), change.before, self.per()),
                    value(self.by(), change.after, self.per())
                );
                let share = percent(change);
                let stacks = |side: &Option<mallow_view::diff::DiffSide<'_, P::Weights>>| {
                    side.as_ref().map_or(0, |side| side.stacks)
                };
                let split = match (stacks(&row.before), stacks(&row.after)) {
                    (1, 1) => String::new(),
                    (before, after) => format!("{before} → {}", plural(after as u64, "stack")),
                };
                let parts = [share, metrics, mark(row.level), split];
                parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("   ")
            }
        }
    }

    /// Returns the other metrics of a site that only one side has.
    fn other_metrics(&self, row: &DiffRow<'_, P::Weights>) -> String {
        let Some(side) = row.after.as_ref().or(row.before.as_ref()) else { return String::new() };
        let is_known = |measure| self.0.comparison.total(measure).is_some();
        match self.by().beside(&side.totals, is_known) {
            Beside::Words(words) => words,
            Beside::Metric(other) => {
                let metric = signed(other, row.change(other).difference(), self.per());
                let unit = other.unit_behind(&metric);
                metric + unit
            }
        }
    }

    pub(super) fn stack(&self, row: &DiffRow<'_, P::Weights>, style: Style) -> Vec<String> {
        let width = style.name_width(INDENT);
        let mut out = self.stack_lines(row, width);
        if let Some(was) = was(row) {
            let text = format!("was {}", frame_text(Some(was), width.saturating_sub(4)));
            out.insert(1, style.dim(&text));
        }
        out.iter().map(|line| format!("{:INDENT$}{line}", "")).collect()
    }

    /// Returns the frames of the side after, or of a stack that is gone; the middle is left out if there are many.
    pub(super) fn stack_lines(&self, row: &DiffRow<'_, P::Weights>, width: usize) -> Vec<String> {
        let frames = row.after.as_ref().or(row.before.as_ref()).map_or(&[][..], |side| &side.frames);
        if frames.is_empty() {
            return vec![frame_text(None, width)];
        }
        if self.is_all() {
            return frames.iter().map(|frame| whole_frame(frame)).collect();
        }
        let lines: Vec<Line<'_>> = frames.iter().map(|frame| Line { frame, times: 1 }).collect();
        let piece = |piece: &Piece<'_>| match piece {
            Piece::Line(line) => frame_text(Some(line.frame), width),
            Piece::Again { lines, times } => again(*lines, *times),
            Piece::Gap(count) => format!("… {count} more"),
        };
        cut(&lines, STACK_LINES_MAX).iter().map(piece).collect()
    }
}

/// Returns the innermost frame before, if it is another function than after.
fn was<'a, W: Weights>(row: &DiffRow<'a, W>) -> Option<&'a Frame> {
    let before = row.before.as_ref()?.frames.first().copied()?;
    let after = row.after.as_ref()?.frames.first().copied()?;
    (short_name(&before.function) != short_name(&after.function)).then_some(before)
}
