//! Formats words, metrics and frames for a line: truncated, wrapped, grouped, and without control characters.

use crate::columns::{Columns, cut_end, fitted, shortened};
pub use mallow_base::printable;
use mallow_base::{Count, Frame, Micros};
use mallow_profile::Exit;
use mallow_stacks::Metric;
use mallow_view::{Measure, PartWindow, place, place_here, short_name};

/// How many callers of a call are named.
const CALLERS: usize = 9;

/// Formats a measure's value with its unit; counts in full if they fit into ten columns.
pub fn metric(measure: impl Metric, value: u64) -> String {
    measure.unit().written(value)
}

/// Returns what to do about functions without names; empty if all modules have them.
pub(crate) fn without_names(modules: &[&str], width: usize, has_own_names: bool) -> Vec<String> {
    let names: Vec<&str> = modules.iter().take(3).filter_map(|path| path.rsplit('/').next()).collect();
    let more = match modules.len() {
        0 => return Vec::new(),
        1..=3 => String::new(),
        count => format!(" and {} more", count - 3),
    };
    let what = cut_end(&printable(&names.join(", ")), width.saturating_sub(38));
    let mut lines = vec![String::new(), format!("No names for functions of {what}{more}.")];
    if !has_own_names {
        lines.push("If this machine has these files, --open-files looks the names up in them.".to_owned());
    }
    lines.push("Install their debug packages, set DEBUGINFOD_URLS, or build with -g and no -s.".to_owned());
    lines
}

/// The functions that led to a call, of its stack without itself: each once, though recursion has it several times, and at most nine.
/// What is too long for `width` columns loses the paths of types, and then its end.
pub(crate) fn callers<'a>(frames: impl Iterator<Item = &'a Frame>, width: usize) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for frame in frames {
        let name = printable(&short_name(&frame.function));
        if names.len() < CALLERS && !names.contains(&name) {
            names.push(name);
        }
    }
    let said = |names: &[String]| format!("from {}", names.join(", "));
    let mut text = said(&names);
    if text.columns() > width {
        names.iter_mut().for_each(|name| *name = shortened(name));
        text = cut_end(&said(&names), width);
    }
    (!names.is_empty()).then_some(text)
}

/// Says of the lines of a stack before it that they stand there several times.
pub(crate) fn again(lines: usize, times: usize) -> String {
    format!("… these {lines} lines × {}", Count(times as u64))
}

/// Formats `1 site`, `2 sites`, `2 processes`.
pub fn plural(count: u64, one: &str) -> String {
    let ending = match (count, one.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{} {one}{ending}", metric(Measure::Allocations, count))
}

/// Formats which part of a recording is shown: `1.20 s to 1.50 s of 3.10 s` and `filter function:parse`.
pub fn part_words(window: Option<PartWindow>, filter: Option<&str>) -> Vec<String> {
    let window = window.map(|PartWindow { from_us, to_us, of_us }| {
        format!("{} to {} of {}", Micros(from_us), Micros(to_us), Micros(of_us))
    });
    let filter = filter.map(|filter| format!("filter {}", printable(filter)));
    window.into_iter().chain(filter).collect()
}

/// Formats `function (file:line)`; if the name has no line, the nearest `caller` that has one is added if it fits, if
/// necessary without the name's library.
pub fn frame_with_caller(frame: Option<&Frame>, caller: Option<&Frame>, width: usize) -> String {
    let name = frame_text(frame, width);
    let Some(caller) = caller else { return name };
    let caller = frame_text(Some(caller), usize::MAX);
    let function = frame.map(|frame| printable(&short_name(&frame.function))).unwrap_or_default();
    let is_address = function.is_empty() || function.starts_with("0x");
    let fits = |name: &str| Some(format!("{name} from {caller}")).filter(|both| both.columns() <= width);
    fits(&name).or_else(|| fits(&function).filter(|_| !is_address)).unwrap_or(name)
}

/// Formats `function (file:line)` in at most `width` columns.
pub fn frame_text(frame: Option<&Frame>, width: usize) -> String {
    let Some(frame) = frame else { return "(no stack was taken)".to_owned() };
    let place = printable(&place(frame));
    let name = printable(&short_name(&frame.function));
    if place.is_empty() {
        return fitted(&name, width);
    }
    // A path that can be opened may take half of the line, since a truncated one cannot be opened.
    let from_here = place_here(frame).map(|place| printable(&place));
    let place = from_here.filter(|place| place.columns() <= width / 2).unwrap_or(place);
    let place = cut_end(&place, width / 2);
    let left = width.saturating_sub(place.columns() + 1);
    format!("{} {place}", fitted(&name, left))
}

/// Formats how a process ended, to follow its name.
pub fn exit_text(exit: Option<Exit>) -> String {
    match exit {
        Some(Exit::Status(status)) => format!("exit status {status}"),
        Some(Exit::Signal(signal)) => format!("killed by {}", signal_name(signal)),
        Some(Exit::Exec) => "became another program".to_owned(),
        Some(Exit::GoesOn) => "recorded itself".to_owned(),
        None => "its end was not seen".to_owned(),
    }
}

/// Returns Linux's name of a signal, as on all machines but MIPS, Alpha, SPARC and PA-RISC; see signal(7).
pub fn signal_name(signal: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
        "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
        "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let name = usize::try_from(signal).ok().and_then(|number| NAMES.get(number.checked_sub(1)?));
    name.map_or_else(|| format!("signal {signal}"), |name| format!("SIG{name}"))
}

/// Quotes a file's name for a shell.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "_-./+,:=@%".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_base::grouped;

    fn frame(function: &str) -> Frame {
        Frame {
            function: function.into(),
            file: Some("/src/reader.rs".into()),
            line: Some(12),
            ..Frame::default()
        }
    }

    #[test]
    fn the_line_that_called_a_library_matters_more_than_the_librarys_name() {
        let library = Frame {
            function: "deflateInit2_".into(),
            module: Some("/lib/libz.so.1".into()),
            ..Frame::default()
        };
        let shown = |width| frame_with_caller(Some(&library), Some(&frame("parse_row")), width);
        assert_eq!(shown(80), "deflateInit2_ [libz.so.1] from parse_row (reader.rs:12)");
        assert_eq!(shown(48), "deflateInit2_ from parse_row (reader.rs:12)");
        assert_eq!(shown(40), "deflateInit2_ [libz.so.1]");
        let address = Frame { function: "0x10".into(), ..library };
        assert_eq!(frame_with_caller(Some(&address), Some(&frame("parse_row")), 40), "0x10 [libz.so.1]");
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
    fn digits_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
        assert_eq!(metric(Measure::Allocations, 99_999_999), "99,999,999");
        assert_eq!(metric(Measure::Allocations, 100_000_000), "100 M");
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
    fn callers_are_named_once_each() {
        let frames = ["even", "odd", "even", "odd", "main"]
            .map(|name| Frame { function: name.into(), ..Frame::default() });
        assert_eq!(callers(frames.iter(), 80).as_deref(), Some("from even, odd, main"));
        assert_eq!(callers(frames.iter(), 15).as_deref(), Some("from even, odd…"));
        let typed = ["<shop::Cart as Load>::load", "<shop::Store>::open"]
            .map(|name| Frame { function: name.into(), ..Frame::default() });
        let said = |width| callers(typed.iter(), width);
        assert_eq!(said(60).as_deref(), Some("from <shop::Cart as Load>::load, <shop::Store>::open"));
        assert_eq!(said(45).as_deref(), Some("from <Cart as Load>::load, <Store>::open"));
        assert_eq!(callers([].iter(), 80), None);
    }
}
