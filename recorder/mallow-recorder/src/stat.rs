//! Counting without a collector: sums in the thread's channel, sizes of live blocks in a shadow of the heap (`shadow`). No event of a busy
//! thread writes to memory that another thread writes.
//!
//! Nearly every event is counted by a few instructions that call nothing ([`allocated_at_once`], [`freed_at_once`]), so that a hook keeps few registers for them. What is
//! left to do then is done by a function that the hook ends with ([`Rest`]).

use crate::process;
use crate::shadow::{self, Heap, ShadowBlock};
use crate::thread::Thread;
use core::arch::asm;
use core::sync::atomic::{AtomicU64, Ordering};
use mallow_wire::shared::{Counters, Header};

/// Adds in one instruction, which a signal handler that adds too cannot split. Only this thread writes the
/// word.
#[inline(always)]
fn add(word: &AtomicU64, n: u64) {
    // SAFETY: a plain write to an atomic that only this thread writes.
    unsafe { asm!("add qword ptr [{}], {}", in(reg) word.as_ptr(), in(reg) n, options(nostack)) };
}

/// As [`add`].
#[inline(always)]
fn subtract(word: &AtomicU64, n: u64) {
    // SAFETY: as there.
    unsafe { asm!("sub qword ptr [{}], {}", in(reg) word.as_ptr(), in(reg) n, options(nostack)) };
}

fn counters(thread: *const Thread) -> &'static Counters {
    // SAFETY: the thread owns its channel, which stays mapped.
    unsafe { &(*(*thread).channel).counters }
}

/// What is left to do of a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// It is done.
    Nothing,
    /// Nothing was counted: it is one of the few that need more than a few instructions.
    Everything,
    /// [`publish_balance`].
    Publish,
}

impl Rest {
    #[inline(always)]
    fn publish_if(is_due: bool) -> Rest {
        if is_due { Rest::Publish } else { Rest::Nothing }
    }
}

/// Counts an allocation, a failed one too, if a few instructions do; the others are [`allocated`] or [`failed`].
///
/// # Safety
/// As [`allocated`]; `address` may be 0.
#[inline(always)]
pub unsafe fn allocated_at_once(thread: *mut Thread, heap: Heap, address: usize, size: usize) -> Rest {
    // SAFETY: by contract; nobody else has the block yet.
    unsafe {
        if address == 0 || !shadow::remember_beside(heap, address, size, (*thread).tag) {
            return Rest::Everything;
        }
        Rest::publish_if(add_allocation(thread, address, size))
    }
}

/// Counts a block that is about to be freed, if a few instructions do; the others are [`freed`].
///
/// # Safety
/// As [`freed`].
#[inline(always)]
pub unsafe fn freed_at_once(thread: *mut Thread, heap: Heap, address: usize) -> Rest {
    // SAFETY: whoever frees a block owns it, and by contract.
    unsafe {
        let Some(known) = shadow::take(heap, address) else { return Rest::Everything };
        Rest::publish_if(add_free(thread, address, known))
    }
}

/// Adds an allocation of which the shadow knows; returns whether the balance has to be published.
#[inline(always)]
unsafe fn add_allocation(thread: *mut Thread, address: usize, size: usize) -> bool {
    let counters = counters(thread);
    add(&counters.allocations, 1);
    add(&counters.bytes, size as u64);
    // SAFETY: by contract of the callers.
    unsafe { (*thread).last_address = address };
    grow(counters, size as u64)
}

/// Adds a free of a block that was counted; returns whether the balance has to be published.
#[inline(always)]
unsafe fn add_free(thread: *mut Thread, address: usize, known: ShadowBlock) -> bool {
    let counters = counters(thread);
    add(&counters.frees, 1);
    // SAFETY: by contract of the callers.
    unsafe {
        if (*thread).last_address == address && known.tag == (*thread).tag {
            add(&counters.temporary, 1);
        }
    }
    shrink(counters, known.size)
}

/// Publishes what this thread has not yet.
///
/// # Safety
/// `thread` is this thread's state.
pub unsafe fn publish_balance(thread: *mut Thread) {
    publish(process::header(), counters(thread));
}

/// Counts a successful allocation.
///
/// # Safety
/// `thread` is this thread's state, `address` a block that the allocator just gave out.
#[inline(always)]
pub unsafe fn allocated(thread: *mut Thread, heap: Heap, address: usize, size: usize) {
    // SAFETY: by contract.
    unsafe {
        shadow::remember(heap, address, size, (*thread).tag);
        if add_allocation(thread, address, size) {
            publish_balance(thread);
        }
    }
}

/// Counts a block that is about to be freed.
///
/// # Safety
/// `thread` is this thread's state.
#[inline(always)]
pub unsafe fn freed(thread: *mut Thread, heap: Heap, address: usize) {
    // SAFETY: by contract.
    unsafe { freed_aside(thread, address, shadow::set_aside(heap, address)) };
}

/// Counts the free of a block whose shadow was removed before the call.
///
/// # Safety
/// `thread` is this thread's state.
#[inline(always)]
pub unsafe fn freed_aside(thread: *mut Thread, address: usize, known: Option<ShadowBlock>) {
    let Some(known) = known else { return add(&counters(thread).frees_unmatched, 1) };
    // SAFETY: by contract.
    unsafe {
        if add_free(thread, address, known) {
            publish_balance(thread);
        }
    }
}

/// Counts a failed call.
///
/// # Safety
/// `thread` is this thread's state.
pub unsafe fn failed(thread: *mut Thread) {
    add(&counters(thread).failed, 1);
}

/// Counts a `realloc` of a live block.
///
/// # Safety
/// `thread` is this thread's state.
pub unsafe fn reallocated(thread: *mut Thread) {
    add(&counters(thread).reallocations, 1);
}

/// Adds to the live sum and updates the peak. While only one thread counts, it keeps the sum in its own channel. From
/// the second thread's first call on, each thread keeps a balance of its own and publishes it in the header when it
/// has changed by the slack. Blocks need no sum of their own: a channel's are its allocations less its frees. The sum is the header's plus the first channel's, and no balance is lost at the switch,
/// because only the first thread ever writes its channel.
///
/// Sums are exact whenever balances are added. The peak is the highest *published* sum: at each moment that differs
/// from the true one by the balances, each of them at most its channel's slack, and so do their maxima.
///
/// Returns whether the balance has to be published.
#[inline(always)]
fn grow(counters: &Counters, size: u64) -> bool {
    let header = process::header();
    if header.threads_many.load(Ordering::Relaxed) != 0 {
        add(&counters.unpublished_bytes, size);
        return balance_bytes(counters) >= slack_of(counters);
    }
    add(&counters.live_bytes, size);
    let bytes = counters.live_bytes.load(Ordering::Relaxed);
    if bytes >= header.live.peak_bytes.load(Ordering::Relaxed) {
        header.live.peak_bytes.store(bytes, Ordering::Relaxed);
        header.live.peak_blocks.store(live_blocks(counters), Ordering::Relaxed);
    }
    false
}

#[inline(always)]
fn shrink(counters: &Counters, size: u64) -> bool {
    if process::header().threads_many.load(Ordering::Relaxed) != 0 {
        subtract(&counters.unpublished_bytes, size);
        return balance_bytes(counters) <= -slack_of(counters);
    }
    subtract(&counters.live_bytes, size);
    false
}

#[inline(always)]
fn balance_bytes(counters: &Counters) -> i64 {
    counters.unpublished_bytes.load(Ordering::Relaxed) as i64
}

#[inline(always)]
fn slack_of(counters: &Counters) -> i64 {
    counters.slack_bytes.load(Ordering::Relaxed) as i64
}

/// The live blocks of a channel's owners, published or not; wraps below zero.
#[inline(always)]
fn live_blocks(counters: &Counters) -> u64 {
    counters.allocations.load(Ordering::Relaxed).wrapping_sub(counters.frees.load(Ordering::Relaxed))
}

/// Adds a thread's balance to the header. A signal handler that runs in between finds a balance that is whole or
/// zero.
#[cold]
#[inline(never)]
fn publish(header: &Header, counters: &Counters) {
    let moved_bytes = counters.unpublished_bytes.swap(0, Ordering::Relaxed);
    let own_blocks = live_blocks(counters);
    let moved_blocks = own_blocks.wrapping_sub(counters.published_blocks.swap(own_blocks, Ordering::Relaxed));
    let first = first_counters();
    let bytes = header.live.bytes.fetch_add(moved_bytes, Ordering::Relaxed).wrapping_add(moved_bytes);
    let bytes = bytes.wrapping_add(first.live_bytes.load(Ordering::Relaxed));
    let blocks = header.live.blocks.fetch_add(moved_blocks, Ordering::Relaxed).wrapping_add(moved_blocks);
    // Bytes and blocks are two words: the blocks may be those of a moment near the peak.
    let grows = (moved_bytes as i64) >= 0;
    if grows && header.live.peak_bytes.fetch_max(bytes, Ordering::Relaxed) <= bytes {
        // The first thread may not have published those of the time when it was alone.
        let of_first = live_blocks(first).wrapping_sub(first.published_blocks.load(Ordering::Relaxed));
        header.live.peak_blocks.store(blocks.wrapping_add(of_first), Ordering::Relaxed);
    }
    add(&counters.publications, 1);
    let peak_bytes = header.live.peak_bytes.load(Ordering::Relaxed);
    let channels = header.channels_high.load(Ordering::Relaxed);
    let slack = slack_bytes(peak_bytes, channels, counters.publications.load(Ordering::Relaxed));
    if slack > counters.slack_bytes.load(Ordering::Relaxed) {
        counters.slack_bytes.store(slack, Ordering::Relaxed);
    }
}

/// Returns how large a thread's balance may be: all threads together a 4096th of the peak, or 256 bytes each if that
/// is more. A thread that does little publishes everything: there the peak is exact.
fn slack_bytes(peak_bytes: u64, channels: u32, publications: u64) -> u64 {
    const EXACT_PUBLICATIONS: u64 = 4096;
    if publications < EXACT_PUBLICATIONS {
        return 0;
    }
    (peak_bytes / 4096 / u64::from(channels.max(1))).clamp(256, 64 << 10)
}

fn first_counters() -> &'static Counters {
    use mallow_wire::shared::{CHANNELS_OFFSET, Channel};
    // SAFETY: the first channel lies in the shared memory.
    unsafe { &(*process::shared().add(CHANNELS_OFFSET).cast::<Channel>()).counters }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_work_is_exact_and_much_is_within_a_share_of_the_peak() {
        assert_eq!(slack_bytes(1 << 40, 1, 4095), 0);
        assert_eq!(slack_bytes(0, 8, 4096), 256);
        assert_eq!(slack_bytes(1 << 30, 8, 4096), (1 << 30) / 4096 / 8);
        assert_eq!(slack_bytes(u64::MAX, 1, u64::MAX), 64 << 10);
    }
}
