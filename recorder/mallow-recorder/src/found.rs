//! A thread's cache of stacks that it found by walking, keyed by the hash of the whole stack.
//!
//! A program returns to the same stacks again and again, by paths too long or too many for [`crate::path_cache`]. A look-up in
//! the node table has several cache misses, one for each of its segments. Two stacks collide with a probability of 2^-64.
//!
//! A program with more stacks than a cache holds often goes through them in the same order as before: one that builds a tree,
//! or compiles function after function. So the stacks are also kept in the order in which they were looked up, and the one that
//! followed the last time is tried first: it lies beside the one before, where the processor has fetched it already.

use crate::bounds::{at, at_mut};

/// A stack, and its node.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Entry {
    hash: u64,
    node: u32,
    /// When it was found, as a [`FoundStacks::era`].
    era: u16,
    /// Its place in the sequence.
    position: u16,
}

const NO_ENTRY: Entry = Entry { hash: 0, node: 0, era: 0, position: 0 };

/// One for each low end of a hash. More of them cost as much by their own misses (cc1plus).
const FOUND_COUNT: usize = 4096;

/// How many stacks are kept in their order. A position has 16 bits.
const SEQUENCE_COUNT: usize = 32_768;

/// A thread's stacks. Zeroed at first.
#[repr(C)]
#[derive(Debug)]
pub struct FoundStacks {
    /// Stacks of another era are forgotten.
    era: u16,
    /// The place in the sequence of the stack that is expected.
    expected: usize,
    /// How many places were written.
    written: usize,
    /// The place that is written next.
    end: usize,
    entries: [Entry; FOUND_COUNT],
    hashes: [u64; SEQUENCE_COUNT],
    nodes: [u32; SEQUENCE_COUNT],
}

impl FoundStacks {
    /// The node of the stack with this hash, if it was found lately.
    #[inline(always)]
    pub fn find(&mut self, hash: u64) -> Option<u32> {
        let place = if self.expected < self.written { self.expected } else { 0 };
        if *at(&self.hashes, place) == hash && self.written > 0 {
            self.expected = place + 1;
            return Some(*at(&self.nodes, place));
        }
        let entry = *at(&self.entries, hash as usize % FOUND_COUNT);
        if entry.hash == hash && entry.era == self.era {
            self.expected = entry.position as usize + 1;
            return Some(entry.node);
        }
        None
    }

    /// Keeps a stack that was not found, in the place of an older one.
    #[inline(always)]
    pub fn remember(&mut self, hash: u64, node: u32) {
        let place = self.end % SEQUENCE_COUNT;
        *at_mut(&mut self.hashes, place) = hash;
        *at_mut(&mut self.nodes, place) = node;
        self.end = place + 1;
        self.written = self.written.max(place + 1);
        let entry = Entry { hash, node, era: self.era, position: place as u16 };
        *at_mut(&mut self.entries, hash as usize % FOUND_COUNT) = entry;
    }

    /// Forgets all of them, without a touch of their pages but once in as many times as there are eras.
    pub fn forget(&mut self) {
        (self.expected, self.written, self.end) = (0, 0, 0);
        self.era = self.era.wrapping_add(1);
        if self.era == 0 {
            self.entries.fill(NO_ENTRY);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    fn empty() -> Box<FoundStacks> {
        // SAFETY: integers: zeros are valid.
        unsafe { Box::new_zeroed().assume_init() }
    }

    #[test]
    fn a_cached_stack_is_found_until_it_is_cleared() {
        let mut found = empty();
        assert_eq!(found.find(7), None);
        found.remember(7, 70);
        assert_eq!((found.find(7), found.find(7 + FOUND_COUNT as u64)), (Some(70), None));
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
    fn a_sequence_longer_than_the_cache_is_found_when_it_comes_again() {
        let mut found = empty();
        let stacks = |count: u64| (1..=count).map(|stack| stack.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let missed = |found: &mut FoundStacks, count: u64, with: Option<u64>| {
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
        let count = 4 * FOUND_COUNT as u64 - 1;
        assert_eq!(missed(&mut found, count, None), count);
        assert_eq!(missed(&mut found, count, None), 0);
        // A new stack now and then costs its own look-up.
        assert_eq!(missed(&mut found, count, Some(1 << 60)), (count + 49) / 100);
        // More than are kept are not found in order, and cost what they did.
        let many = SEQUENCE_COUNT as u64 + 10_000;
        missed(&mut found, many, None);
        assert!(missed(&mut found, many, None) > 0);
    }
}
