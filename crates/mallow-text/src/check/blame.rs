//! A stack that starts with the line to blame: `parse (a.c:13) ← load ← main`, and below it the frames inside of that line.
//!
//! If a line is too long, functions of libraries are replaced by an ellipsis first. Functions of the project are
//! never left out: they continue in further lines.

use super::stack::UNNAMED;
use crate::columns::Columns;
use crate::{cut_start, printable};
use mallow_base::Frame;
use mallow_view::{is_own, place, short_name};

/// Separates a call from its caller.
const FROM: &str = " ← ";
/// Begins a further line.
const GOES_ON: &str = "  ← ";
/// Precedes the frames inside of the line to blame.
const BY: &str = "  by ";
/// Replaces functions of libraries that are left out.
const LEFT_OUT: &str = "…";

/// Returns the lines of a stack, whose innermost frame is first, in at most `width` columns. `blamed` is the index of the frame to begin with.
pub(crate) fn lines(frames: &[&Frame], blamed: usize, width: usize) -> Vec<String> {
    let Some(blamed) = frames.len().checked_sub(1).map(|last| blamed.min(last)) else {
        return vec![UNNAMED.to_owned()];
    };
    let mut lines = chain(&frames[blamed..], "", width);
    if blamed > 0 {
        lines.extend(chain(&frames[..blamed], BY, width));
    }
    lines
}

/// A call, or an ellipsis for several.
struct Part {
    text: String,
    is_kept: bool,
}

fn chain(frames: &[&Frame], start: &str, width: usize) -> Vec<String> {
    let room = width.saturating_sub(GOES_ON.columns().max(start.columns()));
    let mut parts: Vec<Part> = Vec::new();
    for (at, frame) in frames.iter().enumerate() {
        let is_kept = at == 0 || is_own(frame);
        let has_place = at == 0 || (is_kept && frame.line.is_some());
        let text = if has_place { placed(frame, room) } else { printable(&short_name(&frame.function)) };
        // Recursion is shown once.
        if !parts.iter().any(|part| part.text == text) {
            parts.push(Part { text, is_kept });
        }
    }
    broken(&fitting(parts, start, width), start, width)
}

/// Formats `function (file:line)`; the place is never truncated.
fn placed(frame: &Frame, width: usize) -> String {
    let place = printable(&place(frame));
    let name = printable(&short_name(&frame.function));
    if place.is_empty() {
        return cut_start(&name, width);
    }
    format!("{} {place}", cut_start(&name, width.saturating_sub(place.columns() + 1).max(2)))
}

/// Returns the parts, without the outermost ones of libraries if they do not fit into a line.
fn fitting(parts: Vec<Part>, start: &str, width: usize) -> Vec<String> {
    let mut kept = vec![true; parts.len()];
    loop {
        let mut texts: Vec<String> = Vec::new();
        for (part, kept) in parts.iter().zip(&kept) {
            match kept {
                true => texts.push(part.text.clone()),
                false if texts.last().is_some_and(|last| last == LEFT_OUT) => {}
                false => texts.push(LEFT_OUT.to_owned()),
            }
        }
        let columns: usize = texts.iter().map(|text| text.columns() + FROM.columns()).sum();
        if start.columns() + columns <= width + FROM.columns() {
            return texts;
        }
        let Some(at) = parts.iter().zip(&kept).rposition(|(part, kept)| *kept && !part.is_kept) else {
            return texts;
        };
        kept[at] = false;
    }
}

/// Breaks the parts into lines.
fn broken(texts: &[String], start: &str, width: usize) -> Vec<String> {
    let mut lines = vec![start.to_owned()];
    let mut is_first = true;
    for text in texts {
        let last = lines.last_mut().map(|line| line.columns()).unwrap_or(0);
        let fits = last + FROM.columns() + text.columns() <= width;
        match lines.last_mut() {
            Some(line) if is_first => line.push_str(text),
            Some(line) if fits => {
                line.push_str(FROM);
                line.push_str(text);
            }
            _ => lines.push(format!("{GOES_ON}{text}")),
        }
        is_first = false;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `lib:name` is a function of a library, `name` one of the project with a line.
    fn frames(names: &[&str]) -> Vec<Frame> {
        let frame = |name: &&str| match name.strip_prefix("lib:") {
            Some(name) => Frame {
                function: name.to_owned(),
                module: Some("/usr/lib/libz.so.1".to_owned()),
                ..Frame::default()
            },
            None => Frame {
                function: (*name).to_owned(),
                file: Some("/src/a.c".to_owned()),
                line: Some(13),
                module: Some("/srv/bench".to_owned()),
                ..Frame::default()
            },
        };
        names.iter().map(frame).collect()
    }

    #[track_caller]
    fn check(names: &[&str], blamed: usize, width: usize, expected: &[&str]) {
        let frames = frames(names);
        let lines = lines(&frames.iter().collect::<Vec<_>>(), blamed, width);
        assert_eq!(lines, expected);
        assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:?}");
    }

    #[test]
    fn the_line_to_blame_stands_first_and_what_it_ended_in_below() {
        let names = ["raw", "dup", "parse", "main"];
        check(&names, 2, 80, &["parse (a.c:13) ← main (a.c:13)", "  by raw (a.c:13) ← dup (a.c:13)"]);
        check(&names, 0, 80, &["raw (a.c:13) ← dup (a.c:13) ← parse (a.c:13) ← main (a.c:13)"]);
        check(&[], 0, 80, &[UNNAMED]);
        check(&["raw"], 7, 80, &["raw (a.c:13)"]);
    }

    #[test]
    fn functions_of_libraries_go_first_and_those_of_the_project_never() {
        let names = ["parse", "lib:inflate", "lib:read_block", "load", "lib:call", "main"];
        let whole = "parse (a.c:13) ← inflate ← read_block ← load (a.c:13) ← call ← main (a.c:13)";
        check(&names, 0, 80, &[whole]);
        check(&names, 0, 75, &["parse (a.c:13) ← inflate ← read_block ← load (a.c:13) ← … ← main (a.c:13)"]);
        check(&names, 0, 60, &["parse (a.c:13) ← … ← load (a.c:13) ← … ← main (a.c:13)"]);
        check(&names, 0, 40, &["parse (a.c:13) ← … ← load (a.c:13) ← …", "  ← main (a.c:13)"]);
        check(&names, 0, 18, &["parse (a.c:13) ← …", "  ← load (a.c:13)", "  ← …", "  ← main (a.c:13)"]);
    }

    #[test]
    fn recursion_is_told_once() {
        check(
            &["walk", "walk", "visit", "walk", "main"],
            0,
            80,
            &["walk (a.c:13) ← visit (a.c:13) ← main (a.c:13)"],
        );
    }
}
