//! Counting without a collector: sizes of live blocks in a shadow of the heap, sums in the thread's channel. No event of a busy
//! thread writes to memory that another thread writes.
//!
//! `free` does not say how large the block was. A shadow does: four bytes for each granule of address
//! space. A granule is the distance at which the allocator can place two blocks: 32 bytes for glibc, whose smallest block is
//! that large, and 8 for unknown allocators. Operators `new` that do not call `malloc` have a shadow of their own. The word of a
//! block's first granule contains
//!
//! ```text
//! 31        24 23                    0
//! |   tag     |       size + 1        |     size + 1 = 0xff_ffff: the size is in the next two words
//! ```
//!
//! where the tag identifies the owning thread. A block large enough for the second form owns the granules after
//! its first. A word of 0 means that no block begins there. Shadows are mapped for a GiB of addresses at a
//! time, use memory only where the heap is, and are empty in a forked child.

use crate::elf;
use crate::process;
use crate::sys;
use crate::thread::Thread;
use core::arch::asm;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use mallow_wire::shared::{Counters, Header};

const REGION_BITS: u32 = 30;
const REGION_COUNT: usize = 1 << (47 - REGION_BITS);
const SIZE_MASK: u32 = 0xff_ffff;

/// The allocator of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heap {
    /// The functions of C's malloc family.
    Malloc,
    /// Operators that do not go by them.
    Operators,
}

/// The sizes of a heap's live blocks.
struct Shadow {
    regions: [AtomicPtr<u32>; REGION_COUNT],
    /// The granule, as a power of two; 0 until the first region is made.
    granule_bits: AtomicU32,
}

const GRANULE_BITS_OF_ANY: u32 = 3;
const GRANULE_BITS_OF_GLIBC: u32 = 5;

static OF_MALLOC: Shadow = Shadow::new();
static OF_OPERATORS: Shadow = Shadow::new();

impl Heap {
    #[inline(always)]
    fn shadow(self) -> &'static Shadow {
        if self == Heap::Malloc { &OF_MALLOC } else { &OF_OPERATORS }
    }
}

/// Adds in one instruction, which a signal handler that adds too cannot split. Only this thread writes the
/// word.
#[inline(always)]
fn add(word: &AtomicU64, n: u64) {
    // SAFETY: a plain write to an atomic that only this thread writes.
    unsafe { asm!("add qword ptr [{}], {}", in(reg) word.as_ptr(), in(reg) n, options(nostack)) };
}

impl Shadow {
    /// All zeros, so that it takes no room in the file of a program that it is linked into.
    const fn new() -> Shadow {
        let regions = [const { AtomicPtr::new(core::ptr::null_mut()) }; REGION_COUNT];
        Shadow { regions, granule_bits: AtomicU32::new(0) }
    }

    /// The word of an address; null when there is no memory for it, or when nothing was ever counted there
    /// and `make` is false.
    #[inline(always)]
    fn word(&self, address: usize, make: bool) -> *mut u32 {
        let Some(region) = self.regions.get(address >> REGION_BITS) else { return core::ptr::null_mut() };
        let mut base = region.load(Ordering::Acquire);
        if base.is_null() {
            if !make {
                return base;
            }
            base = self.make_region(region);
            if base.is_null() {
                return base;
            }
        }
        let granule = (address & ((1 << REGION_BITS) - 1)) >> self.granule_bits.load(Ordering::Relaxed);
        // SAFETY: a region has a word for each granule.
        unsafe { base.add(granule) }
    }

    #[cold]
    #[inline(never)]
    fn make_region(&self, region: &AtomicPtr<u32>) -> *mut u32 {
        if self.granule_bits.load(Ordering::Relaxed) == 0 {
            let is_malloc = core::ptr::eq(self, &OF_MALLOC);
            let bits = if is_malloc { granule_bits_of_malloc() } else { GRANULE_BITS_OF_ANY };
            self.granule_bits.store(bits, Ordering::Relaxed);
        }
        // Two words more: the last granule's block may need them.
        let bytes = (4usize << REGION_BITS >> self.granule_bits.load(Ordering::Relaxed)) + 4096;
        let fresh = sys::map_private(bytes);
        if fresh.is_null() {
            process::header().losses_uncounted.fetch_add(1, Ordering::Relaxed);
            return core::ptr::null_mut();
        }
        // Behind a filter of system calls these two may not be allowed, and no forked child counts.
        // SAFETY: the mapping is ours.
        unsafe {
            if !process::is_filtered() {
                sys::wipe_on_fork(fresh, bytes);
                sys::keep_out_of_core(fresh, bytes);
            }
        }
        match region.compare_exchange(
            core::ptr::null_mut(),
            fresh.cast(),
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => fresh.cast(),
            Err(other) => other,
        }
    }
}

/// The granule of blocks of `malloc`: glibc is recognised by this symbol beside it.
fn granule_bits_of_malloc() -> u32 {
    let own = core::ptr::from_ref(&OF_MALLOC) as usize;
    match elf::next_definition(c"malloc", own) {
        Some(malloc) if elf::defined_beside(malloc, c"gnu_get_libc_version", own) => GRANULE_BITS_OF_GLIBC,
        _ => GRANULE_BITS_OF_ANY,
    }
}

fn counters(thread: *const Thread) -> &'static Counters {
    // SAFETY: the thread owns its channel, which stays mapped.
    unsafe { &(*(*thread).channel).counters }
}

/// Counts a successful allocation.
///
/// # Safety
/// `thread` is this thread's state, `address` a block that the allocator just gave out.
#[inline(always)]
pub unsafe fn allocated(thread: *mut Thread, heap: Heap, address: usize, size: usize) {
    let counters = counters(thread);
    add(&counters.allocations, 1);
    add(&counters.bytes, size as u64);
    // SAFETY: by contract.
    unsafe {
        (*thread).last_address = address;
        remember(heap, address, size, (*thread).tag);
    }
    grow(counters, size as u64);
}

/// Counts a block that is about to be freed.
///
/// # Safety
/// `thread` is this thread's state.
#[inline(always)]
pub unsafe fn freed(thread: *mut Thread, heap: Heap, address: usize) {
    // SAFETY: by contract.
    unsafe { freed_aside(thread, address, set_aside(heap, address)) };
}

/// What the shadow stores of a block.
#[derive(Clone, Copy, Debug)]
pub struct ShadowBlock {
    size: u64,
    tag: u8,
}

/// Takes a block that may be about to be freed out of the shadow: once the allocator has freed it, another
/// thread may get its address. None when it was not counted when it was allocated.
#[inline(always)]
pub fn set_aside(heap: Heap, address: usize) -> Option<ShadowBlock> {
    forget(heap, address).or_else(|| forget_other(heap, address)).map(|(size, tag)| ShadowBlock { size, tag })
}

/// Restores a block that was not freed after all.
pub fn put_back(heap: Heap, address: usize, known: Option<ShadowBlock>) {
    if let Some(known) = known {
        remember(heap, address, known.size as usize, known.tag);
    }
}

/// Counts the free of a block whose shadow was removed before the call.
///
/// # Safety
/// `thread` is this thread's state.
#[inline(always)]
pub unsafe fn freed_aside(thread: *mut Thread, address: usize, known: Option<ShadowBlock>) {
    let counters = counters(thread);
    add(&counters.frees, 1);
    let Some(known) = known else { return };
    // SAFETY: by contract.
    unsafe {
        if (*thread).last_address == address && known.tag == (*thread).tag {
            add(&counters.temporary, 1);
        }
    }
    shrink(counters, known.size);
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

#[inline(always)]
fn remember(heap: Heap, address: usize, size: usize, tag: u8) {
    let word = heap.shadow().word(address, true);
    if word.is_null() {
        return;
    }
    let tag = (tag as u32) << 24;
    // SAFETY: this block's words; nobody else has the block yet.
    unsafe {
        if size < SIZE_MASK as usize - 1 {
            word.write(tag | (size as u32 + 1));
        } else {
            word.add(1).write(size as u32);
            word.add(2).write((size >> 32) as u32);
            word.write(tag | SIZE_MASK);
        }
    }
}

/// A library may allocate blocks by `malloc` and free them by a function of its own, or the other way round.
#[cold]
#[inline(never)]
fn forget_other(heap: Heap, address: usize) -> Option<(u64, u8)> {
    forget(if heap == Heap::Malloc { Heap::Operators } else { Heap::Malloc }, address)
}

/// The size and tag of a block, which from now on is unknown.
#[inline(always)]
fn forget(heap: Heap, address: usize) -> Option<(u64, u8)> {
    let word = heap.shadow().word(address, false);
    if word.is_null() {
        return None;
    }
    // SAFETY: this block's words; whoever frees a block owns it.
    unsafe {
        let value = word.read();
        if value == 0 {
            return None;
        }
        word.write(0);
        let size = match value & SIZE_MASK {
            SIZE_MASK => word.add(1).read() as u64 | (word.add(2).read() as u64) << 32,
            small => small as u64 - 1,
        };
        Some((size, (value >> 24) as u8))
    }
}

/// Adds to the live sum and updates the peak. While only one thread counts, it keeps the sum in its own channel. From
/// the second thread's first call on, each thread keeps a balance of its own and publishes it in the header when it
/// has changed by the slack. The sum is the header's plus the first channel's, and no balance is lost at the switch,
/// because only the first thread ever writes its channel.
///
/// Sums are exact whenever balances are added. The peak is the highest *published* sum: at each moment that differs
/// from the true one by the balances, each of them at most its channel's slack, and so do their maxima.
#[inline(always)]
fn grow(counters: &Counters, size: u64) {
    let header = process::header();
    if header.threads_many.load(Ordering::Relaxed) != 0 {
        return add_unpublished(counters, size, 1);
    }
    add(&counters.live_bytes, size);
    add(&counters.live_blocks, 1);
    let bytes = counters.live_bytes.load(Ordering::Relaxed);
    if bytes >= header.live.peak_bytes.load(Ordering::Relaxed) {
        header.live.peak_bytes.store(bytes, Ordering::Relaxed);
        header.live.peak_blocks.store(counters.live_blocks.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

#[inline(always)]
fn shrink(counters: &Counters, size: u64) {
    if process::header().threads_many.load(Ordering::Relaxed) != 0 {
        return add_unpublished(counters, size.wrapping_neg(), 1u64.wrapping_neg());
    }
    add(&counters.live_bytes, size.wrapping_neg());
    add(&counters.live_blocks, 1u64.wrapping_neg());
}

#[inline(always)]
fn add_unpublished(counters: &Counters, bytes: u64, blocks: u64) {
    add(&counters.unpublished_bytes, bytes);
    add(&counters.unpublished_blocks, blocks);
    let balance = counters.unpublished_bytes.load(Ordering::Relaxed) as i64;
    if balance.unsigned_abs() >= counters.slack_bytes.load(Ordering::Relaxed) {
        publish(process::header(), counters);
    }
}

/// Adds a thread's balance to the header. A signal handler that runs in between finds a balance that is whole or
/// zero.
#[cold]
#[inline(never)]
fn publish(header: &Header, counters: &Counters) {
    let moved_bytes = counters.unpublished_bytes.swap(0, Ordering::Relaxed);
    let moved_blocks = counters.unpublished_blocks.swap(0, Ordering::Relaxed);
    let first = first_counters();
    let sum = |live: &AtomicU64, moved: u64, first: &AtomicU64| {
        let others = live.fetch_add(moved, Ordering::Relaxed).wrapping_add(moved);
        others.wrapping_add(first.load(Ordering::Relaxed))
    };
    let bytes = sum(&header.live.bytes, moved_bytes, &first.live_bytes);
    let blocks = sum(&header.live.blocks, moved_blocks, &first.live_blocks);
    // Bytes and blocks are two words: the blocks may be those of a moment near the peak.
    let grows = (moved_bytes as i64) >= 0;
    if grows && header.live.peak_bytes.fetch_max(bytes, Ordering::Relaxed) <= bytes {
        header.live.peak_blocks.store(blocks, Ordering::Relaxed);
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
