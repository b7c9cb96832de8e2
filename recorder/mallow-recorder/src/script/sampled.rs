//! A script's frames at any instruction, as a signal handler finds them.
//!
//! A call of `malloc` comes when the runtime's frames are in order. A sample may come while one is linked or left, when a list may lead to memory that
//! has just been given back. So every word is read by the kernel, a page at a time, and nothing is kept from one sample to the next but the numbers of
//! code. Who follows a list that is being changed may find a frame that is no more, or none: the collector sees whether the frames fit the native stack.

use super::cpython::Python;
use super::interpreter::Stage;
use super::sampled_python::python_frames;
use super::sampled_ruby::ruby_frames;
use super::{READER, READING, RUBY, STATE, UNTRIED, met, settle};
use crate::bounds::at;
use crate::process;
use core::sync::atomic::{AtomicU32, Ordering};
use mallow_wire::shared::PAGE_BYTES;

/// Words of a page.
pub const PAGE_WORDS: usize = PAGE_BYTES / 8;
/// How often frames may lie elsewhere than they should before nobody looks any more: the first may be looked at while they change.
const TRIES: u32 = 200;

static TRIED: AtomicU32 = AtomicU32::new(0);

/// Memory as the kernel reads it, the last page of it kept.
#[derive(Debug)]
pub struct Pages<'a> {
    copy: &'a mut [usize; PAGE_WORDS],
    /// Where the copy is of; 1, where no page is, at first.
    page: usize,
}

impl<'a> Pages<'a> {
    /// With room for a page.
    pub fn new(copy: &'a mut [usize; PAGE_WORDS]) -> Pages<'a> {
        Pages { copy, page: 1 }
    }

    /// A word; none where nothing is mapped, or no word begins.
    pub(super) fn word(&mut self, address: usize) -> Option<usize> {
        if !address.is_multiple_of(8) {
            return None;
        }
        let page = address & !(PAGE_BYTES - 1);
        if page != self.page {
            self.page = 1;
            // SAFETY: there is room for a page.
            if !unsafe { process::copy_checked(&[[page, PAGE_BYTES]], self.copy.as_mut_ptr().cast()) } {
                return None;
            }
            self.page = page;
        }
        Some(*at(self.copy, (address - page) / 8))
    }
}

/// Room for the keys of frames, innermost first.
#[derive(Debug)]
pub struct Keys<'a> {
    room: &'a mut [u64],
    count: usize,
    is_cut: bool,
}

impl<'a> Keys<'a> {
    /// As many as there is room for.
    pub fn new(room: &'a mut [u64]) -> Keys<'a> {
        Keys { room, count: 0, is_cut: false }
    }

    /// False when there is no room.
    pub(super) fn push(&mut self, key: u64) -> bool {
        match self.room.get_mut(self.count) {
            Some(place) => {
                *place = key;
                self.count += 1;
                true
            }
            None => {
                self.is_cut = true;
                false
            }
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// There were more.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

/// Whether this process has a runtime whose frames are read, or may be.
pub fn is_wanted() -> bool {
    matches!(STATE.load(Ordering::Acquire), UNTRIED | READING)
}

/// The frames of the calling thread's script. False when they cannot be told, as opposed to a thread that runs none.
pub fn frames(pages: &mut Pages<'_>, keys: &mut Keys<'_>) -> bool {
    if STATE.load(Ordering::Acquire) == UNTRIED
        && let Some(is_known) = first_look()
    {
        return is_known;
    }
    if STATE.load(Ordering::Acquire) != READING {
        return false;
    }
    let is_read = match READER.load(Ordering::Relaxed) {
        0 => python_frames::<0>(pages, keys),
        1 => python_frames::<1>(pages, keys),
        2 => python_frames::<2>(pages, keys),
        3 => python_frames::<3>(pages, keys),
        4 => python_frames::<4>(pages, keys),
        5 => python_frames::<5>(pages, keys),
        6 => python_frames::<6>(pages, keys),
        RUBY => ruby_frames::<0>(pages, keys),
        _ => ruby_frames::<1>(pages, keys),
    };
    is_read.is_some()
}

/// Looks at the first stack; what is known of a sample without frames, or none when they are read from now on.
#[cold]
fn first_look() -> Option<bool> {
    let known = met().interpreter;
    // SAFETY: the module was met.
    let stage = unsafe {
        match READER.load(Ordering::Relaxed) {
            0 => Python::<0>::of_this_thread().look_at_first(known),
            1 => Python::<1>::of_this_thread().look_at_first(known),
            2 => Python::<2>::of_this_thread().look_at_first(known),
            3 => Python::<3>::of_this_thread().look_at_first(known),
            4 => Python::<4>::of_this_thread().look_at_first(known),
            5 => Python::<5>::of_this_thread().look_at_first(known),
            6 => Python::<6>::of_this_thread().look_at_first(known),
            RUBY => super::sampled_ruby::look_at_first::<0>(known),
            _ => super::sampled_ruby::look_at_first::<1>(known),
        }
    };
    match stage {
        // The runtime has no frames yet.
        Stage::Untold => Some(true),
        Stage::Elsewhere if TRIED.fetch_add(1, Ordering::Relaxed) < TRIES => Some(false),
        stage => (!settle(stage)).then_some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_said() {
        let mut room = [0; 2];
        let mut keys = Keys::new(&mut room);
        assert!(keys.push(1) && keys.push(2) && !keys.is_cut());
        assert!(!keys.push(3) && keys.is_cut());
        assert_eq!((keys.count(), room), (2, [1, 2]));
    }
}
