//! Writing a record into this thread's ring.
//!
//! A signal handler may interrupt a write at any instruction and write records of its own. The words of an
//! interrupted record stand above `head` and are unseen; `head` moves by one compare-and-exchange
//! instruction, which a signal cannot split. When the handler has moved `head` meanwhile, the exchange fails
//! and the record is written again behind the handler's.
//!
//! The exchange carries no `lock` prefix: only this thread writes `head`. x86 keeps stores in order, so the
//! collector, which reads `head` with acquire, sees the words below it.

use crate::process;
use crate::silence::Silence;
use crate::sys;
use crate::thread::Thread;
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};
use mallow_wire::shared::{Lane, RING_WORDS};

/// Writes a record of `N` words, waiting for the collector when the ring is full.
///
/// # Safety
/// `thread` is this thread's own state and owns a lane.
#[inline(always)]
pub unsafe fn push<const N: usize>(thread: *mut Thread, words: [u64; N]) {
    // SAFETY: by contract `thread` is valid and nobody else writes it; its lane and ring stay mapped.
    unsafe {
        let lane: &Lane = &*(*thread).lane;
        let ring = (*thread).ring;
        loop {
            let head = lane.head.load(Ordering::Relaxed);
            if head + N as u64 > (*thread).head_limit && !wait_for_space(thread, lane, head, N as u64) {
                return;
            }
            for (i, word) in words.iter().enumerate() {
                ring.add((head as usize + i) & (RING_WORDS - 1)).write_volatile(*word);
            }
            if advance(&lane.head, head, head + N as u64) {
                return;
            }
        }
    }
}

/// Moves `word` from `old` to `new` unless it is no longer `old`, in one instruction that signals cannot
/// split.
#[inline(always)]
fn advance(word: &AtomicU64, old: u64, new: u64) -> bool {
    let moved: u8;
    // SAFETY: a plain write to an atomic that only this thread writes. The asm block is a compiler barrier.
    unsafe {
        asm!(
            "cmpxchg qword ptr [{word}], {new}",
            "sete {moved}",
            word = in(reg) word.as_ptr(),
            new = in(reg) new,
            moved = lateout(reg_byte) moved,
            inout("rax") old => _,
            options(nostack)
        );
    }
    moved != 0
}

/// Waits until `need` words fit above `head`; false when the collector has gone, in which case recording
/// ends.
///
/// # Safety
/// As [`push`].
#[cold]
#[inline(never)]
unsafe fn wait_for_space(thread: *mut Thread, lane: &Lane, head: u64, need: u64) -> bool {
    let mut spins = 0u32;
    let mut silence = Silence::begin();
    loop {
        let tail_futex = lane.tail_futex.load(Ordering::Acquire);
        let tail = lane.tail.load(Ordering::Acquire);
        let limit = tail + RING_WORDS as u64;
        if head + need <= limit {
            // SAFETY: by contract.
            unsafe { (*thread).head_limit = limit };
            return true;
        }
        if spins < 200 {
            spins += 1;
            core::hint::spin_loop();
            continue;
        }
        lane.waiting.store(1, Ordering::SeqCst);
        sys::futex_wait(&lane.tail_futex, tail_futex, Silence::WAIT_MS);
        lane.waiting.store(0, Ordering::Relaxed);
        if silence.is_final(lane.tail.load(Ordering::Relaxed) != tail) {
            process::header().events_lost.fetch_add(1, Ordering::Relaxed);
            process::stop();
            return false;
        }
    }
}
