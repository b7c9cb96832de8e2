//! A stack as lines to read: without the runtime's start, and with recursion told instead of repeated.

use crate::{FrameVisibility, plumbing};
use mallow_base::Frame;

/// One line of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The call.
    pub frame: &'a Frame,
    /// How many times in a row it is called; more than 1 for recursion.
    pub times: usize,
}

/// The lines of a stack, leaf first. Unless everything is to be shown, the outermost frames that only start the program
/// are left out as long as another one remains.
pub fn lines<'a>(frames: impl Iterator<Item = &'a Frame>, shown: FrameVisibility) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'a>> = Vec::new();
    for frame in frames {
        match lines.last_mut() {
            Some(last) if last.frame.place() == frame.place() => last.times += 1,
            _ => lines.push(Line { frame, times: 1 }),
        }
    }
    if shown != FrameVisibility::All {
        cut_start(&mut lines);
    }
    lines
}

/// Cuts the outermost lines that only start the program. C's `main` is part of it where it only calls Rust's runtime.
fn cut_start(lines: &mut Vec<Line<'_>>) {
    let is_start = |line: &Line<'_>| plumbing::root_rule(line.frame).is_some();
    while lines.len() > 1 {
        let last = lines.len() - 1;
        let rust_main = lines[last].frame.function == "main"
            && plumbing::root_rule(lines[last - 1].frame).is_some_and(|rule| rule.language == "Rust");
        if !is_start(&lines[last]) && !rust_main {
            break;
        }
        lines.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown_names(names: &[&str], shown: FrameVisibility) -> Vec<String> {
        let frames: Vec<Frame> =
            names.iter().map(|name| Frame { function: (*name).to_owned(), ..Frame::default() }).collect();
        lines(frames.iter(), shown)
            .iter()
            .map(|line| format!("{}*{}", line.frame.function, line.times))
            .collect()
    }

    #[test]
    fn recursion_is_counted() {
        assert_eq!(
            shown_names(&["leaf", "walk", "walk", "walk", "main"], FrameVisibility::All),
            ["leaf*1", "walk*3", "main*1"]
        );
    }

    #[test]
    fn the_start_of_a_program_is_cut() {
        assert_eq!(
            shown_names(
                &["work", "main", "__libc_start_call_main", "_start"],
                FrameVisibility::WithoutPlumbing
            ),
            ["work*1", "main*1"]
        );
        let rust =
            ["app::main", "core::ops::function::FnOnce::call_once", "std::rt::lang_start", "main", "_start"];
        assert_eq!(shown_names(&rust, FrameVisibility::WithoutPlumbing), ["app::main*1"]);
    }

    #[test]
    fn a_stack_of_nothing_but_start_keeps_its_leaf() {
        assert_eq!(
            shown_names(&["__libc_start_main", "_start"], FrameVisibility::WithoutPlumbing),
            ["__libc_start_main*1"]
        );
        assert_eq!(shown_names(&["__libc_start_main", "_start"], FrameVisibility::All).len(), 2);
    }
}
