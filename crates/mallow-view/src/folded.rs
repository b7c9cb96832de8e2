//! Stacks as flame graphs want them: names from the outermost call inwards, each stack once, with one metric.
//!
//! Calls that the compiler inlined stand in their place, inside of the function that they were inlined into. Names are
//! short unless everything is shown; lines are left out, so that one function is one box. This file must never decide
//! how a graph looks.

use crate::{Filter, FrameVisibility, Sites, lines, short_name};
use mallow_base::{Frame, Language};
use mallow_stacks::{Metric, ProcessIndex, StackProfile};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::fmt;
use std::rc::Rc;

/// What stands for a stack that was not taken.
const NO_STACK: &str = "(no stack was taken)";

/// A call of a stack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoldedCall {
    /// Without semicolons and line ends; never empty.
    pub name: Rc<str>,
    /// What it is written in. Two functions of one name in two languages are two.
    pub language: Language,
}

/// A stack and its metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoldedRow {
    /// The process's program, if it is known, then the calls, outermost first.
    pub calls: Vec<FoldedCall>,
    /// The metric, above 0.
    pub value: u64,
}

/// A stack and its metrics in two profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ComparedRow {
    /// As in [`FoldedRow`].
    pub calls: Vec<FoldedCall>,
    /// The metric before; 0 for a stack that is new.
    pub before: u64,
    /// The metric after; 0 for a stack that is gone.
    pub after: u64,
}

/// The names of calls with semicolons between.
fn joined(calls: &[FoldedCall]) -> String {
    let names: Vec<&str> = calls.iter().map(|call| &*call.name).collect();
    names.join(";")
}

impl ComparedRow {
    /// The names of its calls with semicolons between.
    pub fn stack(&self) -> String {
        joined(&self.calls)
    }
}

impl fmt::Display for FoldedRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", joined(&self.calls), self.value)
    }
}

impl fmt::Display for ComparedRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", joined(&self.calls), self.before, self.after)
    }
}

/// The stacks of a profile that have any of a metric, in the order of their names. Processes that ran the same program are
/// one.
pub fn folded<M: Metric>(
    profile: &impl StackProfile<Weights = M::Weights>,
    shown: FrameVisibility,
    filter: &Filter,
    by: M,
) -> Vec<FoldedRow> {
    let mut names = Names { shown, known: FxHashMap::default() };
    let mut rows = Vec::new();
    let of_processes = Sites::of_each_process(profile, shown, filter);
    for (process, sites) in (0..).map(ProcessIndex).zip(&of_processes) {
        let root = profile.program(process).and_then(program);
        for row in &sites.rows {
            let value = by.of_site(&row.totals);
            if value > 0 {
                let frames = lines(sites.frames(row), shown);
                let calls = names.of_stack(root.as_ref(), frames.iter().map(|line| (line.frame, line.times)));
                rows.push(FoldedRow { calls, value });
            }
        }
    }
    rows.sort_by(|one, other| one.calls.cmp(&other.calls));
    rows.dedup_by(|one, kept| {
        let equal = one.calls == kept.calls;
        if equal {
            kept.value = kept.value.saturating_add(one.value);
        }
        equal
    });
    rows
}

/// The stacks of two profiles beside each other. Both must come from [`folded`], which leaves them in order.
pub fn compared(before: &[FoldedRow], after: &[FoldedRow]) -> Vec<ComparedRow> {
    let (mut before, mut after) = (before.iter().peekable(), after.iter().peekable());
    let mut rows = Vec::new();
    loop {
        let order = match (before.peek(), after.peek()) {
            (None, None) => return rows,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(one), Some(other)) => one.calls.cmp(&other.calls),
        };
        let one = if order.is_le() { before.next() } else { None };
        let other = if order.is_ge() { after.next() } else { None };
        let Some(either) = one.or(other) else { return rows };
        let value = |row: Option<&FoldedRow>| row.map_or(0, |row| row.value);
        rows.push(ComparedRow { calls: either.calls.clone(), before: value(one), after: value(other) });
    }
}

/// A program's name without its folder; none where there is none.
fn program(path: &str) -> Option<Rc<str>> {
    let name = path.rsplit('/').next().filter(|name| !name.is_empty())?;
    Some(plain(name).into())
}

/// The names of frames, made once for each frame.
struct Names {
    shown: FrameVisibility,
    /// By the frame's place in memory, which is cheaper to look up than its contents.
    known: FxHashMap<*const Frame, Rc<str>>,
}

impl Names {
    /// Frames come leaf first, each with how often it stands there in a row.
    fn of_stack<'a>(
        &mut self,
        root: Option<&Rc<str>>,
        frames: impl DoubleEndedIterator<Item = (&'a Frame, usize)>,
    ) -> Vec<FoldedCall> {
        let call = |name: &Rc<str>, language| FoldedCall { name: Rc::clone(name), language };
        let mut calls: Vec<FoldedCall> = root.into_iter().map(|root| call(root, Language::Native)).collect();
        let outside = calls.len();
        for (frame, times) in frames.rev() {
            let shown = self.shown;
            let name = self.known.entry(frame).or_insert_with(|| name(frame, shown).into());
            calls.extend(std::iter::repeat_n(call(name, frame.language), times));
        }
        if calls.len() == outside {
            calls.push(call(&NO_STACK.into(), Language::Native));
        }
        calls
    }
}

fn name(frame: &Frame, shown: FrameVisibility) -> String {
    let module = frame.module.as_deref().and_then(|path| path.rsplit('/').next());
    let is_address = frame.function.starts_with("0x") || frame.function.is_empty();
    plain(&match (module, shown) {
        // Addresses differ from build to build; the library does not.
        (Some(module), FrameVisibility::All) if is_address => format!("{} [{module}]", frame.function),
        (Some(module), _) if is_address => format!("[{module}]"),
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

#[cfg(test)]
#[path = "folded_tests.rs"]
mod tests;
