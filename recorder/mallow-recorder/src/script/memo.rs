//! The script's stack of the last call, kept, so that the next one is found by looking.
//!
//! A runtime keeps its frames as a list: each names the one that called it. Kept are, for each frame of the last stack, where it lies, what
//! was seen there (its code and the instruction under way) and its node. At the next call the live list is followed from the innermost
//! frame to one that was kept, and from there on to the outermost: *all* frames are compared, because an inner one may be left
//! and entered again at the same address and instruction while its caller has moved on. The frames outside of the outermost
//! difference keep their nodes, the others are interned.
//!
//! A frame is read only when a live one has pointed at it. The addresses come from the memo, so the reads need not wait for one another.

use super::code_log;
use super::frames::{FrameState, Frames};
use super::trusted::Trusted;
use crate::bounds::{at, at_mut, first};
use crate::found::{FoundStacks, KEPT_COUNT};
use crate::nodes::{self, EMPTY, Stack};
use crate::process;
use core::sync::atomic::Ordering;
use mallow_wire::script::pair_key;
use mallow_wire::shared::{NODE_ROOT, Node, is_node_cut, stack_hash};

/// The deepest stack that is followed, in frames. Calls at deeper ones have their native stack.
pub const FRAMES_MAX: usize = 16 * 1024;
/// How many innermost kept frames may have been left between two calls, so that the others are still recognised at
/// once.
const LEFT_MAX: usize = 8;
/// If the stack is too deep, one call in so many checks whether it still is.
const DEEP_CALLS: u32 = 256;
/// A quarter as many cost a Python program that recurses 1.7 times as many look-ups in the node table; four times as many save none.
const PAIRS: usize = 1024;
const STEPS: usize = 1024;

#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Kept {
    frame: usize,
    look: FrameState,
    stack: Stack,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct NewFrame {
    frame: usize,
    look: FrameState,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
struct Pair {
    native: u32,
    script: u32,
    /// Plus 1; 0 where there is none.
    node: u32,
}

/// Where stacks are kept, and the native one that the script's will be paired with.
#[derive(Clone, Copy, Debug)]
struct Nodes {
    table: *const Node,
    native: u32,
}

impl Nodes {
    /// Asks for the memory in which a script's stack lies, and for that of its pair. A stack that is not kept by the thread is one of many: both are
    /// seldom in a cache, and would be waited for one after the other.
    ///
    /// # Safety
    /// As [`ScriptMemo::pair`].
    #[inline(always)]
    unsafe fn prefetch(self, hash: u64, is_innermost: bool) {
        // SAFETY: by contract.
        unsafe {
            nodes::prefetch(self.table, hash);
            if is_innermost {
                nodes::prefetch(self.table, pair_hash(self.native, hash));
            }
        }
    }
}

/// A frame on a stack, and the resulting node.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Step {
    look: FrameState,
    stack: Stack,
    /// The generation of the code, plus 1.
    generation: u64,
    callers: u32,
}

/// Where a thread was found without a frame. Zeroed at first.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Unframed {
    /// The thread's state.
    pub state: usize,
    /// What would point at the innermost frame.
    pub holder: usize,
}

/// A thread's memo of its script. Zeroed at first.
#[repr(C)]
#[derive(Debug)]
pub struct ScriptMemo {
    /// The generation of code at which the frames were kept.
    generation: u64,
    count: usize,
    /// Number of calls to come at which the stack counts as too deep.
    deep_calls: u32,
    /// The script's node at the last call.
    last: u32,
    /// Pairs or steps are kept.
    is_used: bool,
    /// The states of the thread that its reader trusts.
    pub trusted: Trusted,
    /// Before the first frame of a Python.
    pub unframed: Unframed,
    pairs: [Pair; PAIRS],
    /// Recent results of frames, so that neither the code's number nor its node has to be looked up.
    steps: [Step; STEPS],
    /// More of both, by their hashes.
    found: FoundStacks<KEPT_COUNT>,
    /// Outermost first, from 1 on: 0 is the end of the stack.
    kept: [Kept; FRAMES_MAX + 1],
    /// The new frames of the current call, innermost first.
    fresh: [NewFrame; FRAMES_MAX],
}

impl ScriptMemo {
    /// Forgets everything.
    pub fn forget(&mut self) {
        (self.count, self.deep_calls, self.last) = (0, 0, 0);
        self.trusted.forget();
        self.unframed = Unframed::default();
        if self.is_used {
            self.pairs.iter_mut().for_each(|pair| pair.node = 0);
            self.steps.iter_mut().for_each(|step| step.generation = 0);
            self.found.forget();
            self.is_used = false;
        }
    }

    /// The node of a native stack together with the script's.
    ///
    /// # Safety
    /// The frames are those of the calling thread; `table` is the node table of the shared memory, the same at each call.
    #[inline]
    pub unsafe fn pair(&mut self, native: u32, frames: &impl Frames, table: *const Node) -> u32 {
        // SAFETY: by contract.
        let Some(stack) = (unsafe { self.stack(frames, Nodes { table, native }) }) else { return native };
        let script = stack.node;
        if script != self.last {
            if !frames.hold() {
                self.forget();
                return native;
            }
            self.last = script;
        }
        let place = pair_place(native, script);
        let pair = *at(&self.pairs, place);
        if pair.node != 0 && (pair.native, pair.script) == (native, script) {
            return pair.node - 1;
        }
        let hash = pair_hash(native, stack.hash);
        let known = self.found.find(hash);
        // SAFETY: by contract.
        let node =
            known.unwrap_or_else(|| unsafe { nodes::intern_at(table, native, pair_key(script), hash) });
        if !is_node_cut(node) {
            self.is_used = true;
            if known.is_none() {
                self.found.remember(hash, node);
            }
            *at_mut(&mut self.pairs, place) = Pair { native, script, node: node + 1 };
        }
        node
    }

    /// The script's stack; none when there is none, or no room for it.
    ///
    /// # Safety
    /// As [`ScriptMemo::pair`].
    #[inline]
    unsafe fn stack(&mut self, frames: &impl Frames, nodes: Nodes) -> Option<Stack> {
        let generation = code_log::generation();
        if self.generation != generation {
            (self.generation, self.count) = (generation, 0);
        }
        if self.count > FRAMES_MAX {
            process::invariant_broke();
            self.count = 0;
        }
        if self.deep_calls > 0 {
            self.deep_calls -= 1;
            return too_deep();
        }
        let innermost = frames.innermost();
        if innermost == 0 {
            return None;
        }
        // SAFETY: by contract.
        let stack = unsafe {
            match self.stack_in_place(frames, innermost, nodes) {
                Some(stack) => stack,
                None if self.join(frames, innermost, nodes) || self.start_over(frames, innermost, nodes) => {
                    at(&self.kept, self.count).stack
                }
                None => {
                    (self.count, self.deep_calls) = (0, DEEP_CALLS);
                    return too_deep();
                }
            }
        };
        (!is_node_cut(stack.node) && stack.node != NODE_ROOT).then_some(stack)
    }

    /// The stack of a script that is in the frame in which it was, with the same callers at the same places: nearly every call. At most the innermost
    /// frame has gone on. None where anything else has changed.
    #[inline(always)]
    unsafe fn stack_in_place(
        &mut self,
        frames: &impl Frames,
        innermost: usize,
        nodes: Nodes,
    ) -> Option<Stack> {
        let outer_count = self.count.checked_sub(1)?;
        let kept = at(&self.kept, self.count);
        if kept.frame != innermost {
            return None;
        }
        // SAFETY: it is live; and so is each caller that the one inside of it names.
        let look = unsafe {
            let mut inside = at(&self.kept, outer_count);
            if !frames.is_called_by(innermost, inside.frame) {
                return None;
            }
            for outside in first(&self.kept, outer_count).iter().rev() {
                if !frames.is_unchanged(inside.frame, inside.look, outside.frame) {
                    return None;
                }
                inside = outside;
            }
            frames.look(innermost)
        };
        if look == kept.look {
            return Some(kept.stack);
        }
        let callers = if outer_count > 0 { at(&self.kept, outer_count).stack } else { EMPTY };
        // SAFETY: the live frame looks so.
        let stack = unsafe { self.stack_of(frames, nodes, callers, innermost, look, true) };
        *at_mut(&mut self.kept, self.count) = Kept { frame: innermost, look, stack };
        Some(stack)
    }

    /// Follows the frames from the innermost to a kept one and on to the outermost; returns false if the rest differs
    /// from what was kept.
    #[inline(never)]
    unsafe fn join(&mut self, frames: &impl Frames, innermost: usize, nodes: Nodes) -> bool {
        let (mut fresh, mut frame) = (0, innermost);
        let kept = loop {
            if frame == 0 || fresh == LEFT_MAX {
                return false;
            }
            if let Some(kept) = self.kept_near_top(frame) {
                break kept;
            }
            // SAFETY: a live frame names it, or it is the innermost.
            let look = unsafe { frames.look(frame) };
            *at_mut(&mut self.fresh, fresh) = NewFrame { frame, look };
            fresh += 1;
            // SAFETY: as above.
            frame = unsafe { frames.outward(frame) };
        };
        // SAFETY: the kept frame was met above.
        let Some(differs) = (unsafe { self.outermost_difference(frames, kept) }) else { return false };
        if kept + fresh > FRAMES_MAX {
            return false;
        }
        if differs <= kept || fresh > 0 {
            // SAFETY: all of these frames are live.
            unsafe { self.intern(frames, nodes, differs, kept + 1, fresh) };
        }
        self.count = kept + fresh;
        true
    }

    /// Compares the kept frames up to an index, which is that of a live one. Returns the index of the outermost whose state has changed, or the one behind
    /// them: from there on inwards nodes are others. None if another frame called one of them.
    #[inline(always)]
    unsafe fn outermost_difference(&self, frames: &impl Frames, kept: usize) -> Option<usize> {
        let mut differs = kept + 1;
        let mut inside = at(&self.kept, kept);
        for (index, outside) in first(&self.kept, kept).iter().enumerate().rev() {
            // SAFETY: the frame inside of it names it, or it is the live one.
            let (now, outward) = unsafe { (frames.look(inside.frame), frames.outward(inside.frame)) };
            if now != inside.look {
                differs = index + 1;
            }
            if outward != outside.frame {
                return None;
            }
            inside = outside;
        }
        Some(differs)
    }

    /// Returns the index of a frame, if it is among the innermost kept ones.
    #[inline(always)]
    fn kept_near_top(&self, frame: usize) -> Option<usize> {
        let lowest = self.count.saturating_sub(LEFT_MAX);
        (lowest + 1..=self.count).rev().find(|index| at(&self.kept, *index).frame == frame)
    }

    /// Interns the kept frames of a range, whose state may have changed, and the new ones on top of them.
    #[inline]
    unsafe fn intern(&mut self, frames: &impl Frames, nodes: Nodes, from: usize, end: usize, fresh: usize) {
        let mut stack = if from > 1 { at(&self.kept, from - 1).stack } else { EMPTY };
        let count = end + fresh;
        for index in from..count {
            let NewFrame { frame, look } = match index.checked_sub(end) {
                Some(above) => *at(&self.fresh, fresh - 1 - above),
                None => {
                    let frame = at(&self.kept, index).frame;
                    // SAFETY: by contract of the caller the frame is live.
                    NewFrame { frame, look: unsafe { frames.look(frame) } }
                }
            };
            // SAFETY: a live frame looks so; by contract.
            stack = unsafe { self.stack_of(frames, nodes, stack, frame, look, index + 1 == count) };
            *at_mut(&mut self.kept, index) = Kept { frame, look, stack };
        }
    }

    /// The stack of some callers with one frame more. Behind the innermost one its pair is asked for.
    #[inline(always)]
    unsafe fn stack_of(
        &mut self,
        frames: &impl Frames,
        nodes: Nodes,
        callers: Stack,
        frame: usize,
        look: FrameState,
        is_innermost: bool,
    ) -> Stack {
        let mixed = (look.place ^ look.code ^ callers.hash as usize).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let place = mixed >> 48 & (STEPS - 1);
        let step = at(&self.steps, place);
        if step.look == look && step.callers == callers.node && step.generation == self.generation + 1 {
            return step.stack;
        }
        // SAFETY: by contract of the callers.
        let stack = unsafe {
            match frames.key(frame, look) {
                0 => callers,
                key => self.interned(nodes, callers, key, is_innermost),
            }
        };
        if !is_node_cut(stack.node) {
            let generation = self.generation + 1;
            self.is_used = true;
            *at_mut(&mut self.steps, place) = Step { look, stack, callers: callers.node, generation };
        }
        stack
    }

    /// The stack of some callers with a frame of this key. Frames further in than a missing one are not looked for.
    ///
    /// # Safety
    /// As [`ScriptMemo::pair`].
    #[inline(always)]
    unsafe fn interned(&mut self, nodes: Nodes, callers: Stack, key: u64, is_innermost: bool) -> Stack {
        if is_node_cut(callers.node) {
            return callers;
        }
        let hash = stack_hash(key, callers.hash);
        if let Some(node) = self.found.find(hash) {
            return Stack { hash, node };
        }
        // SAFETY: by contract.
        let stack = unsafe {
            nodes.prefetch(hash, is_innermost);
            nodes::intern(nodes.table, callers, key)
        };
        if !is_node_cut(stack.node) {
            self.found.remember(hash, stack.node);
        }
        stack
    }

    /// Follows all frames; false when there are too many.
    #[inline(never)]
    unsafe fn start_over(&mut self, frames: &impl Frames, innermost: usize, nodes: Nodes) -> bool {
        let (mut fresh, mut frame) = (0, innermost);
        while frame != 0 {
            if fresh == FRAMES_MAX {
                return false;
            }
            // SAFETY: a live frame names it, or it is the innermost.
            let look = unsafe { frames.look(frame) };
            *at_mut(&mut self.fresh, fresh) = NewFrame { frame, look };
            fresh += 1;
            // SAFETY: as above.
            frame = unsafe { frames.outward(frame) };
        }
        let is_kept = |index: &usize| {
            let (kept, now) = (at(&self.kept, *index), at(&self.fresh, fresh - *index));
            kept.frame == now.frame && kept.look == now.look
        };
        let same = (1..=self.count.min(fresh)).take_while(is_kept).count();
        // SAFETY: all of these frames are live.
        unsafe { self.intern(frames, nodes, same + 1, same + 1, fresh - same) };
        self.count = fresh;
        true
    }
}

/// Where a pair is kept.
#[inline(always)]
fn pair_place(native: u32, script: u32) -> usize {
    let mixed = native.wrapping_mul(0x9e37_79b9) ^ script.wrapping_mul(0x85eb_ca6b);
    (mixed >> 16) as usize % PAIRS
}

/// The hash of a pair. It follows from the hash of the script's stack and not from its node, so that the pair's place is known, and can be
/// asked for, while the node is still being looked up.
#[inline(always)]
fn pair_hash(native: u32, script_hash: u64) -> u64 {
    stack_hash(script_hash, u64::from(native).wrapping_mul(0xd6e8_feb8_6659_fd93))
}

#[cold]
fn too_deep() -> Option<Stack> {
    process::header().scripts.events_too_deep.fetch_add(1, Ordering::Relaxed);
    None
}

/// Compares the script's stack of a pair with the one that is followed from scratch, and counts differences.
///
/// # Safety
/// As [`ScriptMemo::pair`].
#[cfg(feature = "verify")]
pub unsafe fn compare(pair: u32, frames: &impl Frames) {
    use mallow_wire::script::pair_script;
    use mallow_wire::shared::node_parent;
    if is_node_cut(pair) || pair == NODE_ROOT {
        return;
    }
    // SAFETY: ids come from the table.
    let node = |id: u32| unsafe { &*process::nodes().add(id as usize) };
    let script = pair_script(node(pair).key.load(Ordering::Relaxed));
    let (mut kept, mut frame) = (script.unwrap_or(NODE_ROOT), frames.innermost());
    let mut same = true;
    while frame != 0 {
        // SAFETY: a live frame names it, or it is the innermost.
        let (key, outward) = unsafe { (frames.key(frame, frames.look(frame)), frames.outward(frame)) };
        frame = outward;
        if key == 0 {
            continue;
        }
        same &= kept != NODE_ROOT && node(kept).key.load(Ordering::Relaxed) == key;
        if !same {
            break;
        }
        kept = node_parent(node(kept).link.load(Ordering::Relaxed));
    }
    let scripts = &process::header().scripts;
    scripts.verify_stacks.fetch_add(1, Ordering::Relaxed);
    if (!same || kept != NODE_ROOT) && frames.hold() {
        scripts.verify_mismatches.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "memo_tests.rs"]
mod tests;
