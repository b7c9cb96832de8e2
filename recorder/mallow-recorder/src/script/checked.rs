//! What a signal handler reads and writes: memory as the kernel reads it, and room for keys of frames.

use crate::bounds::at;
use crate::process;
use mallow_wire::shared::PAGE_BYTES;

/// Words of a page.
pub const PAGE_WORDS: usize = PAGE_BYTES / 8;
/// Memory as the kernel reads it, the last page of it kept.
#[derive(Debug)]
pub struct Pages<'a> {
    copy: &'a mut [usize; PAGE_WORDS],
    /// The page of the copy; at first 1, which is no page.
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
    /// Returns an empty list with this room.
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

    /// Returns how many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// There were more.
    pub fn is_cut(&self) -> bool {
        self.is_cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_beyond_the_room_are_reported() {
        let mut room = [0; 2];
        let mut keys = Keys::new(&mut room);
        assert!(keys.push(1) && keys.push(2) && !keys.is_cut());
        assert!(!keys.push(3) && keys.is_cut());
        assert_eq!((keys.count(), room), (2, [1, 2]));
    }
}
