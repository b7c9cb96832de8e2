//! New threads: each begins with a timer.
//!
//! The doubt: a thread that is made by the system call itself, as Go's runtime does, has none. Its time is missing from what was sampled, which is
//! said.

use crate::memory::{self, memory};
use crate::threads::{self, Entry};
use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use core::mem::transmute;
use core::sync::atomic::Ordering;
use mallow_recorder::real::Real;
use mallow_wire::timers::BY_TIMERS;

static PTHREAD_CREATE: Real = Real::named(c"pthread_create");
static THRD_CREATE: Real = Real::named(c"thrd_create");

/// `pthread_create`: the thread has a timer before its function is called.
///
/// # Safety
/// As `pthread_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    thread: *mut c_void,
    attributes: *const c_void,
    start: usize,
    argument: usize,
) -> c_int {
    type Create = unsafe extern "C" fn(*mut c_void, *const c_void, usize, usize) -> c_int;
    // SAFETY: by contract; our own start takes one argument too.
    with_entry(start, argument, |start, argument| unsafe {
        transmute::<usize, Create>(PTHREAD_CREATE.address())(thread, attributes, start, argument)
    })
}

/// `thrd_create`, in the same way.
///
/// # Safety
/// As `thrd_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thrd_create(thread: *mut c_void, start: usize, argument: usize) -> c_int {
    type Create = unsafe extern "C" fn(*mut c_void, usize, usize) -> c_int;
    // SAFETY: as above.
    with_entry(start, argument, |start, argument| unsafe {
        transmute::<usize, Create>(THRD_CREATE.address())(thread, start, argument)
    })
}

fn with_entry(start: usize, argument: usize, create: impl FnOnce(usize, usize) -> c_int) -> c_int {
    let is_timed = |memory: &memory::Memory| !memory.is_over() && memory.way() == BY_TIMERS;
    let Some(memory) = memory().filter(is_timed) else { return create(start, argument) };
    let Some(entry) = threads::claim() else {
        memory.count(|header| &header.threads_without);
        return create(start, argument);
    };
    entry.start.store(start, Ordering::Relaxed);
    entry.argument.store(argument, Ordering::Relaxed);
    let answer = create(first_of_thread as *const () as usize, core::ptr::from_ref(entry) as usize);
    if answer != 0 {
        entry.release();
    }
    answer
}

/// Where a thread begins. It goes on by a jump, so that no frame of ours stands in its stack.
#[unsafe(naked)]
unsafe extern "C" fn first_of_thread() {
    naked_asm!(
        ".cfi_startproc",
        "sub rsp, 8",
        ".cfi_adjust_cfa_offset 8",
        "call {begins}",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "mov rdi, rdx",
        "jmp rax",
        ".cfi_endproc",
        begins = sym begins,
    )
}

/// Two words, as functions return them in registers.
#[repr(C)]
struct Start {
    function: usize,
    argument: usize,
}

unsafe extern "C" fn begins(entry: *const Entry) -> Start {
    // SAFETY: an entry of the table, which is for ever.
    let entry: &'static Entry = unsafe { &*entry };
    let (function, argument) = (entry.start.load(Ordering::Relaxed), entry.argument.load(Ordering::Relaxed));
    match memory() {
        Some(memory) => entry.begin(memory),
        None => entry.release(),
    }
    Start { function, argument }
}
