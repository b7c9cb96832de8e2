//! The signals that a thread blocks.

use super::{RT_SIGPROCMASK, call};

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
