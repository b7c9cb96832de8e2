//! A stack walk from the innermost frame outwards without any cache: for signal handlers that interrupted a user of the memo,
//! and for callers that search for one frame.

use crate::Caller;
use crate::bounds::{at_mut, first};
use crate::nodes::{self, EMPTY, Stack};
use crate::process;
use crate::walk::{
    Frame, Outcome, UnwindContext, java_step, plain_step, rule_and_key, step_beyond, unusual_step,
};
use mallow_wire::shared::{ADDRESS_TRUNCATED, node_key};

/// The deepest stack that is followed, in frames.
pub const FRAMES_MAX: usize = 32 * 1024;
/// How many innermost frames are kept of a deeper stack. As many calls may return before the rest is walked again,
/// and at most as many nodes are created for each of its turns.
pub const FRAMES_OF_DEEPER: usize = 4 * 1024;
/// The stack around those that are deeper than we follow.
pub fn truncated() -> Stack {
    let key = node_key(ADDRESS_TRUNCATED, true, 0);
    // SAFETY: the table of this process.
    unsafe { nodes::intern(process::nodes(), EMPTY, key) }
}

/// Returns the stack node of a caller on any stack, walked from scratch: for signal handlers that interrupted the
/// memo's user.
///
/// # Safety
/// `caller` holds the registers of a live frame of this thread.
#[inline(never)]
pub unsafe fn node_from_scratch(caller: Caller, cx: &UnwindContext) -> u32 {
    // Nodes are made from the outermost frame inwards while a walk goes outwards, and the memo's scratch
    // memory may be in use by the call that was interrupted: so the walk is done twice, first to count the
    // frames, then batch by batch from the outer end. A batch lies on the stack of a signal handler.
    const BATCH: usize = 16;
    let mut batch = [0u64; BATCH];
    // SAFETY: by contract.
    let depth = unsafe { walk_each(caller, cx, |_, _, _| true) };
    let (mut stack, mut end) =
        if depth == FRAMES_MAX { (truncated(), FRAMES_OF_DEEPER) } else { (EMPTY, depth) };
    while end > 0 {
        let start = end.saturating_sub(BATCH);
        // SAFETY: by contract.
        unsafe {
            walk_each(caller, cx, |i, _, key| {
                if (start..end).contains(&i) {
                    *at_mut(&mut batch, i - start) = key;
                }
                i < end
            })
        };
        for key in first(&batch, end - start).iter().rev() {
            // SAFETY: the table of this process.
            stack = unsafe { nodes::intern(process::nodes(), stack, *key) };
        }
        end = start;
    }
    stack.node
}

/// Visits the frames with their keys, innermost first, up to [`FRAMES_MAX`], while `visit` returns true; returns
/// their number.
///
/// # Safety
/// As [`node_from_scratch`].
pub unsafe fn walk_each(
    caller: Caller,
    cx: &UnwindContext,
    mut visit: impl FnMut(usize, &Frame, u64) -> bool,
) -> usize {
    // SAFETY: by contract.
    let mut frame = unsafe { Frame::innermost(caller) };
    let (mut count, mut end) = (0, cx.end_of_stack(&frame));
    while count < FRAMES_MAX {
        let ((rule, mut key), here) = (rule_and_key(&frame), frame);
        // SAFETY: by contract; each frame is the caller of the one before.
        let outcome = unsafe {
            if rule.is_plain() {
                match plain_step(&mut frame, rule, end, &mut 0) {
                    Outcome::Beyond => step_beyond(&mut frame, rule, cx, &mut end, &mut 0),
                    outcome => outcome,
                }
            } else {
                let outcome = match java_step(&mut frame, rule, cx, &mut 0, |_| ()) {
                    Some(left) => {
                        key = left.key;
                        left.outcome
                    }
                    None => unusual_step(&mut frame, rule, cx, |_| ()),
                };
                end = cx.end_of_stack(&frame);
                outcome
            }
        };
        if !visit(count, &here, key) {
            break;
        }
        count += 1;
        if outcome != Outcome::Caller {
            break;
        }
    }
    count
}
