//! Which stacks grow: what each stack held at the snapshots that are kept, and names for those that matter.

use crate::processes::Mappings;
use mallow_base::Frame;
use mallow_collect::{LiveHeap, LiveProcess, LiveStacks, Resolve};
use mallow_evidence::{Growth, MappingGrowth};
use mallow_growth::{Observation, Rules, StackSeries, Stacks, growing_stacks};
use mallow_profile::StackId;
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A snapshot of the live heap that is kept.
#[derive(Debug)]
pub(crate) struct KeptSnapshot {
    /// The measured observation that it belongs to.
    pub(crate) observation: usize,
    pub(crate) look: LiveHeap,
    pub(crate) mappings: Mappings,
}

/// Snapshots of a run of any length: never more than twice this number.
#[derive(Debug, Default)]
pub(crate) struct KeptHeaps {
    kept: Vec<KeptSnapshot>,
    /// Only snapshots whose number is a multiple of this are kept.
    every: usize,
}

const KEPT_MAX: usize = 160;
/// The number of stacks that are named; of the others only the sum is known.
const NAMED_MAX: usize = 2000;
/// The number of stacks that a report shows.
pub(crate) const TOLD_MAX: usize = 20;

/// A stack, distinguished from those of other processes.
pub(crate) type Key = (u32, StackId);

impl KeptHeaps {
    /// Stores a snapshot; if there are too many, every second one is dropped.
    pub(crate) fn add(&mut self, observation: usize, look: Option<LiveHeap>, mappings: Mappings) {
        self.every = self.every.max(1);
        if !observation.is_multiple_of(self.every) {
            return;
        }
        self.kept.push(KeptSnapshot { observation, look: look.unwrap_or_default(), mappings });
        if self.kept.len() > KEPT_MAX {
            self.every *= 2;
            let every = self.every;
            self.kept.retain(|kept| kept.observation.is_multiple_of(every));
        }
    }

    /// Returns the snapshots at the edges of a window of observations.
    pub(crate) fn edges(&self, window: &Range<usize>) -> Option<(&KeptSnapshot, &KeptSnapshot)> {
        let mut inside = self.kept.iter().filter(|kept| window.contains(&kept.observation));
        let first = inside.next()?;
        inside.next_back().map(|last| (first, last))
    }

    /// The snapshots that are kept, in the order of time.
    pub(crate) fn kept(&self) -> &[KeptSnapshot] {
        &self.kept
    }

    /// Returns what each stack held whose bytes differ between the first snapshot and the last. Stacks that fall are
    /// included, since they may have passed their blocks on to one that rises.
    pub(crate) fn stacks(&self) -> Stacks {
        let kept: Vec<&KeptSnapshot> = self.kept.iter().collect();
        let keys: Vec<Vec<Key>> = changed(&kept, u64::abs_diff).into_iter().map(|key| vec![key]).collect();
        Stacks {
            observations: kept.iter().map(|kept| kept.observation).collect(),
            series: series_of(&keys, &kept),
        }
    }

    /// Returns the stacks that grow over all observations, the fastest first.
    pub(crate) fn growth(
        &self,
        observations: &[Observation],
        window: &Range<usize>,
        rules: &Rules,
        stacks: &mut LiveStacks,
        resolve: Resolve<'_>,
    ) -> Vec<Growth> {
        let kept: Vec<&KeptSnapshot> =
            self.kept.iter().filter(|kept| kept.observation < observations.len()).collect();
        let axis: Vec<Observation> = kept.iter().map(|kept| observations[kept.observation]).collect();
        let keys = risen(&kept);
        let frames = stacks.frames(&keys, resolve);
        let groups = grouped(&keys, frames);
        let members: Vec<Vec<Key>> = groups.iter().map(|group| group.keys.clone()).collect();
        let series = series_of(&members, &kept);
        let first = kept.iter().position(|kept| window.contains(&kept.observation)).unwrap_or(0);
        let last = kept.len().saturating_sub(1);
        growing_stacks(&axis, &series, rules)
            .into_iter()
            .take(TOLD_MAX)
            .map(|stack| {
                let at = stack.id as usize;
                Growth {
                    frames: groups[at].frames.clone(),
                    stack,
                    bytes: (series[at].bytes[first], series[at].bytes[last]),
                    blocks: (series[at].blocks[first], series[at].blocks[last]),
                }
            })
            .collect()
    }
}

/// Returns the stacks that hold more in the last snapshot than in the first, the largest rise first.
fn risen(kept: &[&KeptSnapshot]) -> Vec<Key> {
    changed(kept, |before, after| after.saturating_sub(before))
}

/// Returns the stacks for which `change` is not 0 between the first snapshot and the last, the largest first.
fn changed(kept: &[&KeptSnapshot], change: fn(u64, u64) -> u64) -> Vec<Key> {
    let (Some(first), Some(last)) = (kept.first(), kept.last()) else { return Vec::new() };
    let mut levels: FxHashMap<Key, (u64, u64)> = FxHashMap::default();
    held(&first.look.processes).for_each(|(key, bytes, _)| levels.entry(key).or_default().0 += bytes);
    held(&last.look.processes).for_each(|(key, bytes, _)| levels.entry(key).or_default().1 += bytes);
    let changes = levels.into_iter().map(|(key, (before, after))| (change(before, after), key));
    let mut changed: Vec<(u64, Key)> = changes.filter(|(change, _)| *change > 0).collect();
    changed.sort_unstable_by_key(|(change, key)| (std::cmp::Reverse(*change), *key));
    changed.truncate(NAMED_MAX);
    changed.into_iter().map(|(_, key)| key).collect()
}

pub(crate) fn held(processes: &[LiveProcess]) -> impl Iterator<Item = (Key, u64, u64)> {
    processes.iter().flat_map(|process| {
        process.sites.iter().map(|site| ((process.index, site.stack), site.bytes, u64::from(site.blocks)))
    })
}

/// Stacks with the same frames: they differ only in addresses within a line, or in the process that runs the same code.
pub(crate) struct Group {
    pub(crate) frames: Vec<Frame>,
    pub(crate) keys: Vec<Key>,
}

pub(crate) fn grouped(keys: &[Key], frames: Vec<Vec<Frame>>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: FxHashMap<Vec<Frame>, usize> = FxHashMap::default();
    for (key, frames) in keys.iter().zip(frames) {
        let place = *places.entry(frames).or_insert_with_key(|frames| {
            groups.push(Group { frames: frames.clone(), keys: Vec::new() });
            groups.len() - 1
        });
        groups[place].keys.push(*key);
    }
    groups
}

/// Returns the sums over the stacks of each group, look by look.
fn series_of(groups: &[Vec<Key>], kept: &[&KeptSnapshot]) -> Vec<StackSeries> {
    series_over(groups, kept.iter().map(|kept| kept.look.processes.as_slice()))
}

/// The same for processes at one look after another.
pub(crate) fn series_over<'a>(
    groups: &[Vec<Key>],
    looks: impl ExactSizeIterator<Item = &'a [LiveProcess]>,
) -> Vec<StackSeries> {
    let group_of: FxHashMap<Key, usize> =
        groups.iter().enumerate().flat_map(|(at, group)| group.iter().map(move |key| (*key, at))).collect();
    let count = looks.len();
    let empty = |id: usize| StackSeries { id: id as u32, bytes: vec![0; count], blocks: vec![0; count] };
    let mut series: Vec<StackSeries> = (0..groups.len()).map(empty).collect();
    for (at, processes) in looks.enumerate() {
        for (key, bytes, blocks) in held(processes) {
            if let Some(&group) = group_of.get(&key) {
                series[group].bytes[at] += bytes;
                series[group].blocks[at] += blocks;
            }
        }
    }
    series
}

/// Returns the mappings that grew between two observations, the largest growth first.
pub(crate) fn mapping_growth(first: &Mappings, last: &Mappings) -> Vec<MappingGrowth> {
    let mut growth: Vec<MappingGrowth> = last
        .iter()
        .map(|(name, after)| {
            let before = first.get(name).copied().unwrap_or_default();
            MappingGrowth {
                name: name.clone(),
                before_bytes: before.0,
                after_bytes: after.0,
                count: (before.1, after.1),
            }
        })
        .filter(|mapping| mapping.after_bytes > mapping.before_bytes)
        .collect();
    growth.sort_by_key(|mapping| std::cmp::Reverse(mapping.after_bytes - mapping.before_bytes));
    growth.truncate(TOLD_MAX);
    growth
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_profile::LiveSite;

    fn look(index: u32, sites: &[(u32, u64)]) -> LiveHeap {
        let site = |&(stack, bytes): &(u32, u64)| LiveSite {
            stack: StackId(stack),
            bytes,
            blocks: 1,
            allocations: 1,
            allocated_bytes: bytes,
        };
        let sites = sites.iter().map(site).collect();
        let process = LiveProcess {
            index,
            pid: 1,
            live_bytes: 0,
            live_blocks: 0,
            allocations: 0,
            has_helper_thread: false,
            sites,
            heap: mallow_collect::HeapMetrics::default(),
            source: mallow_collect::HeapSource::Malloc,
        };
        LiveHeap { processes: vec![process], ..LiveHeap::default() }
    }

    #[test]
    fn a_long_run_keeps_few_looks_evenly() {
        let mut looks = KeptHeaps::default();
        (0..1000).for_each(|at| looks.add(at, None, Mappings::new()));
        assert!((KEPT_MAX / 2..=KEPT_MAX).contains(&looks.kept.len()));
        let at: Vec<usize> = looks.kept.iter().map(|kept| kept.observation).collect();
        assert_eq!((at[0], at[1], at[2]), (0, 8, 16));
        let (first, last) = looks.edges(&(500..1000)).unwrap();
        assert_eq!((first.observation, last.observation), (504, 992));
    }

    #[test]
    fn stacks_of_equal_frames_are_one_series() {
        let mut looks = KeptHeaps::default();
        looks.add(0, Some(look(3, &[(1, 10), (2, 10), (9, 50)])), Mappings::new());
        looks.add(1, Some(look(3, &[(1, 30), (2, 20), (9, 50), (4, 1)])), Mappings::new());
        let kept: Vec<&KeptSnapshot> = looks.kept.iter().collect();
        let keys = risen(&kept);
        assert_eq!(keys, [(3, StackId(1)), (3, StackId(2)), (3, StackId(4))]);
        let frame = |name: &str| vec![Frame { function: name.into(), ..Frame::default() }];
        let groups = grouped(&keys, vec![frame("a"), frame("a"), frame("b")]);
        let members: Vec<Vec<Key>> = groups.into_iter().map(|group| group.keys).collect();
        let series = series_of(&members, &kept);
        assert_eq!((series[0].bytes.as_slice(), series[1].bytes.as_slice()), (&[20, 50][..], &[0, 1][..]));
    }

    #[test]
    fn the_judge_sees_stacks_that_fall_as_well() {
        let mut looks = KeptHeaps::default();
        looks.add(0, Some(look(3, &[(1, 90), (2, 10), (9, 50)])), Mappings::new());
        looks.add(1, Some(look(3, &[(1, 30), (2, 30), (9, 50)])), Mappings::new());
        let stacks = looks.stacks();
        let bytes: Vec<&[u64]> = stacks.series.iter().map(|stack| stack.bytes.as_slice()).collect();
        assert_eq!(bytes, [&[90, 30][..], &[10, 30]], "what moved most comes first, what stands is left out");
        assert_eq!(stacks.observations, [0, 1]);
    }

    #[test]
    fn mappings_that_grew_are_told_by_how_much() {
        let first = Mappings::from([("[heap]".to_owned(), (100, 1)), ("lib".to_owned(), (5, 1))]);
        let last = Mappings::from([
            ("[heap]".to_owned(), (150, 1)),
            ("lib".to_owned(), (5, 1)),
            ("[anonymous]".to_owned(), (90, 3)),
        ]);
        let names: Vec<String> =
            mapping_growth(&first, &last).into_iter().map(|mapping| mapping.name).collect();
        assert_eq!(names, ["[anonymous]", "[heap]"]);
    }
}
