//! Recent paths from an allocating call to a frame of the memo.
//!
//! A program keeps the outer frames of its stack and takes several ways inwards from there, in turns. The memo stores only the last of
//! them; this cache stores others. A path starts at a call site at a stack depth, reads a few return addresses,
//! and ends at a kept frame. It is valid for a call when all of that is unchanged: the call site, the stack pointer, rbp if the
//! path uses it, every word that was read, and the kept frame: its place, and the hash of its stack. (No frame of the path
//! restores rbp, so at the kept frame it is the innermost one's.) Another walk may have found the kept frame again in the
//! meantime.
//!
//! Nearly all calls of a compiler come from a few functions that wrap the allocator, each at the depths at which it is called. So paths are looked for by the return
//! address of the second frame too. Looked for by the first one alone, two of three allocating calls of cc1plus were walked; now it is one of eight.

use crate::bounds::{at, at_mut, first};
use crate::walk::{Check, Frame, GROUP_WORDS, Group, all_unchanged, fill};

/// The longest path to a kept frame, in frames: its words are those of all but the innermost.
pub const PATH_FRAMES_MAX: usize = GROUPS_MAX * GROUP_WORDS + 1;
const GROUPS_MAX: usize = 2;

/// How many paths a thread keeps: in sets, one for each hash of the first two frames.
const SET_COUNT: usize = 256;
const SET_PATHS: usize = 4;

/// Each time that a path was good so often again, its stack may be worth more ([`crate::whole_stacks`]).
const OFTEN: u8 = 16;

/// A path, from the innermost frame of a call to a kept frame.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Path {
    /// The innermost frame.
    slot: usize,
    ra: usize,
    bp: usize,
    /// What it leads to.
    pub ends: Ends,
    /// When it was found, as a [`PathCache::era`] and 1 more; 0 in an empty place.
    era: u32,
    /// Whether the walk depends on the innermost frame's rbp.
    pub bp_matters: bool,
    group_count: u8,
    /// How often it was good, modulo 256.
    uses: u8,
    /// The words between the innermost frame and the kept one, innermost first. The last one again fills its group.
    groups: [Group; GROUPS_MAX],
}

const _: () = assert!(size_of::<Path>() == 192);

/// The ends of a path.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Ends {
    /// The kept frame that it leads to.
    pub met: Met,
    /// That is the one below this index, which is not 0.
    pub join: u32,
    /// The stack node of the innermost frame.
    pub node: u32,
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
    /// How many were kept, by which the next one finds its place.
    kept: u32,
    /// Of each path the low end of its hash: the others are not looked at.
    tags: [[u32; SET_PATHS]; SET_COUNT],
    paths: [[Path; SET_PATHS]; SET_COUNT],
}

/// The hash of the first two frames of a path, of the second one where it returns to.
#[inline(always)]
fn hash(innermost: &Frame, outer_ra: usize) -> u64 {
    let mixed = (innermost.slot as u64) << 25 ^ innermost.ra as u64 ^ (outer_ra as u64).rotate_left(17);
    mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[inline(always)]
fn set(hash: u64) -> usize {
    (hash >> 56) as usize % SET_COUNT
}

#[inline(always)]
fn tag(hash: u64) -> u32 {
    (hash >> 24) as u32
}

impl Path {
    /// Returns whether it begins with this frame.
    #[inline(always)]
    fn begins_with(&self, innermost: &Frame) -> bool {
        self.slot == innermost.slot
            && self.ra == innermost.ra
            && (self.bp == innermost.bp || !self.bp_matters)
    }

    #[inline(always)]
    fn groups(&self) -> &[Group] {
        first(&self.groups, self.group_count as usize)
    }

    /// The words between its ends, innermost first, and the last one some times again.
    pub fn words(&self) -> &[Check] {
        self.groups().as_flattened()
    }

    /// Returns whether it was good as often again as makes its stack worth more.
    #[inline(always)]
    pub fn is_often(&self) -> bool {
        self.uses.is_multiple_of(OFTEN)
    }
}

impl PathCache {
    /// Returns the path of a call with this innermost frame, whose caller returns to `outer_ra`, to one of the
    /// `kept_count` kept frames, which `kept` returns.
    ///
    /// # Safety
    /// The frame is the innermost of this thread, the kept frames are live and lie on its own stack above it.
    #[inline(always)]
    pub unsafe fn find(
        &mut self,
        innermost: &Frame,
        outer_ra: usize,
        kept_count: usize,
        kept: impl Fn(usize) -> Met,
    ) -> Option<&Path> {
        let hash = hash(innermost, outer_ra);
        for (way, tagged) in at(&self.tags, set(hash)).iter().enumerate() {
            if *tagged != tag(hash) {
                continue;
            }
            let path = at(at(&self.paths, set(hash)), way);
            let join = path.ends.join as usize;
            let may_be = path.era == self.era.wrapping_add(1)
                && path.begins_with(innermost)
                && join.wrapping_sub(1) < kept_count
                && kept(join - 1) == path.ends.met;
            // SAFETY: the words lie between the innermost frame and the kept one.
            if may_be && unsafe { all_unchanged(path.groups()) } {
                let path = at_mut(at_mut(&mut self.paths, set(hash)), way);
                path.uses = path.uses.wrapping_add(1);
                return Some(path);
            }
        }
        None
    }

    /// Forgets all paths, without a touch of their pages.
    pub fn forget(&mut self) {
        self.era = self.era.wrapping_add(1);
    }

    /// Keeps a path in the place of an older one. `words` are those between its ends, outermost first.
    #[inline(always)]
    pub fn remember(
        &mut self,
        innermost: &Frame,
        outer_ra: usize,
        bp_matters: bool,
        words: &[Check],
        ends: Ends,
    ) {
        let (hash, era) = (hash(innermost, outer_ra), self.era.wrapping_add(1));
        let way = self.kept as usize % SET_PATHS;
        self.kept = self.kept.wrapping_add(1);
        *at_mut(at_mut(&mut self.tags, set(hash)), way) = tag(hash);
        let path = at_mut(at_mut(&mut self.paths, set(hash)), way);
        (path.slot, path.ra, path.bp) = (innermost.slot, innermost.ra, innermost.bp);
        (path.ends, path.era, path.bp_matters, path.uses) = (ends, era, bp_matters, 0);
        // Innermost first: those change most often.
        path.group_count = fill(&mut path.groups, words.iter().rev().copied());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicUsize, Ordering};

    const INNERMOST: Frame = Frame { slot: 0x7000, sp: 0x7008, ra: 0x4000, bp: 5, exact: false };
    const MET: Met = Met { slot: 0x7100, bp: 9, hash: 11 };
    const OUTER_RA: usize = 0x5000;

    fn empty() -> Box<PathCache> {
        // SAFETY: integers: zeros are valid.
        unsafe { Box::new_zeroed().assume_init() }
    }

    fn found_from(paths: &mut PathCache, frame: &Frame, outer_ra: usize, met: Met) -> Option<u32> {
        // SAFETY: the words are those of living arrays.
        unsafe { paths.find(frame, outer_ra, 3, |_| met) }.map(|path| path.ends.node)
    }

    fn found(paths: &mut PathCache, frame: &Frame, met: Met) -> Option<u32> {
        found_from(paths, frame, OUTER_RA, met)
    }

    fn words_of(stack: &[AtomicUsize]) -> Vec<Check> {
        let word = |word: &AtomicUsize| Check {
            address: word.as_ptr() as usize,
            value: word.load(Ordering::Relaxed),
        };
        stack.iter().map(word).collect()
    }

    #[test]
    fn a_path_is_good_while_everything_that_it_read_is_as_it_was() {
        let mut paths = empty();
        assert_eq!(found(&mut paths, &INNERMOST, MET), None);
        for count in 0..PATH_FRAMES_MAX {
            let stack: Vec<AtomicUsize> = (0..count).map(AtomicUsize::new).collect();
            let ends = Ends { met: MET, join: 3, node: 40 + count as u32 };
            paths.remember(&INNERMOST, OUTER_RA, false, &words_of(&stack), ends);
            assert_eq!(found(&mut paths, &INNERMOST, MET), Some(ends.node));
            for (place, word) in stack.iter().enumerate() {
                word.fetch_add(1, Ordering::Relaxed);
                assert_ne!(found(&mut paths, &INNERMOST, MET), Some(ends.node), "{place} of {count}");
                word.fetch_sub(1, Ordering::Relaxed);
            }
            paths.forget();
            assert_eq!(found(&mut paths, &INNERMOST, MET), None);
        }
    }

    #[test]
    fn a_path_begins_and_ends_where_it_began_and_ended() {
        let mut paths = empty();
        let ends = Ends { met: MET, join: 3, node: 42 };
        paths.remember(&INNERMOST, OUTER_RA, false, &[], ends);
        assert_eq!(found(&mut paths, &Frame { bp: 6, ..INNERMOST }, MET), Some(42), "nobody looks at it");
        for other in [Frame { ra: 0x4001, ..INNERMOST }, Frame { slot: 0x7008, ..INNERMOST }] {
            assert_eq!(found(&mut paths, &other, MET), None);
        }
        for other in [Met { slot: 0x7108, ..MET }, Met { bp: 10, ..MET }, Met { hash: 12, ..MET }] {
            assert_eq!(found(&mut paths, &INNERMOST, other), None);
        }
        // SAFETY: it has no words.
        assert!(unsafe { paths.find(&INNERMOST, OUTER_RA, 2, |_| MET) }.is_none(), "the frame is gone");
        assert_eq!(found_from(&mut paths, &INNERMOST, 0x5001, MET), None);
        paths.forget();
        paths.remember(&INNERMOST, OUTER_RA, true, &[], ends);
        assert_eq!(found(&mut paths, &Frame { bp: 6, ..INNERMOST }, MET), None);
        assert_eq!(found(&mut paths, &INNERMOST, MET), Some(42));
    }

    #[test]
    fn several_paths_from_one_call_site_are_kept_and_the_oldest_goes() {
        let mut paths = empty();
        let stack = [AtomicUsize::new(0)];
        let take = |paths: &mut PathCache, way: usize| {
            stack[0].store(way, Ordering::Relaxed);
            found(paths, &INNERMOST, MET)
        };
        for way in 0..=SET_PATHS {
            assert_eq!(take(&mut paths, way), None);
            let ends = Ends { met: MET, join: 3, node: way as u32 };
            paths.remember(&INNERMOST, OUTER_RA, false, &words_of(&stack), ends);
        }
        assert_eq!(take(&mut paths, 0), None);
        for way in 1..=SET_PATHS {
            assert_eq!(take(&mut paths, way), Some(way as u32));
        }
    }

    #[test]
    fn a_path_that_is_good_often_says_so_each_time_again() {
        let mut paths = empty();
        paths.remember(&INNERMOST, OUTER_RA, false, &[], Ends { met: MET, join: 3, node: 42 });
        let often = (0..10 * usize::from(OFTEN)).filter(|_| {
            // SAFETY: it has no words.
            unsafe { paths.find(&INNERMOST, OUTER_RA, 3, |_| MET) }.unwrap().is_often()
        });
        assert_eq!(often.count(), 10);
    }

    #[test]
    fn the_words_of_a_path_are_those_between_its_ends() {
        for count in 1..PATH_FRAMES_MAX {
            let mut paths = empty();
            let stack: Vec<AtomicUsize> = (0..count).map(AtomicUsize::new).collect();
            let words = words_of(&stack);
            paths.remember(&INNERMOST, OUTER_RA, false, &words, Ends { met: MET, join: 3, node: 42 });
            // SAFETY: the words are those of a living array.
            let path = unsafe { paths.find(&INNERMOST, OUTER_RA, 3, |_| MET) }.unwrap();
            let values: Vec<usize> = path.words().iter().map(|word| word.value).collect();
            let expected: Vec<usize> = (0..count).rev().collect();
            assert_eq!(values[..count], expected);
            assert!(values[count..].iter().all(|value| *value == 0), "the last one again");
        }
    }
}
