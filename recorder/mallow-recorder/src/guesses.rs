//! Notes for the collector of frames whose callers were guessed ([`mallow_wire::shared::GUESSES_OFFSET`]): whoever reads a stack that ends at one should
//! know that it ends too early.

use crate::bounds::at;
use crate::process;
use core::sync::atomic::{AtomicU64, Ordering};
use mallow_wire::shared::{GUESS_PROBES, GUESSES, GUESSES_OFFSET, guess_place};

/// Notes a frame by its key, once.
#[cold]
#[inline(never)]
pub(crate) fn note(key: u64) {
    if !process::is_ready() {
        return;
    }
    // SAFETY: within the shared memory of a process that has registered.
    let table = unsafe { &*process::shared().add(GUESSES_OFFSET).cast::<[AtomicU64; GUESSES]>() };
    let header = process::header();
    for probe in 0..GUESS_PROBES {
        let entry = at(table, (guess_place(key) + probe) % GUESSES);
        let known = match entry.load(Ordering::Relaxed) {
            0 => entry.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed).map_or_else(
                |other| other,
                |_| {
                    header.has_guesses.store(1, Ordering::Relaxed);
                    key
                },
            ),
            known => known,
        };
        if known == key {
            return;
        }
    }
    // All threads read it, and one writes it.
    if header.has_more_guesses.load(Ordering::Relaxed) == 0 {
        header.has_more_guesses.store(1, Ordering::Relaxed);
    }
}
