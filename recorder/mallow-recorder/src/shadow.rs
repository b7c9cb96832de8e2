//! Sizes of live blocks, for counting without a collector: `free` does not say how large its block was.
//!
//! A shadow does: four bytes for each granule of address
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
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

const REGION_BITS: u32 = 30;
const REGION_COUNT: usize = 1 << (47 - REGION_BITS);
const SIZE_MASK: u32 = 0xff_ffff;
/// Blocks from this size on need more than a word.
pub(crate) const LARGE_BYTES: usize = SIZE_MASK as usize - 1;

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

/// What the shadow stores of a block.
#[derive(Clone, Copy, Debug)]
pub struct ShadowBlock {
    pub(crate) size: u64,
    pub(crate) tag: u8,
}

/// The word of a smaller block.
#[inline(always)]
pub(crate) fn small(size: usize, tag: u8) -> u32 {
    u32::from(tag) << 24 | (size as u32 + 1)
}

/// The word of an address around which blocks were counted before.
#[inline(always)]
pub(crate) fn known_word(heap: Heap, address: usize) -> Option<*mut u32> {
    let word = heap.shadow().word(address, false);
    (!word.is_null()).then_some(word)
}

/// Takes a block out of the shadow if it is in it, and its size in one word.
///
/// # Safety
/// The block is this thread's to free.
#[inline(always)]
pub(crate) unsafe fn take_small(heap: Heap, address: usize) -> Option<ShadowBlock> {
    let word = known_word(heap, address)?;
    // SAFETY: this block's word; whoever frees a block owns it.
    unsafe {
        let value = word.read();
        if value == 0 || value & SIZE_MASK == SIZE_MASK {
            return None;
        }
        word.write(0);
        Some(ShadowBlock { size: u64::from(value & SIZE_MASK) - 1, tag: (value >> 24) as u8 })
    }
}

/// Takes a block that may be about to be freed out of the shadow: once the allocator has freed it, another
/// thread may get its address. None when it was not counted when it was allocated.
#[inline(always)]
pub fn set_aside(heap: Heap, address: usize) -> Option<ShadowBlock> {
    // A library may allocate blocks by `malloc` and free them by a function of its own, or the other way round.
    let other = if heap == Heap::Malloc { Heap::Operators } else { Heap::Malloc };
    take(heap, address).or_else(|| take_cold(other, address))
}

#[cold]
#[inline(never)]
fn take_cold(heap: Heap, address: usize) -> Option<ShadowBlock> {
    take(heap, address)
}

#[inline(always)]
fn take(heap: Heap, address: usize) -> Option<ShadowBlock> {
    // SAFETY: whoever frees a block owns it.
    unsafe { take_small(heap, address).or_else(|| take_large(heap, address)) }
}

/// As [`take_small`], for the others.
unsafe fn take_large(heap: Heap, address: usize) -> Option<ShadowBlock> {
    let word = known_word(heap, address)?;
    // SAFETY: this block's words, by contract.
    unsafe {
        let value = word.read();
        if value & SIZE_MASK != SIZE_MASK {
            return None;
        }
        word.write(0);
        let size = word.add(1).read() as u64 | (word.add(2).read() as u64) << 32;
        Some(ShadowBlock { size, tag: (value >> 24) as u8 })
    }
}

/// Restores a block that was not freed after all.
pub fn put_back(heap: Heap, address: usize, known: Option<ShadowBlock>) {
    if let Some(known) = known {
        remember(heap, address, known.size as usize, known.tag);
    }
}

#[inline(always)]
pub(crate) fn remember(heap: Heap, address: usize, size: usize, tag: u8) {
    let word = heap.shadow().word(address, true);
    if word.is_null() {
        return;
    }
    // SAFETY: this block's words; nobody else has the block yet.
    unsafe {
        if size < LARGE_BYTES {
            word.write(small(size, tag));
        } else {
            word.add(1).write(size as u32);
            word.add(2).write((size >> 32) as u32);
            word.write(u32::from(tag) << 24 | SIZE_MASK);
        }
    }
}
