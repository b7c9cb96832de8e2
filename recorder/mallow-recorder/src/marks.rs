//! Marks: the program says where a region begins or ends, and waits until the collector has processed it.
//!
//! A mark is a record like any other, so it is among the thread's allocations exactly where the program wrote it.
//! Its name precedes it in records of fifteen bytes. The reply is a number in the thread's channel that the
//! collector increments; the thread does not wait for a collector that has ended.

use crate::collector_timeout::{self, CollectorTimeout};
use crate::thread::{self, Guard, Recording};
use core::sync::atomic::Ordering;
use mallow_wire::event::{
    Kind, MARK_NAME_BYTES_MAX, Mark, TEXT_BYTES, size_saturated, text_words, word0, word1,
};

/// Writes a mark and waits for its answer, if it has one.
///
/// # Safety
/// `guard` is in the hook.
pub unsafe fn mark(guard: &Guard, what: Mark, name: &[u8], value: u64) {
    let name = &name[..name.len().min(MARK_NAME_BYTES_MAX)];
    // SAFETY: the guard's thread is this thread.
    unsafe {
        let thread = guard.thread();
        for piece in name.chunks(TEXT_BYTES) {
            let mut text = [0u8; TEXT_BYTES];
            text[..piece.len()].copy_from_slice(piece);
            guard.push(text_words(text));
        }
        let channel = &*(*thread).channel;
        if what.wants_answer() {
            channel.marks_asked.fetch_add(1, Ordering::Relaxed);
        }
        let value = size_saturated(value);
        let is_written = guard.push([word0(Kind::Mark, 0, value), word1(value, what as u32)]);
        if what.wants_answer() && is_written {
            wait_for_answer(guard);
        } else if what.wants_answer() {
            // No collector reads it, so no reply will come.
            channel.marks_asked.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// From here on the calling thread is counted; returns false if it will not be.
///
/// # Safety
/// `guard` is in the hook.
pub unsafe fn begin_count(guard: &Guard) -> bool {
    // SAFETY: the guard's thread is this thread, and its channel stays mapped.
    unsafe {
        let channel = &*(*guard.thread()).channel;
        let lost = size_saturated(channel.lost.load(Ordering::Relaxed));
        guard.push([word0(Kind::Mark, 0, lost), word1(lost, Mark::CountBegins as u32)])
    }
}

/// Ends the count that this thread began last, and copies what it has, as many values as there is room for; returns how many those are:
/// 0 if nothing was counted, or not everything.
///
/// # Safety
/// `guard` is in the hook.
pub unsafe fn end_count(guard: &Guard, values: &mut [u64]) -> usize {
    // SAFETY: as above.
    let channel = unsafe { &*(*guard.thread()).channel };
    let answer = &channel.counted;
    answer.value_count.store(0, Ordering::Relaxed);
    // SAFETY: by contract.
    unsafe { mark(guard, Mark::CountEnds, b"", channel.lost.load(Ordering::Relaxed)) };
    let count = (answer.value_count.load(Ordering::Relaxed) as usize).min(values.len());
    let counted = answer.values.iter().take(count);
    values.iter_mut().zip(counted).for_each(|(place, value)| *place = value.load(Ordering::Relaxed));
    count
}

/// Waits until every mark of this channel is answered.
///
/// # Safety
/// As [`mark`].
unsafe fn wait_for_answer(guard: &Guard) {
    // SAFETY: the guard's thread is this thread, and its channel stays mapped.
    let channel = unsafe { &*(*guard.thread()).channel };
    let asked = channel.marks_asked.load(Ordering::Relaxed);
    let mut collector_timeout = CollectorTimeout::begin();
    loop {
        let answered = channel.marks_answered.load(Ordering::Acquire);
        if answered == asked {
            return;
        }
        collector_timeout::wait(&channel.marks_answered, answered, CollectorTimeout::WAIT_MS);
        if collector_timeout.is_final(false) {
            thread::stop();
            return;
        }
    }
}
