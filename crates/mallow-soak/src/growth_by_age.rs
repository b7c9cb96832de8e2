//! Which stacks grow in workers that are replaced: those that hold more in an old worker than in a young one.
//!
//! Stacks of a process that has ended have no names any more, so workers that live at the end are compared, at the youngest and the oldest
//! of the looks at them. Every process has its own numbers for stacks; equal frames are one stack.

use crate::growth::{KeptSnapshot, Key, TOLD_MAX, grouped, held, series_over};
use mallow_base::Frame;
use mallow_collect::{LiveProcess, LiveStacks, Resolve};
use mallow_evidence::{Growth, WorkerLook};
use mallow_growth::{GrowingStack, Rules, Shape, StackSeries, Trend};

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
    kept: &[KeptSnapshot],
    looks: &[WorkerLook],
    rules: &Rules,
    stacks: &mut LiveStacks,
    resolve: Resolve<'_>,
) -> Vec<Growth> {
    let Some((young, old)) = edges(kept, looks, stacks) else { return Vec::new() };
    let keys: Vec<Key> = [&young, &old].into_iter().flat_map(|at| largest(at.process)).collect();
    let frames = stacks.frames(&keys, resolve);
    let (frames, members): (Vec<_>, Vec<_>) =
        grouped(&keys, frames).into_iter().map(|group| (group.frames, group.keys)).unzip();
    let looks = [young.process, old.process].map(std::slice::from_ref);
    of_series(&frames, &series_over(&members, looks.into_iter()), old.age - young.age, rules)
}

fn largest(process: &LiveProcess) -> impl Iterator<Item = Key> {
    let mut sites: Vec<(Key, u64, u64)> = held(std::slice::from_ref(process)).collect();
    sites.sort_unstable_by_key(|(key, bytes, _)| (std::cmp::Reverse(*bytes), *key));
    sites.into_iter().take(NAMED_MAX).map(|(key, ..)| key)
}

/// The youngest and the oldest look at workers whose stacks are known.
fn edges<'a>(
    kept: &'a [KeptSnapshot],
    looks: &[WorkerLook],
    stacks: &LiveStacks,
) -> Option<(At<'a>, At<'a>)> {
    let mut known = looks.iter().filter(|look| stacks.knows(look.index)).filter_map(|look| {
        let kept = kept.iter().find(|kept| kept.observation == look.sample)?;
        let process = kept.look.processes.iter().find(|process| process.index == look.index)?;
        Some(At { age: look.observation.requests as f64, process })
    });
    let first = known.next()?;
    Some((first, known.next_back()?))
}

/// `series` has what each stack held in the young worker, and in the old one.
fn of_series(frames: &[Vec<Frame>], series: &[StackSeries], requests: f64, rules: &Rules) -> Vec<Growth> {
    let rise = |held: &[u64]| held[1].saturating_sub(held[0]) as f64;
    let whole: f64 = series.iter().map(|stack| rise(&stack.bytes)).sum();
    let mut grown: Vec<Growth> = frames
        .iter()
        .zip(series)
        .filter(|(_, stack)| rise(&stack.bytes) > SHARE_MIN * whole && requests > 0.0)
        .map(|(frames, stack)| {
            let per_request = rise(&stack.bytes) / requests;
            let grows = per_request > SHARE_MIN * rules.heap_per_request_min;
            let trend = Trend {
                shape: if grows { Shape::Grows } else { Shape::Unclear },
                per_request,
                per_request_low: per_request,
                per_request_high: per_request,
                first: stack.bytes[0] as f64,
                last: stack.bytes[1] as f64,
                noise: 0.0,
            };
            let blocks_per_request = rise(&stack.blocks) / requests;
            let share = rise(&stack.bytes) / whole;
            Growth {
                frames: frames.clone(),
                stack: GrowingStack { id: stack.id, trend, blocks_per_request, share },
                bytes: (stack.bytes[0], stack.bytes[1]),
                blocks: (stack.blocks[0], stack.blocks[1]),
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
        let frames =
            ["cache", "leak", "gone"].map(|name| vec![Frame { function: name.into(), ..Frame::default() }]);
        let stack = |id, bytes: [u64; 2], blocks: [u64; 2]| StackSeries {
            id,
            bytes: bytes.into(),
            blocks: blocks.into(),
        };
        let series =
            [stack(0, [1_000, 1_100], [10, 11]), stack(1, [0, 60_000], [0, 100]), stack(2, [500, 0], [1, 0])];
        let grown = of_series(&frames, &series, 100.0, &Rules::default());
        let told: Vec<(&str, f64, f64)> = grown
            .iter()
            .map(|growth| {
                let stack = &growth.stack;
                (growth.frames[0].function.as_str(), stack.trend.per_request, stack.blocks_per_request)
            })
            .collect();
        assert_eq!(told, [("leak", 600.0, 1.0)], "100 bytes of 60,100 are below a hundredth");
        assert!(of_series(&frames, &series, 0.0, &Rules::default()).is_empty(), "of one age");
    }
}
