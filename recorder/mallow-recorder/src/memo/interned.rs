//! The nodes of kept and of new frames.

use super::Memo;
use super::walking::Walked;
use crate::bounds::{at, at_mut, first};
use crate::kept::{NOT_ASKED, State};
use crate::nodes::{self, Stack};
use crate::process;
use crate::walk::key_of;
use mallow_wire::shared::{is_node_cut, stack_hash};

impl Memo {
    /// The node of a walk's whole stack, which the thread does not know: found at once when the table has it.
    #[inline(always)]
    pub(super) fn node_of(&mut self, walked: &Walked, key: u64, hash: u64) -> u32 {
        let is_cut = walked.join > 0 && is_node_cut(at(&self.states, walked.join - 1).node);
        // SAFETY: the table of this process.
        let known = if is_cut { None } else { unsafe { nodes::find(process::nodes(), key, hash) } };
        let node = known.unwrap_or_else(|| self.intern_new_frames(walked));
        if !is_node_cut(node) {
            self.found.remember(hash, node);
        }
        node
    }

    /// Goes through a new stack frame by frame.
    #[inline(never)]
    fn intern_new_frames(&mut self, walked: &Walked) -> u32 {
        let mut stack = if walked.join > 0 { self.ask(walked.join) } else { walked.root };
        if !is_node_cut(stack.node) {
            self.prefetch_nodes(walked, stack);
        }
        for i in (0..walked.new_count).rev() {
            let new = *at(&self.new_frames, i);
            // SAFETY: the table of this process.
            stack = unsafe { nodes::intern(process::nodes(), stack, new.key) };
            // New frames that are kept follow the frame that was reached, in order.
            let index = walked.join + walked.new_count - 1 - i;
            if index < self.frame_count {
                at_mut(&mut self.states, index).node = stack.node;
            }
        }
        stack.node
    }

    /// Returns the stack of the kept frame below an index. Looks up its node and those of its callers if that was not
    /// done.
    #[cold]
    #[inline(never)]
    pub(super) fn ask(&mut self, count: usize) -> Stack {
        let is_asked = |state: &State| state.node != NOT_ASKED;
        let known = first(&self.states, count).iter().rposition(is_asked).map_or(0, |last| last + 1);
        let mut stack = match known {
            0 => self.root,
            _ => Stack { hash: at(&self.states, known - 1).hash, node: at(&self.states, known - 1).node },
        };
        let kept = self.states.iter_mut().zip(&self.words).zip(&self.keys);
        for ((state, word), key) in kept.take(count).skip(known) {
            let key = if state.has_key() { *key } else { key_of(word.value, state.is_exact()) };
            // SAFETY: the table of this process.
            stack = unsafe { nodes::intern(process::nodes(), stack, key) };
            state.node = stack.node;
        }
        stack
    }

    /// Asks for the nodes of all new frames at once.
    #[inline(always)]
    fn prefetch_nodes(&self, walked: &Walked, callers: Stack) {
        let mut hash = callers.hash;
        for new in first(&self.new_frames, walked.new_count).iter().rev() {
            hash = stack_hash(new.key, hash);
            // SAFETY: the table of this process.
            unsafe { nodes::prefetch(process::nodes(), hash) };
        }
    }
}
