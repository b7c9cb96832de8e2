//! The SVG document: its head, the boxes that are wide enough to be seen, and what its script needs.
//!
//! Coordinates are written for [`WIDTH`]; a browser's script lays the boxes out anew for its window.

use crate::FlameGraph;
use crate::colours::{Tone, rules};
use crate::data;
use crate::kept::{KeptBox, KeptBoxes};
use crate::written::{Words, language_name};
use mallow_base::{Language, escaped_xml, grouped};
use mallow_stacks::Flames;
use std::fmt::Write;

/// How wide the picture is where no script is run.
const WIDTH: f64 = 1200.0;
/// How far a box reaches down, with the gap to the next one.
const ROW: f64 = 18.0;
/// Of boxes below this width nothing is to be seen.
const SEEN: f64 = 0.7;
/// Below this width no text is put into a box.
const TEXT_WIDTH: f64 = 18.0;
/// What a letter takes, about.
const LETTER: f64 = 6.8;
/// Boxes that are drawn before the script runs.
const DRAWN_MAX: usize = 12_000;
/// Rows that are drawn; as in `flame.js`. Deeper ones a script shows when they are zoomed to.
const ROWS_MAX: u32 = 400;
/// What the boxes of what is gone are filled with.
const GONE: &str = "<defs><pattern id=\"mallow-gone\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\" \
                    patternTransform=\"rotate(45)\"><rect class=\"l1\" width=\"8\" height=\"8\"/>\
                    <path class=\"hatch\" d=\"M2 0v8\"/></pattern></defs>\n";
/// The margin around everything.
const MARGIN: f64 = 10.0;

/// The document.
pub(crate) fn svg(graph: &FlameGraph, flames: &Flames, kept: &KeptBoxes<'_>) -> String {
    let words = Words::of(graph, flames, kept.whole().weight);
    let drawn = Drawn::of(kept);
    let legend = legend(graph, flames, kept);
    let notes = drawn.notes(&words, kept);
    let top = head_height(&legend, &notes);
    let rows = drawn.boxes.iter().map(|of| of.depth + 1).max().unwrap_or(1);
    let height = top + f64::from(rows) * ROW + MARGIN;
    let mut out = String::new();
    open(graph, flames, kept, height, &mut out);
    head(graph, &legend, &notes, top, &mut out);
    out.push_str("<g class=\"boxes\">\n");
    for of in &drawn.boxes {
        let y = match graph.icicle {
            true => top + f64::from(of.depth) * ROW,
            false => height - MARGIN - f64::from(of.depth + 1) * ROW,
        };
        draw(graph, &words, of, drawn.across(of.left), y, drawn.wide(of.width), &mut out);
    }
    out.push_str("</g>\n");
    let data = data::json(graph, flames, kept);
    let script = include_str!("flame.js");
    let _ = write!(
        out,
        "<metadata class=\"data\"><![CDATA[{data}]]></metadata>\n<script><![CDATA[\n{script}]]></script>\n</svg>\n"
    );
    out
}

/// What is drawn before a script runs.
struct Drawn<'a> {
    boxes: Vec<KeptBox<'a>>,
    /// What a unit of weight takes.
    scale: f64,
    /// Boxes that are kept, and too narrow or too deep to be drawn.
    narrow: usize,
    deep: usize,
}

impl<'a> Drawn<'a> {
    fn of(kept: &'a KeptBoxes<'_>) -> Drawn<'a> {
        let scale = (WIDTH - 2.0 * MARGIN) / kept.whole().width as f64;
        let width = |of: &KeptBox<'_>| of.width as f64 * scale;
        let (shallow, deep): (Vec<KeptBox<'_>>, Vec<KeptBox<'_>>) =
            kept.boxes.iter().partition(|of| of.depth < ROWS_MAX);
        let mut least = SEEN;
        let mut wide: Vec<f64> = shallow.iter().map(width).filter(|width| *width >= SEEN).collect();
        if wide.len() > DRAWN_MAX {
            let (_, first_that_goes, _) =
                wide.select_nth_unstable_by(DRAWN_MAX, |one, other| other.total_cmp(one));
            least = first_that_goes.next_up();
        }
        let boxes: Vec<KeptBox<'_>> = shallow.iter().filter(|of| width(of) >= least).copied().collect();
        let narrow = shallow.len() - boxes.len();
        Drawn { boxes, scale, narrow, deep: deep.len() }
    }

    fn across(&self, left: u64) -> f64 {
        MARGIN + self.wide(left)
    }

    fn wide(&self, width: u64) -> f64 {
        width as f64 * self.scale
    }

    /// What is not drawn: first what a script shows, then what it cannot show either.
    fn notes(&self, words: &Words<'_>, kept: &KeptBoxes<'_>) -> [String; 2] {
        let boxes = |count: usize| match count {
            1 => "1 box".to_owned(),
            count => format!("{} boxes", grouped(count as u64)),
        };
        let hidden = match (self.narrow, self.deep) {
            (0, 0) => String::new(),
            (narrow, 0) => format!("{} too narrow to be drawn", boxes(narrow)),
            (0, deep) => format!("{} deeper than {ROWS_MAX} calls not drawn", boxes(deep)),
            (narrow, deep) => {
                format!(
                    "{} too narrow and {} deeper than {ROWS_MAX} calls not drawn",
                    boxes(narrow),
                    grouped(deep as u64)
                )
            }
        };
        let left_out = match kept.left_out {
            0 => String::new(),
            count => format!("{} of up to {} left out", boxes(count), words.written(kept.left_out_width)),
        };
        [hidden, left_out]
    }
}

/// A swatch's class, and what it stands for.
type Legend = Vec<(String, &'static str)>;

fn legend(graph: &FlameGraph, flames: &Flames, kept: &KeptBoxes<'_>) -> Legend {
    if graph.is_compared {
        let tones = [
            (Tone::New, "new"),
            (Tone::More(3), "more"),
            (Tone::Same, "as before"),
            (Tone::Less(3), "less"),
            (Tone::Gone, "gone"),
        ];
        return tones.map(|(tone, words)| (tone.class(), words)).to_vec();
    }
    let languages = languages(flames, kept);
    if languages.len() < 2 {
        return Vec::new();
    }
    let name = |language: &Language| language_name(*language).unwrap_or("machine code");
    let class = |language: &Language| Tone::Plain { language: *language, tint: 0 }.class();
    languages.iter().map(|language| (class(language), name(language))).collect()
}

/// The languages of a graph's functions, in their own order.
fn languages(flames: &Flames, kept: &KeptBoxes<'_>) -> Vec<Language> {
    let mut has = [false; Language::ALL.len()];
    for of in &kept.boxes {
        if let Some(function) = of.this.function {
            has[flames.functions[function.0 as usize].language as usize] = true;
        }
    }
    Language::ALL.into_iter().filter(|language| has[*language as usize]).collect()
}

fn head_height(legend: &Legend, notes: &[String; 2]) -> f64 {
    let has_third = !legend.is_empty() || notes.iter().any(|note| !note.is_empty());
    if has_third { 72.0 } else { 54.0 }
}

fn open(graph: &FlameGraph, flames: &Flames, kept: &KeptBoxes<'_>, height: f64, out: &mut String) {
    let languages = match languages(flames, kept) {
        languages if languages.is_empty() => vec![Language::Native],
        languages => languages,
    };
    let [light, dark] = rules(graph.is_compared, &languages);
    let style = include_str!("flame.css").replace("/*light*/", &light).replace("/*dark*/", &dark);
    let (title, subtitle) = (escaped_xml(&graph.title), escaped_xml(&graph.subtitle));
    let pattern = if graph.is_compared { GONE } else { "" };
    let _ = write!(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <svg xmlns=\"http://www.w3.org/2000/svg\" class=\"mallow-flame\" width=\"{WIDTH}\" height=\"{height}\" \
         viewBox=\"0 0 {WIDTH} {height}\" role=\"group\" aria-label=\"{title}\">\n\
         <title>{title}</title>\n<desc>{subtitle}</desc>\n<style>\n{style}</style>\n{pattern}\
         <rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n"
    );
}

fn head(graph: &FlameGraph, legend: &Legend, notes: &[String; 2], top: f64, out: &mut String) {
    let _ = write!(
        out,
        "<g class=\"head\" data-height=\"{top}\">\n<rect class=\"paper\" width=\"100%\" height=\"{top}\"/>\n\
         <text class=\"title\" x=\"{MARGIN}\" y=\"24\">{}</text>\n<text class=\"quiet\" x=\"{MARGIN}\" y=\"43\">{}</text>\n",
        escaped_xml(&graph.title),
        escaped_xml(&graph.subtitle)
    );
    let mut x = MARGIN;
    for (class, words) in legend {
        let _ = writeln!(
            out,
            "<g class=\"wide\"><rect class=\"{class}\" x=\"{x:.0}\" y=\"52\" width=\"14\" height=\"12\"/></g><text class=\"quiet\" x=\"{:.0}\" y=\"62\">{words}</text>",
            x + 20.0
        );
        x += 20.0 + LETTER * words.len() as f64 + 18.0;
    }
    for (class, note) in ["hidden", "left-out"].into_iter().zip(notes) {
        if !note.is_empty() {
            let _ = writeln!(
                out,
                "<text class=\"quiet {class}\" x=\"{x:.0}\" y=\"62\">{}</text>",
                escaped_xml(note)
            );
            x += LETTER * note.len() as f64 + 18.0;
        }
    }
    out.push_str("</g>\n");
}

fn draw(
    graph: &FlameGraph,
    words: &Words<'_>,
    of: &KeptBox<'_>,
    x: f64,
    y: f64,
    wide: f64,
    out: &mut String,
) {
    let tone = match (graph.is_compared, of.this.function) {
        (_, None) => Tone::Root,
        (true, _) => Tone::of_change(of.weight),
        (false, _) => Tone::of_function(words.name(of), words.language(of)),
    };
    let (class, title, tall) = (tone.class(), escaped_xml(&words.title(of)), ROW - 1.0);
    let wide = (wide - 0.5).max(0.3);
    if wide < TEXT_WIDTH {
        let _ = writeln!(
            out,
            "<rect class=\"{class}\" x=\"{x:.2}\" y=\"{y}\" width=\"{wide:.2}\" height=\"{tall}\"><title>{title}</title></rect>"
        );
        return;
    }
    let (label, values) = (words.label(of), words.values(of));
    let room = ((wide - 8.0) / LETTER) as usize;
    let fits = label.chars().count() + values.chars().count() + 2 <= room;
    let values = if fits {
        format!("<tspan class=\"quiet\" dx=\"8\">{}</tspan>", escaped_xml(&values))
    } else {
        String::new()
    };
    // An SVG within cuts the text off where the box ends, in every viewer.
    let _ = writeln!(
        out,
        "<svg class=\"wide\" x=\"{x:.2}\" y=\"{y}\" width=\"{wide:.2}\" height=\"{tall}\"><title>{title}</title>\
         <rect class=\"{class}\" width=\"100%\" height=\"100%\"/><text x=\"4\" y=\"12.5\">{}{values}</text></svg>",
        escaped_xml(&cut(&label, room))
    );
}

/// The end of a name, which tells more than its beginning, in so many letters.
fn cut(name: &str, room: usize) -> String {
    let letters = name.chars().count();
    if letters <= room {
        return name.to_owned();
    }
    let kept: String = name.chars().skip(letters.saturating_sub(room.saturating_sub(1))).collect();
    if kept.starts_with('…') { kept } else { format!("…{kept}") }
}
