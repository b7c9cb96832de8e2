//! The text style of a stream of this process: its width, and whether it has colours.

use clap::ColorChoice;
use mallow_text::{Style, WIDTH_DEFAULT};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::sync::OnceLock;
use supports_hyperlinks::Stream;

/// In fewer columns metrics do not fit.
const WIDTH_MIN: usize = 60;
/// Longer lines are hard to follow; `--width` may request more.
const WIDTH_MAX: usize = 160;

/// The value of `--width`.
static WIDTH: OnceLock<usize> = OnceLock::new();

/// The value of `--color`.
static COLOUR: OnceLock<ColorChoice> = OnceLock::new();

/// Sets whether text has colours; only the first call counts.
pub(crate) fn set_colour(choice: ColorChoice) {
    let _ = COLOUR.set(choice);
}

/// Sets the columns of a line, regardless of the terminal and `COLUMNS`; only the first call counts.
pub(crate) fn set_width(columns: usize) {
    let _ = WIDTH.set(columns);
}

fn set(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// `NO_COLOR` is interpreted as <https://no-color.org> defines it, `CLICOLOR_FORCE` as
/// <https://bixense.com/clicolors> does; the command line takes precedence over both.
fn has_colour(is_terminal: bool) -> bool {
    match COLOUR.get().copied().unwrap_or(ColorChoice::Auto) {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if set("NO_COLOR").is_some() => false,
        ColorChoice::Auto if set("CLICOLOR_FORCE").is_some_and(|value| value != "0") => true,
        ColorChoice::Auto => is_terminal && set("TERM").is_some_and(|term| term != "dumb"),
    }
}

/// Returns whether places in text can be links. If colours were turned off, links are too; FORCE_HYPERLINK turns them on everywhere.
pub(crate) fn has_links(stream: Stream, open: &impl IsTerminal) -> bool {
    let is_refused = match COLOUR.get().copied().unwrap_or(ColorChoice::Auto) {
        ColorChoice::Always => false,
        ColorChoice::Never => true,
        ColorChoice::Auto => set("NO_COLOR").is_some(),
    };
    let is_seen = !open.is_terminal() || has_colour(true);
    !is_refused && is_seen && supports_hyperlinks::on(stream)
}

fn asked_width() -> Option<usize> {
    let from_environment = || set("COLUMNS")?.to_str()?.parse().ok().filter(|columns| *columns > 0);
    WIDTH.get().copied().or_else(from_environment)
}

/// Returns the style of output that does not go to a terminal.
pub(crate) fn style_of_file() -> Style {
    // A pager or an editor can show lines of any length, and a script needs the whole name.
    let asked = asked_width();
    let width = asked.map_or(WIDTH_DEFAULT, |columns| columns.max(WIDTH_MIN));
    Style { colour: has_colour(false), width, whole_names: asked.is_none() }
}

/// Returns the style of an open stream.
pub(crate) fn style(stream: &(impl IsTerminal + AsFd)) -> Style {
    if !stream.is_terminal() {
        return style_of_file();
    }
    let colour = has_colour(true);
    let asked = asked_width();
    let columns = rustix::termios::tcgetwinsize(stream).map_or(0, |size| usize::from(size.ws_col));
    let width = match (asked, columns) {
        (Some(asked), _) => asked.max(WIDTH_MIN),
        (None, 0) => WIDTH_DEFAULT,
        (None, columns) => columns.clamp(WIDTH_MIN, WIDTH_MAX),
    };
    Style { colour, width, whole_names: false }
}
