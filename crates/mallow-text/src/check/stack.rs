//! A stack in one line: `Buffer::grow (buf.rs:88) ← encode ← main`.

use crate::columns::Columns;
use crate::{cut_start, frame_text, printable};
use mallow_base::Frame;
use mallow_view::{place, short_name};

/// Instead of frames: the merged rest of very many sites, and what was allocated without a stack.
pub(crate) const UNNAMED: &str = "(stacks without names)";

/// Separates a call from its caller.
const FROM: &str = " ← ";

/// Formats the innermost call with its place, its caller with its line, and as many callers' names as fit into
/// `width` columns; an ellipsis replaces the others. The caller's place is included because the innermost call often
/// is a project's own wrapper around the allocator, which is the same in all stacks.
pub(crate) fn chain(frames: &[&Frame], width: usize) -> String {
    let Some((first, callers)) = frames.split_first() else { return UNNAMED.to_owned() };
    let mut names: Vec<String> =
        callers.iter().map(|frame| printable(&short_name(&frame.function))).collect();
    let with_line = callers.first().filter(|caller| caller.file.is_some() && caller.line.is_some());
    if let (Some(name), Some(caller)) = (names.first_mut(), with_line) {
        let placed = frame_text(Some(caller), usize::MAX);
        let whole = frame_text(Some(first), width).columns() + FROM.columns() + placed.columns();
        let rest = if callers.len() > 1 { ellipsis_columns() } else { 0 };
        if whole + rest <= width {
            *name = placed;
        }
    }
    names.dedup();
    joined(frame_text(Some(first), width), &names, width)
}

/// Formats a stack in one line, and each of the two innermost places that did not fit in a line of its own: one of
/// them is the line to blame, which must be readable at any width.
pub(crate) fn lines(frames: &[&Frame], width: usize) -> Vec<String> {
    let mut lines = vec![chain(frames, width)];
    for frame in frames.iter().take(2).filter(|frame| frame.file.is_some() && frame.line.is_some()) {
        let place = printable(&place(frame));
        if place.is_empty() || lines.iter().any(|line| line.contains(&place)) {
            continue;
        }
        const AT: &str = "  at ";
        let left = width.saturating_sub(AT.columns() + place.columns() + 1);
        let name = cut_start(&printable(&short_name(&frame.function)), left);
        lines.push(format!("{AT}{name} {place}"));
    }
    lines
}

/// Appends as many names to a text as fit.
fn joined(mut text: String, names: &[String], width: usize) -> String {
    let mut length = text.columns();
    for (at, name) in names.iter().enumerate() {
        let longer = length + FROM.columns() + name.columns();
        let is_last = at + 1 == names.len();
        let room = if is_last { width } else { width.saturating_sub(ellipsis_columns()) };
        if longer > room {
            if length + ellipsis_columns() <= width {
                text.push_str(FROM);
                text.push('…');
            }
            break;
        }
        text.push_str(FROM);
        text.push_str(name);
        length = longer;
    }
    text
}

/// Returns the columns of the ellipsis that replaces callers.
fn ellipsis_columns() -> usize {
    FROM.columns() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Frames of which only the innermost has a line.
    fn frames(names: &[&str]) -> Vec<Frame> {
        let place = |at: usize| (at == 0).then(|| "/src/buf.rs".to_owned());
        let frame = |(at, name): (usize, &&str)| Frame {
            function: (*name).to_owned(),
            file: place(at),
            line: Some(88),
            ..Frame::default()
        };
        names.iter().enumerate().map(frame).collect()
    }

    #[track_caller]
    fn check(names: &[&str], width: usize, text: &str) {
        let frames = frames(names);
        let shown = chain(&frames.iter().collect::<Vec<_>>(), width);
        assert_eq!(shown, text);
        assert!(shown.chars().count() <= width, "{shown}");
    }

    #[test]
    fn callers_follow_as_long_as_they_fit() {
        let names = ["Buffer::grow", "encode", "main"];
        check(&names, 80, "Buffer::grow (buf.rs:88) ← encode ← main");
        check(&names, 40, "Buffer::grow (buf.rs:88) ← encode ← main");
        check(&names, 39, "Buffer::grow (buf.rs:88) ← encode ← …");
        check(&names, 36, "Buffer::grow (buf.rs:88) ← …");
        check(&names, 27, "Buffer::grow (buf.rs:88)");
        check(&names, 20, "…er::grow (buf.rs:8…");
    }

    #[test]
    fn the_callers_line_goes_before_its_callers_names() {
        let mut frames = frames(&["block", "run", "measure", "main"]);
        frames[1].file = Some("/src/test_rw.c".into());
        frames[1].line = Some(69);
        let frames: Vec<&Frame> = frames.iter().collect();
        assert_eq!(chain(&frames, 80), "block (buf.rs:88) ← run (test_rw.c:69) ← measure ← main");
        assert_eq!(chain(&frames, 42), "block (buf.rs:88) ← run (test_rw.c:69) ← …");
        assert_eq!(chain(&frames, 41), "block (buf.rs:88) ← run ← measure ← main");
        assert_eq!(chain(&frames[..2], 38), "block (buf.rs:88) ← run (test_rw.c:69)");
    }

    #[test]
    fn recursion_is_one_name_and_names_are_short() {
        check(
            &["a", "walk<u8>::h0123456789abcdef", "walk<u8>::h0123456789abcdef", "main"],
            80,
            "a (buf.rs:88) ← walk<…> ← main",
        );
        check(&["a"], 80, "a (buf.rs:88)");
        assert_eq!(chain(&[], 80), UNNAMED);
    }

    #[test]
    fn the_places_of_the_innermost_two_are_never_lost() {
        let mut frames = frames(&["block", "run", "main"]);
        frames[1].file = Some("/src/test_c_alloc_on_other_thread.c".to_owned());
        let frames: Vec<&Frame> = frames.iter().collect();
        assert_eq!(
            lines(&frames, 44),
            ["block (buf.rs:88) ← run ← main", "  at run (test_c_alloc_on_other_thread.c:88)"]
        );
        assert_eq!(lines(&frames, 80), [chain(&frames, 80)]);
        assert_eq!(lines(&[], 80), [UNNAMED]);
    }
}
