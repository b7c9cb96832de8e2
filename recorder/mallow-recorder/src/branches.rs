//! Recent ways from an allocating call to a frame of the memo.
//!
//! A loop that allocates in three places leaves the outer frames alone and takes three paths inwards, in
//! turns. The memo holds one path only. A branch is another one: it starts at a call site at a stack depth,
//! reads a few return addresses, and ends at a kept frame. It is good for a call when all of that is as it
//! was: the call site, the stack pointer, rbp if the path looks at it, every word that was read, and the kept
//! frame: its place, and the hash of its stack. (No frame of the branch restores rbp, so that at the kept frame it is
//! the innermost one's.) Another walk may have found the kept frame again in the meantime.

use crate::bounds::{at, at_mut, first};
use crate::walk::{Check, Frame, unchanged};

/// The longest branch, in frames.
pub const BRANCH_FRAMES_MAX: usize = 16;

/// How many branches a thread keeps: one for each hash of call site and depth. A quarter as many, half as long, cost sqlite3 a third more;
/// twice as many bring nothing.
const BRANCH_COUNT: usize = 512;

#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Branch {
    /// The innermost frame.
    slot: usize,
    ra: usize,
    bp: usize,
    bp_matters: bool,
    word_count: u8,
    /// The stack node of the innermost frame.
    node: u32,
    /// The kept frame that the branch leads to is the one below this index; 0 in an empty place.
    join: u32,
    /// When it was found, as [`Branches::era`] says.
    era: u32,
    /// That frame.
    met: Met,
    /// The words between the innermost frame and the kept one.
    words: [Check; BRANCH_FRAMES_MAX - 1],
}

/// A kept frame as a branch knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Met {
    /// Where its return address lies.
    pub slot: usize,
    /// Its rbp; 0 when nobody looks at it.
    pub bp: usize,
    /// The hash of its stack.
    pub hash: u64,
}

/// A thread's branches. Zeroed at first.
#[repr(C)]
#[derive(Debug)]
pub struct Branches {
    /// Branches of another era are forgotten.
    era: u32,
    branches: [Branch; BRANCH_COUNT],
}

#[inline(always)]
fn place(frame: &Frame) -> usize {
    let mixed = (frame.ra as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (frame.slot as u64) << 25;
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as usize % BRANCH_COUNT
}

impl Branches {
    /// The node of a call whose innermost frame is given, when a branch leads from it to one of the `kept_count` kept
    /// frames, each of which `kept` describes.
    ///
    /// # Safety
    /// The frame is the innermost of this thread, the kept frames are live and lie on its own stack above it.
    #[inline(always)]
    pub unsafe fn find(
        &self,
        innermost: &Frame,
        kept_count: usize,
        kept: impl Fn(usize) -> Met,
    ) -> Option<u32> {
        let branch = at(&self.branches, place(innermost));
        let join = branch.join as usize;
        let same_start = branch.slot == innermost.slot
            && branch.ra == innermost.ra
            && (branch.bp == innermost.bp || !branch.bp_matters);
        if !same_start
            || branch.era != self.era
            || join == 0
            || join > kept_count
            || kept(join - 1) != branch.met
        {
            return None;
        }
        let words = first(&branch.words, branch.word_count as usize);
        // SAFETY: the words lie between the innermost frame and the kept one.
        (unsafe { unchanged(words) } == words.len()).then_some(branch.node)
    }

    /// Forgets all branches, without a touch of their pages.
    pub fn forget(&mut self) {
        self.era = self.era.wrapping_add(1);
    }

    /// Keeps a branch in the place of an older one.
    #[inline(always)]
    pub fn remember(
        &mut self,
        innermost: &Frame,
        bp_matters: bool,
        join: usize,
        met: Met,
        words: &[Check],
        node: u32,
    ) {
        let branch = at_mut(&mut self.branches, place(innermost));
        branch.slot = innermost.slot;
        branch.ra = innermost.ra;
        branch.bp = innermost.bp;
        branch.bp_matters = bp_matters;
        branch.word_count = words.len() as u8;
        branch.node = node;
        branch.join = join as u32;
        branch.era = self.era;
        branch.met = met;
        for (place, word) in branch.words.iter_mut().zip(words) {
            *place = *word;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_good_while_everything_that_it_read_is_as_it_was() {
        let stack = [0x1111usize, 0x2222];
        let words =
            stack.each_ref().map(|word| Check { address: core::ptr::from_ref(word) as usize, value: *word });
        let innermost = Frame { slot: 0x7000, sp: 0x7008, ra: 0x4000, bp: 5, exact: false };
        let met = Met { slot: 0x7100, bp: 9, hash: 11 };
        // SAFETY: integers: zeros are valid.
        let mut branches: Box<Branches> = unsafe { Box::new_zeroed().assume_init() };
        // SAFETY: the words are those of a living array.
        let found =
            |branches: &Branches, frame: Frame, kept: Met| unsafe { branches.find(&frame, 3, |_| kept) };
        assert_eq!(found(&branches, innermost, met), None);
        branches.remember(&innermost, false, 3, met, &words, 42);
        assert_eq!(found(&branches, innermost, met), Some(42));
        assert_eq!(found(&branches, Frame { bp: 6, ..innermost }, met), Some(42), "nobody looks at it");
        assert_eq!(found(&branches, Frame { ra: 0x4001, ..innermost }, met), None);
        assert_eq!(found(&branches, innermost, Met { hash: 12, ..met }), None);
        branches.remember(&innermost, true, 3, met, &words, 42);
        assert_eq!(found(&branches, Frame { bp: 6, ..innermost }, met), None);
        let changed = Check { value: 0x3333, ..words[1] };
        branches.remember(&innermost, false, 3, met, &[words[0], changed], 42);
        assert_eq!(found(&branches, innermost, met), None);
        branches.remember(&innermost, false, 3, met, &words, 42);
        branches.forget();
        assert_eq!(found(&branches, innermost, met), None);
    }
}
