//! Words of runtimes' structures.

use crate::process;

/// Programs have addresses below this.
pub(super) const ADDRESS_END: usize = 1 << 47;

/// Reads a word of a runtime's structure.
///
/// # Safety
/// The structure is live.
#[inline(always)]
pub(super) unsafe fn word(at: usize, offset: usize) -> usize {
    // SAFETY: by contract. Words in these structures are aligned.
    unsafe { *((at + offset) as *const usize) }
}

/// Returns whether a word can be the address of a structure.
pub(super) fn is_address(value: usize) -> bool {
    value.is_multiple_of(8) && (1 << 12..ADDRESS_END).contains(&value)
}

/// Words at an address, by a checked read.
pub(super) fn words_at<const N: usize>(at: usize) -> Option<[usize; N]> {
    let mut words = [0; N];
    // SAFETY: there is room.
    let is_read =
        is_address(at) && unsafe { process::copy_checked(&[[at, N * 8]], words.as_mut_ptr().cast()) };
    is_read.then_some(words)
}
