//! The frames that nearly all are, followed by a short loop: those with a plain rule that is cached, on the way out to frames that are
//! kept or to the end of the stack. Whatever else is met, the general loop of [`crate::memo`] does.
//!
//! The loop holds what it needs in registers. Within the general one, which calls code for every kind of frame, the same steps took
//! half as many instructions more.

use crate::rules::{self, FpUse};
use crate::unloads;
use crate::walk::Frame;
use mallow_wire::shared::node_key;

/// A new frame of the walk in progress.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct NewFrame {
    /// Where its return address was read.
    pub(crate) slot: usize,
    /// The address at which execution resumes.
    pub(crate) ra: usize,
    /// Its key in the node table.
    pub(crate) key: u64,
    /// rbp, as execution resumes in this frame.
    pub(crate) bp: usize,
    /// Where the caller's rbp was read to leave this frame; 0 when it was not.
    pub(crate) bp_slot: usize,
    /// Behind the last extra word of this frame.
    pub(crate) extras_end: u32,
    /// How leaving it uses rbp.
    pub(crate) fp_use: FpUse,
}

/// Where the loop ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Until {
    /// The slot of the innermost kept frame, with which the general loop compares; the largest address if none is left.
    pub(crate) kept: usize,
    /// [`crate::walk::UnwindContext::end_of_stack`].
    pub(crate) end: usize,
    /// New frames, at most.
    pub(crate) frames: usize,
}

/// Goes from `frame` outwards and writes the frames that are left to `new_frames` from `count` on, with these `extras_end`. Returns
/// their number. Stops before a frame that is not plain, whose words are not all where they should be, or behind which the
/// stack ends: nothing of it is written.
///
/// # Safety
/// As [`crate::walk::plain_step`], with `until.end`.
#[inline(never)]
pub(crate) unsafe fn follow(
    new_frames: &mut [NewFrame],
    count: usize,
    frame: &mut Frame,
    until: Until,
    extras_end: usize,
) -> usize {
    let Frame { mut slot, mut ra, mut bp, .. } = *frame;
    let mut added = 0;
    if frame.exact || frame.sp != slot.wrapping_add(8) {
        return 0;
    }
    for new in new_frames.get_mut(count..until.frames).unwrap_or_default() {
        let (sp, pc) = (slot.wrapping_add(8), ra.wrapping_sub(1));
        let Some(rule) = rules::cached_plain(pc).filter(|_| slot < until.kept) else { break };
        let base = if rule.base_is_bp() { bp } else { sp };
        let cfa = base.wrapping_add(rule.a() as usize);
        let outer = cfa.wrapping_sub(8);
        if outer < sp || outer >= until.end || outer & 7 != 0 {
            break;
        }
        // SAFETY: the address lies between the stack pointer and the end of the stack.
        let outer_ra = unsafe { *(outer as *const usize) };
        if outer_ra == 0 {
            break;
        }
        let (mut bp_slot, mut outer_bp) = (0, bp);
        if rule.saves_bp() {
            bp_slot = cfa.wrapping_add(rule.b() as usize);
            if bp_slot < sp || bp_slot >= outer || bp_slot & 7 != 0 {
                break;
            }
            // SAFETY: as above.
            outer_bp = unsafe { *(bp_slot as *const usize) };
        }
        let key = node_key(ra as u64, false, unloads::since(pc));
        let extras_end = extras_end as u32;
        *new = NewFrame { slot, ra, key, bp, bp_slot, extras_end, fp_use: rule.fp_use() };
        bp = outer_bp;
        (slot, ra) = (outer, outer_ra);
        added += 1;
    }
    *frame = Frame { slot, sp: slot.wrapping_add(8), ra, bp, exact: false };
    added
}
