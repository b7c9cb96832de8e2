//! Recent paths from an allocating call to the end of its stack, or to a frame of the memo.
//!
//! The words that the walk of a short stack read are kept with its node, all of them: if they are unchanged, a walk that begins with the same
//! registers would read them again and end at the same node ([`PathCache::find_whole`]). That asks nothing of the memo.
//!
//! Of a deeper stack a part is kept. //! A loop that allocates in three places keeps the outer frames and takes three paths inwards, in turns. The memo stores only
//! one of them; this cache stores others. A cached path starts at a call site at a stack depth, reads a few return addresses,
//! and ends at a kept frame. It is valid for a call when all of that is unchanged: the call site, the stack pointer, rbp if the
//! path uses it, every word that was read, and the kept frame: its place, and the hash of its stack. (No frame of the path
//! restores rbp, so at the kept frame it is the innermost one's.) Another walk may have found the kept frame again in the
//! meantime.

use crate::bounds::{at, at_mut, first};
use crate::walk::{Check, Frame, GROUP_WORDS, Group, all_unchanged};

/// The longest path to a kept frame, in frames.
pub const PATH_FRAMES_MAX: usize = 16;

/// The most words of a whole stack. With them a path takes eight cache lines.
pub const WHOLE_WORDS_MAX: usize = GROUPS_MAX * GROUP_WORDS;
const GROUPS_MAX: usize = 7;

/// The end of a stack, as what a path leads to. Otherwise that is the kept frame below an index, which is not 0.
const TO_THE_END: u32 = u32::MAX;

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
    group_count: u8,
    /// The stack node of the innermost frame.
    node: u32,
    /// Where it leads to, and when it was found: [`mark`]; 0 in an empty place.
    mark: u64,
    /// That frame.
    met: Met,
    /// The words between the innermost frame and the kept one, or all that the walk read. The last one again fills its group.
    groups: [Group; GROUPS_MAX],
}

const _: () = assert!(PATH_FRAMES_MAX <= WHOLE_WORDS_MAX && size_of::<Path>() == 512);

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

const NO_WORD: Check = Check { address: 0, value: 0 };

/// A thread's paths. Zeroed at first.
#[repr(C)]
#[derive(Debug)]
pub struct PathCache {
    /// Paths of another era are forgotten.
    era: u32,
    paths: [Path; PATH_COUNT],
}

/// The mark of a path to the kept frame below `join`, or to the end of the stack, that was found in an era.
#[inline(always)]
fn mark(join: u32, era: u32) -> u64 {
    u64::from(join) << 32 | u64::from(era)
}

#[inline(always)]
fn place(frame: &Frame) -> usize {
    let mixed = frame.ra as u64 ^ (frame.slot as u64) << 25;
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 55) as usize % PATH_COUNT
}

impl Path {
    /// Returns whether it begins with this frame.
    #[inline(always)]
    fn begins_with(&self, innermost: &Frame) -> bool {
        self.slot == innermost.slot
            && self.ra == innermost.ra
            && (self.bp == innermost.bp || !self.bp_matters)
    }

    /// Returns whether what was read is unchanged.
    ///
    /// # Safety
    /// The words can be read.
    #[inline(always)]
    unsafe fn is_unchanged(&self) -> bool {
        // SAFETY: by contract.
        unsafe { all_unchanged(first(&self.groups, self.group_count as usize)) }
    }
}

impl PathCache {
    /// Returns the node of a call with this innermost frame, if its whole stack is that of a kept path.
    ///
    /// # Safety
    /// The frame is the innermost of this thread, and nothing was unloaded since the paths were kept.
    #[inline(always)]
    pub unsafe fn find_whole(&self, innermost: &Frame) -> Option<u32> {
        let path = at(&self.paths, place(innermost));
        let may_be = path.mark == mark(TO_THE_END, self.era) && path.begins_with(innermost);
        // SAFETY: a stack is kept if its words can be read again, which lies with those who kept it.
        (may_be && unsafe { path.is_unchanged() }).then_some(path.node)
    }

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
        let join = (path.mark >> 32) as usize;
        // The end of the stack is above every index.
        let may_be = path.mark as u32 == self.era && path.begins_with(innermost);
        if !may_be || join == 0 || join > kept_count {
            return None;
        }
        // SAFETY: the words lie between the innermost frame and the kept one.
        (kept(join - 1) == path.met && unsafe { path.is_unchanged() }).then_some(path.node)
    }

    /// Forgets all paths, without a touch of their pages.
    pub fn forget(&mut self) {
        self.era = self.era.wrapping_add(1);
    }

    /// Keeps a path in the place of an older one: to the kept frame below `join`, that was `met`.
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
        self.keep(innermost, bp_matters, node, join as u32, words.iter().copied()).met = met;
    }

    /// Keeps a whole stack in the place of an older path. `words` are all that its walk read, at most [`WHOLE_WORDS_MAX`], and
    /// can be read whenever kept frames can.
    #[inline(always)]
    pub fn remember_whole(
        &mut self,
        innermost: &Frame,
        bp_matters: bool,
        words: impl Iterator<Item = Check>,
        node: u32,
    ) {
        self.keep(innermost, bp_matters, node, TO_THE_END, words);
    }

    #[inline(always)]
    fn keep(
        &mut self,
        innermost: &Frame,
        bp_matters: bool,
        node: u32,
        join: u32,
        mut words: impl Iterator<Item = Check>,
    ) -> &mut Path {
        let mark = mark(join, self.era);
        let path = at_mut(&mut self.paths, place(innermost));
        path.slot = innermost.slot;
        path.ra = innermost.ra;
        path.bp = innermost.bp;
        path.bp_matters = bp_matters;
        path.node = node;
        path.mark = mark;
        let (mut last, mut count) = (NO_WORD, 0);
        for place in path.groups.as_flattened_mut() {
            match words.next() {
                Some(word) => last = word,
                None if count % GROUP_WORDS == 0 => break,
                None => {}
            }
            *place = last;
            count += 1;
        }
        path.group_count = (count / GROUP_WORDS) as u8;
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicUsize, Ordering};

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

    #[test]
    fn a_whole_stack_is_good_while_every_word_of_it_is_as_it_was() {
        let innermost = Frame { slot: 0x7000, sp: 0x7008, ra: 0x4000, bp: 5, exact: false };
        // SAFETY: integers: zeros are valid.
        let mut path_cache: Box<PathCache> = unsafe { Box::new_zeroed().assume_init() };
        // SAFETY: the words are those of a living array.
        let found = |path_cache: &PathCache, frame: &Frame| unsafe { path_cache.find_whole(frame) };
        assert_eq!(found(&path_cache, &innermost), None);
        for count in 1..=WHOLE_WORDS_MAX {
            let stack: Vec<AtomicUsize> = (0..count).map(AtomicUsize::new).collect();
            let words = stack.iter().enumerate();
            let words = words.map(|(value, word)| Check { address: word.as_ptr() as usize, value });
            path_cache.remember_whole(&innermost, false, words, 42);
            assert_eq!(found(&path_cache, &innermost), Some(42));
            for (place, word) in stack.iter().enumerate() {
                word.fetch_add(1, Ordering::Relaxed);
                assert_eq!(found(&path_cache, &innermost), None, "{place} of {count}");
                word.fetch_sub(1, Ordering::Relaxed);
            }
            assert_eq!(found(&path_cache, &innermost), Some(42));
            let any = Met { slot: 0, bp: 0, hash: 0 };
            // SAFETY: as above.
            let part = unsafe { path_cache.find(&innermost, 1 << 20, |_| any) };
            assert_eq!(part, None, "it leads to no frame");
        }
        let word = 7usize;
        let words = [Check { address: core::ptr::from_ref(&word) as usize, value: 7 }];
        path_cache.remember_whole(&innermost, false, words.iter().copied(), 42);
        assert_eq!(found(&path_cache, &Frame { bp: 6, ..innermost }), Some(42), "nobody looks at it");
        path_cache.remember_whole(&innermost, true, words.iter().copied(), 43);
        assert_eq!(found(&path_cache, &innermost), Some(43));
        for other in [
            Frame { bp: 6, ..innermost },
            Frame { ra: 0x4001, ..innermost },
            Frame { slot: 0x7008, ..innermost },
        ] {
            assert_eq!(found(&path_cache, &other), None);
        }
        path_cache.forget();
        assert_eq!(found(&path_cache, &innermost), None);
        path_cache.remember(&innermost, false, 3, Met { slot: 0x7100, bp: 9, hash: 11 }, &words, 44);
        assert_eq!(found(&path_cache, &innermost), None, "a part is not the whole");
    }
}
