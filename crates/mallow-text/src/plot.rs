//! An SVG chart of curves over a common axis: up to two scales, shaded bands, a legend.
//!
//! It knows nothing of soaks or logs. The chart needs no script and no font of its own, so that a browser, a comment
//! on a change and `rsvg-convert` show the same.

mod scale;
mod svg;

use crate::columns::Columns;
use scale::Scale;
pub(crate) use scale::Unit;
use svg::Svg;

/// The size of the chart, in SVG units.
const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 540.0;
/// The frame around the curves.
const TOP: f64 = 92.0;
const BOTTOM: f64 = 440.0;
const LEFT: f64 = 96.0;
/// The right edge of the frame, if there is no right scale.
const RIGHT_WIDE: f64 = 930.0;
const RIGHT: f64 = 864.0;
/// The approximate number of ticks of a scale.
const STEPS: f64 = 6.0;
/// The approximate width of a letter.
const LETTER: f64 = 7.2;

/// Colours that can be distinguished with the common kinds of colour blindness: Okabe and Ito, "Color Universal Design" (2008).
const COLOURS: [&str; 7] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#b8860b", INK];
const INK: &str = "#222222";
const PALE_INK: &str = "#5f5f5f";
const SHADES: [&str; 2] = ["#f1efe8", "#e3ecf4"];

/// A chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plot {
    /// The title, in large letters.
    pub(crate) title: String,
    /// The line under the title.
    pub(crate) subtitle: String,
    /// The horizontal axis.
    pub(crate) across: Axis,
    /// The scale on the left.
    pub(crate) left: Axis,
    /// The scale on the right, if curves need one.
    pub(crate) right: Option<Axis>,
    /// The curves; the last one is on top.
    pub(crate) curves: Vec<Curve>,
    /// Shaded bands behind the curves.
    pub(crate) bands: Vec<Band>,
}

/// A scale.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Axis {
    /// What it measures.
    pub(crate) label: String,
    /// The unit of its values.
    pub(crate) unit: Unit,
}

/// One curve.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve {
    /// Its name in the legend.
    pub(crate) name: String,
    /// Whether it uses the right scale.
    pub(crate) is_right: bool,
    /// (x, y); points that are not numbers are left out.
    pub(crate) points: Vec<(f64, f64)>,
    /// How it is drawn.
    pub(crate) stroke: Stroke,
    /// The index of its colour; curves of the same thing share one.
    pub(crate) colour: usize,
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stroke {
    /// A line through its points, which are marked if there are few.
    #[default]
    Line,
    /// Dashed, for trends and levels.
    Dashed,
}

/// A range of the horizontal axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Band {
    /// Its start.
    pub(crate) from: f64,
    /// Its end.
    pub(crate) to: f64,
    /// Its label, which is drawn at its top if there is room.
    pub(crate) label: String,
    /// The index of its shade; `None` for no shade.
    pub(crate) shade: Option<usize>,
}

/// The frame with its scales.
struct Frame {
    right: f64,
    across: Scale,
    left: Scale,
    other: Option<Scale>,
}

impl Plot {
    /// Returns the SVG document.
    pub(crate) fn svg(&self) -> String {
        let frame = self.frame();
        let mut svg = Svg::new(WIDTH, HEIGHT, &self.title);
        svg.text((LEFT, 34.0), &self.title, "font-size=\"19\" font-weight=\"bold\"", INK);
        svg.text((LEFT, 58.0), &self.subtitle, "", PALE_INK);
        self.draw_bands(&frame, &mut svg);
        self.draw_scales(&frame, &mut svg);
        for curve in &self.curves {
            frame.draw(curve, &mut svg);
        }
        self.draw_legend(&mut svg);
        svg.done()
    }

    fn frame(&self) -> Frame {
        let ups = |is_right: bool| {
            let curves = self.curves.iter().filter(move |curve| curve.is_right == is_right);
            curves.flat_map(|curve| curve.points.iter().map(|point| point.1))
        };
        let across = self.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.0));
        let ends = self.bands.iter().flat_map(|band| [band.from, band.to]);
        Frame {
            right: if self.right.is_some() { RIGHT } else { RIGHT_WIDE },
            across: Scale::tight(across.chain(ends), self.across.unit),
            left: Scale::roomy(ups(false), self.left.unit, STEPS),
            other: self.right.as_ref().map(|axis| Scale::roomy(ups(true), axis.unit, STEPS)),
        }
    }

    fn draw_bands(&self, frame: &Frame, svg: &mut Svg) {
        for band in &self.bands {
            let (from, to) = (frame.x(band.from), frame.x(band.to));
            let width = to - from;
            if !width.is_finite() || width < 1.0 {
                continue;
            }
            if let Some(shade) = band.shade {
                svg.rectangle((from, TOP), (width, BOTTOM - TOP), SHADES[shade % SHADES.len()]);
            }
            let length = band.label.columns() as f64 * LETTER;
            if length + 6.0 <= width {
                let middle = "text-anchor=\"middle\" font-size=\"12\"";
                svg.text((from + width / 2.0, TOP - 7.0), &band.label, middle, PALE_INK);
            } else if width >= 13.0 {
                // Vertical, inside the frame.
                let at = (from + width / 2.0 + 4.0, TOP + 6.0);
                svg.upright(at, &band.label, "text-anchor=\"end\" font-size=\"12\"", PALE_INK);
            }
        }
    }

    fn draw_scales(&self, frame: &Frame, svg: &mut Svg) {
        // A scale has the colour of its curve, if there is only one.
        let ink = |is_right: bool| {
            let mut colours =
                self.curves.iter().filter(|curve| curve.is_right == is_right).map(|curve| curve.colour);
            let first = colours.next();
            match first {
                Some(first) if self.right.is_some() && colours.all(|other| other == first) => colour(first),
                _ => INK,
            }
        };
        for (value, text) in frame.left.ticks() {
            let y = frame.y(&frame.left, value);
            svg.line((LEFT, y), (frame.right, y), "#d9d9d9", "");
            svg.text((LEFT - 8.0, y + 4.5), &text, "text-anchor=\"end\"", ink(false));
        }
        for (value, text) in frame.across.ticks() {
            let x = frame.x(value);
            svg.line((x, BOTTOM), (x, BOTTOM + 6.0), INK, "");
            svg.text((x, BOTTOM + 22.0), &text, "text-anchor=\"middle\"", INK);
        }
        let middle = "text-anchor=\"middle\"";
        svg.text(((LEFT + frame.right) / 2.0, BOTTOM + 44.0), &self.across.label, middle, INK);
        svg.upright((20.0, (TOP + BOTTOM) / 2.0), &self.left.label, middle, ink(false));
        if let (Some(scale), Some(axis)) = (&frame.other, &self.right) {
            for (value, text) in scale.ticks() {
                let y = frame.y(scale, value);
                svg.line((frame.right, y), (frame.right + 6.0, y), INK, "");
                svg.text((frame.right + 10.0, y + 4.5), &text, "", ink(true));
            }
            svg.upright((WIDTH - 10.0, (TOP + BOTTOM) / 2.0), &axis.label, middle, ink(true));
        }
        svg.outline((LEFT, TOP), (frame.right - LEFT, BOTTOM - TOP), INK);
    }

    fn draw_legend(&self, svg: &mut Svg) {
        let (mut x, mut y) = (LEFT, BOTTOM + 72.0);
        for curve in self.curves.iter().filter(|curve| !curve.name.is_empty()) {
            let length = 44.0 + curve.name.columns() as f64 * LETTER;
            if x > LEFT && x + length > WIDTH - 10.0 {
                (x, y) = (LEFT, y + 18.0);
            }
            svg.line((x, y - 4.5), (x + 24.0, y - 4.5), colour(curve.colour), curve.stroke.style());
            svg.text((x + 30.0, y), &curve.name, "", INK);
            x += length;
        }
    }
}

impl Frame {
    fn x(&self, value: f64) -> f64 {
        LEFT + self.across.share(value) * (self.right - LEFT)
    }

    fn y(&self, scale: &Scale, value: f64) -> f64 {
        BOTTOM - scale.share(value) * (BOTTOM - TOP)
    }

    fn draw(&self, curve: &Curve, svg: &mut Svg) {
        /// With more points the line has no marks.
        const MARKED_MAX: usize = 120;
        let scale = match &self.other {
            Some(other) if curve.is_right => other,
            _ => &self.left,
        };
        let numbers = curve.points.iter().filter(|point| point.0.is_finite() && point.1.is_finite());
        let points: Vec<(f64, f64)> =
            numbers.map(|point| (self.x(point.0), self.y(scale, point.1))).collect();
        svg.curve(&points, colour(curve.colour), curve.stroke.style());
        if curve.stroke == Stroke::Line && points.len() <= MARKED_MAX {
            points.iter().for_each(|at| svg.dot(*at, colour(curve.colour)));
        }
    }
}

impl Stroke {
    fn style(self) -> &'static str {
        match self {
            Stroke::Line => "stroke-width=\"2\"",
            Stroke::Dashed => "stroke-width=\"2\" stroke-dasharray=\"7 5\"",
        }
    }
}

fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

#[cfg(test)]
#[path = "plot/tests.rs"]
mod tests;
