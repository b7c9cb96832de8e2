//! The system calls that timers need beside those of the recorder.

use core::arch::naked_asm;
use core::ffi::CStr;
use mallow_recorder::sys::{self, call};

const WRITE: usize = 1;
const MMAP: usize = 9;
const RT_SIGACTION: usize = 13;
const RT_SIGPROCMASK: usize = 14;
const PRCTL: usize = 157;
const RT_SIGTIMEDWAIT: usize = 128;
const TIMER_CREATE: usize = 222;
const TIMER_SETTIME: usize = 223;
const TIMER_DELETE: usize = 226;
const CLOCK_GETTIME: usize = 228;
const TGKILL: usize = 234;
const OPENAT: usize = 257;
const PROCESS_VM_READV: usize = 310;

const THREAD_CPUTIME: usize = 3;
const PAGE_BYTES: usize = 4096;
/// The most pages that a copy touches: 64 KiB that begin within a page.
const PIECES_MAX: usize = 17;

/// A handler as the kernel has it.
#[repr(C)]
struct KernelAction {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

/// Opens a file for reading and writing; it closes on exec.
pub(crate) fn open_shared(path: &CStr) -> isize {
    const AT_FDCWD: usize = -100isize as usize;
    const READ_WRITE_CLOEXEC: usize = 2 | 0x80000;
    // SAFETY: the path is a valid string for the call's duration.
    unsafe { call(OPENAT, [AT_FDCWD, path.as_ptr() as usize, READ_WRITE_CLOEXEC, 0, 0, 0]) }
}

/// Opens a pipe for writing, without waiting for a reader; it closes on exec.
pub(crate) fn open_pipe(path: &CStr) -> isize {
    const AT_FDCWD: usize = -100isize as usize;
    const WRITE_NONBLOCK_CLOEXEC: usize = 1 | 0x800 | 0x80000;
    // SAFETY: the path is a valid string for the call's duration.
    unsafe { call(OPENAT, [AT_FDCWD, path.as_ptr() as usize, WRITE_NONBLOCK_CLOEXEC, 0, 0, 0]) }
}

/// Writes a byte, if there is room.
pub(crate) fn write_byte(file: i32) {
    // SAFETY: the kernel reads one byte. A pipe without a reader would send a signal, but its reader is the one that made it, and has our memory too.
    unsafe { call(WRITE, [file as usize, c"1".as_ptr() as usize, 1, 0, 0, 0]) };
}

const SHARED: usize = 1;
const PRIVATE: usize = 2;
const FIXED: usize = 0x10;
const ANONYMOUS: usize = 0x20;
const NO_RESERVE: usize = 0x4000;
const READ_WRITE: usize = 3;

/// Addresses for which nothing is mapped yet; null when there are not so many.
pub(crate) fn reserve(bytes: usize) -> *mut u8 {
    let flags = PRIVATE | ANONYMOUS | NO_RESERVE;
    // SAFETY: a fresh mapping at an address of the kernel's choice.
    let at = unsafe { call(MMAP, [0, bytes, 0, flags, usize::MAX, 0]) };
    if at < 0 && at > -4096 { core::ptr::null_mut() } else { at as *mut u8 }
}

/// Maps a part of a file over what is there, to be read, written and shared.
///
/// # Safety
/// The addresses are ours.
pub(crate) unsafe fn map_over(at: *mut u8, bytes: usize, file: i32, offset: usize) -> bool {
    // SAFETY: by contract.
    let answer =
        unsafe { call(MMAP, [at as usize, bytes, READ_WRITE, SHARED | FIXED, file as usize, offset]) };
    answer == at as isize
}

/// The calling thread's time on processors.
pub(crate) fn thread_cpu_ns() -> u64 {
    let mut time = [0u64; 2];
    // SAFETY: the kernel writes a `struct timespec`.
    unsafe { call(CLOCK_GETTIME, [THREAD_CPUTIME, time.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    time[0].wrapping_mul(1_000_000_000).wrapping_add(time[1])
}

/// The calling thread's name, zeros behind it.
pub(crate) fn thread_name() -> [u8; 16] {
    const GET_NAME: usize = 16;
    let mut name = [0u8; 16];
    // SAFETY: the kernel writes 16 bytes.
    unsafe { call(PRCTL, [GET_NAME, name.as_mut_ptr() as usize, 0, 0, 0, 0]) };
    name
}

/// Returns whether a thread of this process lives.
pub(crate) fn is_alive(pid: u32, tid: u32) -> bool {
    const ESRCH: isize = -3;
    // SAFETY: no signal is sent.
    unsafe { call(TGKILL, [pid as usize, tid as usize, 0, 0, 0, 0]) != ESRCH }
}

/// A timer on a thread's time on processors, which sends it a signal with a value; none when the kernel refuses. It does not run yet.
pub(crate) fn timer_create(tid: u32, signal: u32, value: usize) -> Option<u32> {
    /// `struct sigevent`.
    #[repr(C)]
    struct Event {
        value: usize,
        signal: u32,
        notify: u32,
        thread: u32,
        pad: [u32; 11],
    }
    const THREAD_ID: u32 = 4;
    let event = Event { value, signal, notify: THREAD_ID, thread: tid, pad: [0; 11] };
    let mut timer = 0u32;
    let event = core::ptr::from_ref(&event) as usize;
    // SAFETY: the kernel reads a `struct sigevent` and writes the timer's number.
    let answer = unsafe { call(TIMER_CREATE, [THREAD_CPUTIME, event, &raw mut timer as usize, 0, 0, 0]) };
    (answer == 0).then_some(timer)
}

/// Has a timer expire after so long for the first time, and then each period; 0 stops it.
pub(crate) fn timer_set(timer: u32, first_ns: u64, period_ns: u64) {
    const SECOND_NS: u64 = 1_000_000_000;
    let times = [period_ns / SECOND_NS, period_ns % SECOND_NS, first_ns / SECOND_NS, first_ns % SECOND_NS];
    // SAFETY: the kernel reads a `struct itimerspec`.
    unsafe { call(TIMER_SETTIME, [timer as usize, 0, times.as_ptr() as usize, 0, 0, 0]) };
}

/// Gives a timer back.
pub(crate) fn timer_delete(timer: u32) {
    // SAFETY: the timer is ours.
    unsafe { call(TIMER_DELETE, [timer as usize, 0, 0, 0, 0, 0]) };
}

/// Has a signal handled by `handler`, on the stack that the program wants for handlers, with all other signals blocked meanwhile; calls that it
/// interrupts go on where the kernel can do that. Gives what was there: handler and flags.
pub(crate) fn handle(signal: u32, handler: usize) -> Option<(usize, u64, u64)> {
    const SIGINFO: u64 = 4;
    const RESTORER: u64 = 0x0400_0000;
    const ONSTACK: u64 = 0x0800_0000;
    const RESTART: u64 = 0x1000_0000;
    let new = KernelAction {
        handler,
        flags: SIGINFO | RESTORER | ONSTACK | RESTART,
        restorer: restore as *const () as usize,
        mask: u64::MAX,
    };
    let mut old = KernelAction { handler: 0, flags: 0, restorer: 0, mask: 0 };
    let (new, into) = (core::ptr::from_ref(&new) as usize, core::ptr::from_mut(&mut old) as usize);
    // SAFETY: both are what the kernel has for a `struct sigaction`; the handler is one of three arguments.
    let answer = unsafe { call(RT_SIGACTION, [signal as usize, new, into, 8, 0, 0]) };
    (answer == 0).then_some((old.handler, old.flags, old.mask))
}

/// Gives a signal the kernel's own action again.
pub(crate) fn handle_as_usual(signal: u32) {
    let new = KernelAction { handler: 0, flags: 0, restorer: 0, mask: 0 };
    // SAFETY: it is what the kernel has for a `struct sigaction`.
    unsafe { call(RT_SIGACTION, [signal as usize, core::ptr::from_ref(&new) as usize, 0, 8, 0, 0]) };
}

/// Sends the calling thread a signal.
pub(crate) fn raise(signal: u32) {
    // SAFETY: what the signal does is what the caller wants.
    unsafe { call(TGKILL, [sys::getpid() as usize, sys::gettid() as usize, signal as usize, 0, 0, 0]) };
}

/// Takes a signal that waits for the calling thread, and gives its code; none when none waits.
pub(crate) fn take_waiting(signal: u32) -> Option<i32> {
    let set = 1u64 << (signal - 1);
    let (mut info, at_once) = ([0i32; 32], [0u64; 2]);
    let into = info.as_mut_ptr() as usize;
    // SAFETY: the kernel reads the set and the time, and writes a `siginfo_t`.
    let answer = unsafe {
        call(RT_SIGTIMEDWAIT, [core::ptr::from_ref(&set) as usize, into, at_once.as_ptr() as usize, 8, 0, 0])
    };
    (answer == signal as isize).then(|| info[2])
}

/// Returns from a handler. Unwinders know these instructions by their bytes.
#[unsafe(naked)]
unsafe extern "C" fn restore() {
    naked_asm!("mov rax, 15", "syscall", "ud2")
}

/// Lets the calling thread take a signal.
pub(crate) fn unblock(signal: u32) {
    const UNBLOCK: usize = 1;
    let set = 1u64 << (signal - 1);
    // SAFETY: the kernel reads one word.
    unsafe { call(RT_SIGPROCMASK, [UNBLOCK, core::ptr::from_ref(&set) as usize, 0, 8, 0, 0]) };
}

/// Copies what lies from `from` on, as far as it is mapped, in whole pages. Gives how many bytes.
///
/// # Safety
/// `into` has room for `bytes`.
pub(crate) unsafe fn copy_mapped(pid: u32, from: usize, into: *mut u8, bytes: usize) -> usize {
    // The kernel copies pieces as a whole, so each page is one.
    let mut pieces = [[0usize; 2]; PIECES_MAX];
    let (mut at, mut left, mut count) = (from, bytes, 0);
    for piece in &mut pieces {
        let length = left.min(PAGE_BYTES - at % PAGE_BYTES);
        if length == 0 {
            break;
        }
        *piece = [at, length];
        at = at.wrapping_add(length);
        left -= length;
        count += 1;
    }
    let local = [into as usize, bytes];
    let (local, remote) = (local.as_ptr() as usize, pieces.as_ptr() as usize);
    // SAFETY: by contract there is room; the kernel checks what it reads.
    let answer = unsafe { call(PROCESS_VM_READV, [pid as usize, local, 1, remote, count, 0]) };
    answer.max(0) as usize
}
