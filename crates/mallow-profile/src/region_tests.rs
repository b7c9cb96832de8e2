//! Regions against their definition, written out naively.

use super::*;
use proptest::prelude::*;

#[test]
fn a_block_belongs_to_the_regions_that_were_open_at_its_birth() {
    let mut regions = Regions::default();
    regions.born(BlockId(0), StackId(1), 100, false);
    regions.begin("outer");
    regions.born(BlockId(1), StackId(1), 10, false);
    regions.begin("inner");
    // An older block's end takes nothing from either: no metric falls below zero, and it is no temporary of theirs.
    regions.gone(BlockId(0), true);
    regions.born(BlockId(0), StackId(2), 7, true);
    regions.gone(BlockId(1), true);
    let inner = regions.end("inner").unwrap();
    let metrics = RegionMetrics {
        allocations: 1,
        bytes: 7,
        reallocations: 1,
        peak_bytes: 7,
        remaining_blocks: 1,
        remaining_bytes: 7,
        temporary: 0,
    };
    assert_eq!(inner.metrics, metrics);
    // A free after the end is no longer the region's.
    regions.gone(BlockId(0), false);
    let outer = regions.end("outer").unwrap();
    assert_eq!(
        outer.metrics,
        RegionMetrics {
            allocations: 2,
            bytes: 17,
            reallocations: 1,
            peak_bytes: 17,
            temporary: 1,
            ..RegionMetrics::default()
        }
    );
    assert_eq!(outer.sites[0].0, StackId(1));
    assert_eq!((outer.sites[0].1.remaining_blocks, outer.sites[0].1.temporary), (0, 1));
    assert!(regions.end("outer").is_none());
}

#[derive(Clone, Debug)]
enum Step {
    Begin(u8),
    End(u8),
    Born(u8, u8),
    Gone(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        1 => (0..3u8).prop_map(Step::Begin),
        1 => (0..3u8).prop_map(Step::End),
        6 => (0..4u8, any::<u8>()).prop_map(|(stack, size)| Step::Born(stack, size)),
        4 => any::<u8>().prop_map(Step::Gone),
    ];
    proptest::collection::vec(step, 0..200)
}

/// All births and ends with their places in time.
#[derive(Default)]
struct Naive {
    blocks: Vec<(usize, Option<usize>, u8, u8)>,
    /// Places in time at which a temporary block ended.
    temporary: Vec<usize>,
    begins: Vec<(u8, usize)>,
}

impl Naive {
    fn metrics(&self, begin: usize, end: usize, stack: Option<u8>) -> RegionMetrics {
        let mine: Vec<_> = self
            .blocks
            .iter()
            .filter(|(born, _, by, _)| (begin..end).contains(born) && stack.is_none_or(|stack| stack == *by))
            .collect();
        let lives = |at: usize| {
            mine.iter().filter(move |(born, gone, ..)| *born < at && gone.is_none_or(|gone| gone >= at))
        };
        let bytes_at = |at: usize| lives(at).map(|block| u64::from(block.3)).sum::<u64>();
        RegionMetrics {
            allocations: mine.len() as u64,
            bytes: mine.iter().map(|block| u64::from(block.3)).sum(),
            reallocations: 0,
            peak_bytes: if stack.is_none() { (begin..=end).map(bytes_at).max().unwrap_or(0) } else { 0 },
            remaining_blocks: lives(end).count() as u64,
            remaining_bytes: bytes_at(end),
            temporary: mine
                .iter()
                .filter(|block| block.1.is_some_and(|gone| gone < end && self.temporary.contains(&gone)))
                .count() as u64,
        }
    }
}

proptest! {
    #[test]
    fn the_running_metrics_are_those_of_the_definition(steps in steps()) {
        let (mut regions, mut naive) = (Regions::default(), Naive::default());
        let mut slots: Vec<Option<usize>> = Vec::new();
        for (now, step) in steps.into_iter().enumerate() {
            match step {
                Step::Begin(name) => {
                    regions.begin(&name.to_string());
                    naive.begins.push((name, now));
                }
                Step::Born(stack, size) => {
                    let slot = slots.iter().position(Option::is_none).unwrap_or(slots.len());
                    if slot == slots.len() {
                        slots.push(None);
                    }
                    slots[slot] = Some(naive.blocks.len());
                    naive.blocks.push((now, None, stack, size));
                    regions.born(BlockId(slot as u32), StackId(stack.into()), size.into(), false);
                }
                Step::Gone(choice) => {
                    let live: Vec<usize> = (0..slots.len()).filter(|slot| slots[*slot].is_some()).collect();
                    if let Some(slot) = live.get(choice as usize % live.len().max(1)) {
                        naive.blocks[slots[*slot].take().unwrap()].1 = Some(now);
                        let is_temporary = choice >= 128;
                        naive.temporary.extend(is_temporary.then_some(now));
                        regions.gone(BlockId(*slot as u32), is_temporary);
                    }
                }
                Step::End(name) => {
                    let at = naive.begins.iter().rposition(|begin| begin.0 == name);
                    let ended = regions.end(&name.to_string());
                    prop_assert_eq!(ended.is_some(), at.is_some());
                    let (Some(ended), Some(at)) = (ended, at) else { continue };
                    let (_, begin) = naive.begins.remove(at);
                    prop_assert_eq!(ended.metrics, naive.metrics(begin, now, None));
                    for (stack, metrics) in &ended.sites {
                        prop_assert_eq!(*metrics, naive.metrics(begin, now, Some(stack.0 as u8)));
                    }
                    let sum: u64 = ended.sites.iter().map(|site| site.1.allocations).sum();
                    prop_assert_eq!(sum, ended.metrics.allocations);
                }
            }
        }
    }
}
