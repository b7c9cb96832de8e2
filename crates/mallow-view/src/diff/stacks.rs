//! The stacks of two profiles put together as a diff matches them, for pictures.
//!
//! A stack that both profiles have, under whatever name, stands once, as the later profile has it, with both metrics. What is gone
//! stands as the earlier one had it, with the names that the later one gave to the same functions.

use super::side::{DEPTH_MAX, same_modules};
use crate::drawn::{BEYOND, DrawnCall, Names, named, program};
use crate::sites::Wanted;
use crate::{Filter, FrameVisibility, Line, Sites, lines};
use mallow_stacks::{
    Diff, DiffEntry, DiffSite, FlameWeight, Metric, MetricOf, ProcessIndex, StackProfile, Weights,
    common_name,
};
use std::cmp::Reverse;
use std::rc::Rc;

/// Visits the matching stacks of two profiles where a metric is not 0, outermost call first. A stack may come several
/// times.
pub(crate) fn compared_stacks<'a, P: StackProfile>(
    sides: [&'a P; 2],
    shown: FrameVisibility,
    filter: &Filter,
    by: MetricOf<P>,
    mut each: impl FnMut(&[DrawnCall<'a>], FlameWeight),
) {
    let [mut before, after] = sides.map(|profile| stacks(profile, shown, filter));
    name_alike(&mut before, &after);
    let known = |metric| sides.iter().all(|profile| profile.knows(metric));
    let same_modules = same_modules(sides[0].stacks(), sides[1].stacks());
    let diff = Diff::of(&compared(&before), &compared(&after), known, &same_modules);
    let mut names_after = Names::called(shown, |frame| Some(common_name(&frame.function)));
    let mut names_before = Names::called(shown, |frame| {
        let common = common_name(&frame.function);
        Some(diff.names.get(&common).cloned().unwrap_or(common))
    });
    for entry in &diff.entries {
        let is_wanted = entry.before.iter().any(|site| before[*site].is_wanted)
            || entry.after.iter().any(|site| after[*site].is_wanted);
        if !is_wanted {
            continue;
        }
        for (of_after, at, weight) in spread(entry, &before, &after, by) {
            let (stack, calls) = if of_after {
                (&after[at], names_after.of_stack(after[at].program.as_ref(), &after[at].lines))
            } else {
                (&before[at], names_before.of_stack(before[at].program.as_ref(), &before[at].lines))
            };
            if weight != FlameWeight::default() {
                if stack.is_beyond { each(&[named(BEYOND)], weight) } else { each(&calls, weight) }
            }
        }
    }
}

/// A stack of a side, leaf first.
struct Stack<'a, W> {
    program: Option<Rc<str>>,
    lines: Vec<Line<'a>>,
    totals: W,
    is_wanted: bool,
    is_beyond: bool,
}

fn stacks<'a, P: StackProfile>(
    profile: &'a P,
    shown: FrameVisibility,
    filter: &Filter,
) -> Vec<Stack<'a, P::Weights>> {
    let wanted = Wanted::of(profile.stacks(), filter);
    // Matching and other sites are rows of their own, even if they look the same.
    let group = |process: ProcessIndex, is_wanted: bool| process.0 as usize * 2 + usize::from(is_wanted);
    let sites = profile.sites().iter().map(|site| (group(site.process, wanted.includes(site.stack)), site));
    let groups =
        Sites::of_groups(profile.stacks(), shown, &Filter::default(), profile.processes() * 2, sites);
    let mut stacks = Vec::new();
    let mut told = P::Weights::default();
    for (group, sites) in groups.iter().enumerate() {
        let program = profile.program(ProcessIndex(group as u32 / 2)).and_then(program);
        for row in &sites.rows {
            told.add(&row.totals);
            stacks.push(Stack {
                program: program.clone(),
                lines: lines(sites.frames(row), shown),
                totals: row.totals,
                is_wanted: group % 2 == 1,
                is_beyond: false,
            });
        }
    }
    let totals = profile.beyond(&told);
    let (is_wanted, is_beyond) = (filter.is_empty(), true);
    stacks.push(Stack { program: None, lines: Vec::new(), totals, is_wanted, is_beyond });
    stacks
}

/// If each side ran one program, they are the same one, even if their names differ.
fn name_alike<W>(before: &mut [Stack<'_, W>], after: &[Stack<'_, W>]) {
    let only = |stacks: &[Stack<'_, W>]| {
        let mut programs = stacks.iter().filter(|stack| !stack.is_beyond).map(|stack| stack.program.clone());
        let first = programs.next()??;
        programs.all(|other| other.as_ref() == Some(&first)).then_some(first)
    };
    if let (Some(_), Some(name)) = (only(before), only(after)) {
        before.iter_mut().for_each(|stack| stack.program = Some(Rc::clone(&name)));
    }
}

fn compared<'a, W: Weights>(stacks: &[Stack<'a, W>]) -> Vec<DiffSite<'a, W>> {
    let site = |stack: &Stack<'a, W>| DiffSite {
        frames: stack.lines.iter().take(DEPTH_MAX).map(|line| line.frame).collect(),
        totals: stack.totals,
    };
    stacks.iter().map(site).collect()
}

/// Returns the stacks of both sides of an entry, with their weights. If several became several, the earlier weights
/// are split by program, and within a program in proportion to the later ones.
fn spread<W: Weights>(
    entry: &DiffEntry,
    before: &[Stack<'_, W>],
    after: &[Stack<'_, W>],
    by: W::Metric,
) -> Vec<(bool, usize, FlameWeight)> {
    let value = |stack: &Stack<'_, W>| by.of_site(&stack.totals);
    if entry.after.is_empty() {
        let gone = |at: &usize| (false, *at, FlameWeight { before: value(&before[*at]), after: 0 });
        return entry.before.iter().map(gone).collect();
    }
    let mut shares: Vec<(bool, usize, FlameWeight)> = entry
        .after
        .iter()
        .map(|at| (true, *at, FlameWeight { before: 0, after: value(&after[*at]) }))
        .collect();
    let mut programs: Vec<(&Option<Rc<str>>, u64)> = Vec::new();
    for stack in entry.before.iter().map(|at| &before[*at]) {
        match programs.iter_mut().find(|(program, _)| **program == stack.program) {
            Some((_, sum)) => *sum = sum.saturating_add(value(stack)),
            None => programs.push((&stack.program, value(stack))),
        }
    }
    for (program, sum) in programs {
        let is_of = |share: &(bool, usize, FlameWeight)| after[share.1].program == *program;
        let is_there = shares.iter().any(is_of);
        let takers = shares.iter_mut().filter(|share| !is_there || is_of(share));
        divide(sum, takers.map(|share| &mut share.2).collect());
    }
    shares
}

/// Adds a sum to earlier weights, in proportion to the later ones, to the last unit.
fn divide(sum: u64, mut takers: Vec<&mut FlameWeight>) {
    let whole: u128 = takers.iter().map(|weight| u128::from(weight.after)).sum();
    let mut left = sum;
    takers.sort_by_key(|weight| Reverse(weight.after));
    for weight in &mut takers {
        let part = (u128::from(sum) * u128::from(weight.after)).checked_div(whole).unwrap_or(0) as u64;
        weight.before = weight.before.saturating_add(part);
        left -= part;
    }
    if let Some(largest) = takers.first_mut() {
        largest.before = largest.before.saturating_add(left);
    }
}
