//! Sizes of live blocks, for counting without a collector: `free` does not say how large its block was.
//!
//! A shadow does: two bytes for each granule of address space. A granule is the distance at which the allocator can place two blocks: 32 bytes for
//! glibc, whose smallest block is that large, and 8 for unknown allocators. Operators `new` that do not call `malloc` have a shadow of their own.
//! The word of a block's first granule contains
//!
//! ```text
//! 15        8 7            0
//! |   tag    |  size + 1   |     size + 1 = 0xff: the size is in the next four words
//! ```
//!
//! where the tag identifies the owning thread. A block large enough for the second form owns the granules after
//! its first. A lower byte of 0 means that no block begins there. Shadows are mapped for a GiB of addresses at a
//! time, use memory only where the heap is, and are empty in a forked child. What `stat` costs a program with many live blocks is the
//! cache line of a word, so words are short: a line tells of a KiB of glibc's heap.

use crate::elf;
use crate::process;
use crate::sys;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

const REGION_BITS: u32 = 30;
const REGION_COUNT: usize = 1 << (47 - REGION_BITS);
/// The lower byte of a word whose block has its size in the next [`SIZE_WORDS`].
const IS_LONG: u16 = 0xff;
/// Blocks from this size on.
const LONG_BYTES: usize = IS_LONG as usize - 1;
const SIZE_WORDS: usize = size_of::<u64>() / size_of::<u16>();
/// Wherever such a block begins, as many granules lie within it behind its first.
const _: () = assert!(LONG_BYTES >> GRANULE_BITS_OF_GLIBC > SIZE_WORDS);

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
    regions: [AtomicPtr<u16>; REGION_COUNT],
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
    fn word(&self, address: usize, make: bool) -> *mut u16 {
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
    fn make_region(&self, region: &AtomicPtr<u16>) -> *mut u16 {
        if self.granule_bits.load(Ordering::Relaxed) == 0 {
            let is_malloc = core::ptr::eq(self, &OF_MALLOC);
            let bits = if is_malloc { granule_bits_of_malloc() } else { GRANULE_BITS_OF_ANY };
            self.granule_bits.store(bits, Ordering::Relaxed);
        }
        // A few words more: the last granule's block may need them.
        let bytes = (size_of::<u16>() << REGION_BITS >> self.granule_bits.load(Ordering::Relaxed)) + 4096;
        let fresh =
            if process::takes_private(bytes, 4) { sys::map_private(bytes) } else { core::ptr::null_mut() };
        if fresh.is_null() {
            process::header().losses_uncounted.fetch_add(1, Ordering::Relaxed);
            return core::ptr::null_mut();
        }
        // Behind a filter of system calls these two may not be allowed, and no forked child counts.
        // SAFETY: the mapping is ours.
        unsafe {
            if !process::is_filtered() {
                sys::wipe_on_fork(fresh, bytes);
                sys::keep_small(fresh, bytes, sys::Sharing::Private);
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

/// Remembers a block where others were remembered before; false elsewhere.
#[inline(always)]
pub(crate) fn remember_beside(heap: Heap, address: usize, size: usize, tag: u8) -> bool {
    // SAFETY: this block's words; nobody else has the block yet.
    unsafe { write(heap.shadow().word(address, false), size, tag) }
}

/// Returns whether there is a word.
///
/// # Safety
/// `word` is null, or that of a block which nobody else has.
#[inline(always)]
unsafe fn write(word: *mut u16, size: usize, tag: u8) -> bool {
    if word.is_null() {
        return false;
    }
    let tag = u16::from(tag) << 8;
    // SAFETY: by contract; a block that long has its size in granules of its own.
    unsafe {
        if size < LONG_BYTES {
            word.write(tag | (size as u16 + 1));
        } else {
            word.add(1).cast::<u64>().write_unaligned(size as u64);
            word.write(tag | IS_LONG);
        }
    }
    true
}

/// Takes a block out of the shadow if it is in it.
///
/// # Safety
/// The block is this thread's to free.
#[inline(always)]
pub(crate) unsafe fn take(heap: Heap, address: usize) -> Option<ShadowBlock> {
    let word = heap.shadow().word(address, false);
    if word.is_null() {
        return None;
    }
    // SAFETY: this block's words; whoever frees a block owns it.
    unsafe {
        let value = word.read();
        let mut size = u64::from(value & IS_LONG).checked_sub(1)?;
        word.write(0);
        if value & IS_LONG == IS_LONG {
            let words = word.add(1).cast::<u64>();
            size = words.read_unaligned();
            // Blocks that nobody counted may begin there later.
            words.write_unaligned(0);
        }
        Some(ShadowBlock { size, tag: (value >> 8) as u8 })
    }
}

/// Takes a block that may be about to be freed out of the shadow: once the allocator has freed it, another
/// thread may get its address. None when it was not counted when it was allocated.
#[inline(always)]
pub fn set_aside(heap: Heap, address: usize) -> Option<ShadowBlock> {
    // A library may allocate blocks by `malloc` and free them by a function of its own, or the other way round.
    let other = if heap == Heap::Malloc { Heap::Operators } else { Heap::Malloc };
    // SAFETY: whoever frees a block owns it.
    unsafe { take(heap, address).or_else(|| take_cold(other, address)) }
}

#[cold]
#[inline(never)]
unsafe fn take_cold(heap: Heap, address: usize) -> Option<ShadowBlock> {
    // SAFETY: by contract.
    unsafe { take(heap, address) }
}

/// Restores a block that was not freed after all.
pub fn put_back(heap: Heap, address: usize, known: Option<ShadowBlock>) {
    if let Some(known) = known {
        remember(heap, address, known.size as usize, known.tag);
    }
}

#[inline(always)]
pub(crate) fn remember(heap: Heap, address: usize, size: usize, tag: u8) {
    // SAFETY: this block's words; nobody else has the block yet.
    unsafe { write(heap.shadow().word(address, true), size, tag) };
}

#[cfg(test)]
#[path = "shadow_tests.rs"]
mod tests;
