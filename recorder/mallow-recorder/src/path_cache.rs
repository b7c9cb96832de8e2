//! Recent paths from an allocating call to a frame of the memo.
//!
//! A loop that allocates in three places keeps the outer frames and takes three paths inwards, in turns. The memo stores only
//! one of them; this cache stores others. A cached path starts at a call site at a stack depth, reads a few return addresses,
//! and ends at a kept frame. It is valid for a call when all of that is unchanged: the call site, the stack pointer, rbp if the
//! path uses it, every word that was read, and the kept frame: its place, and the hash of its stack. (No frame of the path
//! restores rbp, so at the kept frame it is the innermost one's.) Another walk may have found the kept frame again in the
//! meantime.

use crate::bounds::{at, at_mut, first};
use crate::walk::{Check, Frame, unchanged};

/// The longest path, in frames.
pub const PATH_FRAMES_MAX: usize = 16;

/// How many paths a thread keeps: one for each hash of call site and depth. A quarter as many, half as long, cost sqlite3 a third more;
/// twice as many bring nothing.
const PATH_COUNT: usize = 512;

#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Path {
    /// The innermost frame.
    slot: usize,
    ra: usize,
    bp: usize,
    bp_matters: bool,
    word_count: u8,
    /// The stack node of the innermost frame.
    node: u32,
    /// The kept frame that the path leads to is the one below this index; 0 in an empty place.
    join: u32,
    /// When it was found, as a [`PathCache::era`].
    era: u32,
    /// That frame.
    met: Met,
    /// The words between the innermost frame and the kept one.
    words: [Check; PATH_FRAMES_MAX - 1],
}

/// A kept frame as a path knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Met {
    /// Where its return address is stored.
    pub slot: usize,
    /// Its rbp; 0 if no frame uses it.
    pub bp: usize,
    /// The hash of its stack.
    pub hash: u64,
}

/// A thread's paths. Zeroed at first.
#[repr(C)]
#[derive(Debug)]
pub struct PathCache {
    /// Paths of another era are forgotten.
    era: u32,
    paths: [Path; PATH_COUNT],
}

#[inline(always)]
fn place(frame: &Frame) -> usize {
    let mixed = (frame.ra as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (frame.slot as u64) << 25;
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as usize % PATH_COUNT
}

impl PathCache {
    /// Returns the node of a call with this innermost frame, if a cached path leads from it to one of the
    /// `kept_count` kept frames, which `kept` returns.
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
        let path = at(&self.paths, place(innermost));
        let join = path.join as usize;
        let same_start = path.slot == innermost.slot
            && path.ra == innermost.ra
            && (path.bp == innermost.bp || !path.bp_matters);
        if !same_start || path.era != self.era || join == 0 || join > kept_count || kept(join - 1) != path.met
        {
            return None;
        }
        let words = first(&path.words, path.word_count as usize);
        // SAFETY: the words lie between the innermost frame and the kept one.
        (unsafe { unchanged(words) } == words.len()).then_some(path.node)
    }

    /// Forgets all paths, without a touch of their pages.
    pub fn forget(&mut self) {
        self.era = self.era.wrapping_add(1);
    }

    /// Keeps a path in the place of an older one.
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
        let path = at_mut(&mut self.paths, place(innermost));
        path.slot = innermost.slot;
        path.ra = innermost.ra;
        path.bp = innermost.bp;
        path.bp_matters = bp_matters;
        path.word_count = words.len() as u8;
        path.node = node;
        path.join = join as u32;
        path.era = self.era;
        path.met = met;
        for (place, word) in path.words.iter_mut().zip(words) {
            *place = *word;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_good_while_everything_that_it_read_is_as_it_was() {
        let stack = [0x1111usize, 0x2222];
        let words =
            stack.each_ref().map(|word| Check { address: core::ptr::from_ref(word) as usize, value: *word });
        let innermost = Frame { slot: 0x7000, sp: 0x7008, ra: 0x4000, bp: 5, exact: false };
        let met = Met { slot: 0x7100, bp: 9, hash: 11 };
        // SAFETY: integers: zeros are valid.
        let mut path_cache: Box<PathCache> = unsafe { Box::new_zeroed().assume_init() };
        // SAFETY: the words are those of a living array.
        let found =
            |path_cache: &PathCache, frame: Frame, kept: Met| unsafe { path_cache.find(&frame, 3, |_| kept) };
        assert_eq!(found(&path_cache, innermost, met), None);
        path_cache.remember(&innermost, false, 3, met, &words, 42);
        assert_eq!(found(&path_cache, innermost, met), Some(42));
        assert_eq!(found(&path_cache, Frame { bp: 6, ..innermost }, met), Some(42), "nobody looks at it");
        assert_eq!(found(&path_cache, Frame { ra: 0x4001, ..innermost }, met), None);
        assert_eq!(found(&path_cache, innermost, Met { hash: 12, ..met }), None);
        path_cache.remember(&innermost, true, 3, met, &words, 42);
        assert_eq!(found(&path_cache, Frame { bp: 6, ..innermost }, met), None);
        let changed = Check { value: 0x3333, ..words[1] };
        path_cache.remember(&innermost, false, 3, met, &[words[0], changed], 42);
        assert_eq!(found(&path_cache, innermost, met), None);
        path_cache.remember(&innermost, false, 3, met, &words, 42);
        path_cache.forget();
        assert_eq!(found(&path_cache, innermost, met), None);
    }
}
