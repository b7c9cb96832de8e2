//! Stacks that need no walk: what the memo asks before one, and keeps behind it.

use super::Memo;
use super::walking::Walked;
use crate::bounds::{at, first, part};
use crate::from_scratch::FRAMES_MAX;
use crate::kept::State;
use crate::nodes::EMPTY;
use crate::path_cache::{Ends, Met, PATH_FRAMES_MAX, Path};
use crate::walk::{Check, Frame, UnwindContext, outer_ra};
use crate::whole_stacks::{WHOLE_WORDS_MAX, WholeStacks};

/// A kept frame as a path that leads to it knows it.
#[inline(always)]
fn met(words: &[Check; FRAMES_MAX], states: &[State; FRAMES_MAX], index: usize) -> Met {
    let state = at(states, index);
    let bp = if state.bp_matters() { state.bp } else { 0 };
    Met { slot: at(words, index).address, bp, hash: state.hash }
}

/// Keeps the whole stack of a call from which a path leads to a kept frame, if it is short. `words` are those of the kept frames from there outwards.
#[cold]
#[inline(never)]
fn widen(stacks: &mut WholeStacks, innermost: &Frame, path: &Path, words: &[Check], extras: &[Check]) {
    let inner = path.words();
    if inner.len() + words.len() + extras.len() <= WHOLE_WORDS_MAX {
        let words = inner.iter().chain(words.iter().rev()).chain(extras).copied();
        stacks.remember(innermost, path.bp_matters, words, path.ends.node);
    }
}

impl Memo {
    /// Returns the node of a caller from which a path leads to a kept frame.
    ///
    /// # Safety
    /// The frame is the innermost of this thread, and the kept ones are live.
    #[inline(always)]
    pub(super) unsafe fn node_by_path(&mut self, innermost: &Frame, cx: &UnwindContext) -> Option<u32> {
        let count = self.frame_count;
        if count == 0 {
            return None;
        }
        // SAFETY: by contract; where frames are kept this one is on the thread's own stack, as they are.
        let outer_ra = unsafe { outer_ra(innermost, cx.stack.end) }?;
        let met = |index| met(&self.words, &self.states, index);
        // SAFETY: by contract.
        let path = unsafe { self.path_cache.find(innermost, outer_ra, count, met) }?;
        if path.is_often() && self.root == EMPTY {
            let join = path.ends.join as usize;
            let extras = first(&self.extras, at(&self.states, join - 1).extras_end());
            widen(&mut self.whole_stacks, innermost, path, first(&self.words, join), extras);
        }
        Some(path.ends.node)
    }

    /// Keeps all that the walk of a short stack would read, if all of it is kept: such words can be read again.
    #[inline(never)]
    pub(super) fn remember_whole(&mut self, innermost: &Frame, node: u32) {
        let count = self.frame_count;
        if count == 0 || self.root != EMPTY || at(&self.words, count - 1).address != innermost.slot {
            return;
        }
        let state = *at(&self.states, count - 1);
        let (words, extras) = (first(&self.words, count - 1), first(&self.extras, state.extras_end()));
        if words.len() + extras.len() <= WHOLE_WORDS_MAX {
            let words = words.iter().rev().chain(extras).copied();
            self.whole_stacks.remember(innermost, state.bp_matters(), words, node);
        }
    }

    /// Keeps the path from the innermost frame to the kept frame that was reached, if it was short and plain. Returns whether it was.
    #[inline(always)]
    pub(super) fn remember_path(&mut self, walked: &Walked, innermost: &Frame) -> bool {
        let (join, end) = (walked.join, walked.join + walked.new_count);
        // No frame is new where those that a handler left, on an alternate stack above this one, hid that the innermost one was kept.
        let is_short = join > 0
            && walked.new_count > 0
            && walked.new_count <= PATH_FRAMES_MAX
            && self.frame_count == end
            && at(&self.states, end - 1).extras_end() == at(&self.states, join - 1).extras_end();
        if is_short {
            let state = *at(&self.states, end - 1);
            // Leaving a frame reads the word of the next one outwards; the kept frame's own word is checked
            // with the kept ones.
            let words = part(&self.words, join, end - 1);
            let met = met(&self.words, &self.states, join - 1);
            let ends = Ends { met, join: join as u32, node: state.node };
            let outer_ra = at(&self.words, end.wrapping_sub(2)).value;
            self.path_cache.remember(innermost, outer_ra, state.bp_matters(), words, ends);
        }
        is_short
    }
}
