//! System calls, made directly: libc's wrappers set errno and may be hooked by others.
//!
//! Every function returns the kernel's answer, negative error numbers included.

mod checked;
mod files;
mod lasting;
mod limits;
mod mappings;
mod of_a_start;
mod signals;
mod sockets;

pub use checked::{copy_checked, is_readable, read_word_checked};
use core::arch::asm;
pub use files::{
    close, file_number, ftruncate, gives_rights, ioctl, is_executable, is_readable_file, memfd_create,
    open_own_memory, open_read, read, read_at, readlink, seal_length, thread_count, write_at,
};
pub use lasting::{
    Sharing, is_lasting, keep_small, lasting_bytes, lock, lock_all, lock_limit_bytes, unlock_lasting,
};
pub use limits::{
    LIMIT_ADDRESSES, LIMIT_DATA, address_limit_bytes, data_limit_bytes, file_limit_bytes, limits,
    note_limited, open_files_max, set_limits, stack_limit_bytes,
};
pub use mappings::{
    Scratch, make_code_writable, make_data_writable, map_code, map_code_over, map_private, map_reserved,
    map_shared, note_filter, note_future_locked, unmap, wipe_on_fork,
};
pub use of_a_start::{CALLS_OF_A_LOOK, CALLS_OF_A_START, Call, THREAD_ID};
pub use signals::{Undisturbed, set_blocked_signals};
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

/// Returns whether the processor keeps return addresses apart for this thread, and lets no function return elsewhere.
pub fn has_shadow_stack() -> bool {
    const ARCH_SHSTK_STATUS: usize = 0x5005;
    let mut features = 0u64;
    // SAFETY: the kernel writes a word, if it knows the question.
    let answer = unsafe { call(ARCH_PRCTL, [ARCH_SHSTK_STATUS, (&raw mut features) as usize, 0, 0, 0, 0]) };
    answer == 0 && features != 0
}

/// Nanoseconds of the monotonic clock, by a call: the time stamp instruction may be forbidden.
pub fn monotonic_ns() -> u64 {
    const MONOTONIC: usize = 1;
    clock_ns(MONOTONIC)
}

/// Nanoseconds since 1970, by the clock that is set.
pub fn real_ns() -> u64 {
    const REALTIME: usize = 0;
    clock_ns(REALTIME)
}

/// 0 where the kernel does not tell.
fn clock_ns(clock: usize) -> u64 {
    let mut time = [0u64; 2];
    // SAFETY: the kernel writes a `struct timespec`.
    unsafe { call(CLOCK_GETTIME, [clock, time.as_mut_ptr() as usize, 0, 0, 0, 0]) };
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
