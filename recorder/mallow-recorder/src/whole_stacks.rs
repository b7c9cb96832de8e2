//! Short stacks that are known as a whole.
//!
//! The words that the walk of a short stack read are kept with its node, all of them: if they are unchanged, a walk that begins with the same
//! registers would read them again and end at the same node. That asks nothing of the memo.
//!
//! To keep so many words takes longer than a short walk, so a stack is kept when it was reached by the same path several times
//! ([`crate::path_cache`]), or when no path can be kept for it.

use crate::bounds::{at, at_mut, first};
use crate::walk::{Check, Frame, GROUP_WORDS, Group, all_unchanged, fill};

/// The most words of a stack. With them it takes eight cache lines.
pub const WHOLE_WORDS_MAX: usize = GROUPS_MAX * GROUP_WORDS;
const GROUPS_MAX: usize = 7;

/// How many stacks a thread keeps: one for each hash of call site and depth. A quarter as many, half as long, cost sqlite3 a third more;
/// twice as many bring nothing.
const WHOLE_COUNT: usize = 512;

#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Whole {
    /// The innermost frame.
    slot: usize,
    ra: usize,
    bp: usize,
    /// Its node.
    node: u32,
    /// When it was found, as a [`WholeStacks::era`] and 1 more; 0 in an empty place.
    era: u32,
    bp_matters: bool,
    group_count: u8,
    /// All words that the walk read, innermost first. The last one again fills its group.
    groups: [Group; GROUPS_MAX],
}

const _: () = assert!(size_of::<Whole>() == 512);

/// A thread's short stacks. Zeroed at first.
#[repr(C)]
#[derive(Debug)]
pub struct WholeStacks {
    /// Stacks of another era are forgotten.
    era: u32,
    stacks: [Whole; WHOLE_COUNT],
}

#[inline(always)]
fn place(frame: &Frame) -> usize {
    let mixed = frame.ra as u64 ^ (frame.slot as u64) << 25;
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as usize % WHOLE_COUNT
}

impl WholeStacks {
    /// Returns the node of a call with this innermost frame, if its whole stack is kept.
    ///
    /// # Safety
    /// The frame is the innermost of this thread, and nothing was unloaded since the stacks were kept.
    #[inline(always)]
    pub unsafe fn find(&self, innermost: &Frame) -> Option<u32> {
        let whole = at(&self.stacks, place(innermost));
        let may_be = whole.era == self.era.wrapping_add(1)
            && whole.slot == innermost.slot
            && whole.ra == innermost.ra
            && (whole.bp == innermost.bp || !whole.bp_matters);
        // SAFETY: a stack is kept if its words can be read again, which lies with those who kept it.
        let is_it = may_be && unsafe { all_unchanged(first(&whole.groups, whole.group_count as usize)) };
        is_it.then_some(whole.node)
    }

    /// Forgets all stacks, without a touch of their pages.
    pub fn forget(&mut self) {
        self.era = self.era.wrapping_add(1);
    }

    /// Keeps a stack in the place of an older one. `words` are all that its walk read, at most [`WHOLE_WORDS_MAX`], and
    /// can be read whenever kept frames can.
    #[inline(always)]
    pub fn remember(
        &mut self,
        innermost: &Frame,
        bp_matters: bool,
        words: impl Iterator<Item = Check>,
        node: u32,
    ) {
        let era = self.era.wrapping_add(1);
        let whole = at_mut(&mut self.stacks, place(innermost));
        (whole.slot, whole.ra, whole.bp) = (innermost.slot, innermost.ra, innermost.bp);
        (whole.bp_matters, whole.node, whole.era) = (bp_matters, node, era);
        whole.group_count = fill(&mut whole.groups, words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_whole_stack_is_good_while_every_word_of_it_is_as_it_was() {
        let innermost = Frame { slot: 0x7000, sp: 0x7008, ra: 0x4000, bp: 5, exact: false };
        // SAFETY: integers: zeros are valid.
        let mut stacks: Box<WholeStacks> = unsafe { Box::new_zeroed().assume_init() };
        // SAFETY: the words are those of a living array.
        let found = |stacks: &WholeStacks, frame: &Frame| unsafe { stacks.find(frame) };
        assert_eq!(found(&stacks, &innermost), None);
        for count in 1..=WHOLE_WORDS_MAX {
            let stack: Vec<AtomicUsize> = (0..count).map(AtomicUsize::new).collect();
            let words = stack.iter().enumerate();
            let words = words.map(|(value, word)| Check { address: word.as_ptr() as usize, value });
            stacks.remember(&innermost, false, words, 42);
            assert_eq!(found(&stacks, &innermost), Some(42));
            for (place, word) in stack.iter().enumerate() {
                word.fetch_add(1, Ordering::Relaxed);
                assert_eq!(found(&stacks, &innermost), None, "{place} of {count}");
                word.fetch_sub(1, Ordering::Relaxed);
            }
            assert_eq!(found(&stacks, &innermost), Some(42));
        }
        let word = 7usize;
        let words = [Check { address: core::ptr::from_ref(&word) as usize, value: 7 }];
        stacks.remember(&innermost, false, words.iter().copied(), 42);
        assert_eq!(found(&stacks, &Frame { bp: 6, ..innermost }), Some(42), "nobody looks at it");
        stacks.remember(&innermost, true, words.iter().copied(), 43);
        assert_eq!(found(&stacks, &innermost), Some(43));
        for other in [
            Frame { bp: 6, ..innermost },
            Frame { ra: 0x4001, ..innermost },
            Frame { slot: 0x7008, ..innermost },
        ] {
            assert_eq!(found(&stacks, &other), None);
        }
        stacks.forget();
        assert_eq!(found(&stacks, &innermost), None);
    }
}
