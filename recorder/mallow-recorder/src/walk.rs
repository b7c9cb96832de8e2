//! One step of a stack walk: from a frame to its caller. The walk itself is in [`crate::memo`] and [`crate::from_scratch`].
//!
//! A step reads one to three words of the stack and reports each of them, so that the memo can tell later whether the step
//! would go the same way again ([`crate::memo`]). What may be read depends on where the frame lies. Within the thread's own
//! stack every word up to its upper end is mapped. On a foreign stack (a fiber, an alternate signal stack) only the page of the
//! current frame is known to be mapped: before a step reads beyond it the kernel is asked, page by page, because the top of a
//! handmade stack may be mistaken for code with a frame that reaches into the guard page above.

use crate::guesses;
use crate::process;
use crate::rules::{self, FpUse, FullRule, Rule, RuleKind};
use crate::script::hotspot::{self, Leave, SENDER_SP};
use crate::stack_range::StackRange;
use crate::sys;
use crate::trampolines;
use crate::unloads;
use mallow_wire::shared::{PAGE_BYTES, node_key};

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

/// Returns the key of an address on a stack in the node table.
#[inline(always)]
pub fn key_of(ra: usize, exact: bool) -> u64 {
    node_key(meant(ra, exact) as u64, exact, unloads::since(pc_of(ra, exact)))
}

/// The address that is meant: an interrupted instruction may be one of a patched function's, in another place.
#[inline(always)]
fn meant(ra: usize, exact: bool) -> usize {
    if exact { trampolines::original(ra) } else { ra }
}

/// An address within the instruction that was being executed.
#[inline(always)]
fn pc_of(ra: usize, exact: bool) -> usize {
    meant(ra, exact).wrapping_sub(!exact as usize)
}

impl Frame {
    /// Returns the frame of the caller of a hooked function.
    ///
    /// # Safety
    /// `caller` holds the registers of a live frame of this thread.
    #[inline(always)]
    pub unsafe fn innermost(caller: crate::Caller) -> Frame {
        // SAFETY: the stack pointer at a function's entry points at its return address.
        let ra = unsafe { *(caller.sp as *const usize) };
        Frame { slot: caller.sp, sp: caller.sp + 8, ra, bp: caller.bp, exact: false }
    }
}

/// A word of the stack and the value it had.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Check {
    /// Its address.
    pub address: usize,
    /// Its value.
    pub value: usize,
}

/// Returns how many of the words, from the first on, are unchanged. Not inlined: the loop takes a fourth fewer instructions where it has all registers.
///
/// # Safety
/// All addresses can be read.
#[inline(never)]
pub(crate) unsafe fn unchanged(checks: &[Check]) -> usize {
    let (groups, rest) = checks.as_chunks::<GROUP_WORDS>();
    for (at, group) in groups.iter().enumerate() {
        // SAFETY: by contract.
        let same = unsafe { same(group) };
        if same < group.len() {
            return at * GROUP_WORDS + same;
        }
    }
    // SAFETY: by contract.
    groups.len() * GROUP_WORDS + unsafe { same(rest) }
}

/// So many words are compared in a row.
pub(crate) const GROUP_WORDS: usize = 4;
pub(crate) type Group = [Check; GROUP_WORDS];

/// Writes words into groups, as many as have room, and the last one again to the end of its group. Returns how many groups they take.
#[inline(always)]
pub(crate) fn fill(groups: &mut [Group], mut words: impl Iterator<Item = Check>) -> u8 {
    let (mut last, mut count) = (Check { address: 0, value: 0 }, 0);
    for place in groups.as_flattened_mut() {
        match words.next() {
            Some(word) => last = word,
            None if count % GROUP_WORDS == 0 => break,
            None => {}
        }
        *place = last;
        count += 1;
    }
    (count / GROUP_WORDS) as u8
}

/// Returns whether all words are unchanged. Not inlined, as [`unchanged`].
///
/// # Safety
/// All addresses can be read.
#[inline(never)]
pub(crate) unsafe fn all_unchanged(groups: &[Group]) -> bool {
    // SAFETY: by contract.
    groups.iter().all(|group| unsafe { same(group) } == group.len())
}

/// Returns how many of a few words, from the first on, are unchanged.
///
/// # Safety
/// All addresses can be read.
#[inline(always)]
unsafe fn same(checks: &[Check]) -> usize {
    // SAFETY: by contract.
    let is_same = |check: &&Check| unsafe { (check.address as *const usize).read_volatile() } == check.value;
    checks.iter().take_while(is_same).count()
}

/// The longest list of words that one step reads.
pub const CHECKS_PER_STEP: usize = 3;

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// To the caller.
    Caller,
    /// Nowhere: the frame is the outermost.
    Outermost,
    /// Nowhere: no table and no plausible frame pointer, or a table that makes no sense.
    Truncated,
    /// Undecided: the words are beyond the given end.
    Beyond,
}

/// The inputs of a stack walk.
#[derive(Clone, Copy, Debug)]
pub struct UnwindContext {
    /// The thread's own stack.
    pub stack: StackRange,
    /// How often code was unloaded, or freed by a JVM.
    pub generation: u64,
    /// The process id, for reads that the kernel checks.
    pub pid: u32,
}

/// Below the stack pointer of an interrupted function, so many bytes are still as they were.
const RED_ZONE_BYTES: usize = 128;

/// No frame is larger than this; a table with a larger one is wrong for its code.
const FRAME_BYTES_MAX: usize = 256 << 20;

impl UnwindContext {
    /// The address below which the words of `frame`'s callers can be read: the end of the thread's own stack; of a foreign one
    /// the end of the page that was read last. The place of an interrupted frame was read elsewhere, so that nothing of its
    /// own stack is known.
    #[inline(always)]
    pub fn end_of_stack(&self, frame: &Frame) -> usize {
        let at = frame.sp.wrapping_sub(8);
        if self.stack.holds(at) {
            return self.stack.end;
        }
        let page = at & !(PAGE_BYTES - 1);
        if frame.exact { page } else { page.saturating_add(PAGE_BYTES) }
    }

    /// Returns whether a word of `frame` can be read: checked by the kernel if it is on a foreign stack, on another
    /// page.
    fn may_read(&self, frame: &Frame, address: usize) -> bool {
        let is_foreign = !self.stack.holds(frame.sp.wrapping_sub(8));
        let is_near = address.wrapping_sub(frame.sp.wrapping_sub(RED_ZONE_BYTES)) <= FRAME_BYTES_MAX;
        address < self.end_of_stack(frame) || is_foreign && is_near && sys::is_readable(address)
    }
}

/// Continues where [`plain_step`] reached words beyond the end.
///
/// # Safety
/// As [`plain_step`].
#[cold]
#[inline(never)]
pub unsafe fn step_beyond(
    frame: &mut Frame,
    rule: Rule,
    cx: &UnwindContext,
    end: &mut usize,
    bp_slot: &mut usize,
) -> Outcome {
    let slot = rule.slot_of(frame);
    let saved = slot.wrapping_add(8).wrapping_add(rule.b() as usize);
    if !cx.may_read(frame, slot) || rule.saves_bp() && !sys::is_readable(saved) {
        return Outcome::Truncated;
    }
    // Pages in between are not checked: the callers' words are above this one.
    *end = (slot & !(PAGE_BYTES - 1)).saturating_add(PAGE_BYTES);
    // SAFETY: by contract; the words that the step reads can be read.
    match unsafe { plain_step(frame, rule, *end, bp_slot) } {
        Outcome::Beyond => Outcome::Truncated,
        outcome => outcome,
    }
}

impl Rule {
    /// Returns the address of the return address by a plain rule.
    #[inline(always)]
    fn slot_of(self, frame: &Frame) -> usize {
        let base = if self.base_is_bp() { frame.bp } else { frame.sp };
        base.wrapping_add(self.a() as usize).wrapping_sub(8)
    }
}

/// Returns where the caller of a frame returns to, if a plain rule that is cached tells its place: a guess, for who wants to tell calls apart before
/// the walk.
///
/// # Safety
/// `frame` is a live one of this thread, and `end` is the end of the stack that it lies on.
#[inline(always)]
pub unsafe fn outer_ra(frame: &Frame, end: usize) -> Option<usize> {
    let rule = rules::cached_plain(pc_of(frame.ra, frame.exact))?;
    let slot = rule.slot_of(frame);
    // SAFETY: the address lies between the stack pointer and the end of the stack.
    (slot >= frame.sp && slot < end && slot & 7 == 0).then(|| unsafe { *(slot as *const usize) })
}

/// The rule by which a frame is left, and how the table of nodes knows it.
#[inline(always)]
pub fn rule_and_key(frame: &Frame) -> (Rule, u64) {
    let pc = pc_of(frame.ra, frame.exact);
    let since = unloads::since(pc);
    (rules::rule_at(pc, since), node_key(meant(frame.ra, frame.exact) as u64, frame.exact, since))
}

/// Returns whether the frame's caller is only guessed: no table covers its code.
pub fn is_guessed(frame: &Frame) -> bool {
    matches!(rule_and_key(frame).0.kind(), RuleKind::FramePointer | RuleKind::NoTable)
}

/// Unwinds to the caller of a frame whose rule is plain. Every word it reads is between the frame's stack pointer, of
/// an interrupted frame less the red zone, and `end`. Stores where rbp was saved in `bp_slot`, if it was.
///
/// # Safety
/// `frame` is a frame of a live call chain of this thread, and `end` is the end of the stack that it lies on.
#[inline(always)]
pub unsafe fn plain_step(frame: &mut Frame, rule: Rule, end: usize, bp_slot: &mut usize) -> Outcome {
    let slot = rule.slot_of(frame);
    let cfa = slot.wrapping_add(8);
    if slot < frame.sp || slot >= end || slot & 7 != 0 {
        return if slot >= end && slot & 7 == 0 { Outcome::Beyond } else { Outcome::Truncated };
    }
    let saved = cfa.wrapping_add(rule.b() as usize);
    if rule.saves_bp() && (saved < frame.sp || saved >= slot || saved & 7 != 0) && !is_popped(frame, saved) {
        return Outcome::Truncated;
    }
    // SAFETY: both addresses lie between the stack pointer and the end of the stack, or just below an interrupted one, where
    // the kernel leaves everything as it was.
    unsafe {
        if rule.saves_bp() {
            frame.bp = *(saved as *const usize);
            *bp_slot = saved;
        }
        frame.ra = *(slot as *const usize);
    }
    (frame.slot, frame.sp, frame.exact) = (slot, cfa, false);
    if frame.ra == 0 { Outcome::Outermost } else { Outcome::Caller }
}

/// Returns whether a word below the stack pointer is the saved rbp of a function that was interrupted between `pop
/// rbp` and `ret`: the tables of such places still say where it was, and the kernel puts a handler's frame below the
/// red zone.
#[cold]
#[inline(never)]
fn is_popped(frame: &Frame, saved: usize) -> bool {
    frame.exact && saved & 7 == 0 && saved < frame.sp && saved >= frame.sp.saturating_sub(RED_ZONE_BYTES)
}

/// Unwinds to the caller of a frame with an unusual rule, and passes each word it reads to `read`.
///
/// # Safety
/// `frame` is a frame of a live call chain of this thread.
#[cold]
#[inline(never)]
pub unsafe fn unusual_step(
    frame: &mut Frame,
    rule: Rule,
    cx: &UnwindContext,
    mut read: impl FnMut(Check),
) -> Outcome {
    // SAFETY: tables of live code describe live frames.
    unsafe {
        match rule.kind() {
            RuleKind::Root => Outcome::Outermost,
            RuleKind::Realigned => realigned(frame, rule, cx, &mut read),
            RuleKind::Signal => interrupted(frame, rule, &mut read),
            RuleKind::FramePointer => by_frame_pointer(frame, cx, &mut read),
            RuleKind::NoTable => {
                guesses::note(key_of(frame.ra, frame.exact));
                by_frame_pointer(frame, cx, &mut read)
            }
            RuleKind::Wide => far(frame, cx, &mut read),
            _ => Outcome::Truncated,
        }
    }
}

/// The result of unwinding a frame of JIT-compiled Java code.
#[derive(Clone, Copy, Debug)]
pub struct LeftJava {
    /// The frame's key in the node table.
    pub key: u64,
    /// How unwinding it uses rbp.
    pub fp_use: FpUse,
    /// Where it led.
    pub outcome: Outcome,
}

/// Goes to the caller of a frame in code that a JVM made, and reports the words it read but for the return address and rbp, whose place goes
/// to `bp_slot`. None when it is another frame.
///
/// # Safety
/// As [`unusual_step`].
#[inline(never)]
pub unsafe fn java_step(
    frame: &mut Frame,
    rule: Rule,
    cx: &UnwindContext,
    bp_slot: &mut usize,
    mut read: impl FnMut(Check),
) -> Option<LeftJava> {
    if rule.kind() != RuleKind::FramePointer || !hotspot::made(frame.ra) {
        return None;
    }
    let can_read = |at: usize| cx.may_read(frame, at);
    // SAFETY: by contract.
    let java = unsafe { hotspot::frame_at(frame.ra, frame.sp, frame.bp, can_read) };
    let left = |fp_use, outcome| Some(LeftJava { key: java.key, fp_use, outcome });
    for [address, value] in java.words.into_iter().filter(|[address, _]| *address != 0) {
        read(Check { address, value });
    }
    let (slot, fp_use) = match java.leave {
        Leave::Sized(frame_bytes) => (frame.sp.wrapping_add(frame_bytes).wrapping_sub(8), FpUse::RESTORED),
        Leave::Interpreted => (frame.bp.wrapping_add(8), FpUse::REQUIRED),
        Leave::ByPointer => return left(FpUse::REQUIRED, by_frame_pointer(frame, cx, &mut read)),
    };
    let saved = slot.wrapping_sub(8);
    let is_there = slot & 7 == 0 && slot >= frame.sp && can_read(slot) && can_read(saved);
    if !is_there {
        return left(fp_use, Outcome::Truncated);
    }
    // SAFETY: both can be read, and of an interpreted frame the words below them.
    let (ra, bp) = unsafe { (*(slot as *const usize), *(saved as *const usize)) };
    let mut sp = slot + 8;
    if java.leave == Leave::Interpreted {
        // Where the caller's frame ended before its callee made room for more locals. A call by a method handle has taken its last words away.
        const TAKEN_BYTES_MAX: usize = 64;
        let place = frame.bp.wrapping_add_signed(SENDER_SP);
        // SAFETY: it lies between two words of the frame that can be read.
        let sender = unsafe { *(place as *const usize) };
        read(Check { address: place, value: sender });
        let is_near = sender.wrapping_sub(sp - TAKEN_BYTES_MAX) <= FRAME_BYTES_MAX;
        if sender & 7 != 0 || !is_near {
            return left(fp_use, Outcome::Truncated);
        }
        sp = sp.max(sender);
    }
    // Whoever calls Java is code of the JVM's making, too.
    if !hotspot::holds(ra) {
        read(Check { address: slot, value: ra });
        return left(fp_use, Outcome::Truncated);
    }
    *bp_slot = saved;
    *frame = Frame { slot, sp, ra, bp, exact: false };
    left(fp_use, Outcome::Caller)
}

/// The caller of a frame whose stack was realigned: the pointer to its frame, and its rbp, lie at fixed
/// distances from rbp.
unsafe fn realigned(
    frame: &mut Frame,
    rule: Rule,
    cx: &UnwindContext,
    read: &mut impl FnMut(Check),
) -> Outcome {
    let cfa_slot = frame.bp.wrapping_add(rule.a() as usize);
    let bp_slot = frame.bp.wrapping_add(rule.b() as usize);
    let on_stack =
        |address: usize| address >= frame.sp - 8 && address & 7 == 0 && cx.may_read(frame, address);
    if !on_stack(cfa_slot) || !on_stack(bp_slot) {
        return Outcome::Truncated;
    }
    // SAFETY: both addresses lie between the stack pointer and the end of the stack.
    let (cfa, bp) = unsafe { (*(cfa_slot as *const usize), *(bp_slot as *const usize)) };
    read(Check { address: cfa_slot, value: cfa });
    read(Check { address: bp_slot, value: bp });
    let slot = cfa.wrapping_sub(8);
    if slot < frame.sp || !on_stack(slot) {
        return Outcome::Truncated;
    }
    // SAFETY: as above.
    let ra = unsafe { *(slot as *const usize) };
    read(Check { address: slot, value: ra });
    *frame = Frame { slot, sp: cfa, ra, bp, exact: false };
    if ra == 0 { Outcome::Outermost } else { Outcome::Caller }
}

/// The frame that a signal interrupted. `gregs` of the kernel's `ucontext` are 8-byte words; rbp, rsp and rip
/// have the indices 10, 15 and 16.
unsafe fn interrupted(frame: &mut Frame, rule: Rule, read: &mut impl FnMut(Check)) -> Outcome {
    let rsp_slot = frame.sp.wrapping_add(rule.a() as usize);
    let (bp_slot, slot) = (rsp_slot - 5 * 8, rsp_slot + 8);
    // SAFETY: the kernel wrote the context just above the trampoline's frame.
    unsafe {
        *frame = Frame {
            slot,
            sp: *(rsp_slot as *const usize),
            ra: *(slot as *const usize),
            bp: *(bp_slot as *const usize),
            exact: true,
        };
    }
    read(Check { address: slot, value: frame.ra });
    read(Check { address: rsp_slot, value: frame.sp });
    read(Check { address: bp_slot, value: frame.bp });
    Outcome::Caller
}

/// The caller of a frame that is large, or of an odd size: a plain step by what the tables say.
unsafe fn far(frame: &mut Frame, cx: &UnwindContext, read: &mut impl FnMut(Check)) -> Outcome {
    let Some(FullRule { kind, a, b }) = rules::full_at(pc_of(frame.ra, frame.exact)) else {
        return Outcome::Truncated;
    };
    let base = if matches!(kind, RuleKind::Bp | RuleKind::BpSavesBp) { frame.bp } else { frame.sp };
    let cfa = base.wrapping_add(a as usize);
    let (slot, saved) = (cfa.wrapping_sub(8), cfa.wrapping_add(b as usize));
    let can_read = |at: usize| at >= frame.sp && at & 7 == 0 && cx.may_read(frame, at);
    if !can_read(slot) {
        return Outcome::Truncated;
    }
    let mut bp = frame.bp;
    if matches!(kind, RuleKind::SpSavesBp | RuleKind::BpSavesBp) {
        if saved >= slot || !can_read(saved) {
            return Outcome::Truncated;
        }
        // SAFETY: between the stack pointer and the return address.
        bp = unsafe { *(saved as *const usize) };
        read(Check { address: saved, value: bp });
    }
    // SAFETY: it lies between the stack pointer and the end of the stack.
    let ra = unsafe { *(slot as *const usize) };
    read(Check { address: slot, value: ra });
    *frame = Frame { slot, sp: cfa, ra, bp, exact: false };
    if ra == 0 { Outcome::Outermost } else { Outcome::Caller }
}

/// Follows rbp when it can be a frame pointer: it points into the stack, above this frame, at a saved rbp and
/// a return address.
fn by_frame_pointer(frame: &mut Frame, cx: &UnwindContext, read: &mut impl FnMut(Check)) -> Outcome {
    let (bp_slot, slot) = (frame.bp, frame.bp.wrapping_add(8));
    let is_own = cx.stack.holds(frame.sp - 8);
    let reach = if is_own { cx.stack.end } else { frame.sp.saturating_add(FRAME_BYTES_MAX) };
    // What is added to the largest addresses makes them the smallest.
    if bp_slot < frame.sp || bp_slot >= reach || slot >= reach || bp_slot & 7 != 0 {
        return Outcome::Truncated;
    }
    let word = |address: usize| {
        if is_own {
            // SAFETY: between this frame and the end of the thread's own stack everything is mapped.
            Some(unsafe { *(address as *const usize) })
        } else if process::is_filtered() {
            // SAFETY: it was readable a moment ago, and nobody unmaps a stack in use.
            sys::is_readable(address).then(|| unsafe { *(address as *const usize) })
        } else {
            sys::read_word_checked(cx.pid, address)
        }
    };
    let (Some(bp), Some(ra)) = (word(bp_slot), word(slot)) else { return Outcome::Truncated };
    read(Check { address: slot, value: ra });
    read(Check { address: bp_slot, value: bp });
    if ra < 4096 || ra >> 47 != 0 {
        return Outcome::Truncated;
    }
    *frame = Frame { slot, sp: slot + 8, ra, bp, exact: false };
    Outcome::Caller
}
