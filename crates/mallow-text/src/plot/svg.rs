//! The few SVG shapes that a chart is made of; text is escaped.

use mallow_base::escaped_xml;
use std::fmt::Write;

/// A document that is being written.
pub(crate) struct Svg {
    text: String,
}

type Point = (f64, f64);

impl Svg {
    pub(crate) fn new(width: f64, height: f64, title: &str) -> Svg {
        let mut text = String::new();
        // Writing to a `String` cannot fail.
        let _ = writeln!(
            text,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" font-size=\"13\">\n<title>{}</title>\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>",
            escaped(title)
        );
        Svg { text }
    }

    /// Appends a line of text. `how` are further attributes.
    pub(crate) fn text(&mut self, at: Point, text: &str, how: &str, colour: &str) {
        let (x, y) = at;
        let text = escaped(text);
        let _ = writeln!(
            self.text,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\"{}>{text}</text>",
            apart(how)
        );
    }

    /// Appends a vertical text.
    pub(crate) fn upright(&mut self, at: Point, text: &str, how: &str, colour: &str) {
        let (x, y) = at;
        self.text(at, text, &format!("{how} transform=\"rotate(-90 {x:.1} {y:.1})\""), colour);
    }

    pub(crate) fn line(&mut self, from: Point, to: Point, colour: &str, how: &str) {
        let _ = writeln!(
            self.text,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\"{}/>",
            from.0,
            from.1,
            to.0,
            to.1,
            apart(how)
        );
    }

    pub(crate) fn rectangle(&mut self, at: Point, size: Point, colour: &str) {
        let _ = writeln!(
            self.text,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{colour}\"/>",
            at.0, at.1, size.0, size.1
        );
    }

    pub(crate) fn outline(&mut self, at: Point, size: Point, colour: &str) {
        let _ = writeln!(
            self.text,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"none\" stroke=\"{colour}\"/>",
            at.0, at.1, size.0, size.1
        );
    }

    pub(crate) fn curve(&mut self, points: &[Point], colour: &str, how: &str) {
        let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            self.text,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-linejoin=\"round\"{}/>",
            points.join(" "),
            apart(how)
        );
    }

    pub(crate) fn dot(&mut self, at: Point, colour: &str) {
        let _ =
            writeln!(self.text, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>", at.0, at.1);
    }

    pub(crate) fn done(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }
}

fn apart(how: &str) -> String {
    if how.is_empty() { String::new() } else { format!(" {how}") }
}

/// Escapes a text for one line of XML.
fn escaped(text: &str) -> String {
    escaped_xml(&text.replace('\n', "?"))
}
