//! Unwinds the caller's stack, and reuses what is unchanged of the last call's stack instead of walking it again.
//!
//! A stack walk is a function of the registers at its start, of the unwind tables, and of the words of the stack that it
//! reads. The memo stores, for each frame of the last walk, the words that were read to leave it, and the frame's id. At the
//! next call:
//!
//! 1. frames below the stack pointer are dropped: their memory is dead, whatever it contains;
//! 2. the stored words are compared with the stack, from the outermost frame inwards, up to the first difference;
//! 3. the new stack is walked from its innermost frame until it reaches a stored frame with the same slot, return address and
//!    rbp. From there on the walk would read the stored words and nothing else, so it would repeat itself, and the stored
//!    frames are taken.
//!
//! Programs call in loops: the same few paths lead from one stored frame to the allocator, in turns. The most recent of these
//! paths are kept in [`crate::path_cache`], which is tried before a walk. A short stack that is reached by the same path often is kept
//! whole ([`crate::whole_stacks`]), and the memo is not asked.
//!
//! A stack that was found by walking has a hash, computed from that of its callers and its innermost frame. Stored frames have
//! theirs, so a call needs one look-up in the node table ([`crate::nodes::find`]); nodes of the frames in between are looked up
//! only if the stack is new. The thread's own cache ([`crate::found`]) is tried first.
//!
//! *Every* word is compared. Comparing return addresses alone is wrong: a dead slot below a live `alloca` can contain the old
//! address while rbp, and with it the rest of the walk, has changed. The one exception is a value of rbp that no frame further
//! out uses before it is restored from the stack: code without frame pointers keeps arbitrary data there, which changes all the
//! time, and the walk does not depend on it.
//!
//! The memo is used on the thread's own stack only ([`crate::stack_range`] says why), and not by a signal handler that
//! interrupted a call of ours.

mod paths;

use crate::Caller;
use crate::bounds::{at, at_mut, first, part};
use crate::found::FoundStacks;
use crate::from_scratch::{FRAMES_MAX, FRAMES_OF_DEEPER, truncated};
use crate::kept::{NOT_ASKED, State};
use crate::nodes::{self, EMPTY, Stack};
use crate::path_cache::PathCache;
use crate::plain::{self, NewFrame, Until};
use crate::process;
use crate::rules::Rule;
use crate::script::hotspot;
use crate::script::memo::ScriptMemo;
use crate::walk::{
    CHECKS_PER_STEP, Check, Frame, Outcome, UnwindContext, java_step, key_of, plain_step, rule_and_key,
    step_beyond, unchanged, unusual_step,
};
use crate::whole_stacks::{WHOLE_WORDS_MAX, WholeStacks};
use mallow_wire::script::is_script_key;
use mallow_wire::shared::{is_node_cut, is_node_exact, stack_hash};

/// An interpreted frame of Java has three, and its caller's rbp.
const EXTRAS_MAX: usize = 4 * FRAMES_MAX;

/// A thread's memo. Lives in memory of its own, zeroed at first.
#[repr(C)]
#[derive(Debug)]
pub struct Memo {
    generation: u64,
    frame_count: usize,
    /// The stack around the outermost frame: none, or the mark of one that is deeper than we follow.
    root: Stack,
    /// Each frame's slot with its return address, outermost first. Leaving a frame means reading the word of
    /// the frame before it in this list.
    words: [Check; FRAMES_MAX],
    states: [State; FRAMES_MAX],
    /// Other paths by which recent calls reached the kept frames.
    path_cache: PathCache,
    /// Short stacks that are known as a whole.
    whole_stacks: WholeStacks,
    found: FoundStacks<0>,
    /// Other words that were read: saved values of rbp that matter, and the words of unusual frames.
    extras: [Check; EXTRAS_MAX],
    /// The new frames of the walk in progress, innermost first, and the words that its unusual frames read.
    new_frames: [NewFrame; FRAMES_MAX],
    new_extras: [Check; EXTRAS_MAX],
    /// The keys of kept frames that do not follow from their addresses.
    keys: [u64; FRAMES_MAX],
    /// The stack of the script.
    pub script: ScriptMemo,
}

/// An eighth of a limited address space holds so many threads. What only few threads need is mapped by itself ([`crate::found`]).
const _: () = assert!(size_of::<Memo>() <= 9 << 20);

/// The result of a walk.
struct Walked {
    new_count: usize,
    /// The walk reached the kept frame below this index; 0 if it reached none.
    join: usize,
    /// rbp at that frame.
    join_bp: usize,
    /// The stack around the outermost new frame if no kept frame was reached.
    root: Stack,
    /// Nothing but words of the stack was read for the new frames, and their keys follow from their return addresses.
    is_plain: bool,
}

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
    /// Maps a new memo; null if the kernel has no memory. Uses only address space until it is used.
    pub fn map() -> *mut Memo {
        // Without it calls of the thread are counted as lost.
        process::map_table(size_of::<Memo>()).cast()
    }

    /// Clears the memo: at a thread's start, because it may hold stacks of the process that this one was forked from,
    /// whose nodes differ; and after a call of ours was left by a jump, because it may hold half of one stack and
    /// half of another.
    ///
    /// # Safety
    /// `memo` is valid and nobody else uses it.
    pub unsafe fn forget(memo: *mut Memo) {
        // SAFETY: by contract.
        let memo = unsafe { &mut *memo };
        memo.frame_count = 0;
        memo.path_cache.forget();
        memo.whole_stacks.forget();
        memo.found.forget();
        memo.script.forget();
    }

    /// Returns the stack node of a caller. On a foreign stack nothing is kept.
    ///
    /// # Safety
    /// The memo belongs to the calling thread, `caller` holds the registers of a live frame, and no other
    /// call on this memo is under way.
    #[inline(always)]
    pub unsafe fn node(memo: *mut Memo, caller: Caller, cx: &UnwindContext) -> u32 {
        // SAFETY: by contract the memo is ours alone.
        let memo = unsafe { &mut *memo };
        // A stack that was deep lately is not looked for among short ones.
        if memo.frame_count <= WHOLE_WORDS_MAX && memo.generation == cx.generation {
            // SAFETY: by contract `sp` points at the return address. The frames of kept stacks lie on the thread's own.
            let known = unsafe { memo.whole_stacks.find(&Frame::innermost(caller)) };
            if let Some(node) = known {
                return node;
            }
        }
        // SAFETY: by contract.
        unsafe { memo.node_by_frames(caller, cx) }
    }

    /// Returns the node of a caller whose whole stack is not among the short ones that were kept. Not inlined: there is one copy of this code.
    #[inline(never)]
    unsafe fn node_by_frames(&mut self, caller: Caller, cx: &UnwindContext) -> u32 {
        // SAFETY: by contract `sp` points at the return address.
        let innermost = unsafe { Frame::innermost(caller) };
        if !cx.stack.holds(caller.sp) {
            self.frame_count = 0;
        }
        // SAFETY: the kept slots at or above `sp` lie on the thread's own stack.
        unsafe { self.revalidate(caller.sp, cx.generation) };
        let count = self.frame_count;
        if count > 0 && self.is_kept(count - 1, &innermost) {
            return match at(&self.states, count - 1).node {
                NOT_ASKED => self.ask(count).node,
                node => node,
            };
        }
        // SAFETY: the caller's frame and the kept ones are live.
        if let Some(node) = unsafe { self.node_by_path(&innermost, cx) } {
            return node;
        }
        // SAFETY: by contract.
        let walked = unsafe { self.walk(innermost, cx) };
        let node = self.commit(&walked, cx);
        if !self.remember_path(&walked, &innermost) {
            self.remember_whole(&innermost, node);
        }
        node
    }

    /// Returns whether a walk that reaches `frame` would go on as the kept one did.
    #[inline(always)]
    fn is_kept(&self, index: usize, frame: &Frame) -> bool {
        let (word, state) = (at(&self.words, index), at(&self.states, index));
        word.address == frame.slot && word.value == frame.ra && (state.bp == frame.bp || !state.bp_matters())
    }

    /// Called after code was unloaded. New code may return to the same addresses: neither kept frames nor cached
    /// paths can detect that.
    #[cold]
    #[inline(never)]
    fn forget_unloaded(&mut self, generation: u64) {
        self.frame_count = 0;
        self.path_cache.forget();
        self.whole_stacks.forget();
        self.generation = generation;
    }

    /// Drops what is below `sp` and what has changed.
    #[inline(always)]
    unsafe fn revalidate(&mut self, sp: usize, generation: u64) {
        if self.generation != generation {
            self.forget_unloaded(generation);
        }
        let mut count = self.frame_count;
        if count > FRAMES_MAX {
            process::invariant_broke();
            count = 0;
        }
        while count > 0 && at(&self.words, count - 1).address < sp {
            count -= 1;
        }
        // SAFETY: by contract of the caller.
        count = unsafe { unchanged(first(&self.words, count)) };
        if count > 0 && at(&self.states, count - 1).extras_end() != 0 {
            let end = at(&self.states, count - 1).extras_end();
            // SAFETY: as above.
            let same = unsafe { unchanged(first(&self.extras, end)) };
            while count > 0 && at(&self.states, count - 1).extras_end() > same {
                count -= 1;
            }
        }
        self.frame_count = count;
    }

    /// Walks from `frame` until it reaches a kept frame.
    #[inline(always)]
    unsafe fn walk(&mut self, mut frame: Frame, cx: &UnwindContext) -> Walked {
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

    /// Adds the new frames, outermost first, to the kept ones, and returns the innermost node.
    #[inline(always)]
    fn commit(&mut self, walked: &Walked, cx: &UnwindContext) -> u32 {
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

    /// The node of a walk's whole stack, which the thread does not know: found at once when the table has it.
    #[inline(always)]
    fn node_of(&mut self, walked: &Walked, key: u64, hash: u64) -> u32 {
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
    fn ask(&mut self, count: usize) -> Stack {
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
