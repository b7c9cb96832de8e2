//! Where the first instructions of patched functions went, and where they came from.
//!
//! A patched function begins with a jump to its *trampoline*, a slot in a mapping of ours near its code:
//!
//! ```text
//! 0    mov r11, PATCHED          the function's description
//! 10   jmp [rip]                 to its hook
//! 16   the hook's address
//! 24   the displaced instructions, and a jump back behind them
//! ```
//!
//! The hook calls the displaced instructions when it wants the function. A signal may strike in between, and a stack be walked from
//! there: to an unwinder, an instruction of a trampoline is the one from which it was made, because what it does to the stack is the same.

use crate::bounds::first;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use mallow_wire::patches::{Arguments, Call, MOVED_BYTES_MAX, STEPS_MAX, Step};

/// What a hook knows of the function that it stands in front of.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Patched {
    /// Its instructions: calling them is calling the function.
    pub real: usize,
    /// What a call does.
    pub call: Call,
    /// Which argument says what.
    pub arguments: Arguments,
    /// Where the function begins.
    pub entry: usize,
    /// How many of the steps there are.
    pub step_count: usize,
    /// Which instruction came from where.
    pub steps: [Step; STEPS_MAX],
}

/// Where the displaced instructions begin in a slot.
pub const MOVED_OFFSET: usize = 24;
/// Bytes of a slot.
pub const SLOT_BYTES: usize = (MOVED_OFFSET + MOVED_BYTES_MAX).next_multiple_of(32);

static START: AtomicUsize = AtomicUsize::new(0);
static COUNT: AtomicUsize = AtomicUsize::new(0);
static PATCHED: AtomicPtr<Patched> = AtomicPtr::new(core::ptr::null_mut());

/// Makes the slots known that begin at `start`.
///
/// # Safety
/// `patched` points at the descriptions of as many functions, which stay there.
pub unsafe fn note(start: usize, patched: *mut Patched, count: usize) {
    PATCHED.store(patched, Ordering::Relaxed);
    START.store(start, Ordering::Relaxed);
    COUNT.store(count, Ordering::Release);
}

/// The instruction that an interrupted one stands for: itself, but for those of trampolines.
#[inline]
pub fn original(pc: usize) -> usize {
    let offset = pc.wrapping_sub(START.load(Ordering::Relaxed));
    let (slot, count) = (offset / SLOT_BYTES, COUNT.load(Ordering::Acquire));
    if slot >= count {
        return pc;
    }
    // SAFETY: there are so many descriptions.
    let patched = unsafe { &*PATCHED.load(Ordering::Relaxed).add(slot) };
    original_in(patched, offset % SLOT_BYTES)
}

fn original_in(patched: &Patched, offset: usize) -> usize {
    let moved = offset.saturating_sub(MOVED_OFFSET);
    let steps = first(&patched.steps, patched.step_count.min(STEPS_MAX));
    let step = steps.iter().rev().find(|step| usize::from(step.moved) <= moved);
    patched.entry.wrapping_add(step.map_or(0, |step| usize::from(step.displaced)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_of_a_trampoline_is_one_of_the_function() {
        let step = |displaced, moved| Step { displaced, moved };
        let patched = Patched {
            real: 0,
            call: Call::Free,
            arguments: Arguments { block: 0, size: 0, count: 0, spare: 0 },
            entry: 0x1000,
            step_count: 3,
            // test; a short jump that is a long one now; the jump back.
            steps: [step(0, 0), step(3, 3), step(5, 9), step(0, 0), step(0, 0), step(0, 0)],
        };
        let at = |offset| original_in(&patched, offset) - 0x1000;
        assert_eq!([at(0), at(10), at(16), at(24), at(26)], [0; 5]);
        assert_eq!([at(27), at(32)], [3, 3]);
        assert_eq!([at(33), at(38)], [5, 5]);
    }
}
