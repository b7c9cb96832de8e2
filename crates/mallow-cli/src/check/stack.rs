//! A stack in one line: `Buffer::grow (buf.rs:88) ← encode ← main`.

use crate::text::{frame_text, printable};
use mallow_base::Frame;
use mallow_view::short_name;

/// Between a call and its caller.
const FROM: &str = " ← ";

/// The innermost frame with its place, then as many callers' names as fit into `width` columns. Callers that do not
/// fit are told by an ellipsis.
pub(crate) fn chain(frames: &[&Frame], width: usize) -> String {
    let Some((first, callers)) = frames.split_first() else { return frame_text(None, width) };
    let mut names: Vec<String> =
        callers.iter().map(|frame| printable(&short_name(&frame.function))).collect();
    names.dedup();
    let ellipsis = FROM.chars().count() + 1;
    let mut text = frame_text(Some(first), width);
    let mut length = text.chars().count();
    for (at, name) in names.iter().enumerate() {
        let longer = length + FROM.chars().count() + name.chars().count();
        let is_last = at + 1 == names.len();
        let room = if is_last { width } else { width.saturating_sub(ellipsis) };
        if longer > room {
            if length + ellipsis <= width {
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn recursion_is_one_name_and_names_are_short() {
        check(
            &["a", "walk<u8>::h0123456789abcdef", "walk<u8>::h0123456789abcdef", "main"],
            80,
            "a (buf.rs:88) ← walk<…> ← main",
        );
        check(&["a"], 80, "a (buf.rs:88)");
        assert_eq!(chain(&[], 80), "(no stack was taken)");
    }
}
