//! A thread's cache of stacks that it looked up, keyed by the hash of the whole stack.
//!
//! A program returns to the same stacks again and again, by paths too long or too many for [`crate::path_cache`]. A look-up in
//! the node table has several cache misses, one for each of its segments. Two stacks collide with a probability of 2^-64.
//!
//! A program with more stacks than a cache holds often goes through them in the same order as before: one that builds a tree,
//! or compiles function after function. So the stacks are kept in the order in which they were looked up, and those that
//! followed the last time are tried first: they lie beside the one before, where the processor has fetched them already. Where the order is lost, the place of a
//! stack is looked for by its hash.

use crate::bounds::{at, at_mut};
use crate::process;

/// How many stacks are kept.
pub const KEPT_COUNT: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 17;

/// One for each low end of a hash. More of them cost as much by their own misses (cc1plus).
const NEAR_COUNT: usize = 4096;

/// How many stacks of the order may be left out this time.
const SKIPPED_MAX: usize = 3;

/// A stack that was looked up lately, and its node.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Near {
    hash: u64,
    node: u32,
    /// When it was found, as a [`FoundStacks::era`], above its place in the order.
    mark: u32,
}

const NOTHING: Near = Near { hash: 0, node: 0, mark: 0 };

/// So many are looked up before they are kept in their order: a thread that has few needs no memory for it.
const UNORDERED_COUNT: u32 = 512;

/// Stacks in the order in which they were looked up. `FAR_COUNT` is [`KEPT_COUNT`] where each is to be found by its hash however long ago it was looked up, or 0. A Python program
/// that goes through 100,000 stacks takes a tenth of the recorder's time less by it. A compiler loses as much: most of the stacks that it does not find are new, and what is read
/// in vain takes the place of its own data in the processor's caches.
#[repr(C)]
#[derive(Debug)]
struct Order<const FAR_COUNT: usize> {
    /// Places of all, for each low end of a hash.
    far: [u32; FAR_COUNT],
    hashes: [u64; KEPT_COUNT],
    nodes: [u32; KEPT_COUNT],
}

/// A thread's stacks. Zeroed at first.
#[repr(C)]
#[derive(Debug)]
pub struct FoundStacks<const FAR_COUNT: usize> {
    /// Stacks of another era are forgotten.
    era: u32,
    /// How many were looked up without an order.
    unordered: u32,
    /// The place of the stack that is expected.
    expected: usize,
    /// How many places were written.
    written: usize,
    /// The place that is written next.
    end: usize,
    /// Null before there is one. It lies in memory of its own, which stays mapped.
    order: *mut Order<FAR_COUNT>,
    near: [Near; NEAR_COUNT],
}

impl<const FAR_COUNT: usize> FoundStacks<FAR_COUNT> {
    /// The node of the stack with this hash, if it is kept.
    #[inline(always)]
    pub fn find(&mut self, hash: u64) -> Option<u32> {
        if let Some(node) = self.node_at(self.expected, hash) {
            return Some(node);
        }
        let near = *at(&self.near, hash as usize % NEAR_COUNT);
        if near.hash == hash && near.mark >> PLACE_BITS == self.era {
            self.expected = near.mark as usize % KEPT_COUNT + 1;
            return Some(near.node);
        }
        self.find_far(hash)
    }

    /// As [`FoundStacks::find`], of one that is neither expected nor near.
    #[inline(never)]
    fn find_far(&mut self, hash: u64) -> Option<u32> {
        let expected = self.expected;
        (1..=SKIPPED_MAX).find_map(|skipped| self.node_at(expected + skipped, hash)).or_else(|| {
            let order = self.order().filter(|_| FAR_COUNT > 0)?;
            let place = *at(&order.far, hash as usize % KEPT_COUNT) as usize;
            self.node_at(place, hash)
        })
    }

    #[inline(always)]
    fn order(&self) -> Option<&Order<FAR_COUNT>> {
        // SAFETY: null, or memory that was mapped for it and stays; it holds integers, zeros at first. Only this thread uses it.
        unsafe { self.order.as_ref() }
    }

    /// The node of the stack at a place, if it has this hash: the one behind it is expected next. What was forgotten is at no place.
    #[inline(always)]
    fn node_at(&mut self, place: usize, hash: u64) -> Option<u32> {
        let order = if place < self.written { self.order()? } else { return None };
        if *at(&order.hashes, place) != hash {
            return None;
        }
        let node = *at(&order.nodes, place);
        self.expected = place + 1;
        Some(node)
    }

    /// Keeps a stack that was not found, in the place of the oldest one.
    #[inline(always)]
    pub fn remember(&mut self, hash: u64, node: u32) {
        let place = self.end % KEPT_COUNT;
        let near = Near { hash, node, mark: self.era << PLACE_BITS | place as u32 };
        *at_mut(&mut self.near, hash as usize % NEAR_COUNT) = near;
        // SAFETY: as in `order`.
        let Some(order) = (unsafe { self.order.as_mut() }) else { return self.go_on_without_order() };
        *at_mut(&mut order.hashes, place) = hash;
        *at_mut(&mut order.nodes, place) = node;
        if FAR_COUNT > 0 {
            *at_mut(&mut order.far, hash as usize % KEPT_COUNT) = place as u32;
        }
        self.end = place + 1;
        self.written = self.written.max(place + 1);
    }

    /// Maps memory for the order once there are stacks enough. Without it they are found for a shorter time.
    #[cold]
    #[inline(never)]
    fn go_on_without_order(&mut self) {
        self.unordered = self.unordered.saturating_add(1);
        // Behind a filter of system calls none more is made than must be.
        if self.unordered == UNORDERED_COUNT && !process::is_filtered() {
            self.order = process::map_table(size_of::<Order<FAR_COUNT>>()).cast();
        }
    }

    /// Forgets all of them, without a touch of their pages but once in as many times as there are eras.
    pub fn forget(&mut self) {
        (self.expected, self.written, self.end) = (0, 0, 0);
        self.era = (self.era + 1) % (1 << (u32::BITS - PLACE_BITS));
        if self.era == 0 {
            self.near.fill(NOTHING);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn empty() -> Box<FoundStacks<KEPT_COUNT>> {
        // SAFETY: integers: zeros are valid.
        unsafe { Box::new_zeroed().assume_init() }
    }

    #[test]
    fn a_cached_stack_is_found_until_it_is_cleared() {
        let mut found = empty();
        assert_eq!(found.find(7), None);
        found.remember(7, 70);
        assert_eq!((found.find(7), found.find(7 + NEAR_COUNT as u64)), (Some(70), None));
        found.forget();
        assert_eq!(found.find(7), None);
        found.remember(7, 72);
        assert_eq!(found.find(7), Some(72));
    }

    /// As many eras as there are numbers for them, and one more.
    #[test]
    fn what_was_forgotten_does_not_come_back_when_eras_are_numbered_anew() {
        let mut found = empty();
        found.remember(7, 70);
        for _ in 0..=u16::MAX {
            found.forget();
            assert_eq!(found.find(7), None);
        }
    }

    /// The twin is a map. Nothing is ever found that is not in it, with the same node.
    #[test]
    fn what_is_found_is_what_was_remembered() {
        let (mut found, mut known, mut hits) = (empty(), HashMap::new(), 0);
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        for round in 0..300_000u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Runs in order, from places that are drawn.
            let hash = ((state >> 40) % 3 * 2_000 + round % 2_000).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let node = (hash >> 32) as u32;
            match found.find(hash) {
                Some(it) => {
                    hits += 1;
                    assert_eq!((known.get(&hash), it), (Some(&it), node));
                }
                None => {
                    known.insert(hash, node);
                    found.remember(hash, node);
                }
            }
            if state >> 48 == 0 {
                found.forget();
                known.clear();
            }
        }
        assert!(hits > 10_000, "{hits}");
    }

    #[test]
    fn whatever_is_kept_is_found_in_another_order_too() {
        let mut found = empty();
        let hash = |stack: u64| stack.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let stacks = 1..=3 * NEAR_COUNT as u64;
        stacks.clone().for_each(|stack| found.remember(hash(stack), stack as u32));
        // Of the first ones only the places of the last are known; others have the place of some.
        let known = stacks.rev().filter(|stack| match found.find(hash(*stack)) {
            Some(node) => u64::from(node) == *stack,
            None => false,
        });
        assert!(known.count() > 2 * NEAR_COUNT * 9 / 10);
    }

    #[test]
    fn a_sequence_longer_than_the_cache_is_found_when_it_comes_again() {
        let mut found = empty();
        let stacks = |count: u64| (1..=count).map(|stack| stack.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let missed = |found: &mut FoundStacks<KEPT_COUNT>, count: u64, with: Option<u64>| {
            let mut missed = 0;
            for (place, hash) in stacks(count).enumerate() {
                let others = with.filter(|_| place % 100 == 50).map(|with| with + place as u64);
                for hash in others.into_iter().chain([hash]) {
                    if found.find(hash).is_none() {
                        missed += 1;
                        found.remember(hash, hash as u32);
                    }
                }
            }
            missed
        };
        let count = 4 * NEAR_COUNT as u64 - 1;
        assert_eq!(missed(&mut found, count, None), count);
        // The first ones were kept in no order.
        assert_eq!(missed(&mut found, count, None), u64::from(UNORDERED_COUNT));
        assert_eq!(missed(&mut found, count, None), 0);
        // A new stack now and then costs its own look-up.
        assert_eq!(missed(&mut found, count, Some(1 << 60)), (count + 49) / 100);
        // More than are kept are not found in order, and cost what they did.
        let many = KEPT_COUNT as u64 + 10_000;
        missed(&mut found, many, None);
        assert!(missed(&mut found, many, None) > 0);
    }
}
