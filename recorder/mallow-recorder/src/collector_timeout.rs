//! How long a thread waits for the collector before it considers it dead.

use crate::process;
use crate::sys;
use core::sync::atomic::{AtomicU32, Ordering};
use mallow_wire::shared::HEARTBEAT_LEFT;

/// For how long one wait has seen no sign of life.
pub(crate) struct CollectorTimeout {
    heartbeat: u32,
    silent_ms: u64,
}

impl CollectorTimeout {
    /// How long a thread sleeps between two checks, in milliseconds.
    pub(crate) const WAIT_MS: u64 = 50;
    /// The collector is not waited for any longer than this, in milliseconds.
    const MAX_MS: u64 = 5_000;

    /// A wait begins.
    pub(crate) fn begin() -> CollectorTimeout {
        CollectorTimeout { heartbeat: process::header().heartbeat.load(Ordering::Relaxed), silent_ms: 0 }
    }

    /// Returns whether the collector has ended, after another sleep of [`CollectorTimeout::WAIT_MS`]: it has said so,
    /// or was silent too long. `has_moved` is a sign of life that only the caller sees.
    pub(crate) fn is_final(&mut self, has_moved: bool) -> bool {
        let heartbeat = process::header().heartbeat.load(Ordering::Relaxed);
        let is_silent = heartbeat == self.heartbeat && !has_moved;
        self.silent_ms = if is_silent { self.silent_ms + CollectorTimeout::WAIT_MS } else { 0 };
        self.heartbeat = heartbeat;
        heartbeat == HEARTBEAT_LEFT || self.silent_ms >= CollectorTimeout::MAX_MS
    }
}

/// Sleeps until a word that the collector changes is not `value` any more, but no longer than `longest_ms`. A filter of system calls may kill who sleeps:
/// behind one the word is looked at all the time instead, about as long.
pub(crate) fn wait(word: &AtomicU32, value: u32, longest_ms: u64) {
    /// A processor pauses 50 to 150 cycles between two of them.
    const LOOKS_PER_MS: u64 = 30_000;
    if !process::is_filtered() {
        return sys::futex_wait(word, value, longest_ms);
    }
    for _ in 0..longest_ms * LOOKS_PER_MS {
        if word.load(Ordering::Acquire) != value {
            return;
        }
        core::hint::spin_loop();
    }
}
