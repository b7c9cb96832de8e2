//! Folded stacks as a flame graph: an SVG that zooms and searches in a browser, drawn by the crate inferno.
//!
//! What a box is called and what it counts is decided by whoever folds the stacks; here they are drawn, and nothing is added. Where scripts are
//! among them, the colour of a box says what its function is written in, and a legend what the colours mean.

use inferno::flamegraph::color::{BackgroundColor, BasicPalette, Color, Palette, PaletteMap, StrokeColor};
use inferno::flamegraph::{self, Direction, Options, TextTruncateDirection};
use mallow_base::Language;
use mallow_view::FoldedRow;
use std::collections::BTreeSet;
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

    /// Draws rows as [`FlameGraph::draw`] does stacks; where some calls are a script's, each language has its colour.
    ///
    /// # Errors
    /// As [`FlameGraph::draw`].
    pub fn draw_rows(&self, rows: &[FoldedRow], out: &mut dyn Write) -> io::Result<()> {
        let mut languages = BTreeSet::new();
        let mut colours = PaletteMap::default();
        let mut sum = 0_u64;
        let mut lines = Vec::with_capacity(rows.len());
        for row in rows {
            let mut names = Vec::with_capacity(row.calls.len());
            for call in &row.calls {
                let name = format!("{}{}", call.name, mark(call.language));
                if languages.insert(call.language) || colours.get(&name).is_none() {
                    colours.insert(&name, colour(call.language, &call.name));
                }
                names.push(name);
            }
            sum = sum.saturating_add(row.value);
            lines.push((firm(&names.join(";")), row.value.to_string()));
        }
        let mut options = self.options();
        if languages.iter().all(|language| *language == Language::Native) {
            return self.draw_lines(lines, sum, sum, options, out);
        }
        options.palette_map = Some(&mut colours);
        let mut svg = Vec::new();
        self.draw_lines(lines, sum, sum, options, &mut svg)?;
        let svg = String::from_utf8_lossy(&svg);
        let (graph, end) = svg.rsplit_once("</svg>").unwrap_or((&svg, ""));
        write!(out, "{graph}{}</svg>{end}", legend(&languages))
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

/// What a language is marked with behind a name, so that functions of one name are two boxes in two languages. inferno takes these for marks of its
/// own, and shows names without them.
fn mark(language: Language) -> &'static str {
    match language {
        Language::Native => "",
        Language::Python => "_[k]",
        Language::Ruby => "_[w]",
        Language::JavaScript => "_[i]",
        Language::Java => "_[j]",
    }
}

/// The colour of a function: its language's, a little lighter or darker by its name, which is the same in every graph.
fn colour(language: Language, name: &str) -> Color {
    const SHADES: u8 = 40;
    let hash = name.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte)));
    let shade = u8::try_from(hash % u32::from(SHADES)).unwrap_or_default();
    let [r, g, b] = base(language);
    Color { r: r + shade, g: g + shade, b: b + shade }
}

/// The darkest shade of a language.
fn base(language: Language) -> [u8; 3] {
    match language {
        Language::Native => [170, 175, 180],
        Language::Python => [90, 155, 215],
        Language::Ruby => [215, 100, 95],
        Language::JavaScript => [205, 180, 60],
        Language::Java => [215, 140, 65],
    }
}

/// Which colour is which language, left of the second line.
fn legend(languages: &BTreeSet<Language>) -> String {
    const TOP: usize = 38;
    const SIDE: usize = 12;
    const LETTER_WIDTH: usize = 7;
    let mut left = 10;
    let mut text = String::from("<g id=\"legend\">");
    for language in languages {
        let name = language_name(*language);
        let Color { r, g, b } = colour(*language, name);
        text += &format!(
            "<rect x=\"{left}\" y=\"{TOP}\" width=\"{SIDE}\" height=\"{SIDE}\" fill=\"rgb({r},{g},{b})\"/>\
             <text x=\"{}\" y=\"{}\">{name}</text>",
            left + SIDE + 4,
            TOP + SIDE - 2,
        );
        left += SIDE + 16 + LETTER_WIDTH * name.len();
    }
    text + "</g>"
}

/// A language as people write it.
fn language_name(language: Language) -> &'static str {
    match language {
        Language::Native => "native",
        Language::Python => "Python",
        Language::Ruby => "Ruby",
        Language::JavaScript => "JavaScript",
        Language::Java => "Java",
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
