//! The system calls of the spawner, made directly: it has no libc.

use core::arch::asm;
use mallow_wire::spawning as wire;

const READ: usize = 0;
const WRITE: usize = 1;
const RT_SIGACTION: usize = 13;
const RT_SIGPROCMASK: usize = 14;
/// Its number; the call itself is in `start.rs`.
pub(crate) const CLONE: usize = 56;
const EXECVE: usize = 59;
const WAIT4: usize = 61;
const FCNTL: usize = 72;
const PRCTL: usize = 157;
const CLOCK_GETTIME: usize = 228;
const EXIT_GROUP: usize = 231;

/// A signal came while a call waited.
const EINTR: isize = -4;

/// A system call with four arguments.
///
/// # Safety
/// The arguments must be what the call of that number expects, and memory that it writes must be ours to write.
#[inline(always)]
unsafe fn call(number: usize, a: [usize; 4]) -> isize {
    let answer: isize;
    // SAFETY: the kernel preserves all registers but rax, rcx and r11; the caller vouches for the arguments.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => answer,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3],
            lateout("rcx") _, lateout("r11") _,
            options(nostack)
        );
    }
    answer
}

/// Ends the process.
pub(crate) fn exit(status: usize) -> ! {
    loop {
        // SAFETY: it does not return.
        unsafe { call(EXIT_GROUP, [status, 0, 0, 0]) };
    }
}

/// Has the kernel kill this process when the one that started it ends.
pub(crate) fn end_with_parent() {
    const SET_PDEATHSIG: usize = 1;
    const SIGKILL: usize = 9;
    // SAFETY: it takes two numbers.
    unsafe { call(PRCTL, [SET_PDEATHSIG, SIGKILL, 0, 0]) };
}

/// Keeps a descriptor from the command.
pub(crate) fn close_on_exec(fd: i32) {
    const SETFD: usize = 2;
    const CLOEXEC: usize = 1;
    // SAFETY: it takes three numbers.
    unsafe { call(FCNTL, [fd as usize, SETFD, CLOEXEC, 0]) };
}

/// Blocks every signal, so that the terminal's keys end the command and leave us its report. Returns what was blocked before.
pub(crate) fn block_signals() -> u64 {
    change_signals(u64::MAX)
}

/// Blocks exactly these signals.
pub(crate) fn set_signals(mask: u64) {
    change_signals(mask);
}

fn change_signals(mask: u64) -> u64 {
    const SETMASK: usize = 2;
    let mut before = 0_u64;
    // SAFETY: both masks are of eight bytes, as the kernel's are, and ours.
    unsafe { call(RT_SIGPROCMASK, [SETMASK, &raw const mask as usize, &raw mut before as usize, 8]) };
    before
}

/// What the kernel calls `struct sigaction`: the handler, flags, what the handler returns to, and a mask.
#[derive(Clone, Copy)]
pub(crate) struct ChildSignal([usize; 4]);

/// Has the kernel keep the status of a child, which it does not for who ignores SIGCHLD. Returns what was to be done at that signal before.
pub(crate) fn keep_status_of_children() -> ChildSignal {
    set_child_signal(ChildSignal([0; 4]))
}

/// Sets what is done at SIGCHLD.
pub(crate) fn set_child_signal(action: ChildSignal) -> ChildSignal {
    const SIGCHLD: usize = 17;
    let mut before = ChildSignal([0; 4]);
    // SAFETY: both are of four words, as the kernel's are, and ours; ours do not name a handler.
    unsafe { call(RT_SIGACTION, [SIGCHLD, &raw const action.0 as usize, &raw mut before.0 as usize, 8]) };
    before
}

/// Fills as many bytes; false when nobody can send them any more. What is there of them is ours to write.
pub(crate) fn read_all(fd: i32, into: *mut u8, bytes: usize) -> bool {
    let mut filled = 0;
    while filled < bytes {
        let (to, left) = (into.wrapping_add(filled) as usize, bytes.wrapping_sub(filled));
        // SAFETY: the caller gives so many bytes.
        match unsafe { call(READ, [fd as usize, to, left, 0]) } {
            EINTR => {}
            count if count > 0 => filled = filled.wrapping_add(count as usize),
            _ => return false,
        }
    }
    true
}

/// Nanoseconds of the monotonic clock.
pub(crate) fn monotonic_ns() -> u64 {
    const MONOTONIC: usize = 1;
    let mut time = [0_u64; 2];
    // SAFETY: a `timespec` is two words of ours.
    unsafe { call(CLOCK_GETTIME, [MONOTONIC, &raw mut time as usize, 0, 0]) };
    time[0].wrapping_mul(1_000_000_000).wrapping_add(time[1])
}

/// Becomes another program; returns only when that is refused.
///
/// # Safety
/// `path` is a text ended by a zero byte; the lists are pointers to such texts, ended by null.
pub(crate) unsafe fn execve(
    path: *const u8,
    words: *const *const u8,
    environment: *const *const u8,
) -> isize {
    // SAFETY: by contract.
    unsafe { call(EXECVE, [path as usize, words as usize, environment as usize, 0]) }
}

/// Waits for a child; writes what it and its own children used from the word `at` on. Returns its status, or what the kernel refused.
pub(crate) fn wait(child: isize, into: &mut [u64; wire::WORDS], at: usize) -> Result<u32, isize> {
    let mut status = 0_u32;
    loop {
        let used = into.as_mut_ptr().wrapping_add(at);
        // SAFETY: a `struct rusage` is `RUSAGE_WORDS` words, for which there is room behind `RUSAGE`.
        match unsafe { call(WAIT4, [child as usize, &raw mut status as usize, 0, used as usize]) } {
            EINTR => {}
            refused if refused < 0 => return Err(refused),
            _ => return Ok(status),
        }
    }
}

/// Writes a report.
pub(crate) fn write(fd: i32, words: &[u64; wire::WORDS]) {
    // SAFETY: they are ours to read.
    unsafe { call(WRITE, [fd as usize, words.as_ptr() as usize, wire::BYTES, 0]) };
}
