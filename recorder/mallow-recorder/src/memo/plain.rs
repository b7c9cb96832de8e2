//! The frames that nearly all are, followed and kept by two short loops: a plain rule that is cached, on the thread's way out to frames
//! that are kept or to the end of the stack. Whatever else is met, the general loops of [`super`] do.
//!
//! Both loops hold what they need in registers. Within the general ones, which call code for every kind of frame, the same steps took two
//! and a half times as many instructions.

use super::{Memo, NOT_ASKED, NewFrame, State, Walked, keep_extra};
use crate::bounds::first;
use crate::nodes::EMPTY;
use crate::rules;
use crate::unloads;
use crate::walk::{Check, Frame, UnwindContext};
use mallow_wire::shared::{node_key, stack_hash};

/// Where the short walk ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Until {
    /// The slot of the innermost kept frame, which is compared by the general walk; the largest address if none is left.
    pub(super) kept: usize,
    /// [`UnwindContext::end_of_stack`].
    pub(super) end: usize,
    /// New frames, at most.
    pub(super) frames: usize,
}

impl Memo {
    /// Goes from `frame` outwards and adds the frames that are left to the new ones. Returns their number now. Stops before a frame that is not plain, whose
    /// words are not all where they should be, or behind which the stack ends: nothing of it has been added.
    ///
    /// # Safety
    /// As [`crate::walk::plain_step`], with `until.end`.
    #[inline(never)]
    pub(super) unsafe fn follow_plain(
        &mut self,
        frame: &mut Frame,
        count: usize,
        until: Until,
        extras_end: u32,
    ) -> usize {
        let Frame { mut slot, mut ra, mut bp, .. } = *frame;
        let mut added = 0;
        if frame.exact || frame.sp != slot.wrapping_add(8) {
            return count;
        }
        for new in self.new_frames.get_mut(count..until.frames).unwrap_or_default() {
            let (sp, pc) = (slot.wrapping_add(8), ra.wrapping_sub(1));
            let Some(rule) = rules::cached(pc).filter(|rule| rule.is_plain() && slot < until.kept) else {
                break;
            };
            let base = if rule.base_is_bp() { bp } else { sp };
            let cfa = base.wrapping_add(rule.a() as usize);
            let (outer, saved) = (cfa.wrapping_sub(8), cfa.wrapping_add(rule.b() as usize));
            let is_bp_there = saved >= sp && saved < outer && saved & 7 == 0;
            let is_there = outer >= sp && outer < until.end && outer & 7 == 0;
            if !is_there || rule.saves_bp() && !is_bp_there {
                break;
            }
            // SAFETY: the address lies between the stack pointer and the end of the stack.
            let outer_ra = unsafe { *(outer as *const usize) };
            if outer_ra == 0 {
                break;
            }
            let bp_slot = if rule.saves_bp() { saved } else { 0 };
            let key = node_key(ra as u64, false, unloads::since(pc));
            *new = NewFrame { slot, ra, key, bp, bp_slot, extras_end, fp_use: rule.fp_use() };
            if rule.saves_bp() {
                // SAFETY: as above.
                bp = unsafe { *(saved as *const usize) };
            }
            (slot, ra) = (outer, outer_ra);
            added += 1;
        }
        *frame = Frame { slot, sp: slot.wrapping_add(8), ra, bp, exact: false };
        count + added
    }

    /// Keeps the new frames, outermost first, if nothing but words of the thread's own stack was read for them. Returns whether it did so with all of
    /// them; if not, [`Memo::keep_any`] has to keep them.
    #[inline(always)]
    pub(super) fn keep_plain(&mut self, walked: &Walked, cx: &UnwindContext) -> bool {
        let new_frames = first(&self.new_frames, walked.new_count);
        let (from, to) = (walked.join, walked.join + walked.new_count);
        let is_own = |new: Option<&NewFrame>| new.is_some_and(|new| cx.stack.holds(new.slot));
        // The frames between the innermost and the outermost lie between them.
        if !walked.is_plain || !is_own(new_frames.first()) || !is_own(new_frames.last()) {
            return false;
        }
        let outer = from.checked_sub(1).and_then(|outer| self.states.get(outer)).copied();
        let (mut hash, mut extra) =
            outer.map_or((walked.root.hash, 0), |outer| (outer.hash, outer.extras_end()));
        let (mut outer_bp_matters, mut outer_bp) =
            (outer.map_or(walked.root != EMPTY, |outer| outer.bp_matters()), walked.join_bp);
        let (Some(words), Some(states)) = (self.words.get_mut(from..to), self.states.get_mut(from..to))
        else {
            return false;
        };
        for ((new, word), state) in new_frames.iter().rev().zip(words).zip(states) {
            hash = stack_hash(new.key, hash);
            let is_saved = new.bp_slot != 0 && outer_bp_matters;
            let bp_word = Check { address: new.bp_slot, value: outer_bp };
            if is_saved && !keep_extra(&mut self.extras, &mut extra, cx, bp_word) {
                return false;
            }
            outer_bp_matters = new.fp_use.bp_matters(outer_bp_matters);
            outer_bp = new.bp;
            *word = Check { address: new.slot, value: new.ra };
            let mark = (extra as u32) << 3 | u32::from(outer_bp_matters);
            *state = State { bp: new.bp, hash, node: NOT_ASKED, mark };
        }
        self.frame_count = to;
        true
    }
}
