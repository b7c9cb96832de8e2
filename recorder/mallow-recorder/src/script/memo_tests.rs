//! A script's stack is the one that is followed from scratch, whatever was kept.

use super::*;
use crate::nodes::tests::table;

/// Rounds, fewer for an interpreter.
const ROUNDS: usize = if cfg!(miri) { 200 } else { 200_000 };
const DEPTH_MAX: usize = 40;
/// A native node whose pairs share their places with those of 0.
const SHARES_A_PLACE: u32 = 563;

/// The stack of a script, innermost last. Each frame lies where its depth has it, so addresses come again.
#[derive(Default)]
struct Script {
    frames: Vec<FrameState>,
    /// What each code is, which its address does not say once it has been freed.
    codes: [u64; 16],
}

const AT: usize = 0x1000;

impl Script {
    fn index(frame: usize) -> usize {
        (frame - AT) / 16
    }
}

impl Frames for Script {
    fn innermost(&self) -> usize {
        self.frames.len().checked_sub(1).map_or(0, |index| AT + index * 16)
    }

    unsafe fn look(&self, frame: usize) -> FrameState {
        self.frames[Script::index(frame)]
    }

    unsafe fn outward(&self, frame: usize) -> usize {
        if frame == AT { 0 } else { frame - 16 }
    }

    unsafe fn key(&self, _frame: usize, look: FrameState) -> u64 {
        match look.code {
            // Such a frame is none of the script's.
            0 => 0,
            code => self.codes[code] << 20 | look.place as u64 | 1 << 62,
        }
    }
}

/// The twin: every frame, from the outermost on.
fn from_scratch(table: *const Node, native: u32, script: &Script) -> u32 {
    let mut stack = EMPTY;
    for look in &script.frames {
        // SAFETY: it reads what it is given; a zeroed table.
        unsafe {
            match script.key(0, *look) {
                0 => {}
                key => stack = nodes::intern(table, stack, key),
            }
        }
    }
    match stack.node {
        NODE_ROOT => native,
        // SAFETY: as above.
        script => unsafe { nodes::intern_at(table, native, pair_key(script), pair_hash(native, stack.hash)) },
    }
}

#[test]
fn a_pair_is_that_of_the_stack_that_is_followed_from_scratch() {
    let table = table();
    assert!((0..1000).all(|script| pair_place(0, script) == pair_place(SHARES_A_PLACE, script)));
    // SAFETY: integers: zeros are valid.
    let mut memo: Box<ScriptMemo> = unsafe { Box::new_zeroed().assume_init() };
    let mut script = Script { codes: core::array::from_fn(|code| code as u64), ..Script::default() };
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut deepest = 0;
    for _ in 0..ROUNDS {
        // Some calls and returns, then another instruction somewhere: an outer frame moves on only when the inner ones have returned,
        // but that is not for the memo to rely on.
        let returns = if draw(50) == 0 { DEPTH_MAX as u64 } else { draw(4) };
        let depth = script.frames.len().saturating_sub(returns as usize);
        script.frames.truncate(depth);
        for _ in 0..draw(4) {
            if script.frames.len() < DEPTH_MAX {
                script.frames.push(FrameState { place: draw(3) as usize, code: draw(16) as usize });
            }
        }
        if !script.frames.is_empty() {
            let moved = draw(script.frames.len() as u64) as usize;
            script.frames[moved].place = draw(3) as usize;
        }
        deepest = deepest.max(script.frames.len());
        if draw(1000) == 0 {
            // Code is freed, and other code is where it was.
            script.codes[draw(16) as usize] += 16;
            // What the next generation does; that number is for all threads.
            memo.count = 0;
            memo.steps.iter_mut().for_each(|step| step.generation = 0);
        }
        // Those whose pairs with a script share a place among the kept ones, and another one.
        for native in [0, SHARES_A_PLACE, draw(5) as u32] {
            // SAFETY: the script's frames are read as they are; a zeroed table.
            let found = unsafe { memo.pair(native, &script, table) };
            assert_eq!(found, from_scratch(table, native, &script), "{:?}", script.frames);
        }
    }
    assert!(deepest > 10, "{deepest} frames");
}
