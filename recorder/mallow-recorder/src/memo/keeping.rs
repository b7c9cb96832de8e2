//! The frames of a walk become kept ones.

use super::walking::Walked;
use super::{EXTRAS_MAX, Memo};
use crate::bounds::{at, at_mut, first, part};
use crate::from_scratch::FRAMES_MAX;
use crate::kept::{NOT_ASKED, State};
use crate::nodes::EMPTY;
use crate::plain::NewFrame;
use crate::script::hotspot;
use crate::walk::{Check, UnwindContext};
use mallow_wire::script::is_script_key;
use mallow_wire::shared::{is_node_exact, stack_hash};

/// The kept frame that a walk reached, or the root.
struct Reached {
    /// The hash of the stack from there outwards.
    hash: u64,
    /// Behind the extra words that are kept for it.
    extra: usize,
    /// Whether it needs its rbp.
    outer_bp_matters: bool,
}

impl Memo {
    /// Adds the new frames, outermost first, to the kept ones, and returns the innermost node.
    #[inline(always)]
    pub(super) fn commit(&mut self, walked: &Walked, cx: &UnwindContext) -> u32 {
        if walked.join == 0 {
            self.root = walked.root;
        }
        if let Some((key, hash)) = self.keep_plain(walked, cx) {
            let node = self.found.find(hash).unwrap_or_else(|| self.node_of(walked, key, hash));
            at_mut(&mut self.states, self.frame_count - 1).node = node;
            return node;
        }
        let (key, hash) = self.hash_new_frames(walked);
        let complete = self.keep_any(walked, cx);
        let node = self.found.find(hash).unwrap_or_else(|| self.node_of(walked, key, hash));
        if complete {
            at_mut(&mut self.states, self.frame_count - 1).node = node;
        }
        node
    }

    /// Returns what the new frames of a walk build on.
    #[inline(always)]
    fn reached(&self, walked: &Walked) -> Reached {
        if walked.join == 0 {
            // The outer part of a truncated stack is not checked.
            return Reached { hash: walked.root.hash, extra: 0, outer_bp_matters: walked.root != EMPTY };
        }
        let outer = at(&self.states, walked.join - 1);
        Reached { hash: outer.hash, extra: outer.extras_end(), outer_bp_matters: outer.bp_matters() }
    }

    /// Keeps the new frames, outermost first, if nothing but words of the thread's own stack was read for them. Returns the key of the
    /// innermost frame and the hash of the whole stack if it did so with all of them; if not, [`Memo::keep_any`] has to keep them.
    #[inline(always)]
    fn keep_plain(&mut self, walked: &Walked, cx: &UnwindContext) -> Option<(u64, u64)> {
        let new_frames = first(&self.new_frames, walked.new_count);
        let (from, to) = (walked.join, walked.join + walked.new_count);
        let is_own = |new: Option<&NewFrame>| new.is_some_and(|new| cx.stack.holds(new.slot));
        // The frames between the innermost and the outermost lie between them.
        if !walked.is_plain || !is_own(new_frames.first()) || !is_own(new_frames.last()) {
            return None;
        }
        let Reached { mut hash, mut extra, mut outer_bp_matters } = self.reached(walked);
        let mut outer_bp = walked.join_bp;
        let (words, states) = (self.words.get_mut(from..to)?, self.states.get_mut(from..to)?);
        for ((new, word), state) in new_frames.iter().rev().zip(words).zip(states) {
            hash = stack_hash(new.key, hash);
            let is_saved = new.bp_slot != 0 && outer_bp_matters;
            let bp_word = Check { address: new.bp_slot, value: outer_bp };
            if is_saved && !keep_extra(&mut self.extras, &mut extra, cx, bp_word) {
                return None;
            }
            outer_bp_matters = new.fp_use.bp_matters(outer_bp_matters);
            outer_bp = new.bp;
            *word = Check { address: new.slot, value: new.ra };
            let mark = (extra as u32) << 3 | u32::from(outer_bp_matters);
            *state = State { bp: new.bp, hash, node: NOT_ASKED, mark };
        }
        self.frame_count = to;
        Some((new_frames.first()?.key, hash))
    }

    /// Adds the new frames, outermost first, to the kept ones, up to the first of which something cannot be kept. Returns whether there was none.
    #[inline(never)]
    fn keep_any(&mut self, walked: &Walked, cx: &UnwindContext) -> bool {
        let Reached { mut hash, mut extra, mut outer_bp_matters } = self.reached(walked);
        let (mut count, mut outer_bp, mut complete) = (walked.join, walked.join_bp, true);
        for i in (0..walked.new_count).rev() {
            let new = *at(&self.new_frames, i);
            hash = stack_hash(new.key, hash);
            let bp_matters = new.fp_use.bp_matters(outer_bp_matters);
            // Words outside the thread's own stack (a fiber's, seen by a signal handler) must not be read again.
            complete &= count < FRAMES_MAX && cx.stack.holds(new.slot);
            if complete && new.bp_slot != 0 && outer_bp_matters {
                complete = keep_extra(
                    &mut self.extras,
                    &mut extra,
                    cx,
                    Check { address: new.bp_slot, value: outer_bp },
                );
            }
            let from = if i > 0 { at(&self.new_frames, i - 1).extras_end as usize } else { 0 };
            for word in part(&self.new_extras, from, new.extras_end as usize) {
                complete = complete && keep_extra(&mut self.extras, &mut extra, cx, *word);
            }
            if complete {
                *at_mut(&mut self.words, count) = Check { address: new.slot, value: new.ra };
                let has_key = is_script_key(new.key);
                if has_key {
                    *at_mut(&mut self.keys, count) = new.key;
                }
                let marks = (has_key as u32) << 2 | (is_node_exact(new.key) as u32) << 1 | bp_matters as u32;
                let mark = (extra as u32) << 3 | marks;
                *at_mut(&mut self.states, count) = State { bp: new.bp, hash, node: NOT_ASKED, mark };
                count += 1;
            }
            (outer_bp_matters, outer_bp) = (bp_matters, new.bp);
        }
        self.frame_count = count;
        complete
    }

    /// The key of a walk's innermost frame and the hash of its whole stack.
    #[inline(always)]
    fn hash_new_frames(&self, walked: &Walked) -> (u64, u64) {
        let (mut hash, mut key) = (self.reached(walked).hash, 0);
        for new in first(&self.new_frames, walked.new_count).iter().rev() {
            key = new.key;
            hash = stack_hash(key, hash);
        }
        (key, hash)
    }
}

/// Adds a word to the kept ones; returns false if it must not be, or cannot be, read again.
#[inline(always)]
fn keep_extra(extras: &mut [Check; EXTRAS_MAX], count: &mut usize, cx: &UnwindContext, word: Check) -> bool {
    // What a JVM has made of its code stays where it is.
    let fits = *count < EXTRAS_MAX && (cx.stack.holds(word.address) || hotspot::holds(word.address));
    if fits {
        *at_mut(extras, *count) = word;
        *count += 1;
    }
    fits
}
