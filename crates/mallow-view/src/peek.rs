//! One function with those that call it and those that it calls.
//!
//! A stack counts once, whatever recurs on it: the caller is that of the function's outermost call, the callee that of its innermost. So the
//! callers add up to the function with its callees, and so do the callees with what it weighs itself.

use crate::functions::{FunctionNumbers, is_hidden};
use crate::sites::Wanted;
use crate::{Filter, FrameVisibility, annotate};
use mallow_base::Frame;
use mallow_stacks::{Metric, StackProfile, Weights};
use rustc_hash::FxHashMap;

/// A function and its neighbours.
#[derive(Clone, Debug)]
pub struct Peek<'a, W> {
    /// One of its frames.
    pub frame: &'a Frame,
    /// Stacks whose innermost call it is.
    pub own: W,
    /// Stacks that contain it.
    pub under: W,
    /// Its callers, heaviest first; `None` if it is the outermost visible call.
    pub callers: Vec<(Option<&'a Frame>, W)>,
    /// Whom it called.
    pub callees: Vec<(&'a Frame, W)>,
}

/// The functions whose name is `wanted`, or if there is none, those whose name has it as a part; heaviest first.
pub fn peek<'a, P: StackProfile>(
    profile: &'a P,
    shown: FrameVisibility,
    filter: &Filter,
    wanted: &str,
    by: <P::Weights as Weights>::Metric,
) -> Vec<Peek<'a, P::Weights>> {
    let stacks = profile.stacks();
    let mut numbers = FunctionNumbers::of(stacks, shown);
    let is_asked = annotate::by_name(numbers.frames.iter().map(|frame| frame.function.as_str()), wanted);
    let frames = numbers.frames.clone();
    let is_hidden: Vec<bool> = frames.iter().map(|frame| is_hidden(frame, shown)).collect();
    let mut found: FxHashMap<usize, Neighbours<P::Weights>> = FxHashMap::default();
    let wanted = Wanted::of(stacks, filter);
    let mut calls = Vec::new();
    for site in profile.sites().iter().filter(|site| wanted.includes(site.stack)) {
        calls.clear();
        numbers.each_visible(site.stack, |function| calls.push(function));
        while calls.len() > 1 && calls.last().is_some_and(|last| is_hidden[*last]) {
            calls.pop();
        }
        for (at, function) in calls.iter().enumerate().filter(|(_, function)| is_asked[**function]) {
            // Its innermost call determines the callee, and that the stack counts.
            if calls[..at].contains(function) {
                continue;
            }
            let neighbours = found.entry(*function).or_default();
            neighbours.under.add(&site.totals);
            match at.checked_sub(1) {
                Some(inner) => neighbours.callees.entry(calls[inner]).or_default().add(&site.totals),
                None => neighbours.own.add(&site.totals),
            }
            let outermost = calls.iter().rposition(|other| other == function).unwrap_or(at);
            let caller = calls.get(outermost + 1).copied();
            neighbours.callers.entry(caller).or_default().add(&site.totals);
        }
    }
    let mut peeks: Vec<Peek<'a, P::Weights>> = found
        .into_iter()
        .map(|(function, neighbours)| neighbours.sorted(frames[function], &frames, by))
        .filter(|peek| by.of_site(&peek.under) > 0)
        .collect();
    peeks.sort_by_key(|peek| (std::cmp::Reverse(by.of_site(&peek.under)), peek.frame));
    peeks
}

/// The callers and callees of a function, by numbers.
#[derive(Default)]
struct Neighbours<W> {
    own: W,
    under: W,
    callers: FxHashMap<Option<usize>, W>,
    callees: FxHashMap<usize, W>,
}

impl<W: Weights> Neighbours<W> {
    fn sorted<'a>(self, frame: &'a Frame, frames: &[&'a Frame], by: W::Metric) -> Peek<'a, W> {
        let callers = self.callers.into_iter().map(|(at, weights)| (at.map(|at| frames[at]), weights));
        let mut callers: Vec<(Option<&'a Frame>, W)> =
            callers.filter(|(_, weights)| by.of_site(weights) > 0).collect();
        callers.sort_by_key(|(frame, weights)| (std::cmp::Reverse(by.of_site(weights)), *frame));
        let callees = self.callees.into_iter().map(|(at, weights)| (frames[at], weights));
        let mut callees: Vec<(&'a Frame, W)> =
            callees.filter(|(_, weights)| by.of_site(weights) > 0).collect();
        callees.sort_by_key(|(frame, weights)| (std::cmp::Reverse(by.of_site(weights)), *frame));
        Peek { frame, own: self.own, under: self.under, callers, callees }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Measure;
    use crate::example::{allocated, frame, profile, site};
    use proptest::prelude::*;

    fn made(stacks: &[(&str, u64)]) -> mallow_profile::Profile {
        let mut made = profile();
        for (stack, bytes) in stacks {
            let frames: Vec<Vec<Frame>> =
                stack.split(' ').map(|name| vec![frame(name, "/bin/app")]).collect();
            site(&mut made, 0, &frames, allocated(1, *bytes));
        }
        made
    }

    /// `self under; caller bytes, …; callee bytes, …` of each function.
    fn peeked(stacks: &[(&str, u64)], shown: FrameVisibility, wanted: &str) -> Vec<String> {
        let profile = made(stacks);
        let list = |rows: Vec<(&str, u64)>| {
            rows.iter().map(|(name, bytes)| format!("{name} {bytes}")).collect::<Vec<_>>().join(", ")
        };
        peek(&profile, shown, &Filter::default(), wanted, Measure::Bytes)
            .iter()
            .map(|peek| {
                let callers = peek.callers.iter().map(|(frame, weights)| {
                    (frame.map_or("-", |frame| frame.function.as_str()), weights.bytes)
                });
                let callees =
                    peek.callees.iter().map(|(frame, weights)| (frame.function.as_str(), weights.bytes));
                format!(
                    "{} {} {}; {}; {}",
                    peek.frame.function,
                    peek.own.bytes,
                    peek.under.bytes,
                    list(callers.collect()),
                    list(callees.collect())
                )
            })
            .collect()
    }

    #[test]
    fn callers_and_callees_add_up_whatever_recurs() {
        let stacks = [
            ("malloc strdup load main __libc_start_main _start", 10),
            ("strdup walk walk walk main", 5),
            ("walk load walk main", 3),
            ("load", 1),
        ];
        let shown = FrameVisibility::WithoutPlumbing;
        assert_eq!(peeked(&stacks, shown, "load"), ["load 1 14; main 10, walk 3, - 1; strdup 10, walk 3"]);
        assert_eq!(peeked(&stacks, shown, "walk"), ["walk 3 8; main 8; strdup 5"]);
        assert_eq!(peeked(&stacks, shown, "main"), ["main 0 18; - 18; load 10, walk 8"]);
        // What is hidden on the inner side is its caller's.
        assert_eq!(peeked(&stacks, shown, "strdup"), ["strdup 15 15; load 10, walk 5; "]);
        assert_eq!(peeked(&stacks, FrameVisibility::All, "malloc"), ["malloc 10 10; strdup 10; "]);
        // A part of a name, where none is whole.
        assert_eq!(peeked(&stacks, shown, "oa"), ["load 1 14; main 10, walk 3, - 1; strdup 10, walk 3"]);
        assert_eq!(peeked(&stacks, shown, "nobody"), [""; 0]);
    }

    proptest! {
        #[test]
        fn neighbours_add_up(stacks in prop::collection::vec(("[a-d]( [a-d]){0,6}", 1..50_u64), 1..20)) {
            let borrowed: Vec<(&str, u64)> = stacks.iter().map(|(stack, bytes)| (stack.as_str(), *bytes)).collect();
            let profile = made(&borrowed);
            for name in ["a", "b", "c", "d"] {
                let with = |stack: &&(String, u64)| stack.0.split(' ').any(|call| call == name);
                let under: u64 = stacks.iter().filter(with).map(|stack| stack.1).sum();
                let own: u64 = stacks.iter().filter(|stack| stack.0.starts_with(name)).map(|stack| stack.1).sum();
                let found = peek(&profile, FrameVisibility::All, &Filter::default(), name, Measure::Bytes);
                let Some(found) = found.first() else {
                    prop_assert_eq!(under, 0);
                    continue;
                };
                prop_assert_eq!((found.own.bytes, found.under.bytes), (own, under));
                prop_assert_eq!(found.callers.iter().map(|caller| caller.1.bytes).sum::<u64>(), under);
                prop_assert_eq!(found.callees.iter().map(|callee| callee.1.bytes).sum::<u64>() + own, under);
                // The same as in the list of all functions.
                let all = crate::functions(
                    &profile,
                    FrameVisibility::All,
                    &Filter::default(),
                    Measure::Bytes,
                    crate::FunctionOrder::Own,
                );
                let listed = all.iter().find(|row| row.frame.function == name).unwrap();
                prop_assert_eq!((listed.own.bytes, listed.under.bytes), (own, under));
            }
        }
    }
}
