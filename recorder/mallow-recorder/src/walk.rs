//! From a frame to its caller.
//!
//! A step reads one to three words of the stack, and reports each of them: whoever keeps them can tell later whether the step would go the same
//! way again ([`crate::memo`]). What may be read is decided by where the frame lies. Within the thread's own stack every word up to its upper end
//! is mapped. On a foreign stack (a fiber, an alternate signal stack) nothing is known: unwind tables are believed, because correct
//! tables never leave the stack, and where they are missing the kernel is asked to read.

use crate::rules::{self, Rule, Way};
use crate::stack_range::StackRange;
use crate::sys;

/// A frame of the walk: execution will resume at `ra` with these registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Where the return address (or the interrupted program counter) was read.
    pub slot: usize,
    /// The stack pointer after the return.
    pub sp: usize,
    /// The address at which execution resumes.
    pub ra: usize,
    /// rbp after the return.
    pub bp: usize,
    /// Whether `ra` is the address of an interrupted instruction instead of a return address.
    pub exact: bool,
}

impl Frame {
    /// The caller of a hooked function.
    ///
    /// # Safety
    /// `caller` holds the registers of a live frame of this thread.
    #[inline(always)]
    pub unsafe fn innermost(caller: crate::Caller) -> Frame {
        // SAFETY: the stack pointer at a function's entry points at its return address.
        let ra = unsafe { *(caller.sp as *const usize) };
        Frame { slot: caller.sp, sp: caller.sp + 8, ra, bp: caller.bp, exact: false }
    }

    /// An address within the instruction that was being executed.
    #[inline(always)]
    fn pc(&self) -> usize {
        self.ra - !self.exact as usize
    }
}

/// A word of the stack and the value it had.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Check {
    /// Where.
    pub address: usize,
    /// What.
    pub value: usize,
}

/// The longest list of words that one step reads.
pub const CHECKS_PER_STEP: usize = 3;

/// Where a step led.
#[derive(Debug)]
pub enum Step {
    /// To the caller.
    Caller(Frame),
    /// Nowhere: this frame is the outermost.
    Outermost,
    /// Nowhere: no table and no plausible frame pointer, or a table that makes no sense.
    Cut,
}

/// What a walk needs to know of its thread.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// The thread's own stack.
    pub stack: StackRange,
    /// The module generation.
    pub generation: u64,
    /// The process id, for reads that the kernel checks.
    pub pid: u32,
}

/// No frame is larger than this; a table that says so is wrong for its code.
const FRAME_BYTES_MAX: usize = 256 << 20;

/// Finds the caller of `frame` and reports each word it read to `read`.
///
/// # Safety
/// `frame` is a frame of a live call chain of this thread.
#[inline(always)]
pub unsafe fn step(frame: &Frame, around: &Surroundings, mut read: impl FnMut(Check)) -> Step {
    let rule = rules::rule_at(frame.pc(), around.generation);
    let (a, b) = (rule.a(), rule.b());
    let at = |base: usize, offset: isize| base.wrapping_add(offset as usize);
    // SAFETY: tables of live code describe live frames; `ascends` keeps the words between this frame and the end of its stack.
    unsafe {
        let (cfa, bp_slot) = match rule.way() {
            Way::Sp => (at(frame.sp, a), 0),
            Way::SpSavesBp => (at(frame.sp, a), at(at(frame.sp, a), b)),
            Way::Bp => (at(frame.bp, a), 0),
            Way::BpSavesBp => (at(frame.bp, a), at(at(frame.bp, a), b)),
            Way::Realigned | Way::Signal | Way::Guess | Way::Foreign => {
                return rare(frame, around, rule, &mut read);
            }
            Way::End => return Step::Outermost,
        };
        if !ascends(frame, cfa, around) || (bp_slot != 0 && !ascends(frame, bp_slot.wrapping_add(8), around))
        {
            return Step::Cut;
        }
        finish(cfa, bp_slot, frame.bp, &mut read)
    }
}

/// Reads the return address below `cfa`, and rbp when it was saved.
#[inline(always)]
unsafe fn finish(cfa: usize, bp_slot: usize, bp: usize, read: &mut impl FnMut(Check)) -> Step {
    let slot = cfa - 8;
    // SAFETY: the caller checked both addresses.
    let ra = unsafe { *(slot as *const usize) };
    read(Check { address: slot, value: ra });
    if ra == 0 {
        return Step::Outermost;
    }
    let mut caller = Frame { slot, sp: cfa, ra, bp, exact: false };
    if bp_slot != 0 {
        // SAFETY: as above.
        caller.bp = unsafe { *(bp_slot as *const usize) };
        read(Check { address: bp_slot, value: caller.bp });
    }
    Step::Caller(caller)
}

/// Whether the word below `end` may be read for the caller of `frame`: it lies above the frame's stack pointer, and on the thread's own stack not beyond
/// its end. The frame's slot would not do as the lower bound: an interrupted frame's lies on the signal handler's stack.
#[inline(always)]
fn ascends(frame: &Frame, end: usize, around: &Surroundings) -> bool {
    let bytes = end.wrapping_sub(frame.sp - 8);
    let plausible = (8..FRAME_BYTES_MAX).contains(&bytes) && end & 7 == 0;
    plausible && (!around.stack.holds(frame.sp - 8) || end <= around.stack.end)
}

/// Frames that are left in unusual ways.
#[cold]
#[inline(never)]
unsafe fn rare(frame: &Frame, around: &Surroundings, rule: Rule, read: &mut impl FnMut(Check)) -> Step {
    let at = |base: usize, offset: isize| base.wrapping_add(offset as usize);
    // SAFETY: as in `step`.
    unsafe {
        match rule.way() {
            Way::Realigned => {
                let (cfa_slot, bp_slot) = (at(frame.bp, rule.a()), at(frame.bp, rule.b()));
                if !ascends(frame, cfa_slot.wrapping_add(8), around)
                    || !ascends(frame, bp_slot.wrapping_add(8), around)
                {
                    return Step::Cut;
                }
                let cfa = *(cfa_slot as *const usize);
                read(Check { address: cfa_slot, value: cfa });
                if !ascends(frame, cfa, around) {
                    return Step::Cut;
                }
                finish(cfa, bp_slot, frame.bp, read)
            }
            Way::Signal => interrupted(at(frame.sp, rule.a()), read),
            Way::Guess => by_frame_pointer(frame, around, read),
            _ => Step::Cut,
        }
    }
}

/// The frame that a signal interrupted. `gregs` of the kernel's `ucontext` are 8-byte words; rbp, rsp and rip have the
/// indices 10, 15 and 16.
unsafe fn interrupted(rsp_slot: usize, read: &mut impl FnMut(Check)) -> Step {
    let (bp_slot, slot) = (rsp_slot - 5 * 8, rsp_slot + 8);
    // SAFETY: the kernel wrote the context just above the trampoline's frame.
    unsafe {
        let frame = Frame {
            slot,
            sp: *(rsp_slot as *const usize),
            ra: *(slot as *const usize),
            bp: *(bp_slot as *const usize),
            exact: true,
        };
        read(Check { address: slot, value: frame.ra });
        read(Check { address: rsp_slot, value: frame.sp });
        read(Check { address: bp_slot, value: frame.bp });
        Step::Caller(frame)
    }
}

/// Follows rbp when it can be a frame pointer: it points into the stack, above this frame, at a saved rbp and a return address.
fn by_frame_pointer(frame: &Frame, around: &Surroundings, read: &mut impl FnMut(Check)) -> Step {
    let cfa = frame.bp.wrapping_add(16);
    if frame.bp < frame.sp || !ascends(frame, cfa, around) {
        return Step::Cut;
    }
    let word = |address: usize| {
        if around.stack.holds(frame.sp - 8) {
            // SAFETY: between this frame and the end of the thread's own stack everything is mapped.
            Some(unsafe { *(address as *const usize) })
        } else {
            sys::read_word_checked(around.pid, address)
        }
    };
    let (Some(bp), Some(ra)) = (word(frame.bp), word(frame.bp + 8)) else { return Step::Cut };
    read(Check { address: frame.bp + 8, value: ra });
    read(Check { address: frame.bp, value: bp });
    if ra < 4096 || ra >> 47 != 0 {
        return Step::Cut;
    }
    Step::Caller(Frame { slot: frame.bp + 8, sp: cfa, ra, bp, exact: false })
}
