//! Folded stacks as a flame graph: an SVG that zooms and searches in a browser, drawn by the crate inferno.
//!
//! What a box is called and what it counts is decided by whoever folds the stacks; here they are drawn, and nothing is added.

use inferno::flamegraph::color::{BackgroundColor, BasicPalette, Color, Palette, StrokeColor};
use inferno::flamegraph::{self, Direction, Options, TextTruncateDirection};
use std::io::{self, ErrorKind, Write};

/// inferno subtracts with signs.
const SUM_MAX: u64 = i64::MAX as u64;
/// A blank to people, a letter to inferno.
const FIRM_BLANK: char = '\u{a0}';

/// How a flame graph looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlameGraph {
    /// Its first line.
    pub title: String,
    /// Its second line.
    pub subtitle: String,
    /// What the metrics count, such as `bytes`.
    pub unit: String,
    /// Whether the outermost calls stand at the top instead of at the bottom.
    pub icicle: bool,
}

impl FlameGraph {
    /// Draws stacks such as `main;work`, each with its metric, which becomes the width of its box.
    ///
    /// # Errors
    /// `InvalidData` when there is nothing to draw, or figures add up to more than 2^63 - 1; else what `out` refused.
    pub fn draw(&self, stacks: impl Iterator<Item = (String, u64)>, out: &mut dyn Write) -> io::Result<()> {
        let mut sum = 0_u64;
        let lines = stacks.map(|(stack, value)| {
            sum = sum.saturating_add(value);
            (firm(&stack), format!("{value}"))
        });
        let lines = lines.collect();
        self.draw_lines(lines, sum, sum, self.options(), out)
    }

    /// Draws stacks with their metrics before and after. The width of a box is what it has after; the colour says whether that is
    /// more (red) or less (blue) than before.
    ///
    /// # Errors
    /// As [`FlameGraph::draw`].
    pub fn draw_compared(
        &self,
        stacks: impl Iterator<Item = (String, u64, u64)>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let mut sums = (0_u64, 0_u64);
        let lines = stacks.map(|(stack, before, after)| {
            sums = (sums.0.saturating_add(before), sums.1.saturating_add(after));
            (firm(&stack), format!("{before} {after}"))
        });
        let lines = lines.collect();
        let mut options = self.options();
        // Boxes that stayed as they were are almost white.
        options.bgcolors = Some(BackgroundColor::Grey);
        options.stroke_color = StrokeColor::Color(Color { r: 0xc0, g: 0xc0, b: 0xc0 });
        self.draw_lines(lines, sums.1, sums.0.max(sums.1), options, out)
    }

    fn options(&self) -> Options<'static> {
        let mut options = Options::default();
        options.title = self.title.clone();
        options.subtitle = Some(self.subtitle.clone());
        options.count_name = self.unit.clone();
        options.direction = if self.icicle { Direction::Inverted } else { Direction::Straight };
        options.colors = Palette::Basic(BasicPalette::Mem);
        // A function has the same colour in every graph, so that two can be compared by eye.
        options.deterministic = true;
        options.text_truncate_direction = TextTruncateDirection::Right;
        options
    }

    fn draw_lines(
        &self,
        mut lines: Vec<(String, String)>,
        width: u64,
        sum: u64,
        mut options: Options<'_>,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        if width == 0 {
            return Err(io::Error::new(ErrorKind::InvalidData, "there is nothing to draw"));
        }
        if sum > SUM_MAX {
            return Err(io::Error::new(ErrorKind::InvalidData, "the figures add up to more than 2^63"));
        }
        // By name and not by letter: `foo;bar` stands beside `foo`, whatever letters of `foo(int)` come before a semicolon.
        lines.sort_by(|(one, _), (other, _)| other.split(';').cmp(one.split(';')));
        let lines: Vec<String> =
            lines.into_iter().map(|(stack, metrics)| format!("{stack} {metrics}")).collect();
        // inferno takes such an order only as that of a flame chart, which begins with its last line.
        options.flame_chart = true;
        flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), out)
    }
}

/// A stack that inferno cannot take for a comment, nor the end of its last name for a metric.
fn firm(stack: &str) -> String {
    let stack = stack.trim();
    let is_metric = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let mut firm = match stack.rsplit_once(' ') {
        Some((rest, word)) if is_metric(word) => format!("{rest}{FIRM_BLANK}{word}"),
        _ => stack.to_owned(),
    };
    if firm.starts_with("# ") {
        firm.replace_range(1..2, &FIRM_BLANK.to_string());
    }
    firm
}

#[cfg(test)]
#[path = "flamegraph_tests.rs"]
mod tests;
