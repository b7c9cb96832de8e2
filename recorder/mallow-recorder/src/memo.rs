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

mod interned;
mod keeping;
mod paths;
mod walking;

use crate::Caller;
use crate::bounds::{at, first};
use crate::found::FoundStacks;
use crate::from_scratch::FRAMES_MAX;
use crate::kept::{NOT_ASKED, State};
use crate::nodes::Stack;
use crate::path_cache::PathCache;
use crate::plain::NewFrame;
use crate::process;
use crate::script::memo::ScriptMemo;
use crate::walk::{Check, Frame, UnwindContext, unchanged};
use crate::whole_stacks::{WHOLE_WORDS_MAX, WholeStacks};

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
}
