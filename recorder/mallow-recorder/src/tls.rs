//! One thread-local word, reached without a call.
//!
//! Stable Rust's `thread_local!` in a shared library goes through `__tls_get_addr`, which may allocate. The
//! word is therefore laid out in assembly, in the initial-exec model: the loader places it within the block
//! that every thread has from birth, at an offset from `fs` that is known after loading. A preloaded library
//! may do so.

use core::arch::{asm, global_asm};

global_asm!(
    ".pushsection .tbss.mallow_thread,\"awT\",@nobits",
    ".balign 8",
    ".globl mallow_thread",
    ".hidden mallow_thread",
    ".type mallow_thread, @object",
    ".size mallow_thread, 8",
    "mallow_thread:",
    ".zero 8",
    ".popsection",
);

#[cfg(not(miri))]
mod word {
    use core::arch::asm;

    /// This thread's state; null before its first call.
    #[inline(always)]
    pub fn get() -> *mut () {
        let thread: *mut ();
        // SAFETY: reads this thread's own word. Not `pure`: the word changes between calls.
        unsafe {
            asm!(
                "mov {offset}, qword ptr [rip + mallow_thread@GOTTPOFF]",
                "mov {thread}, qword ptr fs:[{offset}]",
                offset = out(reg) _,
                thread = out(reg) thread,
                options(nostack, preserves_flags, readonly)
            );
        }
        thread
    }

    /// Sets this thread's state.
    #[inline(always)]
    pub fn set(thread: *mut ()) {
        // SAFETY: writes this thread's own word.
        unsafe {
            asm!(
                "mov {offset}, qword ptr [rip + mallow_thread@GOTTPOFF]",
                "mov qword ptr fs:[{offset}], {thread}",
                offset = out(reg) _,
                thread = in(reg) thread,
                options(nostack, preserves_flags)
            );
        }
    }
}

/// Miri has no assembly.
#[cfg(miri)]
mod word {
    use core::cell::Cell;

    std::thread_local! { static WORD: Cell<*mut ()> = const { Cell::new(core::ptr::null_mut()) } }

    /// As the other one.
    pub fn get() -> *mut () {
        WORD.get()
    }

    /// As the other one.
    pub fn set(thread: *mut ()) {
        WORD.set(thread);
    }
}

pub use word::{get, set};

/// The thread control block's address: on glibc and musl it lies at the upper end of a thread's own stack.
pub fn control_block() -> usize {
    let address: usize;
    // SAFETY: the ABI keeps the block's own address in its first word.
    unsafe {
        asm!("mov {}, qword ptr fs:[0]", out(reg) address, options(nostack, preserves_flags, readonly))
    };
    address
}
