//! System calls, made directly: libc's wrappers set errno and may be hooked by others.
//!
//! Every function returns the kernel's answer, negative error numbers included.

mod lasting;
mod of_a_start;
mod sockets;

use core::arch::asm;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
pub use lasting::{
    Sharing, is_lasting, keep_small, lasting_bytes, lock, lock_all, lock_limit_bytes, unlock_lasting,
};
pub use of_a_start::{CALLS_OF_A_LOOK, CALLS_OF_A_START, Call, THREAD_ID};
pub use sockets::{SocketName, Timeout, connect, receive_with_fd, send_plain, send_with_fd};

const READ: usize = 0;
const CLOSE: usize = 3;
const STAT: usize = 4;
const FSTAT: usize = 5;
const MMAP: usize = 9;
const MPROTECT: usize = 10;
const MUNMAP: usize = 11;
const RT_SIGPROCMASK: usize = 14;
const IOCTL: usize = 16;
const PREAD64: usize = 17;
const PWRITE64: usize = 18;
const ACCESS: usize = 21;
const MADVISE: usize = 28;
const GETPID: usize = 39;
const FCNTL: usize = 72;
const FTRUNCATE: usize = 77;
const READLINK: usize = 89;
const GETRUSAGE: usize = 98;
const GETUID: usize = 102;
const GETGID: usize = 104;
const GETPPID: usize = 110;
const MUNLOCK: usize = 150;
const ARCH_PRCTL: usize = 158;
const GETTID: usize = 186;
const FUTEX: usize = 202;
const CLOCK_GETTIME: usize = 228;
const EXIT_GROUP: usize = 231;
const OPENAT: usize = 257;
const PRLIMIT64: usize = 302;
const PROCESS_VM_READV: usize = 310;
const MEMFD_CREATE: usize = 319;

/// A system call with six arguments.
///
/// # Safety
/// The arguments must be what the call of that number expects, and memory that it writes must be ours to
/// write.
#[inline(always)]
pub unsafe fn call(number: usize, a: [usize; 6]) -> isize {
    let answer: isize;
    // SAFETY: the kernel preserves all registers but rax, rcx and r11; the caller vouches for the arguments.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    answer
}

/// Maps private anonymous memory that costs nothing until touched. Null when the kernel refuses.
///
/// As a stack it has small pages, from Linux 6.7 on: where large ones are for all, a thread's few pages would take 4 MiB. [`keep_small`] asks older kernels
/// for the same, with a system call more.
pub fn map_private(bytes: usize) -> *mut u8 {
    const PRIVATE_ANONYMOUS_NORESERVE_STACK: usize = 0x2 | 0x20 | 0x4000 | 0x2_0000;
    map_unlocked(bytes, PRIVATE_ANONYMOUS_NORESERVE_STACK, usize::MAX)
}

/// As `RLIMIT_AS`.
pub const LIMIT_ADDRESSES: u32 = 9;
/// As `RLIMIT_DATA`.
pub const LIMIT_DATA: u32 = 2;

/// Limits that the program has set for itself, to which what is ours was added ([`crate::own_limits`]): a bit for each resource.
static LIMITED: AtomicU32 = AtomicU32::new(0);

/// Notes that it has set one.
pub fn note_limited(resource: u32) {
    LIMITED.fetch_or(1 << (resource & 31), Ordering::Relaxed);
}

/// Has so much more memory fit in such limits, as far as the hard ones allow.
fn make_room(bytes: usize, is_private: bool) {
    let limited = LIMITED.load(Ordering::Relaxed);
    for resource in [LIMIT_ADDRESSES, LIMIT_DATA] {
        let counts = limited >> resource & 1 != 0 && (is_private || resource == LIMIT_ADDRESSES);
        if let Some([soft, hard]) = limits(resource).filter(|_| counts) {
            set_limits(resource, [soft.saturating_add(bytes as u64).min(hard), hard]);
        }
    }
}

/// What is mapped from now on is locked.
static LOCKS_FUTURE: AtomicBool = AtomicBool::new(false);

/// Notes that the program has all locked that is mapped from now on.
pub fn note_future_locked() {
    LOCKS_FUTURE.store(true, Ordering::Relaxed);
}

/// Notes that a filter of system calls is about to be set: those that make room in a limit, or unlock memory, may not be allowed behind it.
pub fn note_filter() {
    LIMITED.store(0, Ordering::Relaxed);
    LOCKS_FUTURE.store(false, Ordering::Relaxed);
}

/// Maps memory that can be read and written. Null when the kernel refuses.
///
/// Where all that is mapped is locked it would be filled with pages at once. A mapping that nobody can use yet is not.
fn map_unlocked(bytes: usize, flags: usize, fd: usize) -> *mut u8 {
    const READ_WRITE: usize = 1 | 2;
    const SMALL_BYTES: usize = 64 << 10;
    let is_locked = bytes > SMALL_BYTES && LOCKS_FUTURE.load(Ordering::Relaxed);
    if bytes > SMALL_BYTES && LIMITED.load(Ordering::Relaxed) != 0 {
        const PRIVATE: usize = 2;
        make_room(bytes, flags & PRIVATE != 0);
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

/// The process id.
pub fn getpid() -> u32 {
    // SAFETY: takes no arguments.
    unsafe { call(GETPID, [0; 6]) as u32 }
}

/// The parent's process id.
pub fn getppid() -> u32 {
    // SAFETY: takes no arguments.
    unsafe { call(GETPPID, [0; 6]) as u32 }
}

/// The thread id.
pub fn gettid() -> u32 {
    // SAFETY: takes no arguments.
    unsafe { call(GETTID, [0; 6]) as u32 }
}

/// Ends the process.
pub fn exit_group(status: i32) -> ! {
    loop {
        // SAFETY: does not return.
        unsafe { call(EXIT_GROUP, [status as usize, 0, 0, 0, 0, 0]) };
    }
}

/// A file in memory that closes on exec, and whose length can be made to stay.
pub fn memfd_create(name: &core::ffi::CStr) -> isize {
    const CLOEXEC: usize = 1;
    const ALLOW_SEALING: usize = 2;
    // SAFETY: the name is a valid string for the call's duration.
    unsafe { call(MEMFD_CREATE, [name.as_ptr() as usize, CLOEXEC | ALLOW_SEALING, 0, 0, 0, 0]) }
}

/// Seals the length of a file in memory, so that it cannot be truncated under a mapping of it.
pub fn seal_length(fd: i32) -> bool {
    const ADD_SEALS: usize = 1033;
    const SEAL: usize = 1;
    const SHRINK: usize = 2;
    const GROW: usize = 4;
    // SAFETY: touches a file of ours only.
    unsafe { call(FCNTL, [fd as usize, ADD_SEALS, SEAL | SHRINK | GROW, 0, 0, 0]) == 0 }
}

/// Sets a file's length.
pub fn ftruncate(fd: i32, bytes: usize) -> isize {
    // SAFETY: touches a file of ours only.
    unsafe { call(FTRUNCATE, [fd as usize, bytes, 0, 0, 0, 0]) }
}

/// Closes a descriptor of ours.
pub fn close(fd: i32) {
    // SAFETY: the caller opened it.
    unsafe { call(CLOSE, [fd as usize, 0, 0, 0, 0, 0]) };
}

/// Opens a file for reading; it closes on exec.
pub fn open_read(path: &core::ffi::CStr) -> isize {
    const AT_FDCWD: usize = -100isize as usize;
    const CLOEXEC: usize = 0x80000;
    // SAFETY: the path is a valid string for the call's duration.
    unsafe { call(OPENAT, [AT_FDCWD, path.as_ptr() as usize, CLOEXEC, 0, 0, 0]) }
}

/// Reads from a descriptor.
pub fn read(fd: i32, into: &mut [u8]) -> isize {
    // SAFETY: the kernel writes at most the slice's length into it.
    unsafe { call(READ, [fd as usize, into.as_mut_ptr() as usize, into.len(), 0, 0, 0]) }
}

/// Reads from an offset on.
pub fn read_at(fd: i32, offset: u64, into: &mut [u8]) -> isize {
    // SAFETY: the kernel writes at most the slice's length into it.
    unsafe { call(PREAD64, [fd as usize, into.as_mut_ptr() as usize, into.len(), offset as usize, 0, 0]) }
}

/// Writes at an offset.
///
/// # Safety
/// What the file stands for, such as this process's memory, may be changed there.
pub unsafe fn write_at(fd: i32, offset: u64, bytes: &[u8]) -> isize {
    // SAFETY: the kernel only reads the slice; by contract.
    unsafe { call(PWRITE64, [fd as usize, bytes.as_ptr() as usize, bytes.len(), offset as usize, 0, 0]) }
}

/// Opens this process's own memory as a file that can be written; it closes on exec.
pub fn open_own_memory() -> isize {
    const AT_FDCWD: usize = -100isize as usize;
    const READ_WRITE_CLOEXEC: usize = 2 | 0x80000;
    let path = c"/proc/self/mem";
    // SAFETY: the path is a valid string for the call's duration.
    unsafe { call(OPENAT, [AT_FDCWD, path.as_ptr() as usize, READ_WRITE_CLOEXEC, 0, 0, 0]) }
}

/// Returns whether the processor keeps return addresses apart for this thread, and lets no function return elsewhere.
pub fn has_shadow_stack() -> bool {
    const ARCH_SHSTK_STATUS: usize = 0x5005;
    let mut features = 0u64;
    // SAFETY: the kernel writes a word, if it knows the question.
    let answer = unsafe { call(ARCH_PRCTL, [ARCH_SHSTK_STATUS, (&raw mut features) as usize, 0, 0, 0, 0]) };
    answer == 0 && features != 0
}

/// Returns how many threads this process has; `None` if the kernel does not say.
pub fn thread_count() -> Option<u64> {
    let mut stat: Stat = [0; 18];
    let path = c"/proc/self/task";
    // SAFETY: the path is a valid string; the kernel writes a `struct stat`.
    let answer = unsafe { call(STAT, [path.as_ptr() as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    // A folder has a link for itself, one from above, and one for each folder in it.
    (answer == 0).then(|| stat[2].saturating_sub(2))
}

/// Returns whether a file is there and may be executed.
pub fn is_executable(path: &core::ffi::CStr) -> bool {
    const EXECUTE: usize = 1;
    // SAFETY: the path is a valid string for the call's duration.
    unsafe { call(ACCESS, [path.as_ptr() as usize, EXECUTE, 0, 0, 0, 0]) == 0 }
}

/// Returns whether a file is there and may be read. It is opened, because `access` does not know what Landlock forbids.
pub fn is_readable_file(path: &core::ffi::CStr) -> bool {
    let file = open_read(path);
    if file >= 0 {
        close(file as i32);
    }
    file >= 0
}

/// `struct stat`: 144 bytes, of which the number (word 1), mode and user (word 3), and group (word 4) are read.
type Stat = [u64; 18];

/// The number of a file.
pub fn file_number(path: &core::ffi::CStr) -> Option<u64> {
    let mut stat: Stat = [0; 18];
    // SAFETY: the path is a valid string; the kernel writes a `struct stat`.
    let answer = unsafe { call(STAT, [path.as_ptr() as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    (answer == 0).then_some(stat[1])
}

/// Returns whether executing an open file changes the user or group (setuid, setgid).
pub fn gives_rights(fd: i32) -> bool {
    const SETUID: u64 = 0o4000;
    const SETGID: u64 = 0o2000;
    let mut stat: Stat = [0; 18];
    // SAFETY: the kernel writes a `struct stat`; the others take no arguments.
    let (answer, user, group) = unsafe {
        let answer = call(FSTAT, [fd as usize, stat.as_mut_ptr() as usize, 0, 0, 0, 0]);
        (answer, call(GETUID, [0; 6]) as u64, call(GETGID, [0; 6]) as u64)
    };
    let (mode, owner, owners) = (stat[3] & 0xffff_ffff, stat[3] >> 32, stat[4] & 0xffff_ffff);
    answer == 0 && (mode & SETUID != 0 && owner != user || mode & SETGID != 0 && owners != group)
}

/// Nanoseconds of the monotonic clock, by a call: the time stamp instruction may be forbidden.
pub fn monotonic_ns() -> u64 {
    const MONOTONIC: usize = 1;
    let mut time = [0u64; 2];
    // SAFETY: the kernel writes a `struct timespec`.
    unsafe { call(CLOCK_GETTIME, [MONOTONIC, time.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    time[0].wrapping_mul(1_000_000_000).wrapping_add(time[1])
}

/// The most bytes that were resident in this process at once.
pub fn resident_bytes_max() -> usize {
    const RUSAGE_SELF: usize = 0;
    // `struct rusage`: two times, then the maximum in KiB, then 13 words more.
    let mut usage = [0usize; 18];
    // SAFETY: the kernel writes a `struct rusage`.
    unsafe { call(GETRUSAGE, [RUSAGE_SELF, usage.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    usage[4] << 10
}

/// Reads a symbolic link.
///
/// # Safety
/// The kernel may write `bytes` bytes at `at`.
pub unsafe fn readlink(path: &core::ffi::CStr, at: *mut u8, bytes: usize) -> isize {
    // SAFETY: by contract.
    unsafe { call(READLINK, [path.as_ptr() as usize, at as usize, bytes, 0, 0, 0]) }
}

/// An ioctl whose argument is a structure that the kernel reads and writes.
///
/// # Safety
/// `argument` has the type that `request` expects.
pub unsafe fn ioctl<T>(fd: i32, request: usize, argument: &mut T) -> isize {
    // SAFETY: by contract.
    unsafe { call(IOCTL, [fd as usize, request, core::ptr::from_mut(argument) as usize, 0, 0, 0]) }
}

/// The soft limit of the main thread's stack in bytes.
pub fn stack_limit_bytes() -> usize {
    const RLIMIT_STACK: usize = 3;
    soft_limit(RLIMIT_STACK).unwrap_or(0)
}

/// The longest file that this process may make, in bytes.
pub fn file_limit_bytes() -> usize {
    const RLIMIT_FSIZE: usize = 1;
    soft_limit(RLIMIT_FSIZE).unwrap_or(usize::MAX)
}

/// Returns how much address space this process may have, in bytes.
pub fn address_limit_bytes() -> usize {
    soft_limit(LIMIT_ADDRESSES as usize).unwrap_or(usize::MAX)
}

/// Returns how much private memory that it can write this process may have, in bytes.
pub fn data_limit_bytes() -> usize {
    soft_limit(LIMIT_DATA as usize).unwrap_or(usize::MAX)
}

/// Returns how many files this process may have open at once.
pub fn open_files_max() -> usize {
    const RLIMIT_NOFILE: usize = 7;
    soft_limit(RLIMIT_NOFILE).unwrap_or(usize::MAX)
}

fn soft_limit(resource: usize) -> Option<usize> {
    limits(resource as u32).map(|[soft, _]| soft as usize)
}

/// The soft limit and the hard one of a resource, in its unit.
pub fn limits(resource: u32) -> Option<[u64; 2]> {
    let mut limits = [0u64; 2];
    // SAFETY: reads the limits of this process into 16 bytes of ours.
    let answer = unsafe { call(PRLIMIT64, [0, resource as usize, 0, limits.as_mut_ptr() as usize, 0, 0]) };
    (answer >= 0).then_some(limits)
}

/// Sets them.
pub fn set_limits(resource: u32, limits: [u64; 2]) -> isize {
    // SAFETY: reads 16 bytes of ours.
    unsafe { call(PRLIMIT64, [0, resource as usize, limits.as_ptr() as usize, 0, 0, 0]) }
}

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

/// Sleeps while `*word == value`, for at most `timeout_ms`. The word may be shared with another process.
pub fn futex_wait(word: &core::sync::atomic::AtomicU32, value: u32, timeout_ms: u64) {
    const FUTEX_WAIT: usize = 0;
    let timeout = [timeout_ms / 1000, timeout_ms % 1000 * 1_000_000];
    // SAFETY: the kernel only reads the word and the timeout.
    unsafe {
        call(FUTEX, [word.as_ptr() as usize, FUTEX_WAIT, value as usize, timeout.as_ptr() as usize, 0, 0])
    };
}

/// Wakes all threads that sleep on a word.
pub fn futex_wake(word: &core::sync::atomic::AtomicU32) {
    const FUTEX_WAKE: usize = 1;
    const ALL: usize = i32::MAX as usize;
    // SAFETY: the kernel only looks who sleeps there.
    unsafe { call(FUTEX, [word.as_ptr() as usize, FUTEX_WAKE, ALL, 0, 0, 0]) };
}

const SIGILL: u32 = 4;
const SIGTRAP: u32 = 5;
const SIGBUS: u32 = 7;
const SIGFPE: u32 = 8;
const SIGSEGV: u32 = 11;
const SIGSYS: u32 = 31;

/// Sets this thread's mask of blocked signals. Returns the previous one.
pub fn set_blocked_signals(blocked: u64) -> u64 {
    const SETMASK: usize = 2;
    let mut before = 0u64;
    // SAFETY: the kernel reads one word and writes the other.
    unsafe {
        let (new, old) = (core::ptr::from_ref(&blocked) as usize, core::ptr::from_mut(&mut before) as usize);
        call(RT_SIGPROCMASK, [SETMASK, new, old, 8, 0, 0])
    };
    before
}

/// While it lives this thread blocks all signals except those that it causes itself: a fault, a trap, a forbidden
/// system call. The kernel would kill a process that blocks these.
pub struct Undisturbed {
    before: u64,
}

impl Undisturbed {
    /// Signals wait from here on.
    pub fn begin() -> Undisturbed {
        const OWN: [u32; 6] = [SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS];
        let own = OWN.into_iter().fold(0, |set, signal| set | 1u64 << (signal - 1));
        Undisturbed { before: set_blocked_signals(!own) }
    }
}

impl Drop for Undisturbed {
    fn drop(&mut self) {
        set_blocked_signals(self.before);
    }
}
