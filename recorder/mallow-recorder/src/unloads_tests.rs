//! The twin of the stamps is a list of what happened to each page.

use super::*;
use std::collections::BTreeSet;

fn space() -> Box<AddressSpace> {
    Box::new(AddressSpace::new())
}

const PLUGIN: (usize, usize) = (0x7f00_0040_0000, 0x7f00_0041_2000);
const LIBRARY: (usize, usize) = (0x7f00_0080_0000, 0x7f00_00a0_0000);

fn range((start, end): (usize, usize)) -> Range {
    Range::of(start, end)
}

#[test]
fn an_unload_changes_the_addresses_of_what_is_gone_and_no_others() {
    let space = space();
    space.meet(range(PLUGIN));
    space.meet(range(LIBRARY));
    for round in 1..=5 {
        space.vacate(true, |met| met == range(LIBRARY));
        assert_eq!(space.generation.load(Ordering::Relaxed), round);
        assert_eq!(space.since(PLUGIN.0), round);
        assert_eq!(space.since(PLUGIN.1 - 1), round);
        assert_eq!(space.since(LIBRARY.0 + 0x1000), 0);
        space.meet(range(PLUGIN));
    }
}

#[test]
fn a_module_is_vacated_once() {
    let space = space();
    space.meet(range(PLUGIN));
    space.vacate(true, |_| false);
    space.vacate(true, |_| false);
    assert_eq!((space.since(PLUGIN.0), space.generation.load(Ordering::Relaxed)), (1, 2));
}

#[test]
fn every_address_changes_if_another_module_may_have_taken_the_place() {
    let space = space();
    space.meet(range(LIBRARY));
    space.vacate(false, |_| true);
    assert_eq!((space.since(LIBRARY.0), space.since(0x1000)), (1, 1));
}

#[test]
fn modules_that_could_not_be_noted_change_everything_at_the_next_unload_and_at_no_later_one() {
    let space = space();
    for index in 0..=MET_COUNT {
        space.meet(Range::of(PLUGIN.0 + index * 0x10_0000, PLUGIN.1 + index * 0x10_0000));
    }
    space.vacate(true, |_| true);
    assert_eq!(space.since(LIBRARY.0), 1);
    space.vacate(true, |_| true);
    assert_eq!(space.since(LIBRARY.0), 1);
}

#[test]
fn a_module_that_is_seen_repeatedly_takes_one_place() {
    let space = space();
    for _ in 0..2 * MET_COUNT {
        space.meet(range(PLUGIN));
    }
    assert!(!space.has_unnoted.load(Ordering::Relaxed));
    assert_eq!(space.met.iter().filter(|met| met.load(Ordering::Relaxed) != 0).count(), 1);
}

#[test]
fn a_range_at_either_end_of_the_address_space_keeps_its_granules() {
    for (start, end) in [(0x1000, 0x2000), (0x7fff_ffff_0000, 0x7fff_ffff_f000), PLUGIN, LIBRARY] {
        let naive: BTreeSet<usize> =
            (start..end).step_by(PAGE_BYTES).map(|page| page / GRANULE_BYTES).collect();
        assert_eq!(Range::of(start, end).granules().collect::<BTreeSet<_>>(), naive);
    }
}

/// Modules come and go at random places. Two addresses are the same to us only if no module went between the two looks.
#[test]
fn equal_generations_mean_that_no_module_was_unloaded_in_between() {
    let space = space();
    let mut loaded: BTreeSet<usize> = BTreeSet::new();
    let place = |index: usize| (PLUGIN.0 + index * 0x9000, PLUGIN.0 + index * 0x9000 + 0x9000);
    let mut state = 7u64;
    // By page: how often its module went, and the stamp of the first look since.
    let mut went = [0u32; 64];
    let mut looks: Vec<(usize, u64, u32)> = Vec::new();
    for _ in 0..if cfg!(miri) { 100 } else { 3_000 } {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let index = (state >> 33) as usize % went.len();
        if loaded.remove(&index) {
            let is_loaded = |met: Range| loaded.iter().any(|index| range(place(*index)) == met);
            space.vacate(true, is_loaded);
            went[index] += 1;
        } else {
            loaded.insert(index);
            space.meet(range(place(index)));
        }
        for index in &loaded {
            looks.push((*index, space.since(place(*index).0 + 0x800), went[*index]));
        }
    }
    looks.sort_unstable();
    looks.dedup();
    for pair in looks.windows(2) {
        let same_stamp = (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1);
        assert!(!same_stamp || pair[0].2 == pair[1].2, "{pair:?}");
    }
}
