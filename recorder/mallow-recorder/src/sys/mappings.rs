//! Mappings of memory and of files.

use super::{MADVISE, MMAP, MPROTECT, MUNLOCK, MUNMAP, call, limits};
use core::sync::atomic::{AtomicBool, Ordering};

/// Maps private anonymous memory that costs nothing until touched. Null when the kernel refuses.
///
/// As a stack it has small pages, from Linux 6.7 on: where large ones are for all, a thread's few pages would take 4 MiB. [`keep_small`](super::keep_small) asks older kernels
/// for the same, with a system call more.
pub fn map_private(bytes: usize) -> *mut u8 {
    const PRIVATE_ANONYMOUS_NORESERVE_STACK: usize = 0x2 | 0x20 | 0x4000 | 0x2_0000;
    map_unlocked(bytes, PRIVATE_ANONYMOUS_NORESERVE_STACK, usize::MAX)
}

/// What is mapped from now on is locked.
static LOCKS_FUTURE: AtomicBool = AtomicBool::new(false);

/// Notes that the program has all locked that is mapped from now on.
pub fn note_future_locked() {
    LOCKS_FUTURE.store(true, Ordering::Relaxed);
}

/// Notes that a filter of system calls is about to be set: those that make room in a limit, or unlock memory, may not be allowed behind it.
pub fn note_filter() {
    limits::forget_limited();
    LOCKS_FUTURE.store(false, Ordering::Relaxed);
}

/// Maps memory that can be read and written. Null when the kernel refuses.
///
/// Where all that is mapped is locked it would be filled with pages at once. A mapping that nobody can use yet is not.
fn map_unlocked(bytes: usize, flags: usize, fd: usize) -> *mut u8 {
    const READ_WRITE: usize = 1 | 2;
    const SMALL_BYTES: usize = 64 << 10;
    let is_locked = bytes > SMALL_BYTES && LOCKS_FUTURE.load(Ordering::Relaxed);
    if bytes > SMALL_BYTES && limits::is_limited() {
        const PRIVATE: usize = 2;
        limits::make_room(bytes, flags & PRIVATE != 0);
    }
    let rights = if is_locked { 0 } else { READ_WRITE };
    // SAFETY: a fresh mapping at an address of the kernel's choice disturbs nobody.
    let at = unsafe { call(MMAP, [0, bytes, rights, flags, fd, 0]) };
    if at < 0 {
        return core::ptr::null_mut();
    }
    if is_locked {
        // SAFETY: the mapping is ours, and nobody has seen it.
        unsafe {
            call(MUNLOCK, [at as usize, bytes, 0, 0, 0, 0]);
            if call(MPROTECT, [at as usize, bytes, READ_WRITE, 0, 0, 0]) < 0 {
                unmap(at as *mut u8, bytes);
                return core::ptr::null_mut();
            }
        }
    }
    at as *mut u8
}

/// A page for a moment: what has no room on the stack of a caller, which may be a few kilobytes in all.
#[derive(Debug)]
pub struct Scratch(*mut u8);

impl Scratch {
    /// Its size.
    pub const BYTES: usize = 4096;

    /// Maps a zeroed page; `None` if the kernel has no memory.
    pub fn map() -> Option<Scratch> {
        let at = map_private(Scratch::BYTES);
        (!at.is_null()).then_some(Scratch(at))
    }

    /// Its bytes.
    pub fn bytes(&mut self) -> &mut [u8; Scratch::BYTES] {
        // SAFETY: the mapping is ours alone while this lives.
        unsafe { &mut *self.0.cast() }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: nobody has it any more.
        unsafe { unmap(self.0, Scratch::BYTES) };
    }
}

/// Reserves address space. Null if the kernel refuses.
pub fn map_reserved(bytes: usize) -> *mut u8 {
    const NONE: usize = 0;
    const PRIVATE_ANONYMOUS_NORESERVE: usize = 0x2 | 0x20 | 0x4000;
    // SAFETY: a fresh mapping at an address of the kernel's choice disturbs nobody.
    let at = unsafe { call(MMAP, [0, bytes, NONE, PRIVATE_ANONYMOUS_NORESERVE, usize::MAX, 0]) };
    if at < 0 { core::ptr::null_mut() } else { at as *mut u8 }
}

/// Maps a file, private and executable, over reserved addresses; returns false if the kernel refuses.
///
/// # Safety
/// They are reserved by [`map_reserved`], and nobody else uses them.
pub unsafe fn map_code_over(fd: i32, address: usize, bytes: usize) -> bool {
    const READ_EXECUTE: usize = 1 | 4;
    const PRIVATE_FIXED: usize = 0x2 | 0x10;
    // SAFETY: by contract it replaces what nobody uses.
    unsafe { call(MMAP, [address, bytes, READ_EXECUTE, PRIVATE_FIXED, fd as usize, 0]) == address as isize }
}

/// Maps a file, private and executable, at an address or not at all: whatever is there stays.
///
/// # Errors
/// The kernel's, which is `EEXIST` when something is there.
pub fn map_code(fd: i32, address: usize, bytes: usize) -> Result<*mut u8, isize> {
    const EEXIST: isize = -17;
    const READ_EXECUTE: usize = 1 | 4;
    const PRIVATE_FIXED_NOREPLACE: usize = 0x2 | 0x10_0000;
    // SAFETY: a mapping that replaces none disturbs nobody. A kernel that does not know the flag takes the address for a wish.
    let at = unsafe { call(MMAP, [address, bytes, READ_EXECUTE, PRIVATE_FIXED_NOREPLACE, fd as usize, 0]) };
    if at < 0 {
        return Err(at);
    }
    if at as usize != address {
        // SAFETY: our own mapping, seen by nobody.
        unsafe { unmap(at as *mut u8, bytes) };
        return Err(EEXIST);
    }
    Ok(at as *mut u8)
}

/// Makes mapped code writable, as well as readable and executable, or ends that.
///
/// # Safety
/// `at..at + bytes` are whole pages of code that were readable and executable.
pub unsafe fn make_code_writable(at: usize, bytes: usize, writable: bool) -> isize {
    let protection = if writable { 1 | 2 | 4 } else { 1 | 4 };
    // SAFETY: by contract.
    unsafe { call(MPROTECT, [at, bytes, protection, 0, 0, 0]) }
}

/// Makes mapped data writable, or ends that.
///
/// # Safety
/// `at..at + bytes` are whole pages of data that could be read alone.
pub unsafe fn make_data_writable(at: usize, bytes: usize, writable: bool) -> isize {
    let protection = if writable { 1 | 2 } else { 1 };
    // SAFETY: by contract.
    unsafe { call(MPROTECT, [at, bytes, protection, 0, 0, 0]) }
}

/// Maps a file, shared, from its start. Null when the kernel refuses.
pub fn map_shared(fd: i32, bytes: usize) -> *mut u8 {
    const SHARED_NORESERVE: usize = 0x1 | 0x4000;
    map_unlocked(bytes, SHARED_NORESERVE, fd as usize)
}

/// Unmaps a mapping.
///
/// # Safety
/// `at..at + bytes` is a mapping of ours that nobody uses any more.
pub unsafe fn unmap(at: *mut u8, bytes: usize) {
    // SAFETY: by contract.
    unsafe { call(MUNMAP, [at as usize, bytes, 0, 0, 0, 0]) };
}

/// Has a mapping read as zeros in a forked child.
///
/// # Safety
/// `at..at + bytes` is a private anonymous mapping of ours.
pub unsafe fn wipe_on_fork(at: *mut u8, bytes: usize) -> isize {
    const MADV_WIPEONFORK: usize = 18;
    // SAFETY: by contract the range is ours.
    unsafe { call(MADVISE, [at as usize, bytes, MADV_WIPEONFORK, 0, 0, 0]) }
}
