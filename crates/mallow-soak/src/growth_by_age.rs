//! Which stacks grow in workers that are replaced: those that hold more in an old worker than in a young one.
//!
//! Stacks of a process that has ended have no names any more, so workers that live at the end are compared, at the youngest and the oldest
//! of the looks at them. Every process has its own numbers for stacks; equal frames are one stack.

use crate::growth::{Kept, Key, TOLD_MAX, grouped};
use mallow_base::Frame;
use mallow_collect::{LiveProcess, LiveStacks, Resolve};
use mallow_evidence::{Growth, WorkerLook};
use mallow_growth::{GrowingStack, Rules, Shape, Trend};
use rustc_hash::FxHashMap;

/// Stacks of a look that are named, those that hold most.
const NAMED_MAX: usize = 1000;

/// A part of the growth below this is left out.
const SHARE_MIN: f64 = 0.01;

/// One process at one look.
struct At<'a> {
    age: f64,
    process: &'a LiveProcess,
}

/// The stacks that grow with a worker's age, those that grow most first.
pub(crate) fn growth_by_age(
    kept: &[Kept],
    looks: &[WorkerLook],
    rules: &Rules,
    stacks: &mut LiveStacks,
    resolve: Resolve<'_>,
) -> Vec<Growth> {
    let Some((young, old)) = edges(kept, looks, stacks) else { return Vec::new() };
    let [before, after] = [&young, &old].map(|at| largest(at.process));
    let keys: Vec<Key> = before.iter().chain(&after).map(|site| site.0).collect();
    let frames = stacks.frames(&keys, resolve);
    let groups = grouped(&keys, frames);
    let frames: Vec<&[Frame]> = groups.iter().map(|group| group.frames.as_slice()).collect();
    let group_of: FxHashMap<Key, usize> = groups
        .iter()
        .enumerate()
        .flat_map(|(at, group)| group.keys.iter().map(move |key| (*key, at)))
        .collect();
    let sums = |sites: &[Site]| {
        let mut sums = vec![(0, 0); groups.len()];
        for (key, bytes, blocks) in sites {
            if let Some(&at) = group_of.get(key) {
                sums[at] = (sums[at].0 + bytes, sums[at].1 + blocks);
            }
        }
        sums
    };
    of_sums(&frames, &sums(&before), &sums(&after), old.age - young.age, rules)
}

/// Key, bytes, blocks.
type Site = (Key, u64, u64);

fn largest(process: &LiveProcess) -> Vec<Site> {
    let site =
        |site: &mallow_profile::LiveSite| ((process.index, site.stack), site.bytes, u64::from(site.blocks));
    let mut sites: Vec<Site> = process.sites.iter().map(site).collect();
    sites.sort_unstable_by_key(|(key, bytes, _)| (std::cmp::Reverse(*bytes), *key));
    sites.truncate(NAMED_MAX);
    sites
}

/// The youngest and the oldest look at workers whose stacks are known.
fn edges<'a>(kept: &'a [Kept], looks: &[WorkerLook], stacks: &LiveStacks) -> Option<(At<'a>, At<'a>)> {
    let mut known = looks.iter().filter(|look| stacks.knows(look.index)).filter_map(|look| {
        let kept = kept.iter().find(|kept| kept.observation == look.sample)?;
        let process = kept.look.processes.iter().find(|process| process.index == look.index)?;
        Some(At { age: look.observation.requests as f64, process })
    });
    let first = known.next()?;
    Some((first, known.next_back()?))
}

fn of_sums(
    frames: &[&[Frame]],
    before: &[(u64, u64)],
    after: &[(u64, u64)],
    requests: f64,
    rules: &Rules,
) -> Vec<Growth> {
    let rise = |at: usize| after[at].0.saturating_sub(before[at].0) as f64;
    let whole: f64 = (0..frames.len()).map(rise).sum();
    let mut grown: Vec<Growth> = (0..frames.len())
        .filter(|at| rise(*at) > SHARE_MIN * whole && requests > 0.0)
        .map(|at| {
            let per_request = rise(at) / requests;
            let grows = per_request > SHARE_MIN * rules.heap_per_request_min;
            let trend = Trend {
                shape: if grows { Shape::Grows } else { Shape::Unclear },
                per_request,
                per_request_low: per_request,
                per_request_high: per_request,
                first: before[at].0 as f64,
                last: after[at].0 as f64,
                noise: 0.0,
            };
            let blocks_per_request = after[at].1.saturating_sub(before[at].1) as f64 / requests;
            Growth {
                frames: frames[at].to_vec(),
                stack: GrowingStack { id: at as u32, trend, blocks_per_request, share: rise(at) / whole },
                bytes: (before[at].0, after[at].0),
                blocks: (before[at].1, after[at].1),
            }
        })
        .collect();
    grown.sort_by(|a, b| b.stack.share.total_cmp(&a.stack.share).then(a.stack.id.cmp(&b.stack.id)));
    grown.truncate(TOLD_MAX);
    grown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_told_by_how_much_more_an_old_worker_holds() {
        let frame = |name: &str| [Frame { function: name.into(), ..Frame::default() }];
        let (cache, leak, gone) = (frame("cache"), frame("leak"), frame("gone"));
        let frames: [&[Frame]; 3] = [&cache, &leak, &gone];
        let before = [(1_000, 10), (0, 0), (500, 1)];
        let after = [(1_100, 11), (60_000, 100), (0, 0)];
        let grown = of_sums(&frames, &before, &after, 100.0, &Rules::default());
        let told: Vec<(&str, f64, f64)> = grown
            .iter()
            .map(|growth| {
                let stack = &growth.stack;
                (growth.frames[0].function.as_str(), stack.trend.per_request, stack.blocks_per_request)
            })
            .collect();
        assert_eq!(told, [("leak", 600.0, 1.0)], "100 bytes of 60,100 are below a hundredth");
        assert!(of_sums(&frames, &before, &after, 0.0, &Rules::default()).is_empty(), "of one age");
    }
}
