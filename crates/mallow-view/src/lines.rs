//! A stack as lines to read: without the runtime's start, and with recursion told instead of repeated.

use crate::{FrameVisibility, plumbing};
use mallow_base::Frame;
use rustc_hash::FxHashMap;
use std::marker::PhantomData;

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
    Lines::default().of(frames, shown)
}

/// Makes the lines of many stacks: the same frames start the program on all of them, and are looked up once.
#[derive(Default)]
pub(crate) struct Lines<'a> {
    starts: FxHashMap<*const Frame, Start>,
    frames: PhantomData<&'a Frame>,
}

/// Whether a frame only starts the program.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    No,
    Yes,
    /// It is part of Rust's runtime.
    Rust,
}

impl<'a> Lines<'a> {
    /// As [`lines`].
    pub(crate) fn of(
        &mut self,
        frames: impl Iterator<Item = &'a Frame>,
        shown: FrameVisibility,
    ) -> Vec<Line<'a>> {
        let mut lines: Vec<Line<'a>> = Vec::new();
        for frame in frames {
            match lines.last_mut() {
                Some(last) if last.frame.place() == frame.place() => last.times += 1,
                _ => lines.push(Line { frame, times: 1 }),
            }
        }
        if shown != FrameVisibility::All {
            self.cut_start(&mut lines);
        }
        lines
    }

    /// Cuts the outermost lines that only start the program. C's `main` is part of it where it only calls Rust's runtime.
    fn cut_start(&mut self, lines: &mut Vec<Line<'a>>) {
        while let [.., caller, outermost] = &lines[..] {
            let (caller, outermost) = (caller.frame, outermost.frame);
            let is_rusts_main = outermost.function == "main" && self.start(caller) == Start::Rust;
            if !is_rusts_main && self.start(outermost) == Start::No {
                break;
            }
            lines.pop();
        }
    }

    fn start(&mut self, frame: &'a Frame) -> Start {
        *self.starts.entry(std::ptr::from_ref(frame)).or_insert_with(|| match plumbing::root_rule(frame) {
            None => Start::No,
            Some(rule) if rule.language == "Rust" => Start::Rust,
            Some(_) => Start::Yes,
        })
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
