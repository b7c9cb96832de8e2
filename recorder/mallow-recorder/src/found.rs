//! A thread's cache of stacks that it found by walking, keyed by the hash of the whole stack.
//!
//! A program returns to the same stacks again and again, by paths too long or too many for [`crate::path_cache`]. A look-up in
//! the node table has several cache misses, one for each of its segments. Two stacks collide with a probability of 2^-64.

use crate::bounds::{at, at_mut};

/// A stack, and its node.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Entry {
    hash: u64,
    node: u32,
    /// When it was found, as an [`FoundStacks::era`].
    era: u32,
}

/// One for each low end of a hash. More of them cost as much by their own misses (cc1plus).
const FOUND_COUNT: usize = 4096;

/// A thread's stacks. Zeroed at first.
#[repr(C)]
#[derive(Debug)]
pub struct FoundStacks {
    /// Stacks of another era are forgotten.
    era: u32,
    entries: [Entry; FOUND_COUNT],
}

impl FoundStacks {
    /// The node of the stack with this hash, if it was found lately.
    #[inline(always)]
    pub fn find(&self, hash: u64) -> Option<u32> {
        let entry = at(&self.entries, hash as usize % FOUND_COUNT);
        (entry.hash == hash && entry.era == self.era).then_some(entry.node)
    }

    /// Keeps a stack in the place of an older one.
    #[inline(always)]
    pub fn remember(&mut self, hash: u64, node: u32) {
        *at_mut(&mut self.entries, hash as usize % FOUND_COUNT) = Entry { hash, node, era: self.era };
    }

    /// Forgets all of them, without a touch of their pages.
    pub fn forget(&mut self) {
        self.era = self.era.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cached_stack_is_found_until_it_is_cleared_or_evicted() {
        // SAFETY: integers: zeros are valid.
        let mut found: Box<FoundStacks> = unsafe { Box::new_zeroed().assume_init() };
        assert_eq!(found.find(7), None);
        found.remember(7, 70);
        assert_eq!((found.find(7), found.find(7 + FOUND_COUNT as u64)), (Some(70), None));
        found.remember(7 + FOUND_COUNT as u64, 71);
        assert_eq!((found.find(7), found.find(7 + FOUND_COUNT as u64)), (None, Some(71)));
        found.forget();
        assert_eq!(found.find(7 + FOUND_COUNT as u64), None);
        found.remember(7, 72);
        assert_eq!(found.find(7), Some(72));
    }
}
