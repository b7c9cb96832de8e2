//! The walk of what is new of a stack.

use super::{EXTRAS_MAX, Memo};
use crate::bounds::{at, at_mut};
use crate::from_scratch::{FRAMES_MAX, FRAMES_OF_DEEPER, truncated};
use crate::nodes::{EMPTY, Stack};
use crate::plain::{self, NewFrame, Until};
use crate::rules::Rule;
use crate::walk::{
    CHECKS_PER_STEP, Check, Frame, Outcome, UnwindContext, java_step, plain_step, rule_and_key, step_beyond,
    unusual_step,
};
use mallow_wire::shared::is_node_exact;

/// The result of a walk.
pub(super) struct Walked {
    pub(super) new_count: usize,
    /// The walk reached the kept frame below this index; 0 if it reached none.
    pub(super) join: usize,
    /// rbp at that frame.
    pub(super) join_bp: usize,
    /// The stack around the outermost new frame if no kept frame was reached.
    pub(super) root: Stack,
    /// Nothing but words of the stack was read for the new frames, and their keys follow from their return addresses.
    pub(super) is_plain: bool,
}

impl Memo {
    /// Walks from `frame` until it reaches a kept frame.
    #[inline(always)]
    pub(super) unsafe fn walk(&mut self, mut frame: Frame, cx: &UnwindContext) -> Walked {
        let (mut join, mut new_count, mut extra_count) = (self.frame_count, 0, 0);
        let mut end = cx.end_of_stack(&frame);
        let (mut root, mut frames_max, mut has_exact) = (EMPTY, FRAMES_MAX, false);
        loop {
            let kept = if join > 0 { at(&self.words, join - 1).address } else { usize::MAX };
            let until = Until { kept, end, frames: frames_max };
            // SAFETY: by contract; each frame is the caller of the one before.
            new_count +=
                unsafe { plain::follow(&mut self.new_frames, new_count, &mut frame, until, extra_count) };
            while join > 0 && at(&self.words, join - 1).address < frame.slot {
                join -= 1;
            }
            if join > 0 && self.is_kept(join - 1, &frame) {
                if new_count + join <= FRAMES_MAX {
                    break;
                }
                (frames_max, join) = (FRAMES_OF_DEEPER, 0);
            }
            if new_count >= frames_max || extra_count + CHECKS_PER_STEP > EXTRAS_MAX {
                // The stack is deeper than we follow: keep a part that leaves room for frames to come.
                (root, join) = (truncated(), 0);
                if new_count > FRAMES_OF_DEEPER {
                    new_count = FRAMES_OF_DEEPER;
                    frame.bp = at(&self.new_frames, new_count).bp;
                }
                break;
            }
            let (rule, key) = rule_and_key(&frame);
            let new = at_mut(&mut self.new_frames, new_count);
            *new = NewFrame {
                slot: frame.slot,
                ra: frame.ra,
                key,
                bp: frame.bp,
                bp_slot: 0,
                extras_end: extra_count as u32,
                fp_use: rule.fp_use(),
            };
            new_count += 1;
            let outcome = if rule.is_plain() {
                // SAFETY: by contract; each frame is the caller of the one before.
                match unsafe { plain_step(&mut frame, rule, end, &mut new.bp_slot) } {
                    // SAFETY: as above.
                    Outcome::Beyond => unsafe {
                        step_beyond(&mut frame, rule, cx, &mut end, &mut new.bp_slot)
                    },
                    outcome => outcome,
                }
            } else {
                // SAFETY: as above.
                let outcome =
                    unsafe { self.leave_unusual(&mut frame, rule, cx, new_count - 1, &mut extra_count) };
                end = cx.end_of_stack(&frame);
                outcome
            };
            // So have the keys of scripts' frames.
            has_exact |= is_node_exact(at(&self.new_frames, new_count - 1).key);
            match outcome {
                Outcome::Caller => continue,
                // The zero that ended the walk is a word like any other.
                Outcome::Outermost if rule.is_plain() => {
                    *at_mut(&mut self.new_extras, extra_count) = Check { address: frame.slot, value: 0 };
                    extra_count += 1;
                    at_mut(&mut self.new_frames, new_count - 1).extras_end = extra_count as u32;
                }
                Outcome::Outermost | Outcome::Truncated | Outcome::Beyond => {}
            }
            join = 0;
            break;
        }
        let is_plain = extra_count == 0 && !has_exact;
        Walked { new_count, join, join_bp: frame.bp, root, is_plain }
    }

    /// Goes to the caller of a new frame whose rule is not plain, and notes the words that were read.
    ///
    /// # Safety
    /// As [`unusual_step`].
    #[cold]
    #[inline(never)]
    unsafe fn leave_unusual(
        &mut self,
        frame: &mut Frame,
        rule: Rule,
        cx: &UnwindContext,
        index: usize,
        extra_count: &mut usize,
    ) -> Outcome {
        let (new, extras) = (at_mut(&mut self.new_frames, index), &mut self.new_extras);
        let mut read = |word| {
            *at_mut(extras, *extra_count) = word;
            *extra_count += 1;
        };
        // SAFETY: by contract.
        let outcome = unsafe {
            match java_step(frame, rule, cx, &mut new.bp_slot, &mut read) {
                Some(left) => {
                    (new.key, new.fp_use) = (left.key, left.fp_use);
                    left.outcome
                }
                None => unusual_step(frame, rule, cx, read),
            }
        };
        new.extras_end = *extra_count as u32;
        outcome
    }
}
