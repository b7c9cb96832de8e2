//! What was found out at an address, kept for all threads.
//!
//! A table of entries of some words each, the first of which is the address. A reader takes no lock: an entry has a number that is odd while it
//! is being written, and another one afterwards. Who finds it so, or cannot have it for himself, goes on without the table.

use crate::bounds::at;
use core::sync::atomic::{AtomicUsize, Ordering, fence};

/// Entries that an address may have.
const PROBES: usize = 8;

#[derive(Debug)]
struct Entry<const WORDS: usize> {
    number: AtomicUsize,
    words: [AtomicUsize; WORDS],
}

/// The table; all zeros at first.
#[derive(Debug)]
pub struct Remembered<const WORDS: usize, const ENTRIES: usize> {
    entries: [Entry<WORDS>; ENTRIES],
}

impl<const WORDS: usize, const ENTRIES: usize> Remembered<WORDS, ENTRIES> {
    /// An empty table.
    pub const fn empty() -> Remembered<WORDS, ENTRIES> {
        Remembered {
            entries: [const {
                Entry { number: AtomicUsize::new(0), words: [const { AtomicUsize::new(0) }; WORDS] }
            }; ENTRIES],
        }
    }

    fn places(&self, address: usize) -> impl Iterator<Item = &Entry<WORDS>> {
        let first = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & (ENTRIES - 1) & !(PROBES - 1);
        (first..first + PROBES).map(|place| at(&self.entries, place))
    }

    /// The words of an address.
    #[inline]
    pub fn find(&self, address: usize) -> Option<[usize; WORDS]> {
        self.places(address).find_map(|entry| entry.read(address))
    }

    /// Stores words, of which the first is the address, instead of what was stored for it, or for another one.
    pub fn keep(&self, words: [usize; WORDS]) {
        let address = *at(&words, 0);
        let holds = |entry: &&Entry<WORDS>, of: usize| at(&entry.words, 0).load(Ordering::Relaxed) == of;
        let other = self.places(address).nth(*at(&words, WORDS - 1) % PROBES);
        let place = self
            .places(address)
            .find(|entry| holds(entry, address))
            .or_else(|| self.places(address).find(|entry| holds(entry, 0)))
            .or(other);
        if let Some(place) = place {
            place.write(words);
        }
    }

    /// In a forked child, which has one thread.
    pub fn forget_all(&self) {
        self.entries.iter().for_each(|entry| {
            entry.number.store(0, Ordering::Relaxed);
            at(&entry.words, 0).store(0, Ordering::Release);
        });
    }
}

impl<const WORDS: usize> Entry<WORDS> {
    #[inline(always)]
    fn read(&self, address: usize) -> Option<[usize; WORDS]> {
        let before = self.number.load(Ordering::Acquire);
        if !before.is_multiple_of(2) || at(&self.words, 0).load(Ordering::Relaxed) != address {
            return None;
        }
        let mut words = [0; WORDS];
        for (into, word) in words.iter_mut().zip(&self.words) {
            *into = word.load(Ordering::Relaxed);
        }
        fence(Ordering::Acquire);
        (self.number.load(Ordering::Relaxed) == before && *at(&words, 0) == address).then_some(words)
    }

    fn write(&self, words: [usize; WORDS]) {
        let before = self.number.load(Ordering::Relaxed);
        let is_ours = before.is_multiple_of(2)
            && self.number.compare_exchange(before, before + 1, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if is_ours {
            fence(Ordering::Release);
            self.words.iter().zip(words).for_each(|(into, word)| into.store(word, Ordering::Relaxed));
            self.number.store(before + 2, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_found_until_others_take_its_room() {
        let table = Remembered::<3, 64>::empty();
        assert_eq!(table.find(16), None);
        table.keep([16, 5, 7]);
        table.keep([16, 6, 8]);
        assert_eq!(table.find(16), Some([16, 6, 8]));
        (1..1000).for_each(|address| table.keep([address * 16, address, address]));
        let kept: Vec<_> = (1..1000).filter_map(|address| table.find(address * 16)).collect();
        assert!(kept.len() > 32 && kept.iter().all(|[address, one, two]| (one * 16, one) == (*address, two)));
        table.forget_all();
        assert_eq!((1..1000).find_map(|address| table.find(address * 16)), None);
    }

    #[test]
    fn an_entry_is_read_whole_while_threads_write_it() {
        let table = Remembered::<3, 8>::empty();
        std::thread::scope(|scope| {
            for thread in 1..4usize {
                let table = &table;
                scope
                    .spawn(move || (0..20_000).for_each(|at| table.keep([16, at, at * 3 + thread - thread])));
            }
            for _ in 0..20_000 {
                if let Some([_, one, two]) = table.find(16) {
                    assert_eq!(two, one * 3);
                }
            }
        });
        assert!(table.find(16).is_some());
    }
}
