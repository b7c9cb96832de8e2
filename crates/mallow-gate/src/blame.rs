//! Where a new stack leaves those of the baseline: the line that a person changed, and not the allocator's wrapper that it ends in.
//!
//! Stacks are compared from `main` inwards. One whose site the baseline has is compared as it is in this build, line by line, so
//! that lines that moved are no difference. One that only the baseline has is compared by its functions: its lines are of another
//! build. The deepest way that a stack has in common with any of them is what was there before, and behind it stands what is new:
//!
//! - a call from another line of the same function, or a function that no stack had before: that frame;
//! - a function that other stacks had before, such as a wrapper around `malloc`: its caller, whose call is new.

use crate::measurement::Site;
use mallow_base::Frame;
use std::collections::HashSet;

/// The stacks of the baseline.
#[derive(Debug, Default)]
pub(crate) struct Before<'a> {
    /// Stacks of this build whose sites the baseline has, innermost first.
    pub(crate) kept: Vec<&'a [Frame]>,
    /// Stacks of the baseline that this build has no more.
    pub(crate) gone: Vec<&'a [Frame]>,
}

impl<'a> Before<'a> {
    /// The index of the frame to blame in a stack that the baseline does not have; none when nothing of it is new.
    pub(crate) fn blamed(&self, stack: &[Frame]) -> Option<usize> {
        let kept = self.kept.iter().map(|other| common(stack, other, |a, b| a == b)).max().unwrap_or(0);
        let gone = self.gone.iter().map(|other| common(stack, other, is_same_function)).max().unwrap_or(0);
        let depth = kept.max(gone);
        // From the outermost frame: the first that is new, and its caller.
        let at = stack.len().checked_sub(depth + 1)?;
        let caller = at + 1;
        let calls_from_another_line = kept >= gone
            && self.kept.iter().any(|other| {
                common(stack, other, |a, b| a == b) == depth
                    && other.len() > depth
                    && is_same_function(&other[other.len() - depth - 1], &stack[at])
            });
        if calls_from_another_line || caller >= stack.len() || !self.functions().contains(name(&stack[at])) {
            return Some(at);
        }
        Some(caller)
    }

    fn functions(&self) -> HashSet<&'a str> {
        self.kept.iter().chain(&self.gone).flat_map(|stack| stack.iter()).map(name).collect()
    }
}

/// Returns how many outermost frames two stacks have in common.
fn common(one: &[Frame], other: &[Frame], is_same: impl Fn(&Frame, &Frame) -> bool) -> usize {
    one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| is_same(one, other)).count()
}

fn is_same_function(one: &Frame, other: &Frame) -> bool {
    name(one) == name(other)
}

/// A function without what differs from one build to the next: Rust's hash, and the offset where there is no line.
fn name(frame: &Frame) -> &str {
    let name = &*frame.function;
    match name.rsplit_once("::h") {
        Some((rest, hash)) if hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()) => rest,
        _ => name.split_once("+0x").map_or(name, |(rest, _)| rest),
    }
}

/// The stacks of some of the sites.
pub(crate) fn stacks(sites: &[Site], indices: impl Iterator<Item = usize>) -> Vec<&[Frame]> {
    indices.filter_map(|index| sites.get(index)).map(|site| &*site.frames).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `parse:13 < run:20 < main:9`, innermost first.
    fn stack(text: &str) -> Vec<Frame> {
        let frame = |word: &str| {
            let (function, line) = word.split_once(':').unwrap_or((word, "0"));
            Frame { function: function.to_owned(), line: line.parse().ok(), ..Frame::default() }
        };
        text.split(" < ").map(frame).collect()
    }

    fn blamed(kept: &[&str], gone: &[&str], new: &str) -> String {
        let (kept, gone): (Vec<_>, Vec<_>) =
            (kept.iter().map(|text| stack(text)).collect(), gone.iter().map(|text| stack(text)).collect());
        let before = Before {
            kept: kept.iter().map(|stack| &stack[..]).collect(),
            gone: gone.iter().map(|stack| &stack[..]).collect(),
        };
        let new = stack(new);
        let at = before.blamed(&new);
        at.map_or_else(String::new, |at| format!("{}:{}", new[at].function, new[at].line.unwrap_or(0)))
    }

    #[test]
    fn another_call_in_the_same_function_is_that_line() {
        let kept = ["raw:5 < xmalloc:6 < dup:8 < parse:12 < run:20 < main:30"];
        let new = "raw:5 < xmalloc:6 < dup:8 < parse:13 < run:20 < main:30";
        assert_eq!(blamed(&kept, &[], new), "parse:13");
    }

    #[test]
    fn a_wrapper_that_others_call_is_not_the_line_but_its_caller() {
        let kept = ["raw:5 < xmalloc:6 < load:40 < main:29", "raw:5 < read:3 < parse:12 < run:20 < main:30"];
        // From a line of `run` that never led to an allocation.
        assert_eq!(blamed(&kept, &[], "raw:5 < xmalloc:6 < run:21 < main:30"), "run:21");
        // From a line of `parse` that makes two calls.
        assert_eq!(blamed(&kept, &[], "raw:5 < xmalloc:6 < parse:12 < run:20 < main:30"), "parse:12");
    }

    #[test]
    fn a_function_that_is_new_is_the_line() {
        let kept = ["raw:5 < xmalloc:6 < load:40 < run:20 < main:30"];
        assert_eq!(blamed(&kept, &[], "raw:5 < xmalloc:6 < audit:7 < load:40 < run:20 < main:30"), "audit:7");
        assert_eq!(blamed(&kept, &[], "raw:5 < xmalloc:6 < audit:7 < run:20 < main:30"), "audit:7");
    }

    #[test]
    fn what_took_the_place_of_a_call_is_named_though_lines_moved() {
        let gone = ["exact:1 < with_capacity:2 < to_vec:2218 < write:33 < main:60"];
        let kept = ["exact:1 < with_capacity:2 < read:9 < main:70"];
        let new = "exact:1 < with_capacity:2 < grow:4 < to_vec:2220 < write:35 < main:62";
        assert_eq!(blamed(&kept, &gone, new), "grow:4");
        let new = "exact:1 < to_vec:2220 < write:35 < main:62";
        assert_eq!(blamed(&kept, &gone, new), "to_vec:2220");
    }

    #[test]
    fn without_anything_before_it_is_the_outermost_frame_and_of_nothing_new_none() {
        assert_eq!(blamed(&[], &[], "raw:5 < main:3"), "main:3");
        assert_eq!(blamed(&["raw:5 < main:3"], &[], "raw:5 < main:3"), "");
        assert_eq!(Before::default().blamed(&[]), None);
    }
}
