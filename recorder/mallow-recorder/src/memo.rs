//! The stack of the last call, kept, so that the next one is found by looking instead of walking.
//!
//! A walk is a function of the registers at its start, of the unwind tables, and of the words of the stack that it reads. The memo keeps, for
//! each frame of the last walk, the words that were read to reach it and the frame's id. At the next call:
//!
//! 1. frames below the stack pointer are dropped: their memory is dead, whatever it holds;
//! 2. the kept words are compared with the stack, from the outermost frame inwards, up to the first difference;
//! 3. the new stack is walked from its innermost frame until it meets a kept frame with the same slot, return address and rbp. From there
//!    on the walk would read the kept words and nothing else, so it would repeat itself, and the kept frames are taken.
//!
//! *Every* word counts. Comparing return addresses alone is wrong: a dead slot below a live `alloca` can hold the old address
//! while rbp, and with it the rest of the walk, has changed.
//!
//! The memo is used on the thread's own stack only ([`crate::stack_range`] says why), and not by a signal handler that interrupted a call to us.

use crate::Caller;
use crate::nodes;
use crate::process;
use crate::sys;
use crate::walk::{Check, Frame, Step, Surroundings, step};
use core::sync::atomic::Ordering;
use mallow_wire::shared::{ADDRESS_TRUNCATED, NODE_ROOT, node_key};

/// The deepest stack that is followed, in frames.
pub const FRAMES_MAX: usize = 16 * 1024;
const CHECKS_MAX: usize = 2 * FRAMES_MAX + 64;

/// A frame of the last stack.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Kept {
    slot: usize,
    bp: usize,
    ra: usize,
    /// The stack node, once known.
    node: u32,
    exact: bool,
    /// Behind the last word that was read to leave this frame for its caller, in the list of checks.
    checks_end: u32,
}

/// A thread's memo. Lives in memory of its own, zeroed at first.
#[repr(C)]
#[derive(Debug)]
pub struct Memo {
    generation: u64,
    frame_count: usize,
    /// Outermost first.
    frames: [Kept; FRAMES_MAX],
    checks: [Check; CHECKS_MAX],
    /// The fresh frames of the walk under way, innermost first.
    fresh: [Kept; FRAMES_MAX],
    fresh_checks: [Check; CHECKS_MAX],
}

impl Kept {
    #[inline(always)]
    fn is(&self, frame: &Frame) -> bool {
        self.slot == frame.slot && self.ra == frame.ra && self.bp == frame.bp
    }
}

impl Memo {
    /// A new memo; null when the kernel gives no memory. Costs address space until used.
    pub fn map() -> *mut Memo {
        let memo = sys::map_private(size_of::<Memo>());
        if !memo.is_null() {
            // SAFETY: the mapping is ours.
            unsafe { sys::keep_out_of_core(memo, size_of::<Memo>()) };
        }
        memo.cast()
    }

    /// Forgets the last stack.
    ///
    /// # Safety
    /// `memo` is valid and nobody else uses it.
    pub unsafe fn reset(memo: *mut Memo) {
        // SAFETY: by contract.
        unsafe { (*memo).frame_count = 0 };
    }

    /// The stack node of a caller. On a foreign stack nothing is kept.
    ///
    /// # Safety
    /// The memo belongs to the calling thread, `caller` holds the registers of a live frame, and no other call on this memo is under way.
    #[inline(always)]
    pub unsafe fn node(memo: *mut Memo, caller: Caller, around: &Surroundings) -> u32 {
        // SAFETY: by contract the memo is ours alone.
        let memo = unsafe { &mut *memo };
        if !around.stack.holds(caller.sp) {
            memo.frame_count = 0;
        }
        // SAFETY: the kept slots at or above `sp` lie on the thread's own stack.
        unsafe { memo.keep_unchanged(caller.sp, around.generation) };
        // SAFETY: by contract `sp` points at the return address.
        let innermost = unsafe { Frame::innermost(caller) };
        if memo.frame_count > 0 && memo.frames[memo.frame_count - 1].is(&innermost) {
            return memo.frames[memo.frame_count - 1].node;
        }
        // SAFETY: by contract.
        unsafe { memo.walk(caller, around) }
    }

    /// Drops what is below `sp` and what has changed.
    #[inline(always)]
    unsafe fn keep_unchanged(&mut self, sp: usize, generation: u64) {
        let mut count = if self.generation == generation { self.frame_count } else { 0 };
        self.generation = generation;
        while count > 0 && self.frames[count - 1].slot < sp {
            count -= 1;
        }
        if count > 0 {
            let end = self.frames[count - 1].checks_end as usize;
            // SAFETY: by contract of the caller.
            let same = unsafe { unchanged(&self.checks[..end]) };
            while count > 0 && self.frames[count - 1].checks_end as usize > same {
                count -= 1;
            }
        }
        self.frame_count = count;
    }

    /// Walks until a kept frame is met, and puts the fresh frames upon it.
    #[inline(never)]
    unsafe fn walk(&mut self, caller: Caller, around: &Surroundings) -> u32 {
        // SAFETY: by contract of `node`.
        let mut frame = unsafe { Frame::innermost(caller) };
        let mut join = self.frame_count;
        let (mut fresh_count, mut check_count) = (0, 0);
        let mut root = NODE_ROOT;
        loop {
            while join > 0 && self.frames[join - 1].slot < frame.slot {
                join -= 1;
            }
            if join > 0 && self.frames[join - 1].is(&frame) {
                break;
            }
            if fresh_count + join == FRAMES_MAX
                || check_count + crate::walk::CHECKS_PER_STEP > CHECKS_MAX - 64
            {
                (root, join) = (truncated(around.generation), 0);
                break;
            }
            self.fresh[fresh_count] = Kept {
                slot: frame.slot,
                bp: frame.bp,
                ra: frame.ra,
                node: 0,
                exact: frame.exact,
                checks_end: 0,
            };
            let checks = &mut self.fresh_checks;
            // SAFETY: by contract; each frame is the caller of the one before.
            let next = unsafe {
                step(&frame, around, |check| {
                    checks[check_count] = check;
                    check_count += 1;
                })
            };
            self.fresh[fresh_count].checks_end = check_count as u32;
            fresh_count += 1;
            match next {
                Step::Caller(caller) => frame = caller,
                Step::Outermost => {
                    join = 0;
                    break;
                }
                Step::Cut => {
                    process::header().stacks_cut.fetch_add(1, Ordering::Relaxed);
                    join = 0;
                    break;
                }
            }
        }
        self.adopt(join, fresh_count, root, around)
    }

    /// Appends the fresh frames, outermost first, to the `join` kept ones, and gives the innermost node.
    #[inline(always)]
    fn adopt(&mut self, join: usize, fresh_count: usize, root: u32, around: &Surroundings) -> u32 {
        let mut node = if join > 0 { self.frames[join - 1].node } else { root };
        let mut check = if join > 0 { self.frames[join - 1].checks_end as usize } else { 0 };
        let table = process::nodes();
        let mut count = join;
        let mut complete = true;
        for i in (0..fresh_count).rev() {
            let fresh = self.fresh[i];
            let key = node_key(fresh.ra as u64, fresh.exact, around.generation);
            // SAFETY: the table of this process.
            node = unsafe { nodes::intern(table, node, key, node_lost) };
            let from = if i > 0 { self.fresh[i - 1].checks_end as usize } else { 0 };
            let words = fresh.checks_end as usize - from;
            // Frames outside the thread's own stack (a signal handler's, seen through it) must not be looked at again.
            complete &= count < FRAMES_MAX && check + words <= CHECKS_MAX && around.stack.holds(fresh.slot);
            if complete {
                self.checks[check..check + words].copy_from_slice(&self.fresh_checks[from..from + words]);
                check += words;
                self.frames[count] = Kept { node, checks_end: check as u32, ..fresh };
                count += 1;
            }
        }
        self.frame_count = count;
        node
    }
}

fn node_lost() {
    process::header().nodes_lost.fetch_add(1, Ordering::Relaxed);
}

/// The node under which stacks hang that are deeper than we follow.
fn truncated(generation: u64) -> u32 {
    // SAFETY: the table of this process.
    unsafe {
        nodes::intern(process::nodes(), NODE_ROOT, node_key(ADDRESS_TRUNCATED, true, generation), node_lost)
    }
}

/// How many of the words, from the first on, still have their values.
///
/// # Safety
/// All addresses can be read.
#[inline(always)]
unsafe fn unchanged(checks: &[Check]) -> usize {
    let mut done = 0;
    for group in checks.chunks_exact(4) {
        let mut differences = 0;
        for check in group {
            // SAFETY: by contract.
            differences |= unsafe { (check.address as *const usize).read_volatile() } ^ check.value;
        }
        if differences != 0 {
            break;
        }
        done += 4;
    }
    // SAFETY: by contract.
    let same = |check: &Check| unsafe { (check.address as *const usize).read_volatile() } == check.value;
    done + checks[done..].iter().take_while(|check| same(check)).count()
}

/// The stack node of a caller on whatever stack, walked from scratch: for signal handlers that interrupted the memo's user.
///
/// # Safety
/// `caller` holds the registers of a live frame of this thread.
#[inline(never)]
pub unsafe fn node_from_scratch(caller: Caller, around: &Surroundings) -> u32 {
    // Nodes are made from the outermost frame inwards while a walk goes outwards, and the memo's scratch memory may be in use by the call that
    // was interrupted: so the walk is done twice, first to count the frames, then batch by batch from the outer end.
    const BATCH: usize = 64;
    let mut batch = [(0u64, false); BATCH];
    // SAFETY: by contract.
    let depth = unsafe { walk_each(caller, around, |_, _| true) };
    let mut node = if depth == FRAMES_MAX { truncated(around.generation) } else { NODE_ROOT };
    let mut end = depth;
    while end > 0 {
        let start = end.saturating_sub(BATCH);
        // SAFETY: by contract.
        unsafe {
            walk_each(caller, around, |i, frame| {
                if (start..end).contains(&i) {
                    batch[i - start] = (frame.ra as u64, frame.exact);
                }
                i < end
            })
        };
        for (address, exact) in batch[..end - start].iter().rev() {
            // SAFETY: the table of this process.
            node = unsafe {
                nodes::intern(
                    process::nodes(),
                    node,
                    node_key(*address, *exact, around.generation),
                    node_lost,
                )
            };
        }
        end = start;
    }
    node
}

/// Visits the frames, innermost first, up to [`FRAMES_MAX`], while `visit` gives true; gives their number.
///
/// # Safety
/// As [`node_from_scratch`].
pub unsafe fn walk_each(
    caller: Caller,
    around: &Surroundings,
    mut visit: impl FnMut(usize, &Frame) -> bool,
) -> usize {
    // SAFETY: by contract.
    let mut frame = unsafe { Frame::innermost(caller) };
    let mut count = 0;
    while count < FRAMES_MAX && visit(count, &frame) {
        count += 1;
        // SAFETY: by contract; each frame is the caller of the one before.
        match unsafe { step(&frame, around, |_| ()) } {
            Step::Caller(caller) => frame = caller,
            Step::Outermost | Step::Cut => break,
        }
    }
    count
}
