//! Reads memory of this process that may not be mapped.

use super::{PROCESS_VM_READV, RT_SIGPROCMASK, call};

/// Reads a word of this process at an address that may not be mapped.
pub fn read_word_checked(pid: u32, address: usize) -> Option<usize> {
    let mut word = 0usize;
    let local = [core::ptr::from_mut(&mut word) as usize, 8];
    let remote = [address, 8];
    // SAFETY: the kernel checks `address` itself and writes 8 bytes into `word`.
    let answer = unsafe {
        call(PROCESS_VM_READV, [pid as usize, local.as_ptr() as usize, 1, remote.as_ptr() as usize, 1, 0])
    };
    (answer == 8).then_some(word)
}

/// Copies pieces of this process's memory, which may not be mapped, one after the other; returns false unless all of
/// them could be read.
///
/// # Safety
/// `into` has room for them.
pub unsafe fn copy_checked(pid: u32, pieces: &[[usize; 2]], into: *mut u8) -> bool {
    let bytes = pieces.iter().fold(0, |sum: usize, piece| sum.saturating_add(piece[1]));
    let local = [into as usize, bytes];
    // SAFETY: the kernel checks the pieces itself, and writes so many bytes.
    let answer = unsafe {
        let remote = pieces.as_ptr() as usize;
        call(PROCESS_VM_READV, [pid as usize, local.as_ptr() as usize, 1, remote, pieces.len(), 0])
    };
    answer == bytes as isize
}

/// Returns whether the word at an address can be read. Asked by giving it as a set of signals for a change that does not exist: the
/// kernel reads the set before it refuses, and sandboxes let this call pass because every C library makes it.
pub fn is_readable(address: usize) -> bool {
    const NO_CHANGE: usize = usize::MAX;
    const EFAULT: isize = -14;
    // SAFETY: the kernel reads a word, if it can, and does nothing.
    unsafe { call(RT_SIGPROCMASK, [NO_CHANGE, address, 0, 8, 0, 0]) != EFAULT }
}
