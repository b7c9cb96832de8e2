//! Functions with what they weigh themselves, and what they weigh with all that they called.
//!
//! A function that stands on a stack several times counts once there. Functions without a name are one row for each file: their
//! addresses say nothing.

use crate::Filter;
use crate::sites::Wanted;
use mallow_base::Frame;
use mallow_stacks::{StackProfile, Weights};
use rustc_hash::FxHashMap;

/// A function.
#[derive(Clone, Copy, Debug)]
pub struct FunctionRow<'a, W> {
    /// One of its frames: name and module are those of all, and a script's file.
    pub frame: &'a Frame,
    /// Whether it has no name, and so is all functions of its module that have none.
    pub is_nameless: bool,
    /// What it weighs itself: stacks whose innermost call it is.
    pub own: W,
    /// What it weighs with its callees: stacks that it stands on.
    pub under: W,
}

/// What functions are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionOrder {
    /// What they weigh themselves.
    Own,
    /// What they weigh with their callees.
    Under,
}

/// The functions of the wanted stacks, heaviest first.
pub fn functions<'a, P: StackProfile>(
    profile: &'a P,
    filter: &Filter,
    by: <P::Weights as Weights>::Metric,
    order: FunctionOrder,
) -> Vec<FunctionRow<'a, P::Weights>> {
    use mallow_stacks::Metric;
    let stacks = profile.stacks();
    let mut rows: Vec<FunctionRow<'a, P::Weights>> = Vec::new();
    let mut known: FxHashMap<(&str, Option<&str>, Option<&str>), usize> = FxHashMap::default();
    let of_locations: Vec<Vec<usize>> = stacks
        .locations
        .iter()
        .map(|location| {
            let row = |frame: &'a Frame| {
                let is_nameless = frame.function.starts_with("0x");
                let name = if is_nameless { "" } else { frame.function.as_str() };
                // Scripts lie in no module: their files tell equal names apart.
                let file = frame.file.as_deref().filter(|_| frame.is_script());
                *known.entry((name, frame.module.as_deref(), file)).or_insert_with(|| {
                    let none = P::Weights::default();
                    rows.push(FunctionRow { frame, is_nameless, own: none, under: none });
                    rows.len() - 1
                })
            };
            location.frames.iter().map(row).collect()
        })
        .collect();
    let wanted = Wanted::of(stacks, filter);
    let mut last_seen = vec![usize::MAX; rows.len()];
    for (number, site) in profile.sites().iter().enumerate().filter(|(_, site)| wanted.includes(site.stack)) {
        let mut is_innermost = true;
        for id in stacks.chain(site.stack) {
            for &row in &of_locations[stacks.node(id).location.0 as usize] {
                if std::mem::take(&mut is_innermost) {
                    rows[row].own.add(&site.totals);
                }
                if std::mem::replace(&mut last_seen[row], number) != number {
                    rows[row].under.add(&site.totals);
                }
            }
        }
    }
    rows.retain(|row| by.of_site(&row.under) > 0);
    rows.sort_by_key(|row| {
        let (own, under) = (by.of_site(&row.own), by.of_site(&row.under));
        std::cmp::Reverse(match order {
            FunctionOrder::Own => (own, under),
            FunctionOrder::Under => (under, own),
        })
    });
    rows
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
            functions(&profile, &Filter::default(), CpuMetric::Samples, order)
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
