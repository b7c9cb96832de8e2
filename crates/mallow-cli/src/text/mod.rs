//! Rows as text: columns, widths, emphasis.
//!
//! Everything is made as a string first, so that a test sees exactly what a person sees.

pub(crate) mod allocator;
mod brief;
mod chains;
pub(crate) mod diff;
pub(crate) mod events;
mod histogram;
pub(crate) mod leaks;
mod markdown_diff;
pub(crate) mod report;
pub(crate) mod stat;
pub(crate) mod summary;
mod threads;
mod timeline;
mod window;

pub(crate) use mallow_base::grouped;
use mallow_base::{Bytes, Count, Frame};
use mallow_profile::Exit;
use mallow_view::{Measure, place, short_name};
use std::io::IsTerminal;
use std::sync::OnceLock;

/// Columns where the terminal's width is not known.
const WIDTH_DEFAULT: usize = 80;
/// Narrower, and figures have no room.
const WIDTH_MIN: usize = 60;
/// Wider, and a line is hard to follow; `--width` may ask for more.
const WIDTH_MAX: usize = 160;

/// How a stream shows text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Style {
    /// Whether emphasis is wanted.
    pub(crate) colour: bool,
    /// Columns of a line.
    pub(crate) width: usize,
    /// Whether names of functions are whole even where they are longer than a line.
    pub(crate) whole_names: bool,
}

/// What `--width` said.
static WIDTH: OnceLock<usize> = OnceLock::new();

/// Columns of a line whatever the terminal or `COLUMNS` says; only the first call counts.
pub(crate) fn set_width(columns: usize) {
    let _ = WIDTH.set(columns);
}

impl Style {
    /// For tests and files: 80 columns, no emphasis.
    pub(crate) const PLAIN: Style = Style { colour: false, width: WIDTH_DEFAULT, whole_names: false };

    /// For an open stream. `NO_COLOR` is obeyed as <https://no-color.org> defines it.
    pub(crate) fn of(stream: &(impl IsTerminal + std::os::fd::AsFd)) -> Self {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let from_environment = || set("COLUMNS")?.to_str()?.parse().ok().filter(|columns| *columns > 0);
        let asked: Option<usize> = WIDTH.get().copied().or_else(from_environment);
        if !stream.is_terminal() {
            // A pager or an editor can show lines of any length, and a script wants the name.
            let width = asked.map_or(WIDTH_DEFAULT, |columns| columns.max(WIDTH_MIN));
            return Self { width, whole_names: asked.is_none(), ..Self::PLAIN };
        }
        let colour = set("NO_COLOR").is_none() && set("TERM").is_some_and(|term| term != "dumb");
        let columns = rustix::termios::tcgetwinsize(stream).map_or(0, |size| usize::from(size.ws_col));
        let width = match (asked, columns) {
            (Some(asked), _) => asked.max(WIDTH_MIN),
            (None, 0) => WIDTH_DEFAULT,
            (None, columns) => columns.clamp(WIDTH_MIN, WIDTH_MAX),
        };
        Self { colour, width, whole_names: false }
    }

    /// Columns for the name of a function where so many of the line are taken.
    pub(crate) fn name_width(&self, taken: usize) -> usize {
        if self.whole_names { usize::MAX } else { self.width.saturating_sub(taken) }
    }

    /// A heading.
    pub(crate) fn bold(&self, text: &str) -> String {
        self.wrapped("1", text)
    }

    /// Something to read last.
    pub(crate) fn dim(&self, text: &str) -> String {
        self.wrapped("2", text)
    }

    fn wrapped(&self, code: &str, text: &str) -> String {
        if self.colour && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A measure's figure with its unit; counts in full as long as they fit ten columns.
pub(crate) fn figure(measure: Measure, value: u64) -> String {
    match value {
        _ if measure.is_bytes() => Bytes(value).to_string(),
        0..100_000_000 => grouped(value),
        _ => Count(value).to_string(),
    }
}

/// `1 site`, `2 sites`, `2 processes`.
pub(crate) fn plural(count: u64, one: &str) -> String {
    let ending = match (count, one.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{} {one}{ending}", figure(Measure::Allocations, count))
}

/// Cuts the end of a text that is too long for `width` columns.
pub(crate) fn cut_end(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Lines of at most `width` columns, broken at blanks.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// `function (file:line)`, and where the name has no line, the nearest `caller` that has one, if it fits.
pub(crate) fn frame_with_caller(frame: Option<&Frame>, caller: Option<&Frame>, width: usize) -> String {
    let name = frame_text(frame, width);
    let Some(caller) = caller else { return name };
    let both = format!("{name} from {}", frame_text(Some(caller), usize::MAX));
    if both.chars().count() <= width { both } else { name }
}

/// Cuts the beginning of a text that is too long: the end of a function's name tells more than its namespace.
pub(crate) fn cut_start(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().skip(length - width.saturating_sub(1)).collect();
    format!("…{kept}")
}

/// `function (file:line)` in at most `width` columns.
pub(crate) fn frame_text(frame: Option<&Frame>, width: usize) -> String {
    let Some(frame) = frame else { return "(no stack was taken)".to_owned() };
    let place = printable(&place(frame));
    let name = printable(&short_name(&frame.function));
    if place.is_empty() {
        return cut_start(&name, width);
    }
    let place = cut_end(&place, width / 2);
    let left = width.saturating_sub(place.chars().count() + 1);
    format!("{} {place}", cut_start(&name, left))
}

/// How a process ended, to be read after its name.
pub(crate) fn exit_text(exit: Option<Exit>) -> String {
    match exit {
        Some(Exit::Status(status)) => format!("exit status {status}"),
        Some(Exit::Signal(signal)) => format!("killed by {}", signal_name(signal)),
        Some(Exit::Exec) => "became another program".to_owned(),
        None => "its end was not seen".to_owned(),
    }
}

/// Linux's names of signals, as on all machines but MIPS, Alpha, SPARC and PA-RISC; see signal(7).
pub(crate) fn signal_name(signal: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
        "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
        "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let name = usize::try_from(signal).ok().and_then(|number| NAMES.get(number.checked_sub(1)?));
    name.map_or_else(|| format!("signal {signal}"), |name| format!("SIG{name}"))
}

/// A file's name as a word for a shell.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./+,:=@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Control characters of a program's name must not reach the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str) -> Frame {
        Frame {
            function: function.into(),
            file: Some("/src/reader.rs".into()),
            line: Some(12),
            ..Frame::default()
        }
    }

    #[test]
    fn a_frame_fits_and_keeps_the_end_of_its_name() {
        let long = frame("some::very::long::name::of::a::module::Reader::read_record");
        assert_eq!(frame_text(Some(&long), 40), "…ule::Reader::read_record (reader.rs:12)");
        assert_eq!(frame_text(Some(&long), 40).chars().count(), 40);
        assert_eq!(frame_text(Some(&frame("main")), 40), "main (reader.rs:12)");
        assert_eq!(frame_text(None, 40), "(no stack was taken)");
    }

    #[test]
    fn cutting_counts_characters() {
        assert_eq!(cut_end("µµµµ", 4), "µµµµ");
        assert_eq!(cut_end("µµµµµ", 4), "µµµ…");
        assert_eq!(cut_start("abcdef", 4), "…def");
        assert_eq!(cut_end("abc", 0), "…");
    }

    #[test]
    fn digits_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(figure(Measure::Allocations, 99_999_999), "99,999,999");
        assert_eq!(figure(Measure::Allocations, 100_000_000), "100 M");
    }

    #[test]
    fn signals_have_names() {
        assert_eq!(signal_name(9), "SIGKILL");
        assert_eq!(signal_name(31), "SIGSYS");
        assert_eq!(signal_name(34), "signal 34");
        assert_eq!(signal_name(0), "signal 0");
        assert_eq!(signal_name(-1), "signal -1");
    }

    #[test]
    fn names_are_quoted_for_a_shell() {
        assert_eq!(shell_word("app.12.mallow"), "app.12.mallow");
        assert_eq!(shell_word("my app"), "'my app'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn plain_text_has_no_codes() {
        assert_eq!(Style::PLAIN.bold("x"), "x");
        assert_eq!(Style { colour: true, ..Style::PLAIN }.bold("x"), "\x1b[1mx\x1b[0m");
    }
}
