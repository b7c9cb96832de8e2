//! How a stream of this process shows text: its width, and whether it has colours.

use mallow_text::{Style, WIDTH_DEFAULT};
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::sync::OnceLock;

/// Narrower, and metrics have no room.
const WIDTH_MIN: usize = 60;
/// Wider, and a line is hard to follow; `--width` may ask for more.
const WIDTH_MAX: usize = 160;

/// What `--width` said.
static WIDTH: OnceLock<usize> = OnceLock::new();

/// Columns of a line whatever the terminal or `COLUMNS` says; only the first call counts.
pub(crate) fn set_width(columns: usize) {
    let _ = WIDTH.set(columns);
}

/// The style of an open stream. `NO_COLOR` is obeyed as <https://no-color.org> defines it.
pub(crate) fn style(stream: &(impl IsTerminal + AsFd)) -> Style {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let from_environment = || set("COLUMNS")?.to_str()?.parse().ok().filter(|columns| *columns > 0);
    let asked: Option<usize> = WIDTH.get().copied().or_else(from_environment);
    if !stream.is_terminal() {
        // A pager or an editor can show lines of any length, and a script wants the name.
        let width = asked.map_or(WIDTH_DEFAULT, |columns| columns.max(WIDTH_MIN));
        return Style { width, whole_names: asked.is_none(), ..Style::PLAIN };
    }
    let colour = set("NO_COLOR").is_none() && set("TERM").is_some_and(|term| term != "dumb");
    let columns = rustix::termios::tcgetwinsize(stream).map_or(0, |size| usize::from(size.ws_col));
    let width = match (asked, columns) {
        (Some(asked), _) => asked.max(WIDTH_MIN),
        (None, 0) => WIDTH_DEFAULT,
        (None, columns) => columns.clamp(WIDTH_MIN, WIDTH_MAX),
    };
    Style { colour, width, whole_names: false }
}
