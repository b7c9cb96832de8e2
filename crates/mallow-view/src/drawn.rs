//! Stacks as they are drawn: names from the outermost call inwards, below the program that made them, each with one metric.
//!
//! Calls that the compiler inlined stand in their place, inside of the function that they were inlined into. Names are
//! short unless everything is shown; lines are no part of them, so that one function is one box. This file must never decide
//! how a graph looks.

use crate::{Filter, FrameVisibility, Line, Sites, lines, short_name};
use mallow_base::Frame;
use mallow_frames::telling_path;
use mallow_stacks::{Metric, ProcessIndex, StackProfile, Weights};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Shown for a stack that was not taken.
const NO_STACK: &str = "(no stack was taken)";
/// Shown for weights that the source counted without a stack: some write only the largest.
pub(crate) const BEYOND: &str = "(without a stack)";

/// A call on a stack that is drawn.
#[derive(Clone, Debug)]
pub(crate) struct DrawnCall<'a> {
    /// The function, without semicolons and line ends; never empty.
    pub(crate) name: Rc<str>,
    /// `None` for a program, and for a missing stack.
    pub(crate) frame: Option<&'a Frame>,
    /// How many times in a row it is called.
    pub(crate) times: usize,
}

/// The wanted stacks of a profile that have any of a metric, outermost call first. Processes that ran the same program are one.
pub(crate) fn drawn<'a, M: Metric>(
    profile: &'a impl StackProfile<Weights = M::Weights>,
    shown: FrameVisibility,
    filter: &Filter,
    by: M,
    mut each: impl FnMut(&[DrawnCall<'a>], u64),
) {
    let mut names = Names::new(shown);
    let of_processes = Sites::of_each_process(profile, shown, filter);
    let mut told = M::Weights::default();
    for (process, sites) in (0..).map(ProcessIndex).zip(&of_processes) {
        let root = profile.program(process).and_then(program);
        for row in &sites.rows {
            told.add(&row.totals);
            let value = by.of_site(&row.totals);
            if value > 0 {
                each(&names.of_stack(root.as_ref(), &lines(sites.frames(row), shown)), value);
            }
        }
    }
    let beyond = by.of_site(&profile.beyond(&told));
    if beyond > 0 && filter.is_empty() {
        each(&[named(BEYOND)], beyond);
    }
}

/// A program's name without its folder; none where there is none.
pub(crate) fn program(path: &str) -> Option<Rc<str>> {
    let name = path.rsplit('/').next().filter(|name| !name.is_empty())?;
    Some(plain(name).into())
}

/// A call with a name and no frame.
pub(crate) fn named(name: &str) -> DrawnCall<'static> {
    DrawnCall { name: name.into(), frame: None, times: 1 }
}

/// The names of frames, made once for each frame.
pub(crate) struct Names<F = fn(&Frame) -> Option<String>> {
    shown: FrameVisibility,
    /// By the frame's address, which is cheaper to look up than its contents.
    known: FxHashMap<*const Frame, Rc<str>>,
    /// Returns the name of a function, if it differs from its own.
    other: F,
}

impl Names {
    fn new(shown: FrameVisibility) -> Names {
        Names::called(shown, |_| None)
    }
}

impl<F: Fn(&Frame) -> Option<String>> Names<F> {
    /// Names functions by `other`, or else by their own names.
    pub(crate) fn called(shown: FrameVisibility, other: F) -> Names<F> {
        Names { shown, known: FxHashMap::default(), other }
    }

    /// Lines come leaf first.
    pub(crate) fn of_stack<'a>(&mut self, root: Option<&Rc<str>>, lines: &[Line<'a>]) -> Vec<DrawnCall<'a>> {
        let program = root.map(|name| DrawnCall { name: Rc::clone(name), frame: None, times: 1 });
        let mut calls: Vec<DrawnCall<'a>> = program.into_iter().collect();
        for line in lines.iter().rev() {
            let known = self.known.entry(line.frame);
            let (shown, other) = (self.shown, &self.other);
            let name = known.or_insert_with(|| match other(line.frame) {
                Some(other) => name(&Frame { function: other, ..line.frame.clone() }, shown).into(),
                None => name(line.frame, shown).into(),
            });
            calls.push(DrawnCall { name: Rc::clone(name), frame: Some(line.frame), times: line.times });
        }
        if lines.is_empty() {
            calls.push(named(NO_STACK));
        }
        calls
    }
}

/// Returns whether a frame has only an address for a name.
pub(crate) fn is_nameless(frame: &Frame) -> bool {
    frame.function.starts_with("0x") || frame.function.is_empty()
}

fn name(frame: &Frame, shown: FrameVisibility) -> String {
    let module = frame.module.as_deref().and_then(|path| path.rsplit('/').next());
    let is_address = is_nameless(frame);
    plain(&match (module, shown) {
        // Addresses differ from build to build; the library does not.
        (Some(module), FrameVisibility::All) if is_address => format!("{} [{module}]", frame.function),
        (Some(module), _) if is_address => format!("[{module}]"),
        // Every module of a script has one, and all are called alike.
        _ if frame.is_script() && frame.function.starts_with('<') => match &frame.file {
            Some(file) => format!("{} {}", frame.function, telling_path(file)),
            None => frame.function.clone(),
        },
        (_, FrameVisibility::All) => frame.function.clone(),
        _ => short_name(&frame.function),
    })
}

/// A name that does not break its line: semicolons part frames, and a line end ends a stack.
fn plain(name: &str) -> String {
    let of_line = |c: char| match c {
        ';' => ':',
        c if c.is_control() => ' ',
        c => c,
    };
    let name: String = name.chars().map(of_line).collect();
    if name.trim().is_empty() { String::from("[unknown]") } else { name }
}
