//! Functions with what they weigh themselves, and what they weigh with all that they called.
//!
//! A function that stands on a stack several times counts once there. Functions without a name are one row for each file: their
//! addresses say nothing.

use crate::looks::Appearances;
use crate::sites::Wanted;
use crate::{Filter, FrameVisibility, plumbing};
use mallow_base::Frame;
use mallow_stacks::{StackId, StackProfile, Stacks, Weights};
use rustc_hash::FxHashMap;

/// A function.
#[derive(Clone, Copy, Debug)]
pub struct FunctionRow<'a, W> {
    /// One of its frames: name and module are those of all, and a script's file.
    pub frame: &'a Frame,
    /// Whether it has no name, and so represents all functions of its module without one.
    pub is_nameless: bool,
    /// Its self weight: stacks of which it is the innermost call.
    pub own: W,
    /// Its total weight: stacks that contain it.
    pub under: W,
}

/// The sort order of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionOrder {
    /// By self weight.
    Own,
    /// By total weight.
    Under,
}

mallow_base::words! { FunctionOrder { Own = "self", Under = "children" } }

/// The functions of the wanted stacks, heaviest first. Frames that are not shown are no functions.
pub fn functions<'a, P: StackProfile>(
    profile: &'a P,
    shown: FrameVisibility,
    filter: &Filter,
    by: <P::Weights as Weights>::Metric,
    order: FunctionOrder,
) -> Vec<FunctionRow<'a, P::Weights>> {
    use mallow_stacks::Metric;
    let stacks = profile.stacks();
    let mut numbers = FunctionNumbers::of(stacks, shown);
    let none = P::Weights::default();
    let row =
        |frame: &&'a Frame| FunctionRow { frame, is_nameless: is_nameless(frame), own: none, under: none };
    let mut rows: Vec<FunctionRow<'a, P::Weights>> = numbers.frames.iter().map(row).collect();
    let wanted = Wanted::of(stacks, filter);
    let mut last_seen = vec![usize::MAX; rows.len()];
    for (number, site) in profile.sites().iter().enumerate().filter(|(_, site)| wanted.includes(site.stack)) {
        let mut is_innermost = true;
        numbers.each_visible(site.stack, |function| {
            let row = &mut rows[function];
            if std::mem::take(&mut is_innermost) {
                row.own.add(&site.totals);
            }
            if std::mem::replace(&mut last_seen[function], number) != number {
                row.under.add(&site.totals);
            }
        });
    }
    rows.retain(|row| by.of_site(&row.under) > 0 && !is_hidden(row.frame, shown));
    rows.sort_by_key(|row| {
        let (own, under) = (by.of_site(&row.own), by.of_site(&row.under));
        std::cmp::Reverse(match order {
            FunctionOrder::Own => (own, under),
            FunctionOrder::Under => (under, own),
        })
    });
    rows
}

/// Returns whether a function is only what a runtime does before the program starts.
pub(crate) fn is_hidden(frame: &Frame, shown: FrameVisibility) -> bool {
    shown != FrameVisibility::All && plumbing::root_rule(frame).is_some()
}

fn is_nameless(frame: &Frame) -> bool {
    frame.function.starts_with("0x")
}

/// The functions on stacks, by small numbers.
pub(crate) struct FunctionNumbers<'a> {
    stacks: &'a Stacks,
    looks: Appearances<'a>,
    /// One frame of each.
    pub(crate) frames: Vec<&'a Frame>,
    /// For each location where its frames begin in `of_frames`, innermost first.
    begins: Vec<u32>,
    of_frames: Vec<u32>,
}

impl<'a> FunctionNumbers<'a> {
    pub(crate) fn of(stacks: &'a Stacks, shown: FrameVisibility) -> FunctionNumbers<'a> {
        // A script's functions of one name in two files are two.
        let mut known: FxHashMap<(&str, Option<&str>, Option<&str>), u32> = FxHashMap::default();
        let (mut frames, mut of_frames) = (Vec::new(), Vec::new());
        let mut begins = Vec::with_capacity(stacks.locations.len());
        for location in &stacks.locations {
            begins.push(of_frames.len() as u32);
            for frame in &location.frames {
                let name = if is_nameless(frame) { "" } else { frame.function.as_str() };
                let file = frame.file.as_deref().filter(|_| frame.is_script());
                let number = *known.entry((name, frame.module.as_deref(), file)).or_insert_with(|| {
                    frames.push(frame);
                    frames.len() as u32 - 1
                });
                of_frames.push(number);
            }
        }
        FunctionNumbers { stacks, looks: Appearances::of(stacks, shown), frames, begins, of_frames }
    }

    /// The functions of a stack that are shown, innermost first.
    pub(crate) fn each_visible(&mut self, stack: Option<StackId>, mut each: impl FnMut(usize)) {
        let Some(named) = self.looks.naming(stack) else { return };
        let mut skip = named.skip;
        for id in self.stacks.chain(Some(named.node)) {
            let location = self.stacks.node(id).location.0 as usize;
            let begin = self.begins[location] as usize;
            let end = begin + self.stacks.locations[location].frames.len();
            for function in &self.of_frames[begin + std::mem::take(&mut skip)..end] {
                each(*function as usize);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_cpu::{CpuMetric, CpuProfile, CpuTotals};
    use mallow_stacks::{Address, ProcessIndex, Site, StacksBuilder};

    #[test]
    fn recursion_counts_once_and_inlined_calls_are_functions() {
        let mut builder = StacksBuilder::default();
        let frame = |function: &str| Frame { function: function.into(), ..Frame::default() };
        let mut location = |names: &[&str]| {
            builder.location(Address::Unknown, names.iter().map(|name| frame(name)).collect())
        };
        let (main, walk, leaf) = (location(&["main"]), location(&["inlined", "walk"]), location(&["0x12"]));
        let other = location(&["0x34"]);
        let mut site = |locations: &[_], samples| {
            let stack = builder.stack(locations.iter().copied());
            Site {
                process: ProcessIndex(0),
                stack,
                totals: CpuTotals { samples, time_ns: samples * 1000, ..CpuTotals::default() },
            }
        };
        let sites = vec![
            site(&[main, walk, walk, leaf], 5),
            site(&[main, walk], 3),
            site(&[main, other], 2),
            site(&[main], 1),
        ];
        let profile = CpuProfile { sites, stacks: builder.finish(), ..CpuProfile::default() };
        let rows = |order| -> Vec<(String, bool, u64, u64)> {
            functions(&profile, FrameVisibility::All, &Filter::default(), CpuMetric::Samples, order)
                .iter()
                .map(|row| {
                    let name = if row.is_nameless { "-" } else { row.frame.function.as_str() };
                    (name.to_owned(), row.is_nameless, row.own.samples, row.under.samples)
                })
                .collect()
        };
        let row = |name: &str, own, under| (name.to_owned(), name == "-", own, under);
        assert_eq!(
            rows(FunctionOrder::Own),
            [row("-", 7, 7), row("inlined", 3, 8), row("main", 1, 11), row("walk", 0, 8)]
        );
        assert_eq!(rows(FunctionOrder::Under)[0], row("main", 1, 11));
    }
}
